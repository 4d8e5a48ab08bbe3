//! Endpoints and EndpointSlices.

use concord_meta::{field::BadValue, names};

use crate::{
    ip::{endpoint_ip, is_v4, legacy_ip, parse_sloppy, strict_ip, warn_ip},
    labels, meta,
    node::{Node, Root},
    rules::{IMMUTABLE, qualified_name, same},
};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 20_000;
const MAX_TOPOLOGY: usize = 16;
const MAX_HINTS: usize = 8;

pub(crate) fn endpoints(root: Root<'_>) {
    subsets(root.get("subsets"), is_own(root));
}

/// Whether these are the endpoints of the servers themselves. Those may be on loopback, where a server that is tried out
/// listens; upstream's never are.
fn is_own(root: Root<'_>) -> bool {
    root.name() == "kubernetes" && root.metadata().str("namespace") == "default"
}

fn subsets(subsets: Node<'_>, own: bool) {
    for subset in subsets.items() {
        let (ready, other, ports) =
            (subset.get("addresses"), subset.get("notReadyAddresses"), subset.get("ports"));
        if ready.is_empty() && other.is_empty() {
            subset.required("must specify `addresses` or `notReadyAddresses`");
        }
        ready.items().chain(other.items()).for_each(|one| address(one, own));
        ports.items().for_each(|one| port(one, ports.len() > 1));
    }
}

fn address(address: Node<'_>, own: bool) {
    let ip = address.get("ip");
    legacy_ip(ip, ip.text(), &[]);
    address.get("hostname").optional_and(names::dns1123_label);
    if address.has("nodeName") {
        address.get("nodeName").check(names::dns1123_subdomain);
    }
    if !own {
        endpoint_ip(ip, ip.text());
    }
}

fn port(port: Node<'_>, name_required: bool) {
    let name = port.get("name");
    match name.text() {
        "" if name_required => name.required(""),
        _ => name.optional_and(names::dns1123_label),
    }
    port.get("port").port();
    port.get("protocol").required_one_of(&PROTOCOLS);
    if port.has("appProtocol") {
        port.get("appProtocol").check(qualified_name);
    }
}

pub(crate) fn endpoints_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    meta::whole(new);
    let node = new.get("subsets");
    let before = node.errors();
    subsets(node, is_own(new));
    // What was accepted once stays as long as it is not touched.
    if same(node.value(), old.get("subsets").value()) {
        node.forget(before);
    }
}

/// What to tell who writes Endpoints, besides that the kind is deprecated.
pub(crate) fn endpoints_warnings<'v>(new: Root<'v>, _: Option<Root<'v>>) {
    // The controller copies what others wrote: it cannot help it.
    let labels = new.metadata().get("labels");
    if labels.str("endpoints.kubernetes.io/managed-by") == "endpoint-controller" {
        return;
    }
    for subset in new.get("subsets").items() {
        for list in ["addresses", "notReadyAddresses"] {
            subset.get(list).items().for_each(|address| warn_ip(address.get("ip"), address.str("ip")));
        }
    }
}

pub(crate) fn endpoint_slice(root: Root<'_>) {
    slice(root, None);
}

fn slice<'v>(root: Root<'v>, old: Option<Root<'v>>) {
    let kind = root.get("addressType");
    kind.required_one_of(&["FQDN", "IPv4", "IPv6"]);
    slice_ports(root.get("ports"));
    let node = root.get("endpoints");
    let before = node.errors();
    slice_endpoints(node, kind.text(), is_own(root));
    if old.is_some_and(|old| same(node.value(), old.get("endpoints").value())) {
        node.forget(before);
    }
}

fn slice_ports(ports: Node<'_>) {
    if ports.len() > MAX_PORTS {
        return ports.too_many(ports.len(), MAX_PORTS);
    }
    let mut seen: Vec<&str> = Vec::new();
    for port in ports.items() {
        let name = port.get("name");
        name.optional_and(names::dns1123_label);
        match seen.contains(&name.text()) {
            true => name.duplicate(BadValue::named(name.text())),
            false => seen.push(name.text()),
        }
        let protocol = port.get("protocol");
        match protocol.is_set() {
            true => protocol.one_of(&PROTOCOLS),
            false => protocol.required(""),
        }
        if port.has("appProtocol") {
            port.get("appProtocol").check(qualified_name);
        }
    }
}

fn slice_endpoints(endpoints: Node<'_>, kind: &str, own: bool) {
    if endpoints.len() > MAX_ENDPOINTS {
        return endpoints.too_many(endpoints.len(), MAX_ENDPOINTS);
    }
    for endpoint in endpoints.items() {
        let addresses = endpoint.get("addresses");
        match addresses.len() {
            0 => addresses.required("must contain at least 1 address"),
            count if count > MAX_ADDRESSES => addresses.too_many(count, MAX_ADDRESSES),
            _ => {}
        }
        addresses.items().for_each(|address| slice_address(address, addresses, kind, own));
        if endpoint.has("nodeName") {
            endpoint.get("nodeName").check(names::dns1123_subdomain);
        }
        let topology = endpoint.get("deprecatedTopology");
        if topology.len() > MAX_TOPOLOGY {
            topology.too_many(topology.len(), MAX_TOPOLOGY);
        }
        labels::labels(topology);
        if endpoint.has("hostname") {
            endpoint.get("hostname").check(names::dns1123_label);
        }
        if endpoint.has("hints") {
            hints(endpoint.get("hints"));
        }
    }
}

fn slice_address<'v>(address: Node<'v>, addresses: Node<'v>, kind: &str, own: bool) {
    let text = address.text();
    let before = address.errors();
    match kind {
        "IPv4" => legacy_ip(address, text, &[]),
        "IPv6" => strict_ip(address, text),
        "FQDN" => return domain_name(address, text),
        _ => return,
    }
    if address.errors() == before {
        if parse_sloppy(text).is_some_and(|parsed| is_v4(parsed) != (kind == "IPv4")) {
            addresses.invalid(text, format!("must be an {kind} address"));
        }
        if !own {
            endpoint_ip(address, text);
        }
    }
}

fn domain_name(node: Node<'_>, name: &str) {
    if name.is_empty() {
        return node.required("");
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let problems = names::dns1123_subdomain(name);
    if !problems.is_empty() {
        return node.invalid(name, problems.join(","));
    }
    if !name.contains('.') {
        return node.invalid(name, "should be a domain with at least two segments separated by dots");
    }
    let wrong = name
        .split('.')
        .map(|label| (label, names::dns1123_label(label)))
        .find(|(_, found)| !found.is_empty());
    if let Some((label, problems)) = wrong {
        node.invalid(label, problems.join(","));
    }
}

fn hints(hints: Node<'_>) {
    let lists: [(&'static str, crate::rules::Check); 2] =
        [("forZones", names::label_value), ("forNodes", names::dns1123_subdomain)];
    for (list, check) in lists {
        let node = hints.get(list);
        if node.len() > MAX_HINTS {
            return node.too_many(node.len(), MAX_HINTS);
        }
        let mut seen: Vec<&str> = Vec::new();
        for hint in node.items() {
            let name = hint.get("name");
            match seen.contains(&name.text()) {
                true => name.duplicate(name.text()),
                false => seen.push(name.text()),
            }
            name.check(check);
        }
    }
}

pub(crate) fn endpoint_slice_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::whole(new);
    slice(new, Some(old));
    let kind = new.get("addressType");
    if kind.text() != old.get("addressType").text() {
        kind.invalid(BadValue::named(kind.text()), IMMUTABLE);
    }
}

/// What to tell who writes an EndpointSlice.
pub(crate) fn endpoint_slice_warnings<'v>(new: Root<'v>, old: Option<Root<'v>>) {
    if old.is_none() && new.get("addressType").text() == "FQDN" {
        new.child("spec").child("addressType").warn("FQDN endpoints are deprecated");
    }
    // These controllers copy what others wrote: they cannot help it.
    const COPYING: [&str; 2] =
        ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if COPYING.contains(&new.metadata().get("labels").str("endpointslice.kubernetes.io/managed-by")) {
        return;
    }
    for endpoint in new.get("endpoints").items() {
        endpoint.get("addresses").items().for_each(|address| warn_ip(address, address.text()));
    }
}
