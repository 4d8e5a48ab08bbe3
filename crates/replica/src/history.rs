//! The recent events, as part of every snapshot.
//!
//! What a key was at an older revision is what the first event after that revision replaced; without
//! such an event it is what the key is now. So the events that subscriptions start from also answer
//! all older revisions, and a change is recorded once. An example, loaded at revision 3:
//!
//! ```text
//! state at 3: a=1 b=1      4: put a=2 (was 1)   5: delete b (was 1)   6: put a=3 (was 2)
//! ```
//!
//! What was `a` at 5? The first event of `a` after 5 is the one at 6, and it replaced `a=2`. What was
//! `b` at 5? There is no event of `b` after 5, so it is what it is now: deleted.
//!
//! Values that are large are packed when they are superseded, see [`crate::kept`]: `a=1` when `a=2` is
//! recorded, with `a=2`, and that when `a=3` is. The events of revisions 4 and 6 refer to one and the same
//! `a=2`, so that it is packed for both.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, VecDeque, btree_map},
    sync::Arc,
};

use concord_store::{KeyRange, Revision};
use imbl::Vector;

use crate::{
    Entry, Event,
    kept::{Kept, Large, is_large},
    packed::Packer,
    record::Record,
};

/// So many events are put together and indexed by key. Fewer would make reads of the past look into
/// more chunks, more would make them walk through more events that have no index yet.
const CHUNK_EVENTS: usize = 512;

/// Events in revision order. Cloning is cheap, and changing one clone leaves the others as they are.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    chunks: Vector<Arc<Chunk>>,
    /// The newest events, not indexed yet.
    tail: Vector<Record>,
    /// How many events of the first chunk have been removed.
    removed: usize,
}

/// What the keys that changed after some revision were at that revision; `None` if they were not.
pub(crate) type Overlay<'a> = BTreeMap<&'a [u8], Option<&'a Kept>>;
/// [`Overlay`] in key order.
pub(crate) type OverlayIter<'a> = btree_map::IntoIter<&'a [u8], Option<&'a Kept>>;

/// Some consecutive events. All events of a revision are in the same chunk.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) events: Vec<Record>,
    /// The positions of the events, by key and then by revision.
    by_key: Vec<u32>,
}

impl Chunk {
    fn new(events: Vec<Record>) -> Self {
        let mut by_key: Vec<u32> = (0..).take(events.len()).collect();
        by_key.sort_unstable_by_key(|at| (events[*at as usize].key().as_ref(), *at));
        Self { events, by_key }
    }

    fn last_revision(&self) -> Revision {
        self.events.last().map_or(0, |event| event.revision)
    }

    /// The events of the keys from `start` on, by key and then by revision.
    fn starting_at(&self, start: &[u8]) -> impl Iterator<Item = &Record> {
        let first = self.by_key.partition_point(|at| self.events[*at as usize].key().as_ref() < start);
        self.by_key[first..].iter().map(|at| &self.events[*at as usize])
    }
}

impl History {
    /// Appends an event and returns it as it is kept. The caller appends all events of a revision, and
    /// then calls [`History::end_revision`].
    pub(crate) fn push(&mut self, event: &Event, packer: &mut Packer) -> &Record {
        let record = Record::new(event, |entry, next| self.superseded(entry, next, packer));
        self.tail.push_back(record);
        &self.tail[self.tail.len() - 1]
    }

    /// Ends a revision. `seal` closes the current chunk early.
    pub(crate) fn end_revision(&mut self, seal: bool) {
        if self.tail.len() >= CHUNK_EVENTS || seal {
            let events = std::mem::take(&mut self.tail).into_iter().collect();
            self.chunks.push_back(Arc::new(Chunk::new(events)));
        }
    }

    /// How a value is kept from now on that the next event supersedes, by `next` if it does not delete it.
    fn superseded(&self, entry: &Entry, next: Option<&Kept>, packer: &mut Packer) -> Kept {
        if !is_large(entry) {
            return Kept::new(entry);
        }
        let large = self.brought(entry).unwrap_or_else(|| Large::new(entry));
        large.pack(next.and_then(Kept::large), packer);
        Kept::Large(large)
    }

    /// A large entry as the event that brought it has it, if that is still here.
    fn brought(&self, entry: &Entry) -> Option<Arc<Large>> {
        let (key, revision) = (&entry.key, entry.mod_revision);
        let is_it = |event: &&Record| event.revision == revision && event.key() == key;
        let chunk = self.chunks.binary_search_by(|chunk| match chunk.last_revision().cmp(&revision) {
            Ordering::Less => Ordering::Less,
            Ordering::Equal | Ordering::Greater => Ordering::Greater,
        });
        let event = match self.chunks.get(chunk.unwrap_or_else(|at| at)) {
            Some(chunk) => chunk.starting_at(key).take_while(|event| event.key() == key).find(is_it),
            None => self.tail.iter().rev().take_while(|event| event.revision >= revision).find(is_it),
        };
        event?.current()?.large().cloned()
    }

    /// The oldest event.
    pub(crate) fn front(&self) -> Option<&Record> {
        match self.chunks.front() {
            Some(chunk) => chunk.events.get(self.removed),
            None => self.tail.front(),
        }
    }

    /// Removes the oldest event.
    pub(crate) fn pop_front(&mut self) {
        let Some(chunk) = self.chunks.front() else {
            self.tail.pop_front();
            return;
        };
        self.removed += 1;
        if self.removed == chunk.events.len() {
            self.chunks.pop_front();
            self.removed = 0;
        }
    }

    /// The chunks with events after `revision`, the first of which may also have some before it.
    fn chunks_after(&self, revision: Revision) -> impl Iterator<Item = &Arc<Chunk>> {
        // Most reads of the past are about the last few chunks.
        let skip = self.chunks.iter().rev().take_while(|chunk| chunk.last_revision() > revision).count();
        self.chunks.iter().skip(self.chunks.len() - skip)
    }

    /// The first event of `key` after `revision`.
    pub(crate) fn first_after(&self, key: &[u8], revision: Revision) -> Option<&Record> {
        let is_it = |event: &&Record| event.revision > revision && event.key() == key;
        let indexed = self
            .chunks_after(revision)
            .find_map(|chunk| chunk.starting_at(key).take_while(|event| event.key() == key).find(is_it));
        indexed.or_else(|| self.tail.iter().find(is_it))
    }

    /// What differs in `range` between `revision` and now.
    pub(crate) fn overlay(&self, range: &KeyRange, revision: Revision) -> Overlay<'_> {
        let mut overlay = Overlay::new();
        for chunk in self.chunks_after(revision) {
            let events = chunk.starting_at(&range.start).take_while(|event| range.contains(event.key()));
            for event in events.filter(|event| event.revision > revision) {
                overlay.entry(event.key()).or_insert_with(|| event.previous());
            }
        }
        let tail = self.tail.iter().filter(|event| event.revision > revision && range.contains(event.key()));
        for event in tail {
            overlay.entry(event.key()).or_insert_with(|| event.previous());
        }
        overlay
    }

    /// All events after `revision`, in chunks of which the first may also have some before it.
    pub(crate) fn after(&self, revision: Revision) -> VecDeque<Arc<Chunk>> {
        let mut chunks: VecDeque<_> = self.chunks_after(revision).cloned().collect();
        let tail: Vec<Record> = self.tail.iter().filter(|event| event.revision > revision).cloned().collect();
        if !tail.is_empty() {
            chunks.push_back(Arc::new(Chunk { events: tail, by_key: Vec::new() }));
        }
        chunks
    }
}

#[cfg(test)]
mod tests;
