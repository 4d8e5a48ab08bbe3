use std::sync::Arc;

use bytes::Bytes;
use concord_store::{Change, KeyRange, Revision};

use crate::{
    Entry, Event, EventKind,
    history::History,
    kept::Kept,
    live::{Live, LiveIter},
};

/// Everything known about the revisions from `oldest` to `revision`: the entries as they are now and
/// what happened to them since `oldest`.
///
/// Both are persistent: cloning is cheap, and a change copies only the nodes on its path, or none if
/// no snapshot shares them.
#[derive(Debug, Clone)]
pub(crate) struct State {
    live: Live,
    pub(crate) history: History,
    pub(crate) revision: Revision,
    pub(crate) oldest: Revision,
}

/// Where an entry was found.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Found<'a> {
    /// It is as it was.
    Live(&'a Entry),
    /// The history has it, perhaps packed.
    Past(&'a Kept),
}

impl<'a> Found<'a> {
    pub(crate) fn key(self) -> &'a Bytes {
        match self {
            Self::Live(entry) => &entry.key,
            Self::Past(kept) => kept.key(),
        }
    }
}

impl State {
    /// A state that knows one revision and nothing about the time before it.
    pub(crate) fn loaded(live: Live, revision: Revision) -> Self {
        Self { live, history: History::default(), revision, oldest: revision }
    }

    /// Applies a change of the revision after `self.revision`, which the caller advances when it has
    /// applied all of them. `None` if nothing changed: a key was deleted that is not there.
    pub(crate) fn apply(&mut self, revision: Revision, change: Change) -> Option<Event> {
        let (current, previous) = match change {
            Change::Put(kv) => {
                let entry = Arc::new(kv);
                let previous = self.live.put(Arc::clone(&entry));
                (Some(entry), previous)
            }
            Change::Delete { key } => (None, self.live.remove(&key)),
        };
        let kind = match (current, previous) {
            (Some(entry), None) => EventKind::Created(entry),
            (Some(current), Some(previous)) => EventKind::Modified { current, previous },
            (None, Some(previous)) => EventKind::Deleted { previous },
            (None, None) => return None,
        };
        Some(Event { revision, kind })
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.live.get(key)
    }

    /// What `key` was at a revision.
    pub(crate) fn get_at(&self, key: &[u8], at: Revision) -> Option<Found<'_>> {
        match self.history.first_after(key, at) {
            Some(event) => event.previous().map(Found::Past),
            None => self.live.get(key).map(Found::Live),
        }
    }

    pub(crate) fn live(&self, range: &KeyRange) -> LiveIter<'_> {
        self.live.range(range)
    }

    pub(crate) fn len(&self) -> usize {
        self.live.len()
    }
}
