//! Requests to be told of the devices in pools.

use concord_meta::{field::BadValue, names};

use super::MAX_POOL_NAME;
use crate::{
    conditions::conditions,
    internal, meta,
    node::{Node, Root},
    rules::{IMMUTABLE, pattern, same},
};

const MAX_LIMIT: i64 = 1000;
const MAX_POOLS: usize = 1000;
const MAX_CONDITIONS: usize = 10;
const MAX_ERROR: usize = 256;

pub(crate) fn pool_request(root: Root<'_>) {
    let spec = root.get("spec");
    spec.get("driver").required_and(subdomain_of_any_case);
    let name = spec.get("poolName");
    if name.is_set() {
        pool_name(name);
    }
    let limit = spec.get("limit");
    match limit.int() {
        None => limit.required(""),
        Some(number) if number > MAX_LIMIT => {
            limit.invalid(number, format!("must be less than or equal to {MAX_LIMIT}"));
        }
        Some(_) => at_least(limit, 1),
    }
}

pub(crate) fn pool_request_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    let (spec, status) = (new.get("spec"), new.get("status"));
    if subresource != "status" {
        if !same(spec.value(), old.get("spec").value()) {
            spec.invalid(BadValue::verbatim("null"), IMMUTABLE);
        }
        return;
    }
    let before = old.get("status");
    if !before.is_set() {
        conditions(status.get("conditions"));
    } else if same(status.value(), before.value()) {
        return;
    } else if status.is_set() {
        status.invalid(internal::shown("ResourcePoolStatusRequestStatus", status.value()), IMMUTABLE);
    } else {
        status.wrong(IMMUTABLE);
    }
    if status.is_set() {
        answer(status);
    }
}

/// What the pools have.
fn answer(status: Node<'_>) {
    match status.get("poolCount") {
        count if count.is_set() => at_least(count, 0),
        count => count.required(""),
    }
    let pools = status.get("pools");
    match pools.len() > MAX_POOLS {
        true => pools.too_many(pools.len(), MAX_POOLS),
        false => pools.items().for_each(pool),
    }
    let conditions = status.get("conditions");
    if conditions.len() > MAX_CONDITIONS {
        return conditions.too_many(conditions.len(), MAX_CONDITIONS);
    }
    for (index, condition) in conditions.items().enumerate() {
        if conditions.items().take(index).any(|other| other.str("type") == condition.str("type")) {
            condition.duplicate(internal::shown("Condition", condition.value()));
        }
    }
}

fn pool(pool: Node<'_>) {
    pool.get("driver").required_and(subdomain_of_any_case);
    let name = pool.get("poolName");
    match name.text() {
        "" => name.required(""),
        _ => pool_name(name),
    }
    let generation = pool.get("generation");
    match generation.int().unwrap_or_default() {
        0 => generation.required(""),
        _ => at_least(generation, 0),
    }
    at_least(pool.get("resourceSliceCount"), 1);
    for name in ["totalDevices", "allocatedDevices", "availableDevices", "unavailableDevices"] {
        at_least(pool.get(name), 0);
    }
    let node = pool.get("nodeName");
    if node.is_set() {
        node.check(names::dns1123_subdomain);
    }
    let error = pool.get("validationError");
    if error.text().len() > MAX_ERROR {
        error.too_long(MAX_ERROR);
    }
}

fn at_least(node: Node<'_>, least: i64) {
    if let Some(number) = node.int().filter(|number| *number < least) {
        node.invalid(number, format!("must be greater than or equal to {least}"));
    }
}

/// Segments of a path, each of which is a domain.
fn pool_name(node: Node<'_>) {
    let name = node.text();
    if name.len() > MAX_POOL_NAME {
        node.too_long(MAX_POOL_NAME);
    }
    for (index, part) in name.split('/').enumerate() {
        match part {
            "" => node.invalid(name, format!("segment {index}: must not be empty")),
            _ => {
                subdomain(part).for_each(|problem| node.invalid(part, format!("segment {index}: {problem}")))
            }
        }
    }
}

/// The words are those of upstream's newer rules, which count bytes where the older ones count characters.
fn subdomain(text: &str) -> impl Iterator<Item = String> {
    names::dns1123_subdomain(text).into_iter().map(|problem| problem.replace("253 characters", "253 bytes"))
}

fn subdomain_of_any_case(text: &str) -> Vec<String> {
    const REGEX: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
    const TEXT: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and \
        end with an alphanumeric character";
    let text = text.to_ascii_lowercase();
    let in_any_case = |problem: String| match problem.contains("RFC 1123") {
        true => pattern(TEXT, REGEX, &["Example.com"]),
        false => problem,
    };
    subdomain(&text).map(in_any_case).collect()
}
