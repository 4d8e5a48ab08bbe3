//! `(?flags)`, `(?flags:...)`, `(?:...)` and named groups.

use super::Parser;
use crate::{Code, Error};

/// The flags that a pattern can set.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flags {
    /// `i`
    pub(super) fold: bool,
    /// `m`
    pub(super) multi_line: bool,
    /// `s`
    pub(super) dot_newline: bool,
    /// `U`
    pub(super) non_greedy: bool,
}

impl Flags {
    /// Sets the flag of a letter; false when there is none.
    fn set(&mut self, letter: char, on: bool) -> bool {
        let flag = match letter {
            'i' => &mut self.fold,
            'm' => &mut self.multi_line,
            's' => &mut self.dot_newline,
            'U' => &mut self.non_greedy,
            _ => return false,
        };
        *flag = on;
        true
    }
}

impl Parser<'_> {
    /// Parses what follows `(?`.
    pub(super) fn perl_group(&mut self) -> Result<(), Error> {
        let text = self.rest;
        // Go wants at least one byte after the bracket before it takes this for a name.
        let name_at = match text.as_bytes() {
            [_, _, b'P', b'<', _, ..] => Some(4),
            [_, _, b'<', _, ..] => Some(3),
            _ => None,
        };
        match name_at {
            Some(start) => self.named_group(text, start),
            None => self.flag_group(text),
        }
    }

    fn named_group(&mut self, text: &str, start: usize) -> Result<(), Error> {
        let Some(end) = text.find('>') else {
            return Err(Error::new(Code::InvalidNamedCapture, text));
        };
        let name = &text[start..end];
        if name.is_empty() || !name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()) {
            return Err(Error::new(Code::InvalidNamedCapture, &text[..=end]));
        }
        self.advance(end + 1);
        self.push_group(true)
    }

    fn flag_group(&mut self, text: &str) -> Result<(), Error> {
        let mut flags = self.flags;
        let mut on = true;
        let mut saw_flag = true;
        let mut end = text.len();
        for (i, c) in text.char_indices().skip(2) {
            end = i + c.len_utf8();
            match c {
                '-' if on => {
                    on = false;
                    saw_flag = false;
                }
                ':' | ')' if saw_flag => {
                    self.advance(end);
                    return self.enter_flags(flags, c == ':');
                }
                _ if flags.set(c, on) => saw_flag = true,
                _ => break,
            }
        }
        Err(Error::new(Code::InvalidPerlOp, &text[..end]))
    }

    fn enter_flags(&mut self, flags: Flags, group: bool) -> Result<(), Error> {
        if group {
            // The group remembers the flags from before it.
            self.push_group(false)?;
        }
        self.flags = flags;
        Ok(())
    }
}
