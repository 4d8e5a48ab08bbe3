use std::sync::Arc;

use bytes::Bytes;
use concord_store::{KeyRange, KeyValue, Revision};

/// A key with its value at some revision, shared by everything that refers to it.
pub type Entry = Arc<KeyValue>;

/// All events of one revision in one scope, in the order they were written; never empty.
pub type Batch = Arc<[Event]>;

/// What one revision did to one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The revision of the change.
    pub revision: Revision,
    /// What happened.
    pub kind: EventKind,
}

/// What can happen to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// The key came into being.
    Created(Entry),
    /// The key got a new value.
    Modified {
        /// What it is now.
        current: Entry,
        /// What it was until this revision.
        previous: Entry,
    },
    /// The key is gone.
    Deleted {
        /// What it was until this revision.
        previous: Entry,
    },
}

impl Event {
    /// The key that changed.
    pub fn key(&self) -> &Bytes {
        match &self.kind {
            EventKind::Created(entry)
            | EventKind::Modified { current: entry, .. }
            | EventKind::Deleted { previous: entry } => &entry.key,
        }
    }

    /// The entry from this revision on; `None` if it was deleted.
    pub fn current(&self) -> Option<&Entry> {
        match &self.kind {
            EventKind::Created(current) | EventKind::Modified { current, .. } => Some(current),
            EventKind::Deleted { .. } => None,
        }
    }

    /// The entry until this revision; `None` if there was none.
    pub fn previous(&self) -> Option<&Entry> {
        match &self.kind {
            EventKind::Created(_) => None,
            EventKind::Modified { previous, .. } | EventKind::Deleted { previous } => Some(previous),
        }
    }
}

/// The keys a subscription is about.
///
/// Not any range: subscriptions to the same scope share one buffer, and a change finds the scopes it
/// is in by its key, without looking at the others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All keys that begin with these bytes; no bytes mean every key.
    Prefix(Bytes),
    /// Exactly this key.
    Key(Bytes),
}

impl Scope {
    /// All keys that begin with `prefix`.
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        Self::Prefix(prefix.into())
    }

    /// Exactly `key`.
    pub fn key(key: impl Into<Bytes>) -> Self {
        Self::Key(key.into())
    }

    /// Whether `key` is in the scope.
    pub fn contains(&self, key: &[u8]) -> bool {
        match self {
            Self::Prefix(prefix) => key.starts_with(prefix),
            Self::Key(this) => key == this,
        }
    }

    /// The same keys as a range, to scan the initial state of a subscription.
    pub fn range(&self) -> KeyRange {
        match self {
            Self::Prefix(prefix) => KeyRange::prefix(prefix.clone()),
            Self::Key(key) => KeyRange::key(key.clone()),
        }
    }
}
