//! The few fields of stored objects that matter here, read without the rest.

use std::{borrow::Cow, sync::LazyLock};

use concord_meta::objectmeta::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN};
use memchr::memmem::Finder;
use serde::{Deserialize, Deserializer, de::IgnoredAny};

/// What the metadata of an object says about its owners and its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata<'a> {
    /// The uid.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// The owners.
    #[serde(borrow, deserialize_with = "list")]
    pub owner_references: Vec<OwnerReference<'a>>,
    /// What keeps it from going away.
    #[serde(deserialize_with = "list")]
    pub finalizers: Vec<String>,
    /// Whether it is being deleted.
    #[serde(rename = "deletionTimestamp", deserialize_with = "is_there")]
    pub is_deleting: bool,
}

/// A reference to an owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerReference<'a> {
    /// Group and version.
    #[serde(borrow)]
    pub api_version: Cow<'a, str>,
    /// The kind.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// The name.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The uid.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// Whether the owner has to wait for this object when it is deleted in the foreground.
    pub block_owner_deletion: Option<bool>,
}

impl OwnerReference<'_> {
    /// Whether the owner has to wait.
    pub fn is_blocking(&self) -> bool {
        self.block_owner_deletion == Some(true)
    }
}

fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

fn is_there<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Option::<IgnoredAny>::deserialize(from).map(|found| found.is_some())
}

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

impl<'a> Metadata<'a> {
    /// Reads stored bytes; `None` if they are no object that can be read. Every object has a uid.
    pub fn read(value: &'a [u8]) -> Option<Self> {
        let read: Option<Self> = match after_type(value) {
            // The value ends where the metadata does; what comes after is not looked at.
            Some(rest) => Self::deserialize(&mut serde_json::Deserializer::from_slice(rest)).ok(),
            None => serde_json::from_slice(value).ok().map(|whole: Whole<'a>| whole.metadata),
        };
        read.filter(|metadata| !metadata.uid.is_empty())
    }

    /// Whether stored bytes can say anything about owners or about a deletion. Most cannot, which is seen without parsing.
    pub fn may_matter(value: &[u8]) -> bool {
        static MARKS: LazyLock<[Finder<'static>; 2]> =
            LazyLock::new(|| ["\"ownerReferences\"", "\"deletionTimestamp\""].map(Finder::new));
        MARKS.iter().any(|mark| mark.find(value).is_some())
    }

    /// Whether it is being deleted and waits until its dependents are gone.
    pub fn is_waiting(&self) -> bool {
        self.is_deleting && self.has(FINALIZER_FOREGROUND)
    }

    /// Whether it is being deleted and waits until its dependents have been let go.
    pub fn is_orphaning(&self) -> bool {
        self.is_deleting && self.has(FINALIZER_ORPHAN)
    }

    pub(crate) fn has(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|name| name == finalizer)
    }
}

/// The `kind` and the `apiVersion` that stored bytes begin with.
pub(crate) fn stored_type(value: &[u8]) -> Option<(&str, &str)> {
    let rest = value.strip_prefix(b"{\"kind\":\"")?;
    let (kind, rest) = until_quote(rest)?;
    let (version, _) = until_quote(rest.strip_prefix(b",\"apiVersion\":\"")?)?;
    Some((kind, version))
}

/// What comes after the name of the metadata, in objects that begin as stored ones do.
fn after_type(value: &[u8]) -> Option<&[u8]> {
    let (_, rest) = until_quote(value.strip_prefix(b"{\"kind\":\"")?)?;
    let (_, rest) = until_quote(rest.strip_prefix(b",\"apiVersion\":\"")?)?;
    rest.strip_prefix(b",\"metadata\":")
}

/// A text without escapes, and what comes after its quote.
fn until_quote(text: &[u8]) -> Option<(&str, &[u8])> {
    // Kinds and versions are short.
    const MOST: usize = 512;
    let end = text.iter().take(MOST).position(|byte| *byte == b'"')?;
    let found = std::str::from_utf8(&text[..end]).ok()?;
    (!found.contains('\\')).then_some((found, &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_that_matter_are_read_and_nothing_else() {
        let value = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"annotations":{"a":"\"uid\":"},"deletionTimestamp":"2026-01-01T00:00:00Z",
            "finalizers":["foregroundDeletion"],"managedFields":[{"uid":[[{}]]}],"name":"p","ownerReferences":[{"apiVersion":"apps/v1",
            "blockOwnerDeletion":true,"controller":true,"kind":"ReplicaSet","name":"r","uid":"u"}],"uid":"x"},"spec":this is not looked at"#;
        let read = Metadata::read(value).expect("metadata");
        assert_eq!((read.uid.as_ref(), read.is_waiting(), read.is_orphaning()), ("x", true, false));
        let owner = &read.owner_references[0];
        assert_eq!(
            (owner.kind.as_ref(), owner.name.as_ref(), owner.is_blocking()),
            ("ReplicaSet", "r", true)
        );
        assert!(matches!(owner.uid, Cow::Borrowed("u")));
        assert_eq!(stored_type(value), Some(("Pod", "v1")));
    }

    #[test]
    fn what_was_written_in_another_order_is_read_too() {
        let value =
            br#"{"metadata":{"uid":"x","ownerReferences":null,"finalizers":["orphan"]},"kind":"Pod"}"#;
        let read = Metadata::read(value).expect("metadata");
        assert_eq!((read.uid.as_ref(), read.is_deleting), ("x", false));
        assert_eq!(stored_type(value), None);
    }

    #[test]
    fn what_is_no_object_is_not_read() {
        for value in [
            &b""[..],
            b"k8s\0\x0a",
            b"{}",
            br#"{"kind":"Pod","apiVersion":"v1","metadata":[]}"#,
            br#"{"kind":"Pod","apiVersion":"v1","metadata":{"uid":7}}"#,
            br#"{"kind":"Pod","apiVersion":"v1","metadata":{"uid":"x""#,
        ] {
            assert_eq!(Metadata::read(value), None, "{}", String::from_utf8_lossy(value));
        }
    }

    #[test]
    fn most_objects_need_no_look() {
        assert!(!Metadata::may_matter(br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"uid":"x"}}"#));
        assert!(Metadata::may_matter(br#"{"metadata":{"deletionTimestamp":null}}"#));
        assert!(Metadata::may_matter(br#"{"metadata":{"ownerReferences":[]}}"#));
    }
}
