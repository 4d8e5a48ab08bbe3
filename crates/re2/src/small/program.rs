//! From a tree to instructions.

/// A pattern as it is read.
#[derive(Debug)]
pub(super) enum Tree {
    Char(char),
    /// A class, by its number.
    Class(u32),
    Look(Look),
    /// One after the other; nothing at all if there are none.
    Concat(Vec<Tree>),
    Alternate(Vec<Tree>),
    Repeat {
        what: Box<Tree>,
        min: u32,
        max: Option<u32>,
        lazy: bool,
    },
}

/// What is said about a place between characters.
#[derive(Debug, Clone, Copy)]
pub(super) enum Look {
    Start,
    End,
    LineStart,
    LineEnd,
    WordBoundary,
    NoWordBoundary,
}

/// A step of a match. The next one follows unless it says something else.
#[derive(Debug, Clone, Copy)]
pub(super) enum Instruction {
    Char(char),
    Class(u32),
    Look(Look),
    /// Both ways, the first one preferred.
    Split {
        first: u32,
        second: u32,
    },
    Jump(u32),
    Match,
}

impl Tree {
    /// Whether it can match at the start of a text alone.
    pub(super) fn is_anchored(&self) -> bool {
        match self {
            Self::Look(Look::Start) => true,
            Self::Concat(parts) => parts.first().is_some_and(Self::is_anchored),
            _ => false,
        }
    }

    fn may_be_empty(&self) -> bool {
        match self {
            Self::Char(_) | Self::Class(_) => false,
            Self::Look(_) => true,
            Self::Concat(parts) => parts.iter().all(Self::may_be_empty),
            Self::Alternate(branches) => branches.iter().any(Self::may_be_empty),
            Self::Repeat { what, min, .. } => *min == 0 || what.may_be_empty(),
        }
    }
}

/// The instructions of a pattern.
pub(super) fn compile(tree: &Tree) -> Vec<Instruction> {
    let mut program = Program(Vec::new());
    program.write(tree);
    program.0.push(Instruction::Match);
    program.0
}

struct Program(Vec<Instruction>);

impl Program {
    fn here(&self) -> u32 {
        // The parser allows far fewer.
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    fn write(&mut self, tree: &Tree) {
        match tree {
            Tree::Char(c) => self.0.push(Instruction::Char(*c)),
            Tree::Class(class) => self.0.push(Instruction::Class(*class)),
            Tree::Look(look) => self.0.push(Instruction::Look(*look)),
            Tree::Concat(parts) => parts.iter().for_each(|part| self.write(part)),
            Tree::Alternate(branches) => self.alternate(branches),
            Tree::Repeat { what, min, max, lazy } => self.repeat(what, *min, *max, *lazy),
        }
    }

    fn alternate(&mut self, branches: &[Tree]) {
        let mut ends = Vec::new();
        for (index, branch) in branches.iter().enumerate() {
            let split = (index + 1 < branches.len()).then(|| self.reserve());
            self.write(branch);
            if let Some(split) = split {
                ends.push(self.reserve());
                self.split(split, split + 1, self.here(), false);
            }
        }
        for end in ends {
            self.0[end as usize] = Instruction::Jump(self.here());
        }
    }

    /// As Go writes it: so many copies, then as many that may be missing, each within the one before.
    fn repeat(&mut self, what: &Tree, min: u32, max: Option<u32>, lazy: bool) {
        let Some(max) = max else {
            (1..min).for_each(|_| self.write(what));
            return if min == 0 { self.star(what, lazy) } else { self.plus(what, lazy) };
        };
        (0..min).for_each(|_| self.write(what));
        let mut splits = Vec::new();
        for _ in min..max {
            splits.push(self.reserve());
            self.write(what);
        }
        for split in splits {
            self.split(split, split + 1, self.here(), lazy);
        }
    }

    fn plus(&mut self, what: &Tree, lazy: bool) {
        let start = self.here();
        self.write(what);
        let split = self.reserve();
        self.split(split, start, split + 1, lazy);
    }

    fn star(&mut self, what: &Tree, lazy: bool) {
        let split = self.reserve();
        if what.may_be_empty() {
            // Otherwise the way around the loop would be known before the better way through it.
            self.plus(what, lazy);
        } else {
            self.write(what);
            self.0.push(Instruction::Jump(split));
        }
        self.split(split, split + 1, self.here(), lazy);
    }

    fn reserve(&mut self) -> u32 {
        let here = self.here();
        self.0.push(Instruction::Match);
        here
    }

    fn split(&mut self, at: u32, first: u32, second: u32, lazy: bool) {
        let (first, second) = if lazy { (second, first) } else { (first, second) };
        self.0[at as usize] = Instruction::Split { first, second };
    }
}
