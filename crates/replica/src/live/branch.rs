use std::sync::Arc;

use super::{Node, Put, Split, leaf, separators::Separators};
use crate::Entry;

/// More makes a copy dearer, fewer makes the tree deeper.
const MAX_CHILDREN: usize = 32;
/// A branch with fewer is put together with a neighbour if the two fit into one.
const MIN_CHILDREN: usize = MAX_CHILDREN / 4;

/// Up to [`MAX_CHILDREN`] subtrees, in key order.
#[derive(Debug, Clone)]
pub(super) struct Branch {
    /// One less than children: the `n`th is greater than all keys of the child `n` and not greater than
    /// any of the child `n + 1`. Behind a pointer of their own, so that a copy of the branch shares them.
    separators: Arc<Separators>,
    children: Vec<Node>,
}

impl Branch {
    /// A branch of a node that was split.
    pub(super) fn new(left: Node, split: Split) -> Self {
        Self {
            separators: Arc::new(Separators::new(vec![split.separator])),
            children: vec![left, split.right],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.children.len()
    }

    pub(super) fn children(&self) -> &[Node] {
        &self.children
    }

    /// The position of the child a key belongs to.
    pub(super) fn position(&self, key: &[u8]) -> usize {
        self.separators.count_up_to(key)
    }

    pub(super) fn child(&self, key: &[u8]) -> &Node {
        &self.children[self.position(key)]
    }

    pub(super) fn put(&mut self, entry: Entry) -> Put {
        let at = self.position(&entry.key);
        match self.children[at].put(entry) {
            Put::Split(split) => self.add(at + 1, split),
            done => done,
        }
    }

    fn add(&mut self, at: usize, split: Split) -> Put {
        self.children.insert(at, split.right);
        let mut separators = self.separators.keys().to_vec();
        separators.insert(at - 1, split.separator);
        if self.children.len() <= MAX_CHILDREN {
            self.separators = Arc::new(Separators::new(separators));
            return Put::Added;
        }
        // As in a leaf: what grows at its end leaves full branches behind.
        let middle = if at == MAX_CHILDREN { at - 1 } else { self.children.len() / 2 };
        let right = self.children.split_off(middle);
        let right_separators = separators.split_off(middle);
        let separator = separators.pop().expect("a branch has a separator per child but the first");
        self.separators = Arc::new(Separators::new(separators));
        let right = Self { separators: Arc::new(Separators::new(right_separators)), children: right };
        Put::Split(Split { separator, right: Node::Branch(Arc::new(right)) })
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        let at = self.position(key);
        let removed = self.children[at].remove(key)?;
        let enough = match &self.children[at] {
            Node::Leaf(_) => leaf::MIN_ENTRIES,
            Node::Branch(_) => MIN_CHILDREN,
        };
        match self.children[at].len() {
            0 => self.drop_child(at),
            few if few < enough => self.merge_around(at),
            _ => {}
        }
        Some(removed)
    }

    /// Removes a child that has nothing left, and one of the separators beside it.
    fn drop_child(&mut self, at: usize) {
        self.children.remove(at);
        self.drop_separator(at.saturating_sub(1));
    }

    /// Puts a small child together with a neighbour. If neither has room for it, they have enough
    /// together and stay as they are.
    fn merge_around(&mut self, at: usize) {
        let merged_at_left = at > 0 && self.merge(at - 1);
        if !merged_at_left && at + 1 < self.children.len() {
            self.merge(at);
        }
    }

    /// Puts a child and the next one together, if they fit.
    fn merge(&mut self, at: usize) -> bool {
        let merged = match (&self.children[at], &self.children[at + 1]) {
            (Node::Leaf(left), Node::Leaf(right)) => left.merged(right).map(Node::Leaf),
            (Node::Branch(left), Node::Branch(right)) => {
                left.merged(&self.separators.keys()[at], right).map(|branch| Node::Branch(Arc::new(branch)))
            }
            _ => None,
        };
        let Some(merged) = merged else { return false };
        self.children[at] = merged;
        self.children.remove(at + 1);
        self.drop_separator(at);
        true
    }

    fn drop_separator(&mut self, at: usize) {
        let mut separators = self.separators.keys().to_vec();
        if at < separators.len() {
            separators.remove(at);
        }
        self.separators = Arc::new(Separators::new(separators));
    }

    fn merged(&self, separator: &[u8], right: &Self) -> Option<Self> {
        if self.len() + right.len() > MAX_CHILDREN - MIN_CHILDREN {
            return None;
        }
        let mut separators = self.separators.keys().to_vec();
        separators.push(separator.into());
        separators.extend_from_slice(right.separators.keys());
        let children = [self.children(), right.children()].concat();
        Some(Self { separators: Arc::new(Separators::new(separators)), children })
    }
}

#[cfg(test)]
impl Branch {
    /// Checks what holds for a branch by itself and returns its separators.
    pub(super) fn check(&self) -> &[Box<[u8]>] {
        assert!(self.len() <= MAX_CHILDREN);
        let separators = self.separators.keys();
        assert_eq!(separators.len() + 1, self.len());
        assert!(separators.is_sorted_by(|a, b| a < b));
        separators
    }
}
