//! The entries as they are now: a persistent B+ tree made for large maps whose values are replaced.
//!
//! Cloning takes a pointer. A change copies the nodes from the root to one leaf, or none of them while
//! no clone shares them.
//!
//! Why not a ready one: with a hundred thousand entries it is memory that a change waits for. Where
//! nodes hold whole keys or pointers to entries, each comparison fetches a key from elsewhere, and
//! each copy of a node counts references all over the place. Here
//!
//! * nodes hold the few bytes of each key that tell it from its neighbours, see [`head`], so that
//!   finding an entry fetches little more than that entry;
//! * the separators of a branch belong to it alone and are shared by its copies, since only a split or
//!   a merge changes them. None refers to an entry, so none keeps a replaced value alive.

mod branch;
mod head;
mod iter;
mod leaf;
mod separators;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use concord_store::KeyRange;

use crate::Entry;
use branch::Branch;
pub(crate) use iter::LiveIter;
use leaf::Leaf;

/// A map from keys to entries, in key order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Live {
    root: Node,
    len: usize,
}

/// A subtree. All leaves are equally deep. Only the root may be empty, and then it is a leaf.
#[derive(Debug, Clone)]
enum Node {
    Leaf(Leaf),
    Branch(Arc<Branch>),
}

/// What putting an entry did.
enum Put {
    /// The key was there.
    Replaced(Entry),
    /// The key is new.
    Added,
    /// The key is new, and the node became too large: this is its upper part.
    Split(Split),
}

struct Split {
    /// Not greater than any key in `right`, and greater than all others in the node that was split.
    separator: Box<[u8]>,
    right: Node,
}

impl Default for Node {
    fn default() -> Self {
        Self::Leaf(Leaf::default())
    }
}

impl Node {
    fn put(&mut self, entry: Entry) -> Put {
        match self {
            Self::Leaf(leaf) => leaf.put(entry),
            Self::Branch(branch) => Arc::make_mut(branch).put(entry),
        }
    }

    fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        match self {
            Self::Leaf(leaf) => leaf.remove(key),
            Self::Branch(branch) => Arc::make_mut(branch).remove(key),
        }
    }

    /// How many entries or children it has itself.
    fn len(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.len(),
            Self::Branch(branch) => branch.len(),
        }
    }
}

impl Live {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&Entry> {
        let mut node = &self.root;
        loop {
            match node {
                Node::Branch(branch) => node = branch.child(key),
                Node::Leaf(leaf) => return leaf.get(key),
            }
        }
    }

    /// Adds an entry and returns the one it replaces.
    pub(crate) fn put(&mut self, entry: Entry) -> Option<Entry> {
        match self.root.put(entry) {
            Put::Replaced(previous) => return Some(previous),
            Put::Added => {}
            Put::Split(split) => {
                let left = std::mem::take(&mut self.root);
                self.root = Node::Branch(Arc::new(Branch::new(left, split)));
            }
        }
        self.len += 1;
        None
    }

    /// Removes the entry of a key and returns it.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        // Looking first keeps a delete of nothing from copying anything.
        self.get(key)?;
        let removed = self.root.remove(key)?;
        self.len -= 1;
        while let Node::Branch(branch) = &self.root {
            match branch.children() {
                [] => self.root = Node::default(),
                [only] => self.root = only.clone(),
                _ => break,
            }
        }
        Some(removed)
    }

    /// The entries of `range`, in key order.
    pub(crate) fn range(&self, range: &KeyRange) -> LiveIter<'_> {
        LiveIter::new(&self.root, range)
    }
}
