//! Go's parser, writing a pattern for the `regex` crate instead of a tree.
//!
//! Every piece that is written stands on its own: flags are not written where the pattern has them but around each
//! piece that they change. So a repetition always applies to what was written last.

mod class;
mod escape;
mod flags;
mod frame;
mod repeat;

use std::collections::BTreeSet;

use crate::{Code, Error};
use flags::Flags;
use frame::{Frame, Node};

/// The limit of the height of a parse tree. Go's is 1000; the compiler of `regex` is recursive, and this is what
/// it can do on the stack of a worker thread.
pub(crate) const MAX_HEIGHT: usize = 100;
/// The most instructions that a pattern may be. Go's limit is 3,355,443, which take it 128 MiB; a match may have to look
/// at all of them for each character.
pub const MAX_SIZE: u64 = 100_000;
/// How many different classes of Unicode, or folded ones, a pattern may have. Each takes tens of kilobytes when compiled,
/// however often it is repeated.
pub const MAX_UNICODE_CLASSES: usize = 200;

/// Rewrites a pattern of Go's syntax for the `regex` crate, and says how much that would make of it.
pub(crate) fn rewrite(pattern: &str) -> Result<(String, u64), Error> {
    let mut parser = Parser {
        whole: pattern,
        rest: pattern,
        out: String::with_capacity(pattern.len() * 2),
        flags: Flags::default(),
        frames: vec![Frame::new(Flags::default(), false)],
        unicode_classes: BTreeSet::new(),
    };
    let weight = parser.run()?;
    Ok((parser.out, weight))
}

struct Parser<'p> {
    whole: &'p str,
    /// What is not parsed yet.
    rest: &'p str,
    out: String,
    flags: Flags,
    /// The open groups; the first is the pattern itself.
    frames: Vec<Frame>,
    /// Those that are tables of Unicode, or folded by them.
    unicode_classes: BTreeSet<String>,
}

impl<'p> Parser<'p> {
    /// The weight of the whole pattern.
    fn run(&mut self) -> Result<u64, Error> {
        let mut last_repeat = None;
        while let Some(c) = self.rest.chars().next() {
            last_repeat = self.step(c, last_repeat)?;
        }
        if self.frames.len() > 1 {
            return Err(Error::new(Code::MissingParen, self.whole));
        }
        let node = self.frame().close();
        self.check_limits(node)?;
        Ok(node.weight)
    }

    /// Parses one element. Returns the rest of the pattern at its start when it was a repetition.
    fn step(&mut self, c: char, last_repeat: Option<&'p str>) -> Result<Option<&'p str>, Error> {
        match c {
            '(' => self.open()?,
            ')' => self.close()?,
            '|' => {
                self.advance(1);
                self.out.push('|');
                self.frame().next_branch();
            }
            '^' => self.atom(1, if self.flags.multi_line { "(?m:^)" } else { r"\A" })?,
            '$' => self.atom(1, if self.flags.multi_line { "(?m:$)" } else { r"\z" })?,
            '.' => self.atom(1, if self.flags.dot_newline { "(?s:.)" } else { r"[^\n]" })?,
            '[' => self.class()?,
            '*' | '+' | '?' | '{' => return self.repetition(c, last_repeat),
            '\\' => self.backslash()?,
            _ => {
                self.advance(c.len_utf8());
                self.literal(c)?;
            }
        }
        Ok(None)
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    /// The innermost open group.
    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the frame of the whole pattern is never popped")
    }

    /// Writes a piece that stands for `consumed` bytes of the pattern.
    fn atom(&mut self, consumed: usize, piece: &str) -> Result<(), Error> {
        self.advance(consumed);
        self.begin_atom();
        self.out.push_str(piece);
        self.push(Node::weighing(weight(piece)))
    }

    fn begin_atom(&mut self) {
        let start = self.out.len();
        self.frame().atom_start = start;
    }

    fn push(&mut self, node: Node) -> Result<(), Error> {
        self.check_limits(node)?;
        self.frame().push(node);
        Ok(())
    }

    fn check_limits(&self, node: Node) -> Result<(), Error> {
        if node.size > MAX_SIZE {
            return Err(Error::new(Code::Large, self.whole));
        }
        if node.height > MAX_HEIGHT || self.frames.len() > MAX_HEIGHT {
            return Err(Error::new(Code::NestingDepth, self.whole));
        }
        Ok(())
    }

    fn literal(&mut self, c: char) -> Result<(), Error> {
        let mut piece = String::new();
        write_char(&mut piece, c);
        if self.flags.fold && has_case(c) {
            return self.write_class(&piece);
        }
        self.atom(0, &piece)
    }

    fn open(&mut self) -> Result<(), Error> {
        if self.rest.starts_with("(?") {
            return self.perl_group();
        }
        self.advance(1);
        self.push_group(true)
    }

    fn push_group(&mut self, captures: bool) -> Result<(), Error> {
        self.begin_atom();
        self.out.push_str(if captures { "(" } else { "(?:" });
        self.frames.push(Frame::new(self.flags, captures));
        self.check_limits(Node::leaf())
    }

    fn close(&mut self) -> Result<(), Error> {
        if self.frames.len() == 1 {
            return Err(Error::new(Code::UnexpectedParen, self.whole));
        }
        self.advance(1);
        let Some(mut frame) = self.frames.pop() else { return Ok(()) };
        self.flags = frame.flags;
        self.out.push(')');
        let inner = frame.close();
        self.push(if frame.captures { inner.wrap(2) } else { inner })
    }

    fn backslash(&mut self) -> Result<(), Error> {
        match self.rest.as_bytes().get(1) {
            Some(b'A') => self.atom(2, r"\A"),
            Some(b'z') => self.atom(2, r"\z"),
            Some(b'b') => self.atom(2, r"(?-u:\b)"),
            Some(b'B') => self.atom(2, r"(?-u:\B)"),
            Some(b'C') => Err(Error::new(Code::InvalidEscape, &self.rest[..2])),
            Some(b'Q') => self.quoted(),
            _ => self.escaped(),
        }
    }

    /// `\Q...\E`: everything between is literal; without `\E`, everything up to the end.
    fn quoted(&mut self) -> Result<(), Error> {
        let (text, rest) = self.rest[2..].split_once(r"\E").unwrap_or((&self.rest[2..], ""));
        self.rest = rest;
        text.chars().try_for_each(|c| self.literal(c))
    }

    fn escaped(&mut self) -> Result<(), Error> {
        let mut class = String::new();
        if self.class_escape(&mut class)? {
            return self.write_class(&class);
        }
        match char::from_u32(self.escape()?) {
            Some(c) => self.literal(c),
            None => self.atom(0, crate::unicode::NOTHING),
        }
    }

    /// Writes a class, folded when the flag `i` is on.
    fn write_class(&mut self, class: &str) -> Result<(), Error> {
        let folded;
        let class = match self.flags.fold {
            true => {
                folded = format!("(?i:{class})");
                &folded
            }
            false => class,
        };
        if weight(class) > WIDE && !self.unicode_classes.contains(class) {
            self.unicode_classes.insert(class.to_owned());
            if self.unicode_classes.len() > MAX_UNICODE_CLASSES {
                return Err(Error::new(Code::Large, self.whole));
            }
        }
        self.atom(0, class)
    }
}

/// What `regex` makes of characters that are not ASCII: as many states as it takes bytes to tell them apart.
const WIDE: u64 = 8;
const FOLDED: u64 = 10;
const UNICODE: u64 = 400;

/// About how many states `regex` makes of a piece.
fn weight(piece: &str) -> u64 {
    let is_wide = !piece.is_ascii() || piece.contains("[^") || piece.starts_with("(?s");
    match piece.contains(r"\p") {
        true => UNICODE,
        false if piece.starts_with("(?i:[") && is_wide => UNICODE,
        false if piece.starts_with("(?i:") => FOLDED,
        false if is_wide => WIDE,
        false => 1,
    }
}

/// Whether there may be another character that is the same but for its case.
fn has_case(c: char) -> bool {
    c.to_lowercase().ne([c]) || c.to_uppercase().ne([c])
}

/// Writes a character so that it has no meaning of its own, inside a class or outside.
fn write_char(out: &mut String, c: char) {
    if c.is_ascii_alphanumeric() || !c.is_ascii() {
        out.push(c);
    } else {
        out.push_str(&format!(r"\x{:02X}", u32::from(c)));
    }
}
