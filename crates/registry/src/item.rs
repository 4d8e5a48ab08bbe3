use bytes::Bytes;
use concord_replica::Entry;
use concord_store::Revision;

/// An object as it is stored, with its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The key; empty for an object that is not stored, such as the outcome of a dry run.
    pub key: Bytes,
    /// The stored bytes: JSON in the storage version, without a resource version.
    pub value: Bytes,
    /// The revision, which becomes the resource version; `None` for an object that was never stored.
    pub revision: Option<Revision>,
}

impl From<&Entry> for Item {
    fn from(entry: &Entry) -> Self {
        let revision = Some(entry.mod_revision).filter(|revision| *revision > 0);
        Self { key: entry.key.clone(), value: entry.value.clone(), revision }
    }
}
