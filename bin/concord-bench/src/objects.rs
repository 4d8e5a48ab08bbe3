//! The objects that are written and read: ConfigMaps of one size in one namespace of our own.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use rand::{RngExt, SeedableRng, distr::Alphanumeric, rngs::StdRng};

/// Shared by all workers. Bodies are put together from text: encoding them would be client cost.
pub(crate) struct Objects {
    namespace: String,
    prefix: &'static str,
    collection: String,
    payload: String,
    /// Each object's last seen resourceVersion; zero while it does not exist.
    versions: Box<[AtomicU64]>,
}

impl Objects {
    /// Of `count` objects none exists yet.
    pub(crate) fn new(namespace: &str, prefix: &'static str, count: usize, size: usize) -> Self {
        // Random, since a repeated letter would make compression look better than it is.
        let letters = StdRng::seed_from_u64(1).sample_iter(Alphanumeric).take(size).map(char::from);
        Self {
            collection: format!("/api/v1/namespaces/{namespace}/configmaps"),
            namespace: namespace.to_owned(),
            prefix,
            payload: letters.collect(),
            versions: (0..count).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// How many there are to be.
    pub(crate) fn count(&self) -> usize {
        self.versions.len()
    }

    /// The path of all.
    pub(crate) fn collection(&self) -> &str {
        &self.collection
    }

    /// The path of one.
    pub(crate) fn path(&self, object: usize) -> String {
        format!("{}/{}", self.collection, self.name(object))
    }

    /// Whether it is there, as far as we know.
    pub(crate) fn exists(&self, object: usize) -> bool {
        self.versions[object].load(Relaxed) != 0
    }

    /// Remembers what a write was answered with; zero for a deletion.
    pub(crate) fn saw(&self, object: usize, resource_version: u64) {
        self.versions[object].store(resource_version, Relaxed);
    }

    /// The object as it is created and as it is applied.
    pub(crate) fn whole(&self, object: usize, stamp: &str) -> Bytes {
        self.body(object, "", stamp)
    }

    /// The object as it replaces the version last seen.
    pub(crate) fn replacement(&self, object: usize, stamp: &str) -> Bytes {
        let version = self.versions[object].load(Relaxed);
        self.body(object, &format!(r#","resourceVersion":"{version}""#), stamp)
    }

    /// A merge patch that changes it.
    pub(crate) fn patch(stamp: &str) -> Bytes {
        Bytes::from(format!(r#"{{"data":{{"stamp":"{stamp}"}}}}"#))
    }

    fn name(&self, object: usize) -> String {
        format!("{}-{object:06}", self.prefix)
    }

    fn body(&self, object: usize, metadata: &str, stamp: &str) -> Bytes {
        let (name, namespace, payload) = (self.name(object), &self.namespace, &self.payload);
        Bytes::from(format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"{namespace}"{metadata}}},"data":{{"payload":"{payload}","stamp":"{stamp}"}}}}"#
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(body: &[u8]) -> serde_json::Value {
        let decoded = concord_codec::decode(body, &concord_codec::Options::default()).expect("JSON");
        serde_json::Value::Object(decoded.object)
    }

    #[test]
    fn bodies_are_what_they_say() {
        let objects = Objects::new("ns", "bench", 2, 10);
        assert!(!objects.exists(1));
        let whole = decoded(&objects.whole(1, "s"));
        assert_eq!(whole["metadata"], serde_json::json!({"name": "bench-000001", "namespace": "ns"}));
        assert_eq!(whole["data"]["payload"].as_str().map(str::len), Some(10));
        assert_eq!(whole["data"]["stamp"], "s");
        objects.saw(1, 7);
        assert!(objects.exists(1));
        assert_eq!(decoded(&objects.replacement(1, "t"))["metadata"]["resourceVersion"], "7");
        assert_eq!(decoded(&Objects::patch("u")), serde_json::json!({"data": {"stamp": "u"}}));
        assert_eq!(objects.path(1), "/api/v1/namespaces/ns/configmaps/bench-000001");
    }
}
