//! Identity leases: which servers there are.

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message;
use serde::Deserialize;

/// The namespace of identity leases. One in any other namespace is nobody's.
pub(crate) const NAMESPACE: &str = concord_storageversion::NAMESPACE;

/// The label that says what kind of server a lease is the identity of.
const LABEL: &str = concord_storageversion::IDENTITY_LABEL;

/// What protobuf values in the store begin with.
const MAGIC: &[u8] = b"k8s\0";

/// The identity of an API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    /// Which process it is.
    pub(crate) holder: String,
}

#[derive(Deserialize)]
struct Json {
    metadata: JsonMeta,
    spec: JsonSpec,
}

#[derive(Deserialize)]
struct JsonMeta {
    #[serde(default)]
    labels: HashMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonSpec {
    #[serde(default)]
    holder_identity: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(bytes = "bytes", tag = "2")]
    raw: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct Protobuf {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ProtobufMeta>,
    #[prost(message, optional, tag = "2")]
    spec: Option<ProtobufSpec>,
}

#[derive(Clone, PartialEq, Message)]
struct ProtobufMeta {
    #[prost(map = "string, string", tag = "11")]
    labels: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct ProtobufSpec {
    #[prost(string, tag = "1")]
    holder: String,
}

impl Lease {
    /// Reads the stored lease of that name; `None` if it is not the identity of an API server that a process holds.
    pub(crate) fn read(id: &str, value: &[u8]) -> Option<Self> {
        let (mut labels, holder) = match value.strip_prefix(MAGIC) {
            Some(envelope) => {
                let lease = Protobuf::decode(Unknown::decode(envelope).ok()?.raw).ok()?;
                (lease.metadata.unwrap_or_default().labels, lease.spec.unwrap_or_default().holder)
            }
            None => {
                let lease: Json = serde_json::from_slice(value).ok()?;
                (lease.metadata.labels, lease.spec.holder_identity.unwrap_or_default())
            }
        };
        let is_server = labels.remove(LABEL).is_some_and(|label| label == concord_storageversion::COMPONENT);
        (is_server && is_process_of(id, &holder)).then_some(Self { holder })
    }
}

/// How long the name of a process may be, which is a UUID: what is kept of a lease has a bound.
const MOST_PROCESS: usize = 64;

/// Whether a holder is a process of the server: servers write their ID, `_`, and who they are this time.
fn is_process_of(id: &str, holder: &str) -> bool {
    let process = holder.strip_prefix(id).and_then(|rest| rest.strip_prefix('_'));
    process.is_some_and(|process| (1..=MOST_PROCESS).contains(&process.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_held_identities_of_api_servers_count() {
        let lease = |label: &str, holder: &str| {
            format!(
                r#"{{"metadata":{{"labels":{{"apiserver.kubernetes.io/identity":{label}}}}},"spec":{{"holderIdentity":{holder}}}}}"#
            )
        };
        let good = lease(r#""kube-apiserver""#, r#""a_1""#);
        assert_eq!(Lease::read("a", good.as_bytes()), Some(Lease { holder: "a_1".to_owned() }));
        for bad in [
            lease(r#""kube-controller-manager""#, r#""a_1""#),
            lease(r#""kube-apiserver""#, r#""""#),
            lease(r#""kube-apiserver""#, "null"),
            lease(r#""kube-apiserver""#, r#""a_""#),
            lease(r#""kube-apiserver""#, r#""b_1""#),
            lease(r#""kube-apiserver""#, &format!("\"a_{}\"", "x".repeat(65))),
            lease("7", r#""a_1""#),
            r#"{"metadata":{},"spec":{"holderIdentity":"a"}}"#.to_owned(),
            r#"{"metadata":{"labels":null},"spec":{}}"#.to_owned(),
            "{}".to_owned(),
            String::new(),
            "k8s\0\u{1}".to_owned(),
        ] {
            assert_eq!(Lease::read("a", bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn leases_of_kube_apiserver_in_protobuf_are_understood() {
        let lease = Protobuf {
            metadata: Some(ProtobufMeta { labels: [(LABEL.into(), "kube-apiserver".into())].into() }),
            spec: Some(ProtobufSpec { holder: "apiserver-x_1".into() }),
        };
        let envelope = Unknown { raw: lease.encode_to_vec().into() };
        let value = [MAGIC, &envelope.encode_to_vec()].concat();
        assert_eq!(Lease::read("apiserver-x", &value), Some(Lease { holder: "apiserver-x_1".to_owned() }));
    }
}
