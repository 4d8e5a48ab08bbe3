//! Reads what the parser of this crate wrote for `regex`: a small language without surprises, in which everything
//! stands on its own.

use std::collections::BTreeMap;

use super::{
    class::{Class, character},
    program::{Look, Tree},
};

const LOOKS: [(&str, Look); 6] = [
    (r"\A", Look::Start),
    (r"\z", Look::End),
    ("(?m:^)", Look::LineStart),
    ("(?m:$)", Look::LineEnd),
    (r"(?-u:\b)", Look::WordBoundary),
    (r"(?-u:\B)", Look::NoWordBoundary),
];

/// The tree of a pattern, and the classes that it refers to.
pub(super) fn read(rewritten: &str) -> (Tree, Vec<Class>) {
    let mut reader = Reader { rest: rewritten, classes: Vec::new(), known: BTreeMap::new() };
    let tree = reader.alternatives();
    (tree, reader.classes)
}

struct Reader<'t> {
    rest: &'t str,
    classes: Vec<Class>,
    /// The number of a class, by its text.
    known: BTreeMap<&'t str, u32>,
}

impl<'t> Reader<'t> {
    fn alternatives(&mut self) -> Tree {
        let first = self.branch();
        if !self.rest.starts_with('|') {
            return first;
        }
        let mut branches = vec![first];
        while self.takes("|") {
            branches.push(self.branch());
        }
        Tree::Alternate(branches)
    }

    fn branch(&mut self) -> Tree {
        let mut parts = Vec::new();
        while !self.rest.is_empty() && !self.rest.starts_with(['|', ')']) {
            let part = self.part();
            parts.push(self.repeated(part));
        }
        Tree::Concat(parts)
    }

    fn part(&mut self) -> Tree {
        if let Some((_, look)) = LOOKS.iter().find(|(text, _)| self.takes(text)) {
            return Tree::Look(*look);
        }
        if self.rest.starts_with('[') {
            return self.class(class_end(self.rest));
        }
        if self.takes("(?s:.)") {
            return self.known_class(r"[\x{0}-\x{10FFFF}]");
        }
        if self.rest.starts_with("(?i:") {
            let inside = &self.rest[4..];
            let length = match inside.starts_with('[') {
                true => class_end(inside),
                false => {
                    let mut rest = inside;
                    character(&mut rest);
                    inside.len() - rest.len()
                }
            };
            return self.class(4 + length + 1);
        }
        if self.takes("(?:") || self.takes("(") {
            let inside = self.alternatives();
            self.takes(")");
            return inside;
        }
        Tree::Char(character(&mut self.rest))
    }

    /// A class of so many bytes.
    fn class(&mut self, length: usize) -> Tree {
        let (text, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        self.known_class(text)
    }

    fn known_class(&mut self, text: &'t str) -> Tree {
        let number = u32::try_from(self.classes.len()).unwrap_or(u32::MAX);
        let found = *self.known.entry(text).or_insert(number);
        if found == number {
            self.classes.push(Class::new(text));
        }
        Tree::Class(found)
    }

    fn repeated(&mut self, what: Tree) -> Tree {
        let (min, max) = if self.takes("*") {
            (0, None)
        } else if self.takes("+") {
            (1, None)
        } else if self.takes("?") {
            (0, Some(1))
        } else if let Some((counts, rest)) =
            self.rest.strip_prefix('{').and_then(|counts| counts.split_once('}'))
        {
            self.rest = rest;
            let (min, max) = counts.split_once(',').unwrap_or((counts, counts));
            (min.parse().unwrap_or_default(), max.parse().ok())
        } else {
            return what;
        };
        let lazy = self.takes("?");
        Tree::Repeat { what: Box::new(what), min, max, lazy }
    }

    fn takes(&mut self, text: &str) -> bool {
        self.rest.strip_prefix(text).inspect(|rest| self.rest = rest).is_some()
    }
}

/// Where a class that begins here ends.
fn class_end(text: &str) -> usize {
    let (mut depth, mut escaped) = (0, false);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'[' => depth += 1,
            b']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    text.len()
}
