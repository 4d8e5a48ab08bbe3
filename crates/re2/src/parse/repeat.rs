//! `*`, `+`, `?` and `{n,m}`.

use super::Parser;
use super::frame::Node;
use crate::{Code, Error};

/// Go's limit of a repeat count and of the product of nested ones.
const MAX_REPEAT: u64 = 1000;

/// `{min,max}`; without `max`, no upper bound.
#[derive(Clone, Copy)]
struct Counts {
    min: u64,
    max: Option<u64>,
}

impl<'p> Parser<'p> {
    pub(super) fn repetition(
        &mut self,
        c: char,
        last_repeat: Option<&'p str>,
    ) -> Result<Option<&'p str>, Error> {
        let before = self.rest;
        let (counts, after) = match c {
            '*' => (Counts { min: 0, max: None }, &before[1..]),
            '+' => (Counts { min: 1, max: None }, &before[1..]),
            '?' => (Counts { min: 0, max: Some(1) }, &before[1..]),
            _ => match counts(before) {
                Some(found) => found,
                None => {
                    // Braces that are no count are literal text.
                    self.advance(1);
                    self.literal('{')?;
                    return Ok(None);
                }
            },
        };
        let counted = c == '{';
        let too_big =
            counts.min > MAX_REPEAT || counts.max.is_some_and(|max| max > MAX_REPEAT || max < counts.min);
        if counted && too_big {
            return Err(Error::new(Code::InvalidRepeatSize, cut(before, after)));
        }
        let after = self.repeat(counts, counted, before, after, last_repeat)?;
        self.rest = after;
        Ok(Some(before))
    }

    fn repeat(
        &mut self,
        counts: Counts,
        counted: bool,
        before: &'p str,
        after: &'p str,
        last_repeat: Option<&'p str>,
    ) -> Result<&'p str, Error> {
        let (after, lazy) = match after.strip_prefix('?') {
            Some(rest) => (rest, !self.flags.non_greedy),
            None => (after, self.flags.non_greedy),
        };
        if let Some(last) = last_repeat {
            return Err(Error::new(Code::InvalidRepeatOp, cut(last, after)));
        }
        let Some(sub) = self.frame().last() else {
            return Err(Error::new(Code::MissingRepeatArgument, cut(before, after)));
        };
        let node = if counted { repeated(sub, counts) } else { sub.wrap(2) };
        self.check_limits(node)?;
        if node.repeats > MAX_REPEAT {
            return Err(Error::new(Code::InvalidRepeatSize, cut(before, after)));
        }
        self.frame().replace_last(node);
        self.write_repeat(counts, lazy);
        Ok(after)
    }

    fn write_repeat(&mut self, counts: Counts, lazy: bool) {
        // A flag group may stand between two repetitions; without the group, the second would change the first.
        let start = self.frame().atom_start;
        if self.out[start..].ends_with(['*', '+', '?', '}']) {
            self.out.insert_str(start, "(?:");
            self.out.push(')');
        }
        match counts {
            Counts { min: 0, max: None } => self.out.push('*'),
            Counts { min: 1, max: None } => self.out.push('+'),
            Counts { min: 0, max: Some(1) } => self.out.push('?'),
            Counts { min, max: None } => self.out.push_str(&format!("{{{min},}}")),
            Counts { min, max: Some(max) } => self.out.push_str(&format!("{{{min},{max}}}")),
        }
        if lazy {
            self.out.push('?');
        }
    }
}

/// The text from `start` up to where `rest` begins.
fn cut<'p>(start: &'p str, rest: &str) -> &'p str {
    &start[..start.len() - rest.len()]
}

/// The measures of a counted repetition. A count of zero makes everything inside free, as in Go.
fn repeated(sub: Node, counts: Counts) -> Node {
    let (copies, extra) = match counts.max {
        Some(max) => (max, max - counts.min),
        None if counts.min == 0 => (1, 2),
        None => (counts.min, 1),
    };
    let repeats = match copies {
        0 => 1,
        copies => sub.repeats.saturating_mul(copies),
    };
    Node {
        height: sub.height + 1,
        size: sub.size.saturating_mul(copies).saturating_add(extra).max(1),
        weight: sub.weight.saturating_mul(copies).saturating_add(extra).max(1),
        repeats,
    }
}

/// Parses `{n}`, `{n,}` or `{n,m}` and returns what follows. Anything else is not a count.
fn counts(text: &str) -> Option<(Counts, &str)> {
    let (min, rest) = integer(text.strip_prefix('{')?)?;
    let (max, rest) = match rest.strip_prefix(',') {
        None => (Some(min), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => {
            let (max, rest) = integer(rest)?;
            (Some(max), rest)
        }
    };
    Some((Counts { min, max }, rest.strip_prefix('}')?))
}

/// A decimal number without leading zeros; one that is too long becomes the largest.
fn integer(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().unwrap_or(u64::MAX), rest))
}
