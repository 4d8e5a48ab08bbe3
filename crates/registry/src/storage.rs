use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use concord_meta::{GroupKind, GroupResource, GroupVersion};
use concord_store::Revision;

use crate::{Converter, Form, Lifetime, Strategy};

/// How a kind is stored. All served versions of a built-in kind share one; a custom kind has one for each, which
/// differ in the version they work in.
pub struct Storage {
    /// What the resource is called, for errors.
    pub resource: GroupResource,
    /// What an object is called.
    pub kind: String,
    /// The version in which objects are prepared and validated.
    pub version: GroupVersion,
    /// The version in which they are stored.
    pub encoding: GroupVersion,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Where the objects are, with a slash at the end: `/registry/configmaps/`.
    pub prefix: Bytes,
    /// What is particular to the kind.
    pub strategy: Arc<dyn Strategy>,
    /// How to get from one version to another.
    pub converter: Arc<dyn Converter>,
    /// The form of the kind in every served version and in the stored one, by `apiVersion`.
    pub forms: BTreeMap<String, Form>,
    /// Since when all that is written has the form of its version: what is not older is passed on as it is stored.
    pub formed_since: Revision,
    /// How long this lasts, if something else may take its place: that of a custom resource does when its definition
    /// changes.
    pub lifetime: Option<Lifetime>,
}

/// Which object: its place in the keyspace of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectName<'a> {
    /// The namespace; empty for objects that live in none.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
}

impl Storage {
    /// Whether something else has taken its place.
    pub(crate) fn is_over(&self) -> bool {
        self.lifetime.as_ref().is_some_and(Lifetime::is_over)
    }

    /// The key of an object.
    pub fn key(&self, object: ObjectName<'_>) -> Bytes {
        let ObjectName { namespace, name } = object;
        let mut key = Vec::with_capacity(self.prefix.len() + namespace.len() + 1 + name.len());
        key.extend_from_slice(&self.prefix);
        if self.namespaced {
            key.extend_from_slice(namespace.as_bytes());
            key.push(b'/');
        }
        key.extend_from_slice(name.as_bytes());
        key.into()
    }

    /// What the keys of all objects in a namespace begin with; of all objects there are, if none is given.
    pub fn key_prefix(&self, namespace: Option<&str>) -> Bytes {
        match namespace {
            Some(namespace) if self.namespaced => self.key(ObjectName { namespace, name: "" }),
            _ => self.prefix.clone(),
        }
    }

    /// The namespace and the name that a key of this storage stands for.
    pub fn object_name<'k>(&self, key: &'k [u8]) -> Option<ObjectName<'k>> {
        let rest = std::str::from_utf8(key.strip_prefix(self.prefix.as_ref())?).ok()?;
        let (namespace, name) = if self.namespaced { rest.split_once('/')? } else { ("", rest) };
        Some(ObjectName { namespace, name })
    }

    /// The group and the kind.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.version.group.clone(), self.kind.clone())
    }

    /// The form of the kind in a version.
    pub fn form(&self, api_version: &str) -> Option<&Form> {
        self.forms.get(api_version)
    }
}
