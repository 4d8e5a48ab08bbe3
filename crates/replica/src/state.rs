use std::{borrow::Borrow, cmp::Ordering, ops::Bound, sync::Arc};

use concord_store::{Change, KeyRange, Revision};
use imbl::{OrdSet, ordset::RangedIter, shared_ptr::DefaultSharedPtr};

use crate::{Entry, Event, EventKind, history::History};

/// An iterator over the newest entries of a range.
pub(crate) type LiveIter<'a> = RangedIter<'a, Live, DefaultSharedPtr>;

/// An entry in the order of its key. One pointer per slot keeps the tree small and cheap to copy.
#[derive(Debug, Clone)]
pub(crate) struct Live(pub(crate) Entry);

impl Ord for Live {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}

impl PartialOrd for Live {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Live {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for Live {}

impl Borrow<[u8]> for Live {
    fn borrow(&self) -> &[u8] {
        &self.0.key
    }
}

/// Everything known about the revisions from `oldest` to `revision`: the entries as they are now and
/// what happened to them since `oldest`.
///
/// Both are persistent: cloning is cheap, and a change copies only the nodes on its path, or none if
/// no snapshot shares them.
#[derive(Debug, Clone)]
pub(crate) struct State {
    live: OrdSet<Live>,
    pub(crate) history: History,
    pub(crate) revision: Revision,
    pub(crate) oldest: Revision,
}

impl State {
    /// A state that knows one revision and nothing about the time before it.
    pub(crate) fn loaded(live: OrdSet<Live>, revision: Revision) -> Self {
        Self { live, history: History::default(), revision, oldest: revision }
    }

    /// Applies a change of the revision after `self.revision`, which the caller advances when it has
    /// applied all of them. `None` if nothing changed: a key was deleted that is not there.
    pub(crate) fn apply(&mut self, revision: Revision, change: Change) -> Option<Event> {
        let (current, previous) = match change {
            Change::Put(kv) => {
                let entry = Arc::new(kv);
                let previous = self.live.insert(Live(Arc::clone(&entry)));
                (Some(entry), previous)
            }
            Change::Delete { key } => (None, self.live.remove(key.as_ref())),
        };
        let previous = previous.map(|Live(entry)| entry);
        let kind = match (current, previous) {
            (Some(entry), None) => EventKind::Created(entry),
            (Some(current), Some(previous)) => EventKind::Modified { current, previous },
            (None, Some(previous)) => EventKind::Deleted { previous },
            (None, None) => return None,
        };
        Some(Event { revision, kind })
    }

    pub(crate) fn get(&self, key: &[u8], at: Revision) -> Option<&Entry> {
        if at < self.revision
            && let Some(event) = self.history.first_after(key, at)
        {
            return event.previous();
        }
        self.live.get(key).map(|Live(entry)| entry)
    }

    pub(crate) fn live(&self, range: &KeyRange) -> LiveIter<'_> {
        let end = range.end.as_ref().map_or(Bound::Unbounded, |end| Bound::Excluded(end.as_ref()));
        self.live.range::<_, [u8]>((Bound::Included(range.start.as_ref()), end))
    }

    pub(crate) fn len(&self) -> usize {
        self.live.len()
    }
}
