use bytes::Bytes;

/// No object begins like this, and nothing that is written may.
const MARK: &[u8] = b"\0unreadable\0";

/// What a store that seals values shows in the place of one that it cannot open. It is there, it has a revision and it
/// can be deleted; what it says is not known.
pub fn unreadable(reason: &str) -> Bytes {
    [MARK, reason.as_bytes()].concat().into()
}

/// Why a value is not known, if it is one that stands for another.
///
/// ```
/// let value = concord_store::unreadable("no key");
/// assert_eq!(concord_store::why_unreadable(&value), Some("no key"));
/// assert_eq!(concord_store::why_unreadable(b"{}"), None);
/// ```
pub fn why_unreadable(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value.strip_prefix(MARK)?).ok()
}
