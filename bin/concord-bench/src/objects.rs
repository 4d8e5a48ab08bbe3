//! The objects that are written and read: of one kind and one size, in one namespace of our own.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use clap::ValueEnum;
use rand::{RngExt, SeedableRng, distr::Alphanumeric, rngs::StdRng};

use crate::definition::{GROUP, KIND};

/// The version of the kind of our own.
const RECORDS: &str = "/apis/concord-bench.example.com/v1";

/// What the objects are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Resource {
    /// What every server has, of the core group: data and nothing else.
    #[value(name = "configmaps")]
    ConfigMaps,
    /// The same bytes as annotations of what is in policy/v1, which a server need not serve: through one that does not
    /// (--runtime-config=policy/v1=false) it is the mixed version proxy that is measured.
    #[value(name = "poddisruptionbudgets")]
    PodDisruptionBudgets,
    /// The same bytes in objects of a kind that is defined for the run, with a schema, defaults and three rules in CEL.
    #[value(name = "records")]
    Records,
}

impl Resource {
    /// The plural.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The path of all that are in a namespace.
    pub(crate) fn collection(self, namespace: &str) -> String {
        let group = match self {
            Self::ConfigMaps => "/api/v1",
            Self::PodDisruptionBudgets => "/apis/policy/v1",
            Self::Records => RECORDS,
        };
        format!("{group}/namespaces/{namespace}/{}", self.name())
    }
}

/// Shared by all workers. Bodies are put together from text: encoding them would be client cost.
pub(crate) struct Objects {
    resource: Resource,
    namespace: String,
    prefix: &'static str,
    collection: String,
    payload: String,
    /// Each object's last seen resourceVersion; zero while it does not exist.
    versions: Box<[AtomicU64]>,
}

impl Objects {
    /// Of `count` objects none exists yet.
    pub(crate) fn new(
        resource: Resource,
        namespace: &str,
        prefix: &'static str,
        count: usize,
        size: usize,
    ) -> Self {
        // Random, since a repeated letter would make compression look better than it is.
        let letters = StdRng::seed_from_u64(1).sample_iter(Alphanumeric).take(size).map(char::from);
        Self {
            resource,
            collection: resource.collection(namespace),
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

    /// A merge patch that changes one.
    pub(crate) fn patch(&self, stamp: &str) -> Bytes {
        let data = format!(r#"{{"stamp":"{stamp}"}}"#);
        Bytes::from(match self.resource {
            Resource::ConfigMaps => format!(r#"{{"data":{data}}}"#),
            Resource::PodDisruptionBudgets => format!(r#"{{"metadata":{{"annotations":{data}}}}}"#),
            Resource::Records => format!(r#"{{"spec":{data}}}"#),
        })
    }

    fn name(&self, object: usize) -> String {
        format!("{}-{object:06}", self.prefix)
    }

    fn body(&self, object: usize, metadata: &str, stamp: &str) -> Bytes {
        let (name, namespace, payload) = (self.name(object), &self.namespace, &self.payload);
        let metadata = format!(r#""name":"{name}","namespace":"{namespace}"{metadata}"#);
        let data = format!(r#"{{"payload":"{payload}","stamp":"{stamp}"}}"#);
        Bytes::from(match self.resource {
            Resource::ConfigMaps => {
                format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{{metadata}}},"data":{data}}}"#)
            }
            Resource::PodDisruptionBudgets => format!(
                r#"{{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{{{metadata},"annotations":{data}}},"spec":{{}}}}"#
            ),
            Resource::Records => format!(
                r#"{{"apiVersion":"{GROUP}/v1","kind":"{KIND}","metadata":{{{metadata}}},"spec":{data}}}"#
            ),
        })
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
        let objects = Objects::new(Resource::ConfigMaps, "ns", "bench", 2, 10);
        assert!(!objects.exists(1));
        let whole = decoded(&objects.whole(1, "s"));
        assert_eq!(whole["metadata"], serde_json::json!({"name": "bench-000001", "namespace": "ns"}));
        assert_eq!(whole["data"]["payload"].as_str().map(str::len), Some(10));
        assert_eq!(whole["data"]["stamp"], "s");
        objects.saw(1, 7);
        assert!(objects.exists(1));
        assert_eq!(decoded(&objects.replacement(1, "t"))["metadata"]["resourceVersion"], "7");
        assert_eq!(decoded(&objects.patch("u")), serde_json::json!({"data": {"stamp": "u"}}));
        assert_eq!(objects.path(1), "/api/v1/namespaces/ns/configmaps/bench-000001");
    }

    #[test]
    fn those_of_our_own_kind_carry_the_same() {
        let objects = Objects::new(Resource::Records, "ns", "bench", 1, 10);
        let whole = decoded(&objects.whole(0, "s"));
        assert_eq!((&whole["kind"], &whole["spec"]["stamp"]), (&KIND.into(), &"s".into()));
        let version = whole["apiVersion"].as_str().expect("a version");
        assert_eq!(objects.path(0), format!("/apis/{version}/namespaces/ns/records/bench-000000"));
    }

    #[test]
    fn those_of_another_group_carry_the_same() {
        let objects = Objects::new(Resource::PodDisruptionBudgets, "ns", "bench", 1, 10);
        objects.saw(0, 7);
        let whole = decoded(&objects.replacement(0, "s"));
        assert_eq!(
            (&whole["apiVersion"], &whole["kind"]),
            (&"policy/v1".into(), &"PodDisruptionBudget".into())
        );
        assert_eq!(whole["metadata"]["resourceVersion"], "7");
        assert_eq!(whole["metadata"]["annotations"]["payload"].as_str().map(str::len), Some(10));
        assert_eq!(
            decoded(&objects.patch("u")),
            serde_json::json!({"metadata": {"annotations": {"stamp": "u"}}})
        );
        assert_eq!(objects.path(0), "/apis/policy/v1/namespaces/ns/poddisruptionbudgets/bench-000000");
    }
}
