//! What the parser knows of an open group: enough to enforce Go's limits without a tree.

use super::flags::Flags;

/// The measures of a parsed element that Go limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    /// The height of Go's parse tree.
    pub(super) height: usize,
    /// The number of instructions that Go would compile it to.
    pub(super) size: u64,
    /// About how many states `regex` would make of it.
    pub(super) weight: u64,
    /// The most copies that nested repetitions make of anything inside.
    pub(super) repeats: u64,
}

impl Node {
    pub(super) fn leaf() -> Self {
        Self::weighing(1)
    }

    /// A leaf of which `regex` would make so many states.
    pub(super) fn weighing(weight: u64) -> Self {
        Self { height: 1, size: 1, weight, repeats: 1 }
    }

    /// One level more, with some instructions more.
    pub(super) fn wrap(self, size: u64) -> Self {
        Self { height: self.height + 1, size: self.size.saturating_add(size), ..self }
    }

    fn beside(self, other: Self) -> Self {
        Self {
            height: self.height.max(other.height),
            size: self.size.saturating_add(other.size),
            weight: self.weight.saturating_add(other.weight),
            repeats: self.repeats.max(other.repeats),
        }
    }
}

/// An open group.
#[derive(Debug)]
pub(super) struct Frame {
    /// The flags to restore at its end.
    pub(super) flags: Flags,
    pub(super) captures: bool,
    /// Where the last element starts in the output.
    pub(super) atom_start: usize,
    /// The branches before the current one.
    done: Option<Node>,
    /// The current branch without its last element.
    before: Option<Node>,
    /// The element that a repetition would repeat.
    last: Option<Node>,
}

impl Frame {
    pub(super) fn new(flags: Flags, captures: bool) -> Self {
        Self { flags, captures, atom_start: 0, done: None, before: None, last: None }
    }

    pub(super) fn push(&mut self, node: Node) {
        if let Some(last) = self.last.replace(node) {
            self.before = Some(self.before.map_or(last, |before| before.beside(last)));
        }
    }

    /// The element that a repetition would repeat, if any.
    pub(super) fn last(&self) -> Option<Node> {
        self.last
    }

    pub(super) fn replace_last(&mut self, node: Node) {
        self.last = Some(node);
    }

    pub(super) fn next_branch(&mut self) {
        let branch = self.take_branch();
        self.done = Some(self.done.map_or(branch, |done| done.beside(branch).grow()));
    }

    /// The whole group as one element.
    pub(super) fn close(&mut self) -> Node {
        let branch = self.take_branch();
        match self.done.take() {
            Some(done) => done.beside(branch).grow().wrap(0),
            None => branch,
        }
    }

    fn take_branch(&mut self) -> Node {
        let last = self.last.take().unwrap_or_else(Node::leaf);
        self.before.take().map_or(last, |before| before.beside(last).wrap(0))
    }
}

impl Node {
    /// One more instruction on the same level: the choice between two branches.
    fn grow(self) -> Self {
        Self { size: self.size.saturating_add(1), ..self }
    }
}
