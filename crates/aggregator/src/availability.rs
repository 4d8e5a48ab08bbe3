//! Whether an APIService can be reached, as far as the log can tell.

use concord_codec::{Options, decode};
use concord_meta::go::quote;
use concord_registry::Object;
use concord_replica::{Entry, Snapshot};
use concord_store::KeyRange;
use serde_json::{Value, json};

use crate::service::Backend;

/// What is said about whether an APIService can be reached. The texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) is_available: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Condition {
    pub(crate) fn passed() -> Self {
        Self { is_available: true, reason: "Passed", message: "all checks passed".to_owned() }
    }

    pub(crate) fn local() -> Self {
        let message = "Local APIServices are always available".to_owned();
        Self { is_available: true, reason: "Local", message }
    }

    pub(crate) fn failed(message: String) -> Self {
        no("FailedDiscoveryCheck", message)
    }

    /// Says so in the status of an APIService. Whether that changed anything.
    pub(crate) fn tell(&self, service: &mut Object, now: &str) -> bool {
        let status = service.entry("status").or_insert_with(|| json!({}));
        let before = status.clone();
        if !status["conditions"].is_array() {
            status["conditions"] = json!([]);
        }
        let word = if self.is_available { "True" } else { "False" };
        let Some(conditions) = status["conditions"].as_array_mut() else { return false };
        let at = conditions.iter().position(|condition| condition["type"] == "Available");
        let condition = match at {
            Some(at) => &mut conditions[at],
            None => {
                conditions.push(json!({"type": "Available"}));
                let last = conditions.len() - 1;
                &mut conditions[last]
            }
        };
        if condition["status"] != word {
            condition["status"] = word.into();
            condition["lastTransitionTime"] = now.into();
        }
        condition["reason"] = self.reason.into();
        condition["message"] = self.message.as_str().into();
        *status != before
    }
}

fn no(reason: &'static str, message: String) -> Condition {
    Condition { is_available: false, reason, message }
}

/// What keeps a server from being reached, if the log tells: its Service is not there, or nothing is behind it.
pub(crate) fn obstacle(backend: &Backend, snapshot: &Snapshot, prefix: &str) -> Option<Condition> {
    let Backend { namespace, name, .. } = backend;
    let key = format!("{prefix}services/specs/{namespace}/{name}");
    let service = snapshot.get(key.as_bytes()).and_then(|entry| read(&entry.value));
    let slices = || {
        let prefix = format!("{prefix}endpointslices/{namespace}/");
        let slices = snapshot.scan(&KeyRange::prefix(prefix)).filter_map(|entry| read(&entry.value));
        slices.filter(|slice| is_of(slice, name)).collect()
    };
    check(backend, service.as_ref(), slices)
}

fn check(
    backend: &Backend,
    service: Option<&Object>,
    slices: impl FnOnce() -> Vec<Object>,
) -> Option<Condition> {
    let Backend { namespace, name, port, .. } = backend;
    let namespace = quote(namespace);
    let Some(service) = service else {
        return Some(no("ServiceNotFound", format!("service/{name} in {namespace} is not present")));
    };
    let spec = service.get("spec").unwrap_or(&Value::Null);
    if spec["type"] != "ClusterIP" {
        return None;
    }
    let found = list(&spec["ports"]).find(|candidate| candidate["port"] == *port);
    let Some(found) = found else {
        let message = format!("service/{name} in {namespace} is not listening on port {port}");
        return Some(no("ServicePortError", message));
    };
    let port_name = found["name"].as_str().unwrap_or_default();
    let slices = slices();
    if slices.is_empty() {
        let message = format!("cannot find endpointslices for service/{name} in {namespace}");
        return Some(no("EndpointsNotFound", message));
    }
    let is_ready = |slice: &Object| {
        let endpoints = slice.get("endpoints").unwrap_or(&Value::Null);
        let ports = slice.get("ports").unwrap_or(&Value::Null);
        list(endpoints).any(|endpoint| endpoint["conditions"]["ready"] != false)
            && list(ports).any(|port| port["name"] == port_name && port["port"].is_number())
    };
    let message = || {
        let port = quote(port_name);
        format!("endpointslices for service/{name} in {namespace} have no addresses with port name {port}")
    };
    (!slices.iter().any(is_ready)).then(|| no("MissingEndpoints", message()))
}

/// Whether an EndpointSlice as it is stored is one of this Service.
pub(crate) fn is_slice_of(entry: &Entry, service: &str) -> bool {
    read(&entry.value).is_some_and(|slice| is_of(&slice, service))
}

fn is_of(slice: &Object, service: &str) -> bool {
    let labels = slice.get("metadata").and_then(|metadata| metadata.get("labels"));
    labels.is_some_and(|labels| labels["kubernetes.io/service-name"] == service)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn read(stored: &[u8]) -> Option<Object> {
    decode(stored, &Options::default()).ok().map(|decoded| decoded.object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend() -> Backend {
        Backend {
            namespace: "ns".to_owned(),
            name: "api".to_owned(),
            port: 443,
            ca_bundle: bytes::Bytes::new(),
            insecure_skip_tls_verify: false,
        }
    }

    fn object(value: &Value) -> Object {
        value.as_object().expect("an object").clone()
    }

    fn said(service: Option<&Value>, slices: &[Value]) -> String {
        let service = service.map(object);
        let slices = || slices.iter().map(object).collect();
        let condition = check(&backend(), service.as_ref(), slices);
        condition.map_or_else(|| "nothing".to_owned(), |said| format!("{}: {}", said.reason, said.message))
    }

    #[test]
    fn what_the_log_tells() {
        let service =
            |port: i32, kind: &str| json!({"spec": {"type": kind, "ports": [{"name": "web", "port": port}]}});
        let slice = |port: &str, ready: Value| json!({"endpoints": [{"conditions": {"ready": ready}}], "ports": [{"name": port, "port": 8443}]});
        assert_eq!(said(None, &[]), "ServiceNotFound: service/api in \"ns\" is not present");
        assert_eq!(
            said(Some(&service(80, "ClusterIP")), &[]),
            "ServicePortError: service/api in \"ns\" is not listening on port 443"
        );
        let good = service(443, "ClusterIP");
        assert_eq!(
            said(Some(&good), &[]),
            "EndpointsNotFound: cannot find endpointslices for service/api in \"ns\""
        );
        let missing = "MissingEndpoints: endpointslices for service/api in \"ns\" have no addresses with port name \"web\"";
        assert_eq!(said(Some(&good), &[slice("other", json!(true))]), missing);
        assert_eq!(said(Some(&good), &[slice("web", json!(false))]), missing);
        assert_eq!(said(Some(&good), &[json!({})]), missing);
        assert_eq!(said(Some(&good), &[slice("web", json!(null))]), "nothing");
        assert_eq!(said(Some(&good), &[slice("web", json!(true))]), "nothing");
        // Where such a Service leads is not known here.
        assert_eq!(said(Some(&service(80, "ExternalName")), &[]), "nothing");
    }

    #[test]
    fn conditions_change_only_when_something_changes() {
        let mut service = object(&json!({"status": {"conditions": [{"type": "Other", "status": "True"}]}}));
        assert!(Condition::passed().tell(&mut service, "t1"));
        assert!(!Condition::passed().tell(&mut service, "t2"));
        assert!(Condition::failed("why".to_owned()).tell(&mut service, "t3"));
        assert!(Condition::failed("else".to_owned()).tell(&mut service, "t4"));
        assert_eq!(
            service["status"]["conditions"],
            json!([
                {"type": "Other", "status": "True"},
                {"type": "Available", "status": "False", "reason": "FailedDiscoveryCheck", "message": "else",
                 "lastTransitionTime": "t3"},
            ])
        );
        let mut new = object(&json!({}));
        assert!(Condition::local().tell(&mut new, "t1"));
        assert_eq!(new["status"]["conditions"][0]["reason"], "Local");
    }
}
