//! What an update of a Service may change, and its status.

use concord_meta::names;

use super::{NOT_ONCE_SET, is_headless, texts};
use crate::{
    ip::{legacy_ip, parse_sloppy},
    node::{Node, Root},
};

pub(super) fn cluster_ips(spec: Node<'_>, before: Node<'_>) {
    if is_headless(spec) && is_headless(before) {
        return;
    }
    let node = spec.get("clusterIPs");
    let (new, old) = (texts(node), texts(before.get("clusterIPs")));
    let changed = |index: usize| node.at(index).invalid(node.shown(), NOT_ONCE_SET);
    if new.len() == old.len() {
        (0..new.len()).filter(|index| new[*index] != old[*index]).for_each(changed);
        return;
    }
    if old.len() > new.len() && new.is_empty() {
        node.at(0).invalid(node.shown(), "primary clusterIP can not be unset");
    }
    if !new.is_empty() && !old.is_empty() && new[0] != old[0] {
        changed(0);
    }
    if old.len() > new.len() && new.len() == 1 {
        released(spec, "clusterIP");
    }
}

fn released(spec: Node<'_>, what: &str) {
    let policy = spec.get("ipFamilyPolicy");
    if policy.text() != "SingleStack" {
        policy.wrong(format!("must be set to 'SingleStack' when releasing the secondary {what}"));
    }
}

pub(super) fn ip_families(spec: Node<'_>, before: Node<'_>) {
    if is_headless(spec) || is_headless(before) {
        return;
    }
    let (node, addresses) = (spec.get("ipFamilies"), spec.get("clusterIPs"));
    let (new, old) = (texts(node), texts(before.get("ipFamilies")));
    let first = node.at(0);
    if new.len() == old.len() {
        let changed = new.iter().zip(&old).filter(|(new, old)| new != old).count();
        (0..changed).for_each(|_| first.invalid(node.shown(), NOT_ONCE_SET));
        return;
    }
    if old.len() > new.len() && addresses.is_empty() {
        first.invalid(node.shown(), "primary ipFamily can not be unset");
    }
    if !new.is_empty() && !old.is_empty() && new[0] != old[0] {
        // Upstream shows the addresses here.
        first.invalid(addresses.shown(), NOT_ONCE_SET);
    }
    if old.len() > new.len() && new.len() == 1 {
        released(spec, "ipFamily");
    }
}

pub(super) fn load_balancer_status<'v>(new: Root<'v>, old: Root<'v>) {
    let ingress = new.get("status").get2("loadBalancer", "ingress");
    if new.get("spec").str("type") != "LoadBalancer" && !ingress.is_empty() {
        return ingress.forbidden("may only be used when `spec.type` is 'LoadBalancer'");
    }
    let before = old.get("status").get2("loadBalancer", "ingress");
    let known: Vec<&str> = before.items().map(|item| item.str("ip")).filter(|ip| !ip.is_empty()).collect();
    for item in ingress.items() {
        let (address, mode, name) = (item.get("ip"), item.get("ipMode"), item.get("hostname"));
        if !address.text().is_empty() {
            legacy_ip(address, address.text(), &known);
        }
        match (mode.is_set(), address.text().is_empty()) {
            (false, false) => mode.required("must be specified when `ip` is set"),
            (true, true) => mode.forbidden("may not be specified when `ip` is not set"),
            (true, false) => mode.one_of(&["Proxy", "VIP"]),
            (false, true) => {}
        }
        if !name.text().is_empty() {
            name.check(names::dns1123_subdomain);
            if parse_sloppy(name.text()).is_some() {
                name.invalid(name.text(), "must be a DNS name, not an IP address");
            }
        }
    }
}
