//! Services.

mod update;
mod warnings;

use concord_meta::{field::BadValue, names};
use serde_json::Value;

pub(crate) use self::warnings::{status_warnings, warnings};
use crate::{
    gates::Gate,
    internal,
    ip::{endpoint_ip, is_dual_stack, is_v4, legacy_cidr, legacy_ip, parse_sloppy},
    labels, meta,
    node::{Node, Root},
    rules::qualified_name,
};

const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const MAX_AFFINITY_SECONDS: i64 = 86_400;
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const LOAD_BALANCER_ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
const NOT_ONCE_SET: &str = "may not change once set";
const ONE_PER_FAMILY: &str = "may specify no more than one IP for each IP family";

fn texts<'v>(node: Node<'v>) -> Vec<&'v str> {
    node.list().iter().map(|value| value.as_str().unwrap_or_default()).collect()
}

fn is_headless(spec: Node<'_>) -> bool {
    matches!(spec.get("clusterIPs").list(), [Value::String(only)] if only == "None")
}

pub(crate) fn create(root: Root<'_>) {
    service(root, None);
}

pub(crate) fn update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    if subresource == "status" {
        return update::load_balancer_status(new, old);
    }
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let external = [spec, before].iter().any(|spec| spec.str("type") == "ExternalName");
    if !external {
        update::cluster_ips(spec, before);
        update::ip_families(spec, before);
    }
    load_balancer_class(spec, Some(before));
    if needs_health_check(spec)
        && needs_health_check(before)
        && spec.num("healthCheckNodePort") != before.num("healthCheckNodePort")
    {
        spec.child("healthCheckNodePort").forbidden("field is immutable");
    }
    service(new, Some(old));
}

fn external_ips<'v>(spec: Node<'v>, before: Option<Node<'v>>) {
    let known = before.map(|before| texts(before.get("externalIPs"))).unwrap_or_default();
    for address in spec.get("externalIPs").items() {
        let count = address.errors();
        legacy_ip(address, address.text(), &known);
        if address.errors() == count {
            endpoint_ip(address, address.text());
        }
    }
}

fn service<'v>(root: Root<'v>, old: Option<Root<'v>>) {
    if let (Some(mode), Some(hints)) = (root.annotation(TOPOLOGY_MODE), root.annotation(TOPOLOGY_HINTS))
        && mode != hints
    {
        let at = root.metadata().child("annotations").key(TOPOLOGY_MODE);
        at.invalid(mode, format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified"));
    }
    let spec = root.get("spec");
    let before = old.map(|old| old.get("spec"));
    let ports = spec.get("ports");
    let headless = is_headless(spec);
    if ports.is_empty() && !headless && spec.str("type") != "ExternalName" {
        ports.required("");
    }
    by_type(spec, headless);
    let mut seen: Vec<&str> = Vec::new();
    ports.items().for_each(|one| port(one, ports.len() > 1, &mut seen));
    labels::labels(spec.get("selector"));
    session_affinity(spec);
    if spec.str("type") != "ExternalName" {
        cluster_ips(spec, before);
    }
    external_ips(spec, before);
    spec.get("type").required_one_of(&["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    ports_together(spec, ports);
    source_ranges(root, spec, old);
    let is_load_balancer = spec.str("type") == "LoadBalancer";
    if spec.has("allocateLoadBalancerNodePorts") && !is_load_balancer {
        spec.child("allocateLoadBalancerNodePorts").forbidden(LOAD_BALANCER_ONLY);
    }
    if is_load_balancer && !spec.has("allocateLoadBalancerNodePorts") {
        root.child("allocateLoadBalancerNodePorts").required("");
    }
    load_balancer_class(spec, None);
    traffic(spec);
}

fn by_type(spec: Node<'_>, headless: bool) {
    let kind = spec.str("type");
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let detail = format!("may not be set to 'None' for {kind} services");
            spec.child("clusterIPs").at(0).invalid("None", detail);
        }
        "ExternalName" => {
            for name in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                let node = spec.get(name);
                if if name == "ipFamilyPolicy" { node.is_set() } else { !node.is_empty() } {
                    node.forbidden("may not be set for ExternalName services");
                }
            }
            let name = spec.get("externalName");
            match name.text().strip_suffix('.').unwrap_or(name.text()) {
                "" => name.required(""),
                text => name.check_text(text, names::dns1123_subdomain),
            }
        }
        _ => {}
    }
}

fn port<'v>(port: Node<'v>, name_required: bool, seen: &mut Vec<&'v str>) {
    let name = port.get("name");
    if name.text().is_empty() {
        if name_required {
            name.required("");
        }
    } else {
        name.check(names::dns1123_label);
        match seen.contains(&name.text()) {
            true => name.duplicate(name.text()),
            false => seen.push(name.text()),
        }
    }
    port.get("port").port();
    port.get("protocol").required_one_of(&PROTOCOLS);
    port.get("targetPort").port_or_name();
    if port.has("appProtocol") {
        port.get("appProtocol").check(qualified_name);
    }
}

fn session_affinity(spec: Node<'_>) {
    let (affinity, config) = (spec.get("sessionAffinity"), spec.get("sessionAffinityConfig"));
    affinity.required_one_of(&["ClientIP", "None"]);
    match affinity.text() {
        "ClientIP" => {
            let client = config.get("clientIP");
            let seconds = client.get("timeoutSeconds");
            for node in [config, client, seconds] {
                if !node.is_set() {
                    return node.required("when session affinity type is ClientIP");
                }
            }
            if let Some(number) = seconds.int()
                && !(1..=MAX_AFFINITY_SECONDS).contains(&number)
            {
                seconds
                    .invalid(number, format!("must be greater than 0 and less than {MAX_AFFINITY_SECONDS}"));
            }
        }
        "None" if config.is_set() => config.forbidden("must not be set when session affinity is None"),
        _ => {}
    }
}

fn cluster_ips<'v>(spec: Node<'v>, before: Option<Node<'v>>) {
    let addresses = spec.get("clusterIPs");
    let primary = spec.str("clusterIP");
    let first = addresses.list().first().and_then(Value::as_str);
    match (primary, first) {
        ("", Some(_)) => addresses.wrong("must be empty when `clusterIP` is not specified"),
        ("", None) => {}
        (_, None) => addresses.required(""),
        (primary, Some(first)) if first != primary => addresses.wrong("first value must match `clusterIP`"),
        _ => {}
    }
    families(spec);
    let known = before.map(|before| texts(before.get("clusterIPs"))).unwrap_or_default();
    let mut any_invalid = false;
    for (index, address) in addresses.items().enumerate() {
        if index == 0 && address.text() == "None" {
            if addresses.len() > 1 {
                any_invalid = true;
                addresses.wrong("'None' must be the first and only value");
            }
            continue;
        }
        let count = address.errors();
        legacy_ip(address, address.text(), &known);
        any_invalid |= address.errors() > count;
    }
    if addresses.len() > 2 {
        addresses.wrong("may only hold up to 2 values");
    }
    if !any_invalid {
        addresses_and_families(spec, addresses);
    }
}

fn families(spec: Node<'_>) {
    let mut seen: Vec<&str> = Vec::new();
    for family in spec.get("ipFamilies").items() {
        family.one_of(&["IPv4", "IPv6"]);
        if seen.contains(&family.text()) {
            family.duplicate(BadValue::named(family.text()));
        }
        seen.push(family.text());
    }
    spec.get("ipFamilyPolicy").optional_one_of(&["PreferDualStack", "RequireDualStack", "SingleStack"]);
}

fn addresses_and_families<'v>(spec: Node<'v>, addresses: Node<'v>) {
    if addresses.len() > 1 && !is_dual_stack(&texts(addresses)) {
        addresses.wrong(ONE_PER_FAMILY);
    }
    if is_headless(spec) {
        return;
    }
    for (index, (address, family)) in addresses.items().zip(spec.get("ipFamilies").list()).enumerate() {
        let is_v6 = parse_sloppy(address.text()).is_some_and(|address| !is_v4(address));
        let expected = match family.as_str() {
            Some("IPv4") if is_v6 => "an IPv4",
            Some("IPv6") if !is_v6 => "an IPv6",
            _ => continue,
        };
        let detail = format!("expected {expected} value as indicated by `ipFamilies[{index}]`");
        address.invalid(address.text(), detail);
    }
}

fn ports_together(spec: Node<'_>, ports: Node<'_>) {
    if spec.str("type") == "ClusterIP" {
        for port in ports.items().filter(|port| port.num("nodePort") != 0) {
            port.child("nodePort").forbidden("may not be used when `type` is 'ClusterIP'");
        }
    }
    if ports.len() < 2 {
        return;
    }
    let mut seen: Vec<(&str, i64)> = Vec::new();
    for port in ports.items().filter(|port| port.num("nodePort") != 0) {
        let key = (port.str("protocol"), port.num("nodePort"));
        if seen.contains(&key) {
            port.child("nodePort").duplicate(key.1);
        }
        seen.push(key);
    }
    let mut seen: Vec<(&str, i64)> = Vec::new();
    for port in ports.items() {
        let key = (port.str("protocol"), port.num("port"));
        if seen.contains(&key) {
            let shown = serde_json::json!({"protocol": key.0, "port": key.1});
            port.duplicate(internal::shown("ServicePort", Some(&shown)));
        }
        seen.push(key);
    }
}

fn source_ranges<'v>(root: Root<'v>, spec: Node<'v>, old: Option<Root<'v>>) {
    let ranges = spec.get("loadBalancerSourceRanges");
    let is_load_balancer = spec.str("type") == "LoadBalancer";
    if !ranges.is_empty() {
        let at = spec.child("LoadBalancerSourceRanges").holding(ranges.value());
        if !is_load_balancer {
            at.forbidden(LOAD_BALANCER_ONLY);
        }
        let known = old.map(|old| texts(old.get("spec").get("loadBalancerSourceRanges"))).unwrap_or_default();
        let known: Vec<&str> = known.iter().map(|range| range.trim()).collect();
        at.items().for_each(|range| legacy_cidr(range, range.text().trim(), &known));
    } else if let Some(value) = root.annotation(SOURCE_RANGES) {
        let at = root.metadata().child("annotations").key(SOURCE_RANGES);
        if !is_load_balancer {
            at.forbidden(LOAD_BALANCER_ONLY);
        }
        let changed = old.is_none_or(|old| old.annotation(SOURCE_RANGES) != Some(value));
        if changed && !value.trim().is_empty() {
            value.trim().split(',').for_each(|range| legacy_cidr(at, range.trim(), &[]));
        }
    }
}

fn load_balancer_class<'v>(spec: Node<'v>, before: Option<Node<'v>>) {
    let class = spec.get("loadBalancerClass");
    let is_load_balancer = spec.str("type") == "LoadBalancer";
    if let Some(before) = before
        && is_load_balancer
        && before.str("type") == "LoadBalancer"
        && class.value() != before.raw("loadBalancerClass")
    {
        class.wrong(NOT_ONCE_SET);
    }
    match (class.is_set(), is_load_balancer) {
        (true, true) => class.check(qualified_name),
        (true, false) => class.forbidden(LOAD_BALANCER_ONLY),
        (false, _) => {}
    }
}

fn needs_health_check(spec: Node<'_>) -> bool {
    spec.str("type") == "LoadBalancer" && spec.str("externalTrafficPolicy") == "Local"
}

fn traffic(spec: Node<'_>) {
    let kind = spec.str("type");
    let external = spec.get("externalTrafficPolicy");
    let accessible = ["LoadBalancer", "NodePort"].contains(&kind)
        || (kind == "ClusterIP" && !spec.get("externalIPs").is_empty());
    if accessible {
        external.required_one_of(&["Cluster", "Local"]);
    } else if !external.text().is_empty() {
        let detail = "may only be set for externally-accessible services";
        external.invalid(BadValue::named(external.text()), detail);
    }
    let check = spec.get("healthCheckNodePort");
    match (needs_health_check(spec), check.int().unwrap_or_default()) {
        (false, 0) => {}
        (false, number) => check.invalid(
            number,
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
        ),
        (true, 0) => check.required(""),
        (true, _) => check.port(),
    }
    let internal = spec.get("internalTrafficPolicy");
    if !internal.is_set() && ["NodePort", "LoadBalancer", "ClusterIP"].contains(&kind) {
        internal.required("");
    }
    internal.optional_one_of(&["Cluster", "Local"]);
    let distribution = spec.get("trafficDistribution");
    let known: &[&str] = match distribution.gate(Gate::PreferSameTrafficDistribution) {
        true => &["PreferClose", "PreferSameZone", "PreferSameNode"],
        false => &["PreferClose"],
    };
    if distribution.is_set() && !known.contains(&distribution.text()) {
        distribution.not_supported(distribution.text(), known);
    }
}
