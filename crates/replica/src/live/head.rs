//! What tells a key from its neighbours.
//!
//! Neighbours in key order have a beginning in common, often a long one: a resource, a namespace and
//! part of a name. A few bytes after it, the head of a key, usually say which is which:
//!
//! ```text
//! /registry/pods/default/web-0     common: "/registry/pods/default/web-" (27 bytes)
//! /registry/pods/default/web-1     heads:  "0", "1", "10"
//! /registry/pods/default/web-10
//! ```
//!
//! Heads stand side by side in a node, while each key would have to be fetched from elsewhere.

/// The bytes of a key after the first `common`, as far as they fit, filled up with zeros.
///
/// Of keys with the same first `common` bytes, the lesser one does not have the greater head; but
/// different keys may have the same head.
pub(super) fn head(key: &[u8], common: usize) -> u32 {
    let rest = key.get(common..).unwrap_or_default();
    let mut head = [0; size_of::<u32>()];
    let len = rest.len().min(head.len());
    head[..len].copy_from_slice(&rest[..len]);
    u32::from_be_bytes(head)
}

/// How many bytes at the beginning of both keys are the same.
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
