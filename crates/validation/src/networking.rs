//! Ingresses, their classes, network policies, and addresses of services.

mod ingress;
mod policy;

use concord_meta::{field::BadValue, names};

pub(crate) use self::{
    ingress::{ingress, ingress_class, ingress_class_update, ingress_update, ingress_warnings},
    policy::{network_policy, network_policy_update, network_policy_warnings},
};
use crate::{
    internal,
    ip::{Cidr, is_v4, strict_cidr, strict_ip},
    meta,
    node::{Node, Root},
    rules::{IMMUTABLE, same},
};

pub(crate) fn ip_address(root: Root<'_>) {
    let metadata = root.child("metadata");
    let prefix = root.metadata().str("generateName");
    if !prefix.is_empty() {
        strict_ip(metadata.child("generateName"), prefix);
    }
    strict_ip(metadata.child("name"), root.name());
    let parent = root.get("spec").get("parentRef");
    if !parent.is_set() {
        return parent.required("");
    }
    parent.get("group").optional_and(names::dns1123_subdomain);
    parent.get("resource").required_and(names::path_segment);
    parent.get("name").required_and(names::path_segment);
    parent.get("namespace").optional_and(names::path_segment);
}

pub(crate) fn ip_address_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::whole(new);
    ip_address(new);
    meta::update(new, old);
    let parent = new.get("spec").get("parentRef");
    if !same(parent.value(), old.get("spec").raw("parentRef")) {
        let shown = match parent.is_set() {
            true => internal::shown("ParentReference", parent.value()),
            false => parent.shown(),
        };
        parent.invalid(shown, IMMUTABLE);
    }
}

pub(crate) fn service_cidr(root: Root<'_>) {
    cidrs(root.get("spec").get("cidrs"), root.get("spec"));
}

fn cidrs<'v>(node: Node<'v>, spec: Node<'v>) {
    match node.len() {
        0 => return node.required("at least one CIDR required"),
        1 | 2 => {}
        _ => {
            let shown = internal::shown("ServiceCIDRSpec", spec.value());
            return node.invalid(shown, "may only hold up to 2 values");
        }
    }
    node.items().for_each(|cidr| strict_cidr(cidr, cidr.text()));
    let families: Vec<bool> = node
        .items()
        .filter_map(|cidr| Cidr::parse_sloppy(cidr.text()))
        .map(|cidr| is_v4(cidr.masked()))
        .collect();
    if let [first, second] = families.as_slice()
        && first == second
    {
        let detail =
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        node.wrong(detail);
    }
}

pub(crate) fn service_cidr_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    if subresource == "status" {
        return;
    }
    let (node, before) = (new.get("spec").get("cidrs"), old.get("spec").get("cidrs"));
    let changed = |index: usize| node.list().get(index) != before.list().get(index);
    let refuse = |index: usize| {
        let shown = node.list().get(index).map_or_else(|| BadValue::verbatim("null"), BadValue::from);
        node.at(index).invalid(shown, IMMUTABLE);
    };
    match (before.len(), node.len()) {
        (1, 2) => {
            if changed(0) {
                refuse(0);
            }
            cidrs(node, new.get("spec"));
        }
        (old, new) if old == new => (0..old).filter(|index| changed(*index)).for_each(refuse),
        _ => node.wrong(IMMUTABLE),
    }
}
