use bytes::Bytes;

use crate::Error;

/// The longest key that can be written, compared or asked for. The longest key Kubernetes can form
/// is about 700 bytes; the limit only keeps absurd requests out of an index that lives in memory.
pub const MAX_KEY_BYTES: usize = 4096;

/// Checks a key that a request names.
///
/// # Errors
///
/// [`Error::Invalid`] for the empty key, [`Error::TooLarge`] beyond [`MAX_KEY_BYTES`].
pub fn check_key(key: &[u8]) -> Result<(), Error> {
    if key.is_empty() {
        return Err(Error::invalid("the key is empty"));
    }
    if key.len() > MAX_KEY_BYTES {
        return Err(Error::TooLarge { what: "the key (bytes)", size: key.len(), limit: MAX_KEY_BYTES });
    }
    Ok(())
}

/// A half-open range of keys: `start` is in it, `end` is not. No `end` means no upper bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key of the range.
    pub start: Bytes,
    /// The first key after the range.
    pub end: Option<Bytes>,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> Self {
        Self { start: Bytes::new(), end: None }
    }

    /// Exactly one key.
    pub fn key(key: impl Into<Bytes>) -> Self {
        let start = key.into();
        let mut end = Vec::with_capacity(start.len() + 1);
        end.extend_from_slice(&start);
        end.push(0);
        Self { start, end: Some(end.into()) }
    }

    /// All keys that begin with `prefix`.
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        let start = prefix.into();
        let end = prefix_end(&start);
        Self { start, end }
    }

    /// What is left of this range from `key` on.
    #[must_use]
    pub fn starting_at(mut self, key: impl Into<Bytes>) -> Self {
        self.start = self.start.max(key.into());
        self
    }

    /// Whether `key` is in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.as_ref() <= key && self.end.as_ref().is_none_or(|end| key < end.as_ref())
    }

    /// Whether no key can be in the range.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }
}

/// The first key after all keys with this prefix: the prefix with its last byte that can grow grown
/// by one. A prefix of nothing but 0xff bytes has none.
fn prefix_end(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(prefix: &[u8], inside: &[&[u8]], outside: &[&[u8]]) {
        let range = KeyRange::prefix(prefix.to_vec());
        for key in inside {
            assert!(range.contains(key), "{key:?} should be under {prefix:?}");
        }
        for key in outside {
            assert!(!range.contains(key), "{key:?} should not be under {prefix:?}");
        }
    }

    #[test]
    fn a_prefix_covers_exactly_the_keys_that_begin_with_it() {
        check(b"/a/", &[b"/a/", b"/a/b", b"/a/\xff\xff"], &[b"/a", b"/a0", b"/b/"]);
        check(b"/a\xff", &[b"/a\xff", b"/a\xff\xff"], &[b"/a\xfe", b"/b"]);
        check(b"\xff\xff", &[b"\xff\xff", b"\xff\xff\x01"], &[b"\xff", b"\xff\xfe"]);
        check(b"", &[b"\x00", b"a", b"\xff"], &[]);
    }

    #[test]
    fn a_single_key_is_a_range_of_one() {
        let range = KeyRange::key("k");
        assert!(range.contains(b"k"));
        assert!(!range.contains(b"k\0") && !range.contains(b"j") && !range.contains(b"l"));
    }

    #[test]
    fn a_range_that_starts_past_its_end_is_empty() {
        assert!(KeyRange::prefix("a").starting_at("b").is_empty());
        assert!(!KeyRange::prefix("a").starting_at("ab").is_empty());
        assert!(!KeyRange::all().starting_at("zzz").is_empty());
        assert_eq!(KeyRange::prefix("b").starting_at("a"), KeyRange::prefix("b"));
    }

    #[test]
    fn bad_keys_are_named() {
        assert!(matches!(check_key(b""), Err(Error::Invalid(_))));
        assert!(matches!(check_key(&[b'k'; 8192]), Err(Error::TooLarge { size: 8192, .. })));
        assert!(check_key(&[b'k'; MAX_KEY_BYTES]).is_ok());
    }
}
