use bytes::Bytes;

use crate::Revision;

/// A key with its value and its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Bytes,
    /// The value. It is owned on its own: keeping it does not keep a larger buffer alive.
    pub value: Bytes,
    /// The revision at which the key came into being; a delete and a new put start over.
    pub create_revision: Revision,
    /// The revision of the last put.
    pub mod_revision: Revision,
}

/// What a commit did to one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The key was created or got a new value.
    Put(KeyValue),
    /// The key was deleted, by a transaction or because its time to live ran out.
    Delete {
        /// The key that is gone.
        key: Bytes,
    },
}

impl Change {
    /// The key that changed.
    pub fn key(&self) -> &Bytes {
        match self {
            Self::Put(kv) => &kv.key,
            Self::Delete { key } => key,
        }
    }
}

/// All changes of one revision, each to a different key, in the order they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The revision this commit made.
    pub revision: Revision,
    /// What changed. May be empty, see [`crate::Store::follow`].
    pub changes: Vec<Change>,
}
