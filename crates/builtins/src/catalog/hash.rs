//! The storage version hash of discovery.

use aws_lc_rs::digest::{SHA256, digest};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The first eight bytes of a digest over the stored group, version and kind, in base64.
pub fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    let digest = digest(&SHA256, format!("{group}/{version}/{kind}").as_bytes());
    base64(digest.as_ref().first_chunk().expect("a digest of 32 bytes"))
}

/// Eleven digits and one of padding.
fn base64(bytes: &[u8; 8]) -> String {
    let bits = u128::from(u64::from_be_bytes(*bytes)) << 2;
    let digit = |at: u32| char::from(ALPHABET[(bits >> (60 - 6 * at) & 63) as usize]);
    (0..11).map(digit).chain(['=']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_that_upstream_tells() {
        assert_eq!(storage_version_hash("", "v1", "ConfigMap"), "qFsyl6wFWjQ=");
        assert_eq!(storage_version_hash("autoscaling", "v2", "HorizontalPodAutoscaler"), "qwQve8ut294=");
    }
}
