//! The node ports of a Service.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use concord_meta::{
    Status,
    field::{Error, Path},
};
use concord_registry::{Object, Storage};
use serde_json::Value;

/// Where node ports are held, beside the Services: `/registry/services/specs/` gives `/registry/services/nodeports/`.
pub(super) fn prefix(services: &Storage) -> Bytes {
    let path = services.prefix.strip_suffix(b"/").unwrap_or(&services.prefix);
    let parent = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    [&path[..parent], b"nodeports/"].concat().into()
}

/// Where a node port is held.
pub(super) fn key(prefix: &Bytes, port: i64) -> Bytes {
    [prefix.as_ref(), port.to_string().as_bytes()].concat().into()
}

/// The node ports that are in use by a `spec`, that for health checks included.
pub(super) fn used(spec: &Object) -> BTreeSet<i64> {
    let mut used: BTreeSet<i64> = ports(spec).map(node_port).filter(|port| *port != 0).collect();
    if needs_health_check(spec) {
        used.extend(Some(health_check(spec)).filter(|port| *port != 0));
    }
    used
}

/// Where a choice of the client stands, for errors.
pub(super) fn path_of(spec: &Object, port: i64) -> Path {
    match ports(spec).position(|item| node_port(item) == port) {
        Some(index) => path_at(index),
        None => Path::new("spec").child("healthCheckNodePort"),
    }
}

fn path_at(index: usize) -> Path {
    Path::new("spec").child("ports").index(index).child("nodePort")
}

/// Whether a node port is that of a port, and not the one for health checks.
pub(super) fn is_of_a_port(spec: &Object, port: i64) -> bool {
    ports(spec).any(|item| node_port(item) == port)
}

/// The first node port that is asked for by two ports. Over several protocols, one port has one node port.
pub(super) fn claimed_twice(spec: &Object) -> Option<(Path, i64)> {
    let mut claimed: BTreeMap<i64, i64> = BTreeMap::new();
    ports(spec).enumerate().filter(|(_, port)| has_node_ports(spec) && node_port(port) != 0).find_map(
        |(index, port)| {
            let (number, node_port) =
                (port.get("port").and_then(Value::as_i64).unwrap_or_default(), node_port(port));
            let before = *claimed.entry(node_port).or_insert(number);
            (before != number).then(|| (path_at(index), node_port))
        },
    )
}

/// Why a port cannot be had.
pub(super) fn refused(spec: &Object, port: i64, why: String) -> Error {
    Error::invalid(&path_of(spec, port), port, why)
}

/// Gives node ports to the ports that need one. `choose` finds one that is free.
pub(super) fn assign(
    spec: &mut Object,
    old: Option<&Object>,
    mut choose: impl FnMut() -> Result<u16, Status>,
) -> Result<(), Status> {
    match old {
        Some(old) => carry_over(spec, old),
        None => share_by_port(spec),
    }
    if allocates(spec) {
        let mut chosen: BTreeMap<i64, u16> = BTreeMap::new();
        for port in ports_mut(spec).filter(|port| node_port(&Value::Object((*port).clone())) == 0) {
            let number = port.get("port").and_then(Value::as_i64).unwrap_or_default();
            // The same port over TCP and over UDP is one node port, but only in a new Service: as upstream has it.
            let node_port = match chosen.get(&number).filter(|_| old.is_none()) {
                Some(known) => *known,
                None => choose()?,
            };
            chosen.insert(number, node_port);
            port.insert("nodePort".to_owned(), node_port.into());
        }
    }
    if needs_health_check(spec) && health_check(spec) == 0 {
        let port = choose()?;
        spec.insert("healthCheckNodePort".to_owned(), port.into());
    }
    Ok(())
}

/// A client that replaces the object without its node ports does not mean to give them up, nor one that only changes
/// the type to keep them.
fn carry_over(spec: &mut Object, old: &Object) {
    if has_node_ports(spec) && has_node_ports(old) {
        let still_used: BTreeSet<i64> = &numbers(old) & &numbers(spec);
        let by_name: BTreeMap<&str, i64> = ports(old).map(|port| (name(port), node_port(port))).collect();
        for port in ports_mut(spec) {
            let this = Value::Object(port.clone());
            let before = by_name.get(name(&this)).copied().unwrap_or_default();
            if node_port(&this) == 0 && before != 0 && !still_used.contains(&before) {
                port.insert("nodePort".to_owned(), before.into());
            }
        }
    } else if has_node_ports(old) && numbers(spec).is_subset(&numbers(old)) {
        ports_mut(spec).for_each(|port| drop(port.remove("nodePort")));
    }
    match (needs_health_check(old), needs_health_check(spec)) {
        (true, true) if health_check(spec) == 0 => {
            spec.insert("healthCheckNodePort".to_owned(), health_check(old).into());
        }
        (true, false) if health_check(spec) == health_check(old) => {
            spec.remove("healthCheckNodePort");
        }
        _ => {}
    }
}

/// Ports of a new Service that differ in the protocol only get the node port that one of them asks for.
fn share_by_port(spec: &mut Object) {
    if !allocates(spec) {
        return;
    }
    let number = |port: &Value| port.get("port").and_then(Value::as_i64).unwrap_or_default();
    let asked: BTreeMap<i64, i64> =
        ports(spec).filter(|port| node_port(port) != 0).map(|port| (number(port), node_port(port))).collect();
    for port in ports_mut(spec) {
        let this = Value::Object(port.clone());
        if let (0, Some(asked)) = (node_port(&this), asked.get(&number(&this))) {
            port.insert("nodePort".to_owned(), (*asked).into());
        }
    }
}

fn numbers(spec: &Object) -> BTreeSet<i64> {
    ports(spec).map(node_port).filter(|port| *port != 0).collect()
}

fn ports(spec: &Object) -> impl Iterator<Item = &Value> {
    spec.get("ports").and_then(Value::as_array).into_iter().flatten()
}

fn ports_mut(spec: &mut Object) -> impl Iterator<Item = &mut Object> {
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    ports.into_iter().flatten().filter_map(Value::as_object_mut)
}

fn node_port(port: &Value) -> i64 {
    port.get("nodePort").and_then(Value::as_i64).unwrap_or_default()
}

fn name(port: &Value) -> &str {
    port.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn service_type(spec: &Object) -> &str {
    spec.get("type").and_then(Value::as_str).unwrap_or("ClusterIP")
}

/// Whether a Service of this type can have node ports.
fn has_node_ports(spec: &Object) -> bool {
    matches!(service_type(spec), "NodePort" | "LoadBalancer")
}

/// Whether ports without a node port get one.
fn allocates(spec: &Object) -> bool {
    match service_type(spec) {
        "NodePort" => true,
        "LoadBalancer" => spec.get("allocateLoadBalancerNodePorts").and_then(Value::as_bool) != Some(false),
        _ => false,
    }
}

fn needs_health_check(spec: &Object) -> bool {
    service_type(spec) == "LoadBalancer"
        && spec.get("externalTrafficPolicy").and_then(Value::as_str) == Some("Local")
}

fn health_check(spec: &Object) -> i64 {
    spec.get("healthCheckNodePort").and_then(Value::as_i64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(value: Value) -> Object {
        match value {
            Value::Object(object) => object,
            other => panic!("not an object: {other}"),
        }
    }

    fn assigned(new: Value, old: Option<Value>) -> Value {
        let mut next = 40_000;
        let mut new = spec(new);
        let old = old.map(spec);
        let choose = || {
            next += 1;
            Ok(next)
        };
        assign(&mut new, old.as_ref(), choose).unwrap_or_else(|status| panic!("{}", status.message));
        Value::Object(new)
    }

    #[test]
    fn only_types_that_have_node_ports_get_them() {
        for (new, want) in [
            (
                json!({"type": "ClusterIP", "ports": [{"port": 1}]}),
                json!({"type": "ClusterIP", "ports": [{"port": 1}]}),
            ),
            (
                json!({"type": "NodePort", "ports": [{"port": 1}, {"port": 2, "nodePort": 30001}]}),
                json!({"type": "NodePort", "ports": [{"port": 1, "nodePort": 40001}, {"port": 2, "nodePort": 30001}]}),
            ),
            (
                json!({"type": "NodePort", "ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}),
                json!({"type": "NodePort", "ports": [
                    {"port": 53, "protocol": "TCP", "nodePort": 40001}, {"port": 53, "protocol": "UDP", "nodePort": 40001}]}),
            ),
            (
                json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": [{"port": 1}]}),
                json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": [{"port": 1}]}),
            ),
            (
                json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 1}]}),
                json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 1, "nodePort": 40001}],
                    "healthCheckNodePort": 40002}),
            ),
        ] {
            assert_eq!(assigned(new, None), want);
        }
    }

    #[test]
    fn an_update_keeps_what_it_does_not_mention() {
        let old = json!({"type": "NodePort", "ports": [{"name": "a", "port": 1, "nodePort": 30001}]});
        let kept =
            assigned(json!({"type": "NodePort", "ports": [{"name": "a", "port": 2}]}), Some(old.clone()));
        assert_eq!(kept, json!({"type": "NodePort", "ports": [{"name": "a", "port": 2, "nodePort": 30001}]}));
        let other =
            assigned(json!({"type": "NodePort", "ports": [{"name": "b", "port": 1}]}), Some(old.clone()));
        assert_eq!(other["ports"][0]["nodePort"], 40001);
        // Also where no new ones would be given.
        let balancer = |ports: Value| json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": ports});
        let asked = balancer(json!([{"name": "a", "port": 1, "nodePort": 30001}]));
        assert_eq!(assigned(balancer(json!([{"name": "a", "port": 1}])), Some(asked.clone())), asked);
    }

    #[test]
    fn a_type_without_node_ports_gives_them_up_but_takes_no_new_ones() {
        let port = |name: &str, node_port: i64| json!({"name": name, "port": 1, "nodePort": node_port});
        let old = json!({"type": "NodePort", "ports": [port("a", 30001), port("b", 30002)]});
        for (to, ports, left) in [
            (
                "ClusterIP",
                json!([port("a", 30001), port("b", 30002)]),
                json!([{"name": "a", "port": 1}, {"name": "b", "port": 1}]),
            ),
            ("ExternalName", json!([port("b", 30002)]), json!([{"name": "b", "port": 1}])),
            ("ClusterIP", json!([port("a", 30003)]), json!([port("a", 30003)])),
        ] {
            let new = assigned(json!({"type": to, "ports": ports}), Some(old.clone()));
            assert_eq!(new, json!({"type": to, "ports": left}));
        }
    }

    #[test]
    fn a_node_port_is_for_one_port() {
        let ports =
            |second: Value| spec(json!({"type": "NodePort", "ports": [{"port": 1, "nodePort": 9}, second]}));
        let (path, port) = claimed_twice(&ports(json!({"port": 2, "nodePort": 9}))).expect("twice");
        assert_eq!((path.to_string(), port), ("spec.ports[1].nodePort".to_owned(), 9));
        assert!(claimed_twice(&ports(json!({"port": 1, "protocol": "UDP", "nodePort": 9}))).is_none());
        assert!(claimed_twice(&ports(json!({"port": 2}))).is_none());
        assert!(is_of_a_port(&ports(json!({})), 9) && !is_of_a_port(&ports(json!({})), 8));
    }

    #[test]
    fn used_ports_are_those_of_the_type() {
        let local = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 7,
            "ports": [{"port": 1, "nodePort": 8}]});
        assert_eq!(used(&spec(local)), BTreeSet::from([7, 8]));
        assert_eq!(used(&spec(json!({"type": "ClusterIP", "healthCheckNodePort": 7}))), BTreeSet::new());
    }
}
