use std::sync::Arc;

use super::{
    Node, Put, Split,
    head::{common_prefix, head},
};
use crate::Entry;

/// More makes a copy dearer, fewer makes the tree deeper.
const MAX_ENTRIES: usize = 16;
/// A leaf with fewer is put together with a neighbour if the two fit into one.
pub(super) const MIN_ENTRIES: usize = MAX_ENTRIES / 4;

/// Up to [`MAX_ENTRIES`] entries, in key order.
#[derive(Debug, Clone, Default)]
pub(super) struct Leaf {
    /// So many bytes at the beginning of all keys are the same.
    common: usize,
    slots: Arc<[Slot]>,
}

#[derive(Debug, Clone)]
pub(super) struct Slot {
    head: u32,
    pub(super) entry: Entry,
}

/// The shortest key greater than `left` and not greater than `right`, which is greater than `left`.
fn separator(left: &[u8], right: &[u8]) -> Box<[u8]> {
    right[..=common_prefix(left, right)].into()
}

impl Leaf {
    /// A leaf of some slots in key order, whose heads need not be right yet.
    fn new(slots: &[Slot]) -> Self {
        let common = match slots {
            [] => 0,
            [first, .., last] => common_prefix(&first.entry.key, &last.entry.key),
            [only] => only.entry.key.len(),
        };
        let slots = slots
            .iter()
            .map(|Slot { entry, .. }| Slot { head: head(&entry.key, common), entry: Arc::clone(entry) });
        Self { common, slots: slots.collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Where a key is, or where it belongs.
    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        // To know whether the key begins as the others do, one of these would have to be fetched. So
        // this is a guess, and proves something only if it finds the key.
        let head = head(key, self.common);
        let first = self.slots.partition_point(|slot| slot.head < head);
        let mut alike = self.slots[first..].iter().take_while(|slot| slot.head == head);
        if let Some(nth) = alike.position(|slot| slot.entry.key == key) {
            return Ok(first + nth);
        }
        self.slots.binary_search_by(|slot| slot.entry.key.as_ref().cmp(key))
    }

    /// The position of the first key that is not less than `key`.
    pub(super) fn lower_bound(&self, key: &[u8]) -> usize {
        self.search(key).unwrap_or_else(|at| at)
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.search(key).ok().map(|at| &self.slots[at].entry)
    }

    pub(super) fn put(&mut self, entry: Entry) -> Put {
        match self.search(&entry.key) {
            Ok(at) => Put::Replaced(std::mem::replace(&mut self.slots_mut()[at].entry, entry)),
            Err(at) => self.add(at, entry),
        }
    }

    fn slots_mut(&mut self) -> &mut [Slot] {
        if Arc::get_mut(&mut self.slots).is_none() {
            // They are about to be copied, and each entry's reference count may be a cache miss. Reads
            // overlap, which increments do not.
            let counts = self.slots.iter().map(|slot| Arc::strong_count(&slot.entry));
            std::hint::black_box(counts.sum::<usize>());
        }
        Arc::make_mut(&mut self.slots)
    }

    fn add(&mut self, at: usize, entry: Entry) -> Put {
        let is_between = 0 < at && at < self.len();
        let head = head(&entry.key, self.common);
        let mut slots = Vec::with_capacity(self.len() + 1);
        slots.extend_from_slice(&self.slots[..at]);
        slots.push(Slot { head, entry });
        slots.extend_from_slice(&self.slots[at..]);
        if slots.len() > MAX_ENTRIES {
            // Keys that come in ascending order, as in a load, leave full leaves behind.
            let middle = if at == MAX_ENTRIES { at } else { slots.len() / 2 };
            return self.split(&slots, middle);
        }
        if is_between {
            // It begins as both its neighbours do, so the heads are right.
            self.slots = slots.into();
        } else {
            *self = Self::new(&slots);
        }
        Put::Added
    }

    fn split(&mut self, slots: &[Slot], middle: usize) -> Put {
        let (left, right) = slots.split_at(middle);
        *self = Self::new(left);
        let separator = separator(&slots[middle - 1].entry.key, &slots[middle].entry.key);
        Put::Split(Split { separator, right: Node::Leaf(Self::new(right)) })
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        let at = self.search(key).ok()?;
        let removed = Arc::clone(&self.slots[at].entry);
        let (left, right) = (&self.slots[..at], &self.slots[at + 1..]);
        self.slots = left.iter().chain(right).cloned().collect();
        Some(removed)
    }

    /// Both in one, if they fit with room to spare, or the next put would part them again.
    pub(super) fn merged(&self, right: &Self) -> Option<Self> {
        let fits = self.len() + right.len() <= MAX_ENTRIES - MIN_ENTRIES;
        fits.then(|| Self::new(&[self.slots(), right.slots()].concat()))
    }
}

#[cfg(test)]
impl Leaf {
    /// Checks what holds for a leaf by itself.
    pub(super) fn check(&self) {
        assert!(self.len() <= MAX_ENTRIES);
        for slot in self.slots.iter() {
            let key = &slot.entry.key;
            assert!(common_prefix(key, &self.slots[0].entry.key) >= self.common);
            assert_eq!(slot.head, head(key, self.common));
        }
    }
}
