//! The two ordered sets a snapshot consists of.
//!
//! `live` has the entry of every key. `old` has each entry that was replaced or deleted, under its key
//! and the revision that did it, for as long as that revision is in the history window. Together they
//! answer every revision from `oldest` to `revision`. An example, with `oldest` 3:
//!
//! ```text
//! revision 2: put a=1   3: put b=1   4: put a=2   5: delete b   6: put a=3
//!
//! live  a=3 (mod 6)
//! old   (a, until 4) a=1 (mod 2)    (a, until 6) a=2 (mod 4)    (b, until 5) b=1 (mod 3)
//! ```
//!
//! What was `a` at 5? The live entry is too new (6 > 5). Of the old ones of `a`, the first that lasted
//! beyond 5 is `a=2`, and it existed at 5 (4 <= 5). What was `b` at 5? No live entry, and no old one
//! that lasted beyond 5: it was deleted.
//!
//! Both sets are persistent trees: cloning one is cheap, and a change copies only the nodes on its
//! path, or none if no snapshot shares them.

use std::{borrow::Borrow, cmp::Ordering, ops::Bound, sync::Arc};

use concord_store::{Change, KeyRange, Revision};
use equivalent::{Comparable, Equivalent};
use imbl::{OrdSet, ordset::RangedIter, shared_ptr::DefaultSharedPtr};

use crate::{Entry, Event, EventKind};

/// An iterator over the newest entries of a range.
pub(crate) type LiveIter<'a> = RangedIter<'a, Live, DefaultSharedPtr>;
/// An iterator over the superseded entries of a range, by key and then by age.
pub(crate) type OldIter<'a> = RangedIter<'a, Superseded, DefaultSharedPtr>;

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

/// An entry that was current until the revision `until`.
#[derive(Debug, Clone)]
pub(crate) struct Superseded {
    pub(crate) entry: Entry,
    pub(crate) until: Revision,
}

impl Superseded {
    fn place(&self) -> Place<'_> {
        Place { key: &self.entry.key, until: self.until }
    }
}

impl Ord for Superseded {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().compare(other)
    }
}

impl PartialOrd for Superseded {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Superseded {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Superseded {}

/// A place in the order of [`Superseded`], to look it up without owning an entry.
struct Place<'a> {
    key: &'a [u8],
    until: Revision,
}

impl Equivalent<Superseded> for Place<'_> {
    fn equivalent(&self, other: &Superseded) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

impl Comparable<Superseded> for Place<'_> {
    fn compare(&self, other: &Superseded) -> Ordering {
        self.key.cmp(&other.entry.key).then(self.until.cmp(&other.until))
    }
}

/// Everything known about the revisions from `oldest` to `revision`.
#[derive(Debug, Clone)]
pub(crate) struct State {
    live: OrdSet<Live>,
    old: OrdSet<Superseded>,
    pub(crate) revision: Revision,
    pub(crate) oldest: Revision,
}

impl State {
    /// A state that knows one revision and nothing about the time before it.
    pub(crate) fn loaded(live: OrdSet<Live>, revision: Revision) -> Self {
        Self { live, old: OrdSet::new(), revision, oldest: revision }
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
        if let Some(entry) = &previous {
            self.old.insert(Superseded { entry: Arc::clone(entry), until: revision });
        }
        let kind = match (current, previous) {
            (Some(entry), None) => EventKind::Created(entry),
            (Some(current), Some(previous)) => EventKind::Modified { current, previous },
            (None, Some(previous)) => EventKind::Deleted { previous },
            (None, None) => return None,
        };
        Some(Event { revision, kind })
    }

    /// Forgets what `event` superseded. The caller has advanced `oldest` to its revision, or will
    /// before anyone sees this state.
    pub(crate) fn forget(&mut self, event: &Event) {
        if let Some(previous) = event.previous() {
            self.old.remove(&Place { key: &previous.key, until: event.revision });
        }
    }

    pub(crate) fn get(&self, key: &[u8], at: Revision) -> Option<&Entry> {
        let live = self.live.get(key).map(|Live(entry)| entry);
        if at >= self.revision || live.is_some_and(|entry| entry.mod_revision <= at) {
            return live;
        }
        let place = Place { key, until: at };
        let next = self.old.range::<_, Place<'_>>((Bound::Excluded(&place), Bound::Unbounded)).next()?;
        (next.entry.key == key && next.entry.mod_revision <= at).then_some(&next.entry)
    }

    pub(crate) fn live(&self, range: &KeyRange) -> LiveIter<'_> {
        let end = range.end.as_ref().map_or(Bound::Unbounded, |end| Bound::Excluded(end.as_ref()));
        self.live.range::<_, [u8]>((Bound::Included(range.start.as_ref()), end))
    }

    pub(crate) fn old(&self, range: &KeyRange) -> OldIter<'_> {
        let start = Place { key: &range.start, until: 0 };
        let end = range.end.as_ref().map(|end| Place { key: end, until: 0 });
        let end = end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        self.old.range::<_, Place<'_>>((Bound::Included(&start), end))
    }

    pub(crate) fn len(&self) -> usize {
        self.live.len()
    }
}
