//! Sets of characters.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use regex::Regex;

/// A set of characters.
#[derive(Debug)]
pub(super) struct Class {
    /// A bit for each ASCII character.
    ascii: u128,
    others: Others,
}

/// The characters of a class that are not ASCII.
#[derive(Debug)]
enum Others {
    /// In order, none twice.
    Ranges(Box<[(char, char)]>),
    /// Whatever this matches: Unicode's tables and foldings are those of `regex`. And what it takes that nobody else who
    /// has it was charged with, in bytes.
    Matched(Arc<Regex>, usize),
    Nothing,
}

/// What a class that `regex` knows takes, about, in bytes.
const MATCHED: usize = 80 << 10;

/// How many classes are looked for among those of other patterns.
const MAX_KNOWN: usize = 512;

/// Those that `regex` knows, by their text, as long as a pattern has them: many patterns have the same few.
static KNOWN: Mutex<BTreeMap<Box<str>, Weak<Regex>>> = Mutex::new(BTreeMap::new());

/// The class of this text, and how many bytes it takes beyond what others have already.
fn matched(text: &str) -> Option<(Arc<Regex>, usize)> {
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(regex) = known().get(text).and_then(Weak::upgrade) {
        return Some((regex, 0));
    }
    let regex = Arc::new(Regex::new(&format!(r"\A{text}\z")).ok()?);
    let mut known = known();
    if known.len() >= MAX_KNOWN {
        known.retain(|_, regex| regex.strong_count() > 0);
    }
    if known.len() < MAX_KNOWN {
        known.insert(text.into(), Arc::downgrade(&regex));
    }
    Some((regex, MATCHED))
}

impl Class {
    /// From what the parser wrote: `[...]`, maybe in `(?i:...)`, or a character in that.
    pub(super) fn new(text: &str) -> Self {
        if let Some(ranges) = ranges(text) {
            let has = |c: char| ranges.iter().any(|&(low, high)| (low..=high).contains(&c));
            return Self { ascii: bits(has), others: Others::Ranges(ranges.into()) };
        }
        match matched(text) {
            Some((regex, bytes)) => {
                let ascii = bits(|c| matches(&regex, c));
                Self { ascii, others: Others::Matched(regex, bytes) }
            }
            // It was written by our own parser, so that cannot be.
            None => Self { ascii: 0, others: Others::Nothing },
        }
    }

    pub(super) fn has(&self, c: char) -> bool {
        if c.is_ascii() {
            return self.ascii >> u32::from(c) & 1 == 1;
        }
        match &self.others {
            Others::Ranges(ranges) => {
                let next = ranges.partition_point(|&(low, _)| low <= c);
                next.checked_sub(1).is_some_and(|last| c <= ranges[last].1)
            }
            Others::Matched(regex, _) => matches(regex, c),
            Others::Nothing => false,
        }
    }

    pub(super) fn footprint(&self) -> usize {
        size_of::<Self>()
            + match &self.others {
                Others::Ranges(ranges) => size_of_val(&**ranges),
                Others::Matched(_, bytes) => *bytes,
                Others::Nothing => 0,
            }
    }
}

fn matches(regex: &Regex, c: char) -> bool {
    regex.is_match(c.encode_utf8(&mut [0; 4]))
}

fn bits(has: impl Fn(char) -> bool) -> u128 {
    (0..128_u8).filter(|&code| has(char::from(code))).fold(0, |bits, code| bits | 1 << code)
}

/// The characters of a class that names all of them itself, in order; none for one that says `\p` or `(?i:`.
fn ranges(text: &str) -> Option<Vec<(char, char)>> {
    if text.contains(r"\p") || !text.starts_with('[') {
        return None;
    }
    let mut rest = &text[1..];
    let found = items(&mut rest);
    rest.is_empty().then_some(found)
}

/// What stands between brackets, behind the first of them; the other one is taken, too.
fn items(rest: &mut &str) -> Vec<(char, char)> {
    let negated = rest.strip_prefix('^').inspect(|after| *rest = after).is_some();
    let mut found = Vec::new();
    while let Some(c) = rest.chars().next().filter(|c| *c != ']') {
        if c == '[' {
            *rest = &rest[1..];
            found.extend(items(rest));
            continue;
        }
        let low = character(rest);
        let high = match rest.strip_prefix('-') {
            Some(after) => {
                *rest = after;
                character(rest)
            }
            None => low,
        };
        found.push((low, high));
    }
    *rest = rest.get(1..).unwrap_or_default();
    let found = merged(found);
    if negated { others(&found) } else { found }
}

/// A character as the parser writes it, here or outside of classes.
pub(super) fn character(rest: &mut &str) -> char {
    let mut chars = rest.chars();
    let mut c = chars.next().unwrap_or_default();
    if c == '\\' {
        c = match chars.next() {
            Some('t') => '\t',
            Some('n') => '\n',
            Some('f') => '\x0C',
            Some('r') => '\r',
            _ => code(&mut chars),
        };
    }
    *rest = chars.as_str();
    c
}

/// What follows `\x`.
fn code(chars: &mut std::str::Chars<'_>) -> char {
    let text = chars.as_str();
    let (digits, rest) = match text.strip_prefix('{') {
        Some(braced) => braced.split_once('}').unwrap_or((braced, "")),
        None => text.split_at_checked(2).unwrap_or((text, "")),
    };
    *chars = rest.chars();
    u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).unwrap_or_default()
}

fn merged(mut ranges: Vec<(char, char)>) -> Vec<(char, char)> {
    ranges.sort_unstable();
    let mut merged: Vec<(char, char)> = Vec::with_capacity(ranges.len());
    for (low, high) in ranges {
        match merged.last_mut() {
            Some(last) if low <= last.1 => last.1 = last.1.max(high),
            _ => merged.push((low, high)),
        }
    }
    merged
}

/// All characters that are not in these ranges.
fn others(ranges: &[(char, char)]) -> Vec<(char, char)> {
    let mut others = Vec::with_capacity(ranges.len() + 1);
    let mut next = Some('\0');
    for &(low, high) in ranges {
        if let (Some(next), Some(last)) = (next, ('\0'..low).next_back())
            && next <= last
        {
            others.push((next, last));
        }
        next = (high..=char::MAX).nth(1);
    }
    others.extend(next.map(|next| (next, char::MAX)));
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_what_they_say() {
        for (text, inside, outside) in [
            (r"[a-c\x2D]", "ab-", "d é"),
            (r"[^\n]", "aé😀", "\n"),
            (r"[^\x{0}-\x{10FFFF}]", "", "a\0é😀"),
            (r"[[0-9][^\x00-\x7F]x]", "5éx😀", "y-"),
            (r"[é-ü]", "éê", "ae"),
            (r"[[\p{gc=L}]\x5F]", "aé_", "1 "),
            (r"(?i:k)", "kK\u{212A}", "a"),
            (r"[^[^a-z]]", "az", "é1"),
        ] {
            let class = Class::new(text);
            assert!(inside.chars().all(|c| class.has(c)), "{text}");
            assert!(!outside.chars().any(|c| class.has(c)), "{text}");
        }
    }

    #[test]
    fn patterns_share_their_classes() {
        let (one, other) = (Class::new(r"[\p{gc=Lt}]"), Class::new(r"[\p{gc=Lt}]"));
        assert!(one.footprint() >= MATCHED && other.footprint() < MATCHED);
        drop(one);
        assert!(other.has('\u{1C5}') && !other.has('a'));
    }
}
