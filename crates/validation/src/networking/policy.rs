//! Network policies.

use serde_json::Value;

use crate::{
    ip::{Cidr, legacy_cidr, warn_cidr},
    labels::{Values, selector},
    meta,
    node::{Node, Root},
    rules::{port_name, range},
};

/// What an update may keep.
struct Leniency<'v> {
    values: Values,
    cidrs: Vec<&'v str>,
}

/// The two directions and what the other side is called in each.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

pub(crate) fn network_policy(root: Root<'_>) {
    spec(root.get("spec"), &Leniency { values: Values::Labels, cidrs: Vec::new() });
}

fn spec<'v>(spec: Node<'v>, leniency: &Leniency<'v>) {
    selector(spec.get("podSelector"), leniency.values);
    for (direction, peers) in DIRECTIONS {
        for rule in spec.get(direction).items() {
            rule.get("ports").items().for_each(port);
            rule.get(peers).items().for_each(|one| peer(one, leniency));
        }
    }
    let types = spec.get("policyTypes");
    if types.len() > 2 {
        return types.wrong("may not specify more than two policyTypes");
    }
    types.items().for_each(|one| one.one_of(&["Ingress", "Egress"]));
}

fn port(node: Node<'_>) {
    node.get("protocol").optional_one_of(&["TCP", "UDP", "SCTP"]);
    let (port, end) = (node.get("port"), node.get("endPort"));
    match (port.value(), end.int()) {
        (None, None) => {}
        (None, Some(last)) => end.invalid(last, "may not be specified when `port` is not specified"),
        (Some(Value::String(name)), last) => {
            if let Some(last) = last {
                end.invalid(last, "may not be specified when `port` is non-numeric");
            }
            port.check_text(name, port_name);
        }
        (Some(_), last) => {
            port.port();
            let first = port.int().unwrap_or_default();
            if let Some(last) = last {
                if last < first {
                    end.invalid(first, "must be greater than or equal to `port`");
                }
                if !(1..=65535).contains(&last) {
                    end.invalid(last, range(1, 65535));
                }
            }
        }
    }
}

fn peer<'v>(node: Node<'v>, leniency: &Leniency<'v>) {
    let mut count = 0;
    for name in ["podSelector", "namespaceSelector"].into_iter().filter(|name| node.has(name)) {
        count += 1;
        selector(node.get(name), leniency.values);
    }
    let block = node.get("ipBlock");
    if block.is_set() {
        ip_block(block, &leniency.cidrs);
        if count > 0 {
            node.forbidden("may not specify both ipBlock and another peer");
        }
    } else if count == 0 {
        node.required("must specify a peer");
    }
}

fn ip_block(block: Node<'_>, known: &[&str]) {
    let cidr = block.get("cidr");
    if cidr.text().is_empty() {
        return cidr.required("");
    }
    legacy_cidr(cidr, cidr.text(), known);
    let Some(whole) = Cidr::parse_sloppy(cidr.text()) else { return };
    for except in block.get("except").items() {
        legacy_cidr(except, except.text(), known);
        let Some(part) = Cidr::parse_sloppy(except.text()) else { continue };
        if !whole.contains(part.masked()) || whole.prefix >= part.prefix {
            except.invalid(except.text(), "must be a strict subset of `cidr`");
        }
    }
}

/// All networks of a policy, with their places.
fn all_cidrs<'v>(spec: Node<'v>) -> impl Iterator<Item = Node<'v>> {
    DIRECTIONS
        .into_iter()
        .flat_map(move |(direction, peers)| {
            spec.get(direction).items().flat_map(move |rule| rule.get(peers).items())
        })
        .filter(|peer| peer.has("ipBlock"))
        .flat_map(|peer| {
            let block = peer.get("ipBlock");
            std::iter::once(block.get("cidr")).chain(block.get("except").items())
        })
}

pub(crate) fn network_policy_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    let before = old.get("spec");
    let broken = before.get("podSelector").breaks(|node| selector(node, Values::Labels));
    let leniency = Leniency {
        values: if broken { Values::Any } else { Values::Labels },
        cidrs: all_cidrs(before).map(Node::text).collect(),
    };
    meta::update(new, old);
    spec(new.get("spec"), &leniency);
}

/// What to tell who writes a policy.
pub(crate) fn network_policy_warnings<'v>(new: Root<'v>, _: Option<Root<'v>>) {
    all_cidrs(new.get("spec")).for_each(|cidr| warn_cidr(cidr, cidr.text()));
}
