//! What is really stored.

use std::collections::BTreeMap;

use bytes::Bytes;
use concord_encryption::seal_of;
use concord_registry::{Registry, stored_version};
use concord_store::{Error, KeyRange, Revision, Scan, why_unreadable};
use concord_store_sealed::Keyring;
use serde::{Deserialize, Serialize};

use crate::{
    load::give_way,
    read::{PAGE, read_kept},
};

/// How often a census starts over because what it reads was compacted away.
const ATTEMPTS: usize = 5;

/// One form that objects are kept in.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The version they are encoded in: `v1` or `group/version`.
    pub version: String,
    /// What they are encrypted with, such as `aescbc:v1:key1:` and a tag of the key; empty if they are not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub encryption: String,
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.encryption.as_str() {
            "" => write!(f, "{}", self.version),
            key => write!(f, "{} encrypted with {key}", self.version),
        }
    }
}

/// How many objects are kept in which form, at one revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Census {
    /// The objects of each form.
    pub rows: BTreeMap<Row, u64>,
    /// When that was so.
    pub revision: Revision,
}

impl Census {
    /// All objects.
    pub fn total(&self) -> u64 {
        self.rows.values().sum()
    }

    /// Version, encryption and number of each form.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        self.rows.iter().map(|(row, count)| (row.version.as_str(), row.encryption.as_str(), *count))
    }

    /// Those that do not have this form.
    pub fn others(&self, target: &Row) -> u64 {
        self.rows.iter().filter(|(row, _)| *row != target).map(|(_, count)| count).sum()
    }
}

/// The form that a value is kept in.
pub(crate) fn form(keyring: Option<&Keyring>, key: &[u8], kept: &Bytes) -> Row {
    let said = seal_of(kept);
    if said.is_empty() {
        return Row { version: version(kept), encryption: String::new() };
    }
    match keyring.map(|keyring| keyring.inspect(key, kept)) {
        // By the key that opens it: another one may have the same name.
        Some(inspected) => Row { version: version(&inspected.plain), encryption: inspected.seal },
        None => Row { version: unreadable(), encryption: said.into_owned() },
    }
}

/// Whether nobody can read a value, however long he waits. What a key management service has the key of may be readable when
/// it answers again.
pub(crate) fn is_lost(keyring: Option<&Keyring>, key: &[u8], kept: &Bytes) -> bool {
    match keyring.filter(|_| !seal_of(kept).is_empty()) {
        Some(keyring) if keyring.is_lost(key, kept) => true,
        Some(keyring) => {
            let plain = keyring.inspect(key, kept).plain;
            why_unreadable(&plain).is_none() && version(&plain) == unreadable()
        }
        None => form(None, key, kept).version == unreadable(),
    }
}

fn unreadable() -> String {
    "unreadable".to_owned()
}

/// The version that a plain value says it is in.
fn version(plain: &[u8]) -> String {
    if let Some(version) = stored_version(plain) {
        return version.to_owned();
    }
    if let Some(message) = plain.strip_prefix(b"k8s\0") {
        return protobuf_version(message).map_or_else(unreadable, ToOwned::to_owned);
    }
    if why_unreadable(plain).is_some() {
        return unreadable();
    }
    // Others may write their members in another order.
    let object: Option<serde_json::Value> = serde_json::from_slice(plain).ok();
    object.and_then(|object| Some(object["apiVersion"].as_str()?.to_owned())).unwrap_or_else(unreadable)
}

/// The version in the envelope that a kube-apiserver puts around protobuf: the first field of its first field.
fn protobuf_version(message: &[u8]) -> Option<&str> {
    let (type_meta, _) = first_field(message)?;
    std::str::from_utf8(first_field(type_meta)?.0).ok()
}

/// The bytes of a first field of number 1, and what follows it.
fn first_field(message: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = message.strip_prefix(&[0x0a])?;
    let (low, rest) = rest.split_first()?;
    let (length, rest) = match low & 0x80 {
        0 => (usize::from(*low), rest),
        _ => {
            let (high, rest) = rest.split_first().filter(|(high, _)| **high < 0x80)?;
            (usize::from(low & 0x7f) | usize::from(*high) << 7, rest)
        }
    };
    rest.split_at_checked(length)
}

/// Counts everything whose key begins with `prefix`, at one revision.
///
/// # Errors
///
/// Those of the store.
pub(crate) async fn census(
    registry: &Registry,
    keyring: Option<&Keyring>,
    prefix: &Bytes,
) -> Result<Census, Error> {
    let mut attempts = 0;
    loop {
        match count(registry, keyring, prefix).await {
            Err(Error::Compacted { .. }) if attempts < ATTEMPTS => attempts += 1,
            counted => return counted,
        }
    }
}

async fn count(registry: &Registry, keyring: Option<&Keyring>, prefix: &Bytes) -> Result<Census, Error> {
    let mut scan = Scan::new(KeyRange::prefix(prefix.clone()), PAGE);
    let mut census = Census::default();
    loop {
        let page = read_kept(registry.store().as_ref(), registry.replica(), scan.clone()).await?;
        for entry in &page.entries {
            give_way();
            *census.rows.entry(form(keyring, &entry.key, &entry.value)).or_default() += 1;
        }
        census.revision = page.revision;
        let Some(resume) = page.resume else { return Ok(census) };
        scan = Scan { range: scan.range.starting_at(resume), revision: Some(page.revision), ..scan };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_a_value_is_read_from_its_beginning() {
        for (kept, version, encryption) in [
            (&br#"{"kind":"A","apiVersion":"v1","metadata":{}}"#[..], "v1", ""),
            (br#"{"apiVersion":"g/v2","kind":"A"}"#, "g/v2", ""),
            (b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Secret", "v1", ""),
            (b"k8s\0\x0a\x8c\x00\x0a\x02v1\x12\x06Secret", "v1", ""),
            (b"k8s\0\x0a\x7f\x0a", "unreadable", ""),
            (b"k8s\0\x0a", "unreadable", ""),
            (b"k8s\0", "unreadable", ""),
            (b"k8s:enc:aescbc:v1:k1:xyz", "unreadable", "aescbc:v1:k1"),
            (b"", "unreadable", ""),
            (b"[]", "unreadable", ""),
        ] {
            let row = form(None, b"/registry/a/b", &Bytes::from_static(kept));
            assert_eq!((row.version.as_str(), row.encryption.as_str()), (version, encryption));
            let is_lost = is_lost(None, b"/registry/a/b", &Bytes::from_static(kept));
            assert_eq!(is_lost, version == "unreadable");
        }
    }

    #[test]
    fn a_census_counts_what_has_another_form() {
        let row = |version: &str, key: &str| Row { version: version.to_owned(), encryption: key.to_owned() };
        let rows = BTreeMap::from([(row("v1", ""), 3), (row("v2", ""), 4), (row("v2", "k"), 5)]);
        let census = Census { rows, revision: 9 };
        assert_eq!(
            (census.total(), census.others(&row("v2", "k")), census.others(&row("v3", ""))),
            (12, 7, 12)
        );
    }
}
