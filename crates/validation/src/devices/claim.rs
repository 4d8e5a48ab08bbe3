//! What is wanted.

use concord_meta::names;

use super::{
    MAX_CONFIG, configuration, distinct, fully_qualified, limited, selectors, set, status, toleration,
};
use crate::{
    gates::Gate,
    internal, labels, meta,
    node::{Node, Root},
    rules::{IMMUTABLE, same},
};

pub(super) const MAX_REQUESTS: usize = 32;
const MAX_CONSTRAINTS: usize = 32;
const MAX_ALTERNATIVES: usize = 8;
const NO_REQUEST: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

pub(crate) fn claim(root: Root<'_>) {
    devices(root.get("spec").get("devices"));
}

pub(crate) fn claim_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    match subresource {
        "status" => status::update(new, old),
        _ => immutable(new, old, "ResourceClaimSpec"),
    }
}

pub(crate) fn claim_template(root: Root<'_>) {
    let spec = root.get("spec");
    let metadata = spec.get("metadata");
    labels::labels(metadata.get("labels"));
    labels::annotations(metadata.get("annotations"));
    devices(spec.get("spec").get("devices"));
}

pub(crate) fn claim_template_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    claim_template(new);
    meta::update(new, old);
    immutable(new, old, "ResourceClaimTemplateSpec");
}

fn immutable<'v>(new: Root<'v>, old: Root<'v>, type_name: &'static str) {
    let (spec, before) = (new.get("spec"), old.get("spec"));
    if !same(spec.value(), before.value()) {
        spec.invalid(internal::shown(type_name, spec.value()), IMMUTABLE);
    }
}

fn devices(devices: Node<'_>) {
    let requests = devices.get("requests");
    set(requests, MAX_REQUESTS, |item| item.str("name"), request);
    limited(devices.get("constraints"), MAX_CONSTRAINTS, |item| constraint(item, requests));
    limited(devices.get("config"), MAX_CONFIG, |config| {
        references(config.get("requests"), requests);
        configuration(config);
    });
}

fn request(request: Node<'_>) {
    request.get("name").check(names::dns1123_label);
    let (exactly, alternatives) = (request.get("exactly"), request.get("firstAvailable"));
    match (exactly.is_set(), !alternatives.is_empty()) {
        (false, false) => request.required("exactly one of `exactly` or `firstAvailable` is required"),
        (true, true) => request.invalid(
            request.nowhere().shown(),
            "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
        ),
        (true, false) => wish(exactly),
        (false, true) => set(
            alternatives,
            MAX_ALTERNATIVES,
            |item| item.str("name"),
            |item| {
                item.get("name").check(names::dns1123_label);
                wish(item);
            },
        ),
    }
}

fn wish(wish: Node<'_>) {
    wish.get("deviceClassName").required_and(names::dns1123_subdomain);
    selectors(wish.get("selectors"));
    let (mode, count) = (wish.get("allocationMode"), wish.get("count"));
    let number = count.int().unwrap_or_default();
    match mode.text() {
        "All" if number == 0 => {}
        "All" => count.invalid(number, "must not be specified when allocationMode is 'All'"),
        "ExactCount" if number > 0 => {}
        "ExactCount" => count.invalid(number, "must be greater than zero"),
        _ => mode.unsupported(&["All", "ExactCount"]),
    }
    wish.get("tolerations").items().for_each(toleration);
}

fn constraint<'v>(constraint: Node<'v>, requests: Node<'v>) {
    references(constraint.get("requests"), requests);
    let (matching, distinct) = (constraint.get("matchAttribute"), constraint.get("distinctAttribute"));
    if matching.is_set() {
        fully_qualified(matching);
    } else if distinct.is_set() {
        fully_qualified(distinct);
    } else if !constraint.gate(Gate::DRAConsumableCapacity) {
        matching.required("");
    } else {
        constraint.required(
            "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set",
        );
    }
}

/// A list of names of requests.
pub(super) fn references<'v>(list: Node<'v>, requests: Node<'v>) {
    if list.len() > MAX_REQUESTS {
        return list.too_many(list.len(), MAX_REQUESTS);
    }
    list.items().for_each(|item| reference(item, requests));
    distinct(list, Node::text);
}

/// The name of a request, or of one of the alternatives in it.
pub(super) fn reference<'v>(node: Node<'v>, requests: Node<'v>) {
    let parts: Vec<&str> = node.text().split('/').collect();
    if parts.len() > 2 {
        return node.invalid(node.text(), NO_REQUEST);
    }
    parts.iter().for_each(|part| node.check_text(part, names::dns1123_label));
    // Of several with one name, the last one counts.
    let named = requests.list().iter().rev().find(|request| request["name"] == parts[0]);
    let found = named.is_some_and(|request| match parts.get(1) {
        None => true,
        Some(part) => request["firstAvailable"]
            .as_array()
            .is_some_and(|all| all.iter().any(|item| item["name"] == *part)),
    });
    if !found {
        node.invalid(node.text(), NO_REQUEST);
    }
}
