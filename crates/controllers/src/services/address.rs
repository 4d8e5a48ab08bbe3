//! Who an address or a node port belongs to.

use std::net::IpAddr;

use bytes::Bytes;
use concord_codec::{Limits, decode_value};
use concord_meta::Status;
use concord_registry::{Object, ObjectName, Resource};
use serde_json::{Value, json};

use super::range::Family;
use crate::own::context;

/// The IPAddress of an address that a Service takes.
pub(super) fn encode(
    addresses: &Resource,
    ip: IpAddr,
    service: ObjectName<'_>,
) -> Result<(Bytes, Bytes), Status> {
    let object = json!({
        "metadata": {
            "name": ip.to_string(),
            "labels": {
                "ipaddress.kubernetes.io/ip-family": Family::of(ip).as_str(),
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
        },
        "spec": {"parentRef": parent(service)},
    });
    let Value::Object(object) = object else { return Err(Status::internal_error("not an object")) };
    addresses.encode_new(&context("kube-apiserver"), "", object)
}

/// What is stored for a node port: enough for a human, and to see whose it is.
pub(super) fn holder(service: ObjectName<'_>) -> Bytes {
    concord_codec::encode(&json!({"spec": {"parentRef": parent(service)}})).into()
}

fn parent(service: ObjectName<'_>) -> Value {
    json!({"resource": "services", "namespace": service.namespace, "name": service.name})
}

/// Whether what is stored for a node port says that it belongs to the Service.
pub(super) fn is_held_by(value: &[u8], service: ObjectName<'_>) -> bool {
    held_for(value)
        .is_some_and(|(namespace, name)| (&*namespace, &*name) == (service.namespace, service.name))
}

/// The namespace and name of the Service that a node port is held for.
pub(super) fn held_for(value: &[u8]) -> Option<(String, String)> {
    let Ok(Value::Object(object)) = decode_value(value, Limits::default()) else { return None };
    service(&object).map(|(namespace, name)| (namespace.to_owned(), name.to_owned()))
}

/// The namespace and name of the Service that something belongs to.
pub(super) fn service(object: &Object) -> Option<(&str, &str)> {
    let parent = object.get("spec")?.get("parentRef")?.as_object()?;
    let text = |name: &str| parent.get(name).and_then(Value::as_str).unwrap_or_default();
    (text("group").is_empty() && text("resource") == "services").then(|| (text("namespace"), text("name")))
}
