//! Services and what stands behind them.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::column::{AGE, NAME};
use crate::duration::UNKNOWN;
use crate::fields::Fields;
use crate::format::{NONE, age, join, join_first, join_three, labels, or};
use crate::printer::BuiltIn;
use crate::{Column, Printer, Row};

pub(super) fn printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "EndpointSlice" => Some(&ENDPOINT_SLICE),
        _ => None,
    }
}

pub(super) static SERVICE: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Type", "How the service is exposed."),
        Column::string("Cluster-IP", "Address inside the cluster."),
        Column::string("External-IP", "Addresses outside the cluster."),
        Column::string("Port(s)", "Ports and protocols."),
        AGE,
        Column::wide("Selector", "Labels of the pods behind the service."),
    ],
    print: service,
};

fn service(object: Fields<'_>, now: Timestamp) -> Row {
    let spec = object.at("spec");
    let cluster_ip = spec.texts("clusterIPs").next().unwrap_or_else(|| spec.text_or("clusterIP", NONE));
    row![
        object.name(),
        service_type(spec),
        cluster_ip,
        external_ip(object),
        ports(spec),
        age(object, now),
        labels(spec, "selector"),
    ]
}

fn service_type(spec: Fields<'_>) -> &str {
    spec.text_or("type", "ClusterIP")
}

fn external_ip(object: Fields<'_>) -> String {
    let spec = object.at("spec");
    let balanced = match service_type(spec) {
        "ClusterIP" | "NodePort" => String::new(),
        "LoadBalancer" => load_balancer(object),
        "ExternalName" => return spec.text("externalName").to_owned(),
        _ => return UNKNOWN.to_owned(),
    };
    let own = spec.texts("externalIPs");
    match (balanced.is_empty(), own.len()) {
        (true, 0) if service_type(spec) == "LoadBalancer" => "<pending>".to_owned(),
        (true, 0) => NONE.to_owned(),
        (true, _) => join(own, ","),
        (false, 0) => balanced,
        (false, _) => join(std::iter::once(balanced.as_str()).chain(own), ","),
    }
}

/// The addresses, or else host names, at which a load balancer takes traffic for the object.
pub(super) fn load_balancer(object: Fields<'_>) -> String {
    let ingress = object.at("status").at("loadBalancer").items("ingress");
    let points = ingress.map(|point| point.text_or("ip", point.text("hostname")));
    join(points.filter(|point| !point.is_empty()).collect::<BTreeSet<_>>(), ",")
}

fn ports(spec: Fields<'_>) -> String {
    let port = |port: Fields<'_>| {
        let (number, protocol) = (port.int("port"), port.text_or("protocol", "TCP"));
        match port.int("nodePort") {
            ..1 => format!("{number}/{protocol}"),
            node_port => format!("{number}:{node_port}/{protocol}"),
        }
    };
    or(spec.items("ports").map(port).collect::<Vec<_>>().join(","), NONE)
}

pub(super) static ENDPOINTS: BuiltIn = BuiltIn {
    columns: &[NAME, Column::string("Endpoints", "Addresses and ports of the first few."), AGE],
    print: endpoints,
};

fn endpoints(object: Fields<'_>, now: Timestamp) -> Row {
    let addresses: Vec<String> = object.items("subsets").flat_map(subset).collect();
    let cell = match object.count("subsets") {
        0 => NONE.to_owned(),
        _ => join_first(&addresses, 3),
    };
    row![object.name(), cell, age(object, now)]
}

/// Each address with each port; addresses alone where a headless service has no ports.
fn subset(subset: Fields<'_>) -> Vec<String> {
    let addresses: Vec<&str> = subset.items("addresses").map(|address| address.text("ip")).collect();
    if subset.count("ports") == 0 {
        return addresses.into_iter().map(str::to_owned).collect();
    }
    let ports = subset.items("ports").map(|port| port.int("port"));
    ports.flat_map(|port| addresses.iter().map(move |address| host_and_port(address, port))).collect()
}

fn host_and_port(host: &str, port: i64) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

static ENDPOINT_SLICE: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("AddressType", "What the addresses are."),
        Column::string("Ports", "The first few ports."),
        Column::string("Endpoints", "Addresses of the first few endpoints."),
        AGE,
    ],
    print: endpoint_slice,
};

fn endpoint_slice(object: Fields<'_>, now: Timestamp) -> Row {
    let port = |port: Fields<'_>| match port.optional_int("port") {
        Some(number) => number.to_string(),
        None => port.text("name").to_owned(),
    };
    let ports: Vec<String> = object.items("ports").map(port).collect();
    let addresses = object.items("endpoints").flat_map(|endpoint| endpoint.texts("addresses"));
    let addresses: Vec<String> = addresses.map(str::to_owned).collect();
    row![
        object.name(),
        object.text("addressType"),
        join_three(&ports),
        join_three(&addresses),
        age(object, now),
    ]
}
