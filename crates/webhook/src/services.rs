use std::sync::Arc;

use concord_codec::{Options, decode};
use concord_meta::{GroupResource, Status, go::quote};
use concord_replica::{Replica, Snapshot};
use concord_store::KeyRange;
use rand::RngExt;
use serde_json::{Map, Value};

use crate::{Address, ResolveError, Resolver, ServiceReference};

/// What a Service is reached by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routing {
    /// Its cluster address: something must route there, such as kube-proxy on this machine.
    ClusterIp,
    /// One of its ready endpoints, without a detour.
    Endpoints,
}

/// Finds Services where they are stored.
pub struct Services {
    replica: Arc<Replica>,
    prefix: String,
    routing: Routing,
}

impl Services {
    /// Looks below `prefix`, such as `/registry/`.
    pub fn new(replica: Arc<Replica>, prefix: &str, routing: Routing) -> Self {
        Self { replica, prefix: prefix.to_owned(), routing }
    }
}

impl Resolver for Services {
    fn resolve(&self, reference: &ServiceReference) -> Result<Address, ResolveError> {
        let ServiceReference { namespace, name, port, .. } = reference;
        let snapshot = self.replica.newest().map_err(|error| ResolveError::Unavailable(error.to_string()))?;
        let key = format!("{}services/specs/{namespace}/{name}", self.prefix);
        let service = snapshot.get(key.as_bytes()).and_then(|entry| read(&entry.value));
        // In the singular, as upstream says it here.
        let service = service.ok_or_else(|| Status::not_found(&GroupResource::new("", "service"), name))?;
        let spec = service.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
        match self.routing {
            Routing::ClusterIp => cluster_ip(name, &spec, *port),
            Routing::Endpoints => {
                let slices = self.slices(&snapshot, namespace, name);
                endpoint(name, &spec, *port, slices)
            }
        }
    }
}

impl Services {
    fn slices(&self, snapshot: &Snapshot, namespace: &str, name: &str) -> Vec<Map<String, Value>> {
        let prefix = format!("{}endpointslices/{namespace}/", self.prefix);
        let slices = snapshot.scan(&KeyRange::prefix(prefix)).filter_map(|entry| read(&entry.value));
        let of = |slice: &Map<String, Value>| {
            let labels = slice.get("metadata").and_then(|metadata| metadata.get("labels"));
            labels.and_then(|labels| labels.get("kubernetes.io/service-name")?.as_str()) == Some(name)
        };
        slices.filter(of).collect()
    }
}

fn read(stored: &[u8]) -> Option<Map<String, Value>> {
    decode(stored, &Options::default()).ok().map(|decoded| decoded.object)
}

fn text<'a>(object: &'a Map<String, Value>, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(object: &'a Map<String, Value>, field: &str) -> impl Iterator<Item = &'a Map<String, Value>> {
    object.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

fn number(object: &Map<String, Value>, field: &str) -> Option<u16> {
    object.get(field).and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok())
}

fn service_port<'a>(
    name: &str,
    spec: &'a Map<String, Value>,
    port: u16,
) -> Result<&'a Map<String, Value>, ResolveError> {
    let found = list(spec, "ports").find(|candidate| number(candidate, "port") == Some(port));
    let missing =
        || Status::service_unavailable(format!("no service port {port} found for service {}", quote(name)));
    found.ok_or_else(|| missing().into())
}

fn cluster_ip(name: &str, spec: &Map<String, Value>, port: u16) -> Result<Address, ResolveError> {
    match text(spec, "type") {
        "ClusterIP" if text(spec, "clusterIP") == "None" => Err(ResolveError::Headless),
        "ClusterIP" | "LoadBalancer" | "NodePort" => {
            service_port(name, spec, port)?;
            Ok(Address { host: text(spec, "clusterIP").to_owned(), port })
        }
        "ExternalName" => Ok(Address { host: text(spec, "externalName").to_owned(), port }),
        other => Err(ResolveError::UnsupportedType(other.to_owned())),
    }
}

fn endpoint(
    name: &str,
    spec: &Map<String, Value>,
    port: u16,
    mut slices: Vec<Map<String, Value>>,
) -> Result<Address, ResolveError> {
    let kind = text(spec, "type");
    if !["ClusterIP", "LoadBalancer", "NodePort"].contains(&kind) {
        return Err(ResolveError::UnsupportedType(kind.to_owned()));
    }
    let port_name = text(service_port(name, spec, port)?, "name");
    let family =
        spec.get("ipFamilies").and_then(|families| families.get(0)?.as_str()).unwrap_or_default().to_owned();
    slices.sort_by_key(|slice| text(slice, "addressType") != family);
    let ready: Vec<Address> = slices.iter().flat_map(|slice| ready(slice, port_name)).collect();
    if ready.is_empty() {
        let message = format!("no endpoints available for service {}", quote(name));
        return Err(Status::service_unavailable(message).into());
    }
    let first_family = ready.iter().take_while(|address| is_v6(address) == is_v6(&ready[0])).count();
    Ok(ready[rand::rng().random_range(..first_family)].clone())
}

fn is_v6(address: &Address) -> bool {
    address.host.contains(':')
}

/// The addresses of a slice that take connections for the port of this name.
fn ready(slice: &Map<String, Value>, port_name: &str) -> Vec<Address> {
    let port = list(slice, "ports").find(|port| text(port, "name") == port_name);
    let Some(port) = port.and_then(|port| number(port, "port")) else { return Vec::new() };
    let is_ready = |endpoint: &&Map<String, Value>| {
        let condition = endpoint.get("conditions").and_then(|conditions| conditions.get("ready"));
        condition.is_none_or(|ready| ready != false)
    };
    let hosts = list(slice, "endpoints").filter(is_ready);
    let hosts = hosts.filter_map(|endpoint| endpoint.get("addresses")?.get(0)?.as_str());
    hosts.map(|host| Address { host: host.to_owned(), port }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn by_cluster_address() {
        let spec = json!({"type": "ClusterIP", "clusterIP": "10.0.0.5", "ports": [{"port": 443}]});
        let at = |spec: &Value, port| {
            cluster_ip("hook", &object(spec), port)
                .map(|address| address.to_string())
                .map_err(|error| error.to_string())
        };
        assert_eq!(at(&spec, 443).as_deref(), Ok("10.0.0.5:443"));
        assert_eq!(at(&spec, 80), Err("no service port 80 found for service \"hook\"".into()));
        let headless = json!({"type": "ClusterIP", "clusterIP": "None"});
        assert_eq!(at(&headless, 443), Err("cannot route to service with ClusterIP \"None\"".into()));
        let external = json!({"type": "ExternalName", "externalName": "hook.example.org"});
        assert_eq!(at(&external, 8443).as_deref(), Ok("hook.example.org:8443"));
        assert_eq!(at(&json!({"type": "X"}), 443), Err("unsupported service type \"X\"".into()));
    }

    #[test]
    fn by_endpoints() {
        let spec = json!({"type": "ClusterIP", "ipFamilies": ["IPv6"],
            "ports": [{"name": "a", "port": 80}, {"name": "web", "port": 443}]});
        let slice = |family: &str, addresses: &[(&str, Value)]| {
            let endpoints: Vec<Value> = addresses
                .iter()
                .map(|(address, ready)| json!({"addresses": [address], "conditions": {"ready": ready}}))
                .collect();
            object(
                &json!({"addressType": family, "ports": [{"name": "web", "port": 8443}], "endpoints": endpoints}),
            )
        };
        let at = |port, slices: &[Map<String, Value>]| {
            endpoint("hook", &object(&spec), port, slices.to_vec())
                .map(|address| address.to_string())
                .map_err(|error| error.to_string())
        };
        let v4 = slice("IPv4", &[("10.0.0.1", json!(true))]);
        let v6 = slice("IPv6", &[("fd00::1", json!(false)), ("fd00::2", json!(true))]);
        assert_eq!(at(443, &[v4.clone(), v6]).as_deref(), Ok("[fd00::2]:8443"));
        assert_eq!(at(443, std::slice::from_ref(&v4)).as_deref(), Ok("10.0.0.1:8443"));
        let none = Err("no endpoints available for service \"hook\"".to_owned());
        assert_eq!(at(443, &[]), none);
        assert_eq!(at(80, &[v4]), none);
        assert_eq!(at(443, &[slice("IPv4", &[("10.0.0.1", json!(false))])]), none);
    }
}
