use std::slice;

use bytes::Bytes;
use concord_store::KeyRange;

use super::{Node, leaf::Slot};
use crate::Entry;

/// The entries of a range, in key order.
#[derive(Debug)]
pub(crate) struct LiveIter<'a> {
    /// What is left of the leaf at hand.
    slots: slice::Iter<'a, Slot>,
    /// What is left of the branches above it, the root first.
    above: Vec<slice::Iter<'a, Node>>,
    /// Where the range ends; `None` also when it ends with the leaf at hand.
    end: Option<Bytes>,
}

impl<'a> LiveIter<'a> {
    pub(super) fn new(root: &'a Node, range: &KeyRange) -> Self {
        let mut iter = Self { slots: [].iter(), above: Vec::new(), end: range.end.clone() };
        let mut node = root;
        loop {
            match node {
                Node::Branch(branch) => {
                    let mut rest = branch.children()[branch.position(&range.start)..].iter();
                    let Some(child) = rest.next() else { return iter };
                    iter.above.push(rest);
                    node = child;
                }
                Node::Leaf(leaf) => {
                    iter.enter(&leaf.slots()[leaf.lower_bound(&range.start)..]);
                    return iter;
                }
            }
        }
    }

    /// Goes on with these slots, as far as they are in the range. The end is compared with one key of
    /// each leaf but the last.
    fn enter(&mut self, slots: &'a [Slot]) {
        self.slots = slots.iter();
        if let (Some(end), Some(last)) = (&self.end, slots.last())
            && last.entry.key >= end
        {
            self.slots = slots[..slots.partition_point(|slot| slot.entry.key < end)].iter();
            self.above.clear();
            self.end = None;
        }
    }

    /// Goes on with the next leaf. `None` if there is none.
    fn next_leaf(&mut self) -> Option<()> {
        loop {
            match self.above.last_mut()?.next() {
                None => drop(self.above.pop()),
                Some(Node::Branch(branch)) => self.above.push(branch.children().iter()),
                Some(Node::Leaf(leaf)) => {
                    self.enter(leaf.slots());
                    return Some(());
                }
            }
        }
    }
}

impl<'a> Iterator for LiveIter<'a> {
    type Item = &'a Entry;

    fn next(&mut self) -> Option<&'a Entry> {
        loop {
            if let Some(slot) = self.slots.next() {
                return Some(&slot.entry);
            }
            self.next_leaf()?;
        }
    }
}
