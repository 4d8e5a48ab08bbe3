//! Values between etcd's messages and ours.

use bytes::Bytes;
use concord_store::{Error, KeyRange, KeyValue, Revision};

use crate::pb::{etcdserverpb::ResponseHeader, mvccpb};

/// The revision a header carries.
pub(crate) fn revision(header: Option<&ResponseHeader>) -> Result<Revision, Error> {
    let revision = header.map(|header| header.revision).unwrap_or_default();
    match Revision::try_from(revision) {
        Ok(revision) if revision > 0 => Ok(revision),
        _ => Err(Error::unavailable(format!("an answer at revision {revision}: this is not an etcd"))),
    }
}

/// A revision as etcd takes it. No log reaches the ones that do not fit, so the last one that does
/// compares and fails as they would.
pub(crate) fn wire_revision(revision: Revision) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

/// A revision etcd gave for a key.
pub(crate) fn key_revision(revision: i64) -> Revision {
    Revision::try_from(revision).unwrap_or_default()
}

/// Copies the bytes: they are slices of a whole gRPC message, which a kept small value would keep alive.
pub(crate) fn key_value(kv: &mvccpb::KeyValue) -> KeyValue {
    KeyValue {
        key: Bytes::copy_from_slice(&kv.key),
        value: Bytes::copy_from_slice(&kv.value),
        create_revision: key_revision(kv.create_revision),
        mod_revision: key_revision(kv.mod_revision),
    }
}

/// `key` and `range_end` of a request for a range that is not empty. etcd has no empty key, so the first
/// one is a zero byte, which as an end means no end.
pub(crate) fn bounds(range: &KeyRange) -> (Bytes, Bytes) {
    let zero = || Bytes::from_static(b"\0");
    let start = if range.start.is_empty() { zero() } else { range.start.clone() };
    (start, range.end.clone().unwrap_or_else(zero))
}

/// What two ranges share.
pub(crate) fn intersection(a: KeyRange, b: &KeyRange) -> KeyRange {
    let end = match (a.end, &b.end) {
        (Some(a), Some(b)) => Some(a.min(b.clone())),
        (end, None) => end,
        (None, end) => end.clone(),
    };
    KeyRange { start: a.start.max(b.start.clone()), end }
}

/// The first key after `key`.
pub(crate) fn successor(key: &[u8]) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_shrink_to_what_they_share() {
        let range = |start: &str, end: Option<&str>| KeyRange {
            start: Bytes::copy_from_slice(start.as_bytes()),
            end: end.map(|end| Bytes::copy_from_slice(end.as_bytes())),
        };
        let table = [
            (range("", None), range("", None), range("", None)),
            (range("", None), range("b", Some("d")), range("b", Some("d"))),
            (range("a", Some("c")), range("b", Some("d")), range("b", Some("c"))),
            (range("c", None), range("b", Some("d")), range("c", Some("d"))),
            (range("c", Some("z")), range("b", None), range("c", Some("z"))),
        ];
        for (a, b, expected) in table {
            assert_eq!(intersection(a.clone(), &b), expected, "{a:?} and {b:?}");
            assert_eq!(intersection(b.clone(), &a), expected, "{b:?} and {a:?}");
        }
        assert!(intersection(range("a", Some("b")), &range("c", Some("d"))).is_empty());
    }

    #[test]
    fn open_bounds_are_zero_bytes() {
        assert_eq!(bounds(&KeyRange::all()), ("\0".into(), "\0".into()));
        assert_eq!(bounds(&KeyRange::key("k")), ("k".into(), "k\0".into()));
    }

    #[test]
    fn revisions_beyond_etcds_are_the_last_one() {
        assert_eq!(wire_revision(7), 7);
        assert_eq!(wire_revision(u64::MAX), i64::MAX);
        assert!(revision(None).is_err());
        assert!(revision(Some(&ResponseHeader { revision: -1, ..Default::default() })).is_err());
    }
}
