//! The documents about one set of APIs.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use aws_lc_rs::digest::{SHA512, digest};
use bytes::Bytes;
use concord_endpoints::{ApiGroup, ApiSet, Origin};
use concord_registry::Resources as _;
use serde_json::json;

use crate::{components::Kinds, document::Subject};

/// Some bytes and their hash.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    pub(crate) bytes: Bytes,
    pub(crate) hash: Arc<str>,
}

/// Everything that is published about a set.
pub(crate) struct Publication {
    set: Arc<ApiSet>,
    release: Arc<str>,
    leaves: BTreeMap<String, Arc<Leaf>>,
    kinds: OnceLock<Kinds>,
    index: OnceLock<Published>,
}

/// A document, made when it is asked for.
pub(crate) struct Leaf {
    subject: Subject,
    /// The group it belongs to: while that is the same, so is the document.
    group: Option<Arc<ApiGroup>>,
    hash: OnceLock<Arc<str>>,
    published: OnceLock<Published>,
}

impl Publication {
    /// What is published about a set. Documents about groups that `before` has, too, are taken from there.
    pub(crate) fn new(set: Arc<ApiSet>, release: Arc<str>, before: Option<&Self>) -> Self {
        let mut leaves: Vec<Leaf> =
            vec![Leaf::new(Subject::Groups, None), Leaf::new(Subject::ServerVersion, None)];
        for group in set.groups() {
            for version in group.versions() {
                let resources =
                    version.resources().iter().map(|endpoint| endpoint.resource.clone()).collect();
                leaves.push(Leaf::new(Subject::Version(version.version().clone(), resources), Some(group)));
            }
            if group.origin() == Origin::BuiltIn {
                leaves.push(Leaf::new(Subject::Group(group.name().to_owned()), Some(group)));
            }
        }
        let keep = |leaf: Leaf| {
            let key = leaf.subject.key();
            let known =
                before.and_then(|before| before.leaves.get(&key)).filter(|known| known.is_same(&leaf));
            let leaf = known.cloned().unwrap_or_else(|| Arc::new(leaf));
            (key, leaf)
        };
        let leaves = leaves.into_iter().map(keep).collect();
        Self { set, release, leaves, kinds: OnceLock::new(), index: OnceLock::new() }
    }

    /// Whether this is about that set.
    pub(crate) fn is_of(&self, set: &Arc<ApiSet>) -> bool {
        Arc::ptr_eq(&self.set, set)
    }

    /// The document of a path, such as `apis/apps/v1`.
    pub(crate) fn leaf(&self, key: &str) -> Option<&Arc<Leaf>> {
        self.leaves.get(key)
    }

    /// The index, if it has been made.
    pub(crate) fn known_index(&self) -> Option<Published> {
        self.index.get().cloned()
    }

    /// The index: which documents there are, and their hashes.
    ///
    /// # Errors
    ///
    /// When a document cannot be written.
    pub(crate) fn index(&self) -> serde_json::Result<Published> {
        if let Some(known) = self.known_index() {
            return Ok(known);
        }
        let mut paths = BTreeMap::new();
        for (key, leaf) in &self.leaves {
            let hash = leaf.hash(self)?;
            paths.insert(key, json!({"serverRelativeURL": url(key, &hash)}));
        }
        let index = Published::new(serde_json::to_vec(&json!({"paths": paths}))?);
        Ok(self.index.get_or_init(|| index).clone())
    }

    fn kinds(&self) -> &Kinds {
        self.kinds.get_or_init(|| Kinds::new(&self.set.all()))
    }
}

/// Where the document of this key and hash is.
pub(crate) fn url(key: &str, hash: &str) -> String {
    format!("/openapi/v3/{key}?hash={hash}")
}

impl Leaf {
    fn new(subject: Subject, group: Option<&Arc<ApiGroup>>) -> Self {
        Self { subject, group: group.cloned(), hash: OnceLock::new(), published: OnceLock::new() }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (&self.group, &other.group) {
            (Some(group), Some(other)) => Arc::ptr_eq(group, other),
            (None, None) => true,
            _ => false,
        }
    }

    /// The document, if it has been made.
    pub(crate) fn known(&self) -> Option<Published> {
        self.published.get().cloned()
    }

    /// The document.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub(crate) fn published(&self, publication: &Publication) -> serde_json::Result<Published> {
        if let Some(known) = self.known() {
            return Ok(known);
        }
        let published = self.make(publication)?;
        self.hash.get_or_init(|| published.hash.clone());
        Ok(self.published.get_or_init(|| published).clone())
    }

    /// The hash alone. The document is not kept: most are never read.
    fn hash(&self, publication: &Publication) -> serde_json::Result<Arc<str>> {
        if let Some(known) = self.hash.get() {
            return Ok(known.clone());
        }
        let hash = self.make(publication)?.hash;
        Ok(self.hash.get_or_init(|| hash).clone())
    }

    fn make(&self, publication: &Publication) -> serde_json::Result<Published> {
        let document = self.subject.document(&publication.release, publication.kinds());
        Ok(Published::new(serde_json::to_vec(&document)?))
    }
}

impl Published {
    /// The hash is upstream's: SHA-512 in capital letters.
    fn new(bytes: Vec<u8>) -> Self {
        let hash: String =
            digest(&SHA512, &bytes).as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        Self { bytes: bytes.into(), hash: hash.into() }
    }
}
