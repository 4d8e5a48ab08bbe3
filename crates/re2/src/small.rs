//! The engine for large patterns: small in memory, slower than `regex`.
//!
//! `regex` works on bytes, so that `\pL{200}` is two hundred automata of hundreds of states each. Here a pattern is as
//! many instructions as Go would make of it, each about a whole character, and a class is kept once however often it is
//! repeated. All ways to match are followed at once (a Pike VM): the time is the product of the lengths of the pattern
//! and of the text, at worst.

mod class;
mod program;
mod read;

use class::Class;
use program::{Instruction, Look};

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Small {
    instructions: Box<[Instruction]>,
    classes: Box<[Class]>,
    /// Whether it can match at the start of a text alone.
    anchored: bool,
}

/// The ways to match that are followed, best first, each with where it began.
struct Threads {
    dense: Vec<(u32, usize)>,
    /// Where an instruction stands in `dense`, if it does.
    sparse: Vec<u32>,
}

impl Threads {
    fn new(size: usize) -> Self {
        Self { dense: Vec::new(), sparse: vec![0; size] }
    }

    /// False if it is there already.
    fn add(&mut self, at: u32, start: usize) -> bool {
        let position = self.sparse[at as usize] as usize;
        if self.dense.get(position).is_some_and(|(there, _)| *there == at) {
            return false;
        }
        self.sparse[at as usize] = u32::try_from(self.dense.len()).unwrap_or(u32::MAX);
        self.dense.push((at, start));
        true
    }
}

impl Small {
    /// Compiles what the parser of this crate wrote.
    pub(crate) fn new(rewritten: &str) -> Self {
        let (tree, classes) = read::read(rewritten);
        let instructions = program::compile(&tree);
        let anchored = tree.is_anchored();
        Self { instructions: instructions.into(), classes: classes.into(), anchored }
    }

    /// About how many bytes it takes.
    pub(crate) fn footprint(&self) -> usize {
        size_of_val(&*self.instructions) + self.classes.iter().map(Class::footprint).sum::<usize>()
    }

    /// The leftmost match that begins at `from` or later, as Go prefers among those that begin there; the first that
    /// is seen if only whether there is one matters.
    pub(crate) fn find(&self, text: &str, from: usize, any: bool) -> Option<(usize, usize)> {
        let size = self.instructions.len();
        let (mut now, mut next) = (Threads::new(size), Threads::new(size));
        let mut stack = Vec::new();
        let mut found = None;
        let mut at = from;
        loop {
            if found.is_none() && (!self.anchored || at == 0) {
                self.follow(&mut now, &mut stack, (0, at), (text, at));
            }
            if now.dense.is_empty() && (found.is_some() || self.anchored) {
                return found;
            }
            let c = text[at..].chars().next();
            let after = at + c.map_or(0, char::len_utf8);
            let mut seen = vec![None; self.classes.len()];
            for &(instruction, start) in &now.dense {
                if matches!(self.instructions[instruction as usize], Instruction::Match) {
                    found = Some((start, at));
                    break;
                }
                if c.is_some_and(|c| self.takes(instruction, c, &mut seen)) {
                    self.follow(&mut next, &mut stack, (instruction + 1, start), (text, after));
                }
            }
            if c.is_none() || (any && found.is_some()) {
                return found;
            }
            std::mem::swap(&mut now, &mut next);
            next.dense.clear();
            at = after;
        }
    }

    /// Whether an instruction takes a character. A class is asked once about it, whoever wants to know.
    fn takes(&self, instruction: u32, c: char, seen: &mut [Option<bool>]) -> bool {
        match self.instructions[instruction as usize] {
            Instruction::Char(expected) => expected == c,
            Instruction::Class(index) => {
                let index = index as usize;
                *seen[index].get_or_insert_with(|| self.classes[index].has(c))
            }
            _ => false,
        }
    }

    /// Adds a thread, and all that it becomes without a character.
    fn follow(
        &self,
        threads: &mut Threads,
        stack: &mut Vec<u32>,
        (first, start): (u32, usize),
        (text, at): (&str, usize),
    ) {
        stack.push(first);
        while let Some(instruction) = stack.pop() {
            if !threads.add(instruction, start) {
                continue;
            }
            match self.instructions[instruction as usize] {
                Instruction::Split { first, second } => stack.extend([second, first]),
                Instruction::Jump(target) => stack.push(target),
                Instruction::Look(look) if look.holds(text, at) => stack.push(instruction + 1),
                _ => {}
            }
        }
    }
}

impl Look {
    fn holds(self, text: &str, at: usize) -> bool {
        let (before, after) = (text[..at].bytes().next_back(), text[at..].bytes().next());
        let is_word =
            |byte: Option<u8>| byte.is_some_and(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
        match self {
            Self::Start => before.is_none(),
            Self::End => after.is_none(),
            Self::LineStart => before.is_none_or(|byte| byte == b'\n'),
            Self::LineEnd => after.is_none_or(|byte| byte == b'\n'),
            Self::WordBoundary => is_word(before) != is_word(after),
            Self::NoWordBoundary => is_word(before) == is_word(after),
        }
    }
}
