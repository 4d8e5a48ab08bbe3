use std::{borrow::Cow, collections::BTreeMap};

use bytes::Bytes;
use concord_meta::{Status, fields, fields::KnownFields, labels};
use concord_replica::{Entry, Scope};
use serde::Deserialize;

use crate::{
    Form, Item, Object, ObjectName, Storage,
    encode::{stored_object, stored_version},
};

/// Which objects of a collection are meant.
#[derive(Debug, Clone)]
pub struct Selection {
    namespace: Option<String>,
    labels: labels::Selector,
    fields: fields::Selector,
}

/// All that label selectors have to know of an object; the rest is skipped, not parsed.
#[derive(Deserialize)]
struct Labelled<'a> {
    #[serde(borrow, default)]
    metadata: LabelledMetadata<'a>,
}

#[derive(Deserialize, Default)]
struct LabelledMetadata<'a> {
    #[serde(borrow, default)]
    labels: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
}

struct BorrowedLabels<'a>(BTreeMap<Cow<'a, str>, Cow<'a, str>>);

impl labels::Labels for BorrowedLabels<'_> {
    fn label(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(AsRef::as_ref)
    }
}

impl Selection {
    /// The objects of a namespace, or of all if none is given, that the selectors match.
    ///
    /// # Errors
    ///
    /// 400 for a field that objects of this kind cannot be selected by.
    pub fn new(
        storage: &Storage,
        namespace: Option<&str>,
        labels: &labels::Selector,
        fields: &fields::Selector,
    ) -> Result<Self, Status> {
        fields.check(known_fields(storage)).map_err(|error| Status::bad_request(error.0))?;
        let namespace = namespace.filter(|_| storage.namespaced).map(ToOwned::to_owned);
        Ok(Self { namespace, labels: labels.clone(), fields: fields.clone() })
    }

    /// Whether every object of the collection is meant.
    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// The namespace, if it is one.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Where objects that are meant can be: one key if the selector names the object, else all of the collection.
    pub fn scope(&self, storage: &Storage) -> Scope {
        let name = self.fields.requires_exact_match("metadata.name").filter(|name| !name.is_empty());
        match (name, &self.namespace) {
            (Some(name), Some(namespace)) => Scope::key(storage.key(ObjectName { namespace, name })),
            (Some(name), None) if !storage.namespaced => {
                Scope::key(storage.key(ObjectName { namespace: "", name }))
            }
            _ => Scope::prefix(storage.key_prefix(self.namespace())),
        }
    }

    /// Whether the object itself says whether it is meant, not its key alone.
    pub(crate) fn reads_objects(&self) -> bool {
        !self.labels.is_everything() || !self.is_by_key()
    }

    fn is_by_key(&self) -> bool {
        self.fields.terms().iter().all(|term| in_key(&term.field))
    }

    /// Whether a stored object is meant. One that cannot be read is not.
    pub fn matches(&self, storage: &Storage, entry: &Entry) -> bool {
        self.is_everything() || (self.labels_match(&entry.value) && self.fields_match(storage, entry))
    }

    fn labels_match(&self, value: &Bytes) -> bool {
        if self.labels.is_everything() {
            return true;
        }
        let labelled: Result<Labelled<'_>, _> = serde_json::from_slice(value);
        labelled.is_ok_and(|object| {
            self.labels.matches(&BorrowedLabels(object.metadata.labels.unwrap_or_default()))
        })
    }

    fn fields_match(&self, storage: &Storage, entry: &Entry) -> bool {
        if self.fields.is_everything() {
            return true;
        }
        let Some(name) = storage.object_name(&entry.key) else { return false };
        let object = if self.is_by_key() { Some(Object::new()) } else { storage.selected(entry) };
        let Some(object) = object else { return false };
        self.fields.matches(|field| match field {
            "metadata.name" => Cow::Borrowed(name.name),
            "metadata.namespace" => Cow::Borrowed(name.namespace),
            field => storage.strategy.field(&object, field),
        })
    }
}

impl Storage {
    /// An object, as far as its fields are looked at: those of a custom kind as clients of this version see them.
    fn selected(&self, entry: &Entry) -> Option<Object> {
        let version = self.version.to_string();
        let is_custom = matches!(self.form(&version), Some(Form::Custom(_)));
        let is_as_stored = || {
            entry.mod_revision >= self.formed_since && stored_version(&entry.value) == Some(version.as_str())
        };
        match is_custom && !is_as_stored() {
            true => self.object(&Item::from(entry)).ok(),
            false => stored_object(&entry.value).ok(),
        }
    }
}

fn in_key(field: &str) -> bool {
    matches!(field, "metadata.name" | "metadata.namespace")
}

fn known_fields(storage: &Storage) -> KnownFields<'_> {
    storage.strategy.known_fields()
}
