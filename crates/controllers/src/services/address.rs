//! Who an address or a node port belongs to.

use std::net::IpAddr;

use bytes::Bytes;
use concord_codec::{Limits, decode_value};
use concord_meta::Status;
use concord_registry::{Attributes, Object, Resource};
use serde_json::{Value, json};

use super::range::Family;
use crate::own::context;

/// The IPAddress of an address that a Service takes.
pub(super) fn encode(
    addresses: &Resource,
    ip: IpAddr,
    attributes: &Attributes<'_>,
) -> Result<(Bytes, Bytes), Status> {
    let object = json!({
        "metadata": {
            "name": ip.to_string(),
            "labels": {
                "ipaddress.kubernetes.io/ip-family": Family::of(ip).as_str(),
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
        },
        "spec": {"parentRef": parent(attributes)},
    });
    let Value::Object(object) = object else { return Err(Status::internal_error("not an object")) };
    addresses.encode_new(&context("kube-apiserver"), "", object)
}

/// What is stored for a node port: enough for a human, and to see whose it is.
pub(super) fn holder(attributes: &Attributes<'_>) -> Bytes {
    concord_codec::encode(&json!({"spec": {"parentRef": parent(attributes)}})).into()
}

fn parent(attributes: &Attributes<'_>) -> Value {
    json!({"resource": "services", "namespace": attributes.namespace, "name": attributes.name})
}

/// Whether what is stored says that it belongs to the Service that is written.
pub(super) fn is_held_by(value: &[u8], attributes: &Attributes<'_>) -> bool {
    let Ok(Value::Object(object)) = decode_value(value, Limits::default()) else { return false };
    service(&object) == Some((attributes.namespace, attributes.name))
}

/// The namespace and name of the Service that something belongs to.
pub(super) fn service(object: &Object) -> Option<(&str, &str)> {
    let parent = object.get("spec")?.get("parentRef")?.as_object()?;
    let text = |name: &str| parent.get(name).and_then(Value::as_str).unwrap_or_default();
    (text("group").is_empty() && text("resource") == "services").then(|| (text("namespace"), text("name")))
}
