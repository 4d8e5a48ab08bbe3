//! What the child writes: a function of seed, round, writer and number, so that the parent knows it
//! without being told.

use std::time::Duration;

/// So many tasks write at once.
pub(crate) const WRITERS: u64 = 6;
/// Keys of each writer. Few, so that most writes supersede one.
const KEYS: u64 = 8;
/// The key that all writers count up.
pub(crate) const COUNTER: &str = "counter";

/// One run of the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) seed: u64,
    pub(crate) round: u64,
}

/// Names one write of all that were ever tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tag {
    pub(crate) round: u64,
    pub(crate) writer: u64,
    pub(crate) number: u64,
}

/// What a writer does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Op {
    /// The same value under all these keys.
    Put {
        keys: Vec<String>,
        value: Vec<u8>,
        ttl: Option<Duration>,
    },
    Delete {
        key: String,
    },
    /// Adds one to the counter, if nobody else did so meanwhile.
    Increment,
}

/// Tells random-looking numbers apart that were made for different purposes.
pub(crate) fn mix(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0x5eed, |state, number| {
        let mut x = (state ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    })
}

impl Run {
    pub(crate) fn op(self, writer: u64, number: u64) -> Op {
        let tag = Tag { round: self.round, writer, number };
        let dice = mix(&[self.seed, self.round, writer, number]);
        let key = |n: u64| format!("w{writer}/{}", n % KEYS);
        let value = || self.value(tag);
        match dice % 20 {
            0..12 => Op::Put { keys: vec![key(dice >> 8)], value: value(), ttl: None },
            12..14 => Op::Delete { key: key(dice >> 8) },
            14..16 => {
                let ttl = Duration::from_millis(10 + (dice >> 16) % 100);
                Op::Put {
                    keys: vec![format!("ttl/w{writer}/{}", (dice >> 8) % 2)],
                    value: value(),
                    ttl: Some(ttl),
                }
            }
            16..18 => Op::Put { keys: vec![key(dice >> 8), key((dice >> 8) + 1)], value: value(), ttl: None },
            _ => Op::Increment,
        }
    }

    /// Mostly small, sometimes many pages; every byte depends on the tag, so that no part of another
    /// value passes for a part of this one.
    fn value(self, tag: Tag) -> Vec<u8> {
        let seed = mix(&[self.seed, tag.round, tag.writer, tag.number, 1]);
        let len = if seed.is_multiple_of(16) { 30_000 + seed % 10_000 } else { 30 + (seed >> 8) % 2000 };
        let mut bytes = tag.to_string().into_bytes();
        bytes.push(b' ');
        let mut at = 0;
        while (bytes.len() as u64) < len {
            bytes.extend_from_slice(&mix(&[seed, at]).to_le_bytes());
            at += 1;
        }
        bytes
    }

    /// Whose value this is, if it is whole.
    pub(crate) fn whole(self, value: &[u8]) -> Option<Tag> {
        let text = value.split(|byte| *byte == b' ').next()?;
        let tag = Tag::parse(std::str::from_utf8(text).ok()?)?;
        (self.value(tag) == value).then_some(tag)
    }
}

impl std::fmt::Display for Tag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}-{}", self.round, self.writer, self.number)
    }
}

impl Tag {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('-').map(|number| number.parse().ok());
        let tag = Self { round: numbers.next()??, writer: numbers.next()??, number: numbers.next()?? };
        numbers.next().is_none().then_some(tag)
    }
}

/// The counter's value: the count, and who counted.
pub(crate) fn counter_value(count: u64, tag: Tag) -> String {
    format!("{count} {tag}")
}

/// The count and who counted.
pub(crate) fn parse_counter(value: &[u8]) -> Option<(u64, Tag)> {
    let (count, tag) = std::str::from_utf8(value).ok()?.split_once(' ')?;
    Some((count.parse().ok()?, Tag::parse(tag)?))
}
