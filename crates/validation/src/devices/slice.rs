//! What drivers have.

use concord_meta::{field::BadValue, go, names};
use serde_json::Value;

use super::{binding, capacity, driver, limited, pool_name, qualified, set, taint, unchanged};
use crate::{
    internal,
    labels::Values,
    meta,
    node::{Node, Root},
    pod::affinity::node_selector,
    resources::shown,
};

const MAX_DEVICES: usize = 128;
const MAX_DEVICES_ADVANCED: usize = 64;
const MAX_COUNTER_SETS: usize = 8;
const MAX_COUNTERS: usize = 32;
const MAX_CONSUMED: usize = 2;
const MAX_TAINTS: usize = 16;
const MAX_ATTRIBUTES: usize = 32;
const MAX_ATTRIBUTE_VALUES: usize = 48;
const MAX_VALUE: usize = 64;
/// A domain, a slash and an identifier.
const MAX_KEY: usize = 63 + 1 + 32;
const LISTS: [&str; 4] = ["bools", "ints", "strings", "versions"];

pub(crate) fn slice(root: Root<'_>) {
    spec(root, None);
}

pub(crate) fn slice_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    spec(new, Some(old.get("spec")));
}

/// What to tell who writes a ResourceSlice.
pub(crate) fn slice_warnings<'v>(new: Root<'v>, _: Option<Root<'v>>) {
    let driver = new.get("spec").get("driver");
    if driver.text() != driver.text().to_lowercase() {
        let name = go::quote(driver.text());
        driver.warn(&format!("driver names should be lowercase; {name} contains uppercase characters"));
    }
}

fn spec<'v>(root: Root<'v>, old: Option<Node<'v>>) {
    let spec = root.get("spec");
    driver(spec.get("driver"));
    pool(spec.get("pool"));
    if let Some(old) = old {
        unchanged(spec.get("pool").get("name"), old.get("pool").get("name"));
        unchanged(spec.get("driver"), old.get("driver"));
        unchanged(spec.get("nodeName"), old.get("nodeName"));
    }
    nodes(spec);
    let (devices, counters) = (spec.get("devices"), spec.get("sharedCounters"));
    if devices.is_set() && counters.is_set() {
        spec.invalid("", "only one of `sharedCounters` or `devices` is allowed");
    }
    let per_device = spec.flag("perDeviceNodeSelection");
    let max = if devices.list().iter().any(is_advanced) { MAX_DEVICES_ADVANCED } else { MAX_DEVICES };
    set(
        devices,
        max,
        |item| item.str("name"),
        |item| {
            let before = old.map(|old| old.get("devices").list()).unwrap_or_default();
            let before = before.iter().find(|before| before["name"] == item.str("name"));
            device(item, before, per_device);
        },
    );
    set(
        counters,
        MAX_COUNTER_SETS,
        |item| item.str("name"),
        |item| {
            item.get("name").required_and(names::dns1123_label);
            counter_map(item.get("counters"));
        },
    );
}

fn pool(pool: Node<'_>) {
    pool_name(pool.get("name"));
    let (count, generation) = (pool.num("resourceSliceCount"), pool.num("generation"));
    if count <= 0 {
        pool.get("resourceSliceCount").invalid(count, "must be greater than zero");
    }
    if generation < 0 {
        pool.get("generation").invalid(generation, "must be greater than or equal to zero");
    }
}

fn is_advanced(device: &Value) -> bool {
    let has = |name: &str| device[name].as_array().is_some_and(|list| !list.is_empty());
    let mut attributes = device["attributes"].as_object().into_iter().flatten();
    has("taints")
        || has("consumesCounters")
        || attributes.any(|(_, attribute)| LISTS.iter().any(|list| attribute[*list].is_array()))
}

/// Where the devices are, which is said in one way.
fn nodes(spec: Node<'_>) {
    const ONE: &str =
        "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    let mut set = Vec::new();
    node_name(spec.get("nodeName"), "must be either unset or set to a non-empty string", &mut set);
    let selector = spec.get("nodeSelector");
    if selector.is_set() {
        set.push("`nodeSelector`");
        node_selector(selector, Values::Labels);
        let terms = selector.get("nodeSelectorTerms");
        if terms.len() != 1 {
            let shown = internal::shown_list("NodeSelectorTerm", terms.list());
            terms.invalid(shown, "must have exactly one node selector term");
        }
    }
    flag(spec, "allNodes", "`allNodes`", &mut set);
    flag(spec, "perDeviceNodeSelection", "`perDeviceNodeSelection`", &mut set);
    match set.len() {
        0 => spec.required(ONE),
        1 => {}
        _ => spec.invalid(several(&set), format!("{ONE}, but multiple fields are set")),
    }
}

fn several(set: &[&str]) -> BadValue {
    BadValue::from(&format!("{{{}}}", set.join(", ")))
}

fn node_name(node: Node<'_>, empty: &'static str, set: &mut Vec<&'static str>) {
    match node.text() {
        _ if !node.is_set() => {}
        "" => node.invalid("", empty),
        _ => {
            set.push("`nodeName`");
            node.check(names::dns1123_subdomain);
        }
    }
}

fn flag(node: Node<'_>, name: &'static str, shown: &'static str, set: &mut Vec<&'static str>) {
    match node.option(name) {
        Some(true) => set.push(shown),
        Some(false) => node.get(name).wrong("must be either unset or set to true"),
        None => {}
    }
}

fn device(device: Node<'_>, before: Option<&Value>, per_device: bool) {
    device.get("name").check(names::dns1123_label);
    let (attributes, capacities) = (device.get("attributes"), device.get("capacity"));
    let (total, values) = (attributes.len() + capacities.len(), values(attributes));
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    if total > MAX_ATTRIBUTES {
        let why = format!("the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES}");
        device.invalid(number(total), why);
    }
    if values > MAX_ATTRIBUTE_VALUES {
        let why = format!("the total number of attribute values must not exceed {MAX_ATTRIBUTE_VALUES}");
        device.invalid(number(values), why);
    }
    for (name, _) in attributes.object().into_iter().flatten() {
        qualified(attributes, name);
        attribute(attributes.cut_key(name, MAX_KEY));
    }
    let shared = device.flag("allowMultipleAllocations");
    for (name, _) in capacities.object().into_iter().flatten() {
        qualified(capacities, name);
        capacity::capacity(capacities.cut_key(name, MAX_KEY), shared);
    }
    let taints = device.get("taints");
    if before.is_none_or(|before| before["taints"].as_array().map_or(&[][..], Vec::as_slice) != taints.list())
    {
        limited(taints, MAX_TAINTS, |item| taint(item, None));
    }
    set(
        device.get("consumesCounters"),
        MAX_CONSUMED,
        |item| item.str("counterSet"),
        |item| {
            item.get("counterSet").required_and(names::dns1123_label);
            counter_map(item.get("counters"));
        },
    );
    own_nodes(device, per_device);
    binding(device);
    mappings(device.get("nodeAllocatableResourceMappings"), capacities);
}

/// What of the node itself a device takes.
fn mappings<'v>(mappings: Node<'v>, capacities: Node<'v>) {
    for (name, mapping) in mappings.entries() {
        if name.contains('/') && !name.contains("kubernetes.io/") {
            mapping.invalid(BadValue::named(name), "must be a node allocatable resource name");
        }
        let (multiplier, key) = (mapping.get("allocationMultiplier"), mapping.get("capacityKey"));
        if !multiplier.is_set() && !key.is_set() {
            mapping.invalid("", "at least one of allocationMultiplier or capacityKey must be set");
            continue;
        }
        if let Some(number) = multiplier.quantity().filter(|number| number.value() <= 0) {
            multiplier.invalid(shown(&number), "must be positive");
        }
        match key.text() {
            _ if !key.is_set() => {}
            "" => key.invalid("", "capacityKey must not be an empty string"),
            text if !capacities.has(text) => key.not_found(BadValue::named(text)),
            _ => {}
        }
    }
}

fn values(attributes: Node<'_>) -> usize {
    let lists = |attribute: Node<'_>| LISTS.iter().map(|list| attribute.get(list).len()).sum::<usize>();
    attributes.entries().map(|(_, attribute)| lists(attribute).max(1)).sum()
}

fn attribute(attribute: Node<'_>) {
    let (text, version) = (attribute.get("string"), attribute.get("version"));
    if text.text().len() > MAX_VALUE {
        text.too_long(MAX_VALUE);
    }
    if version.is_set() {
        semantic_version(version);
    }
    for list in
        LISTS.map(|list| attribute.get(list)).into_iter().filter(|list| list.is_set() && list.is_empty())
    {
        list.wrong("must not be empty if specified");
    }
    attribute
        .get("strings")
        .items()
        .filter(|item| item.text().len() > MAX_VALUE)
        .for_each(|item| item.too_long(MAX_VALUE));
    attribute.get("versions").items().for_each(semantic_version);
    let kinds = ["bool", "int", "string", "version"].into_iter().chain(LISTS);
    match kinds.filter(|kind| attribute.has(kind)).count() {
        0 => attribute.invalid("", "exactly one value must be specified"),
        1 => {}
        _ => {
            let shown = internal::shown("DeviceAttribute", attribute.value());
            attribute.invalid(shown, "exactly one value must be specified");
        }
    }
}

fn semantic_version(node: Node<'_>) {
    if !is_semantic(node.text()) {
        node.invalid(node.text(), "must be a string compatible with semver.org spec 2.0.0");
    }
    if node.text().len() > MAX_VALUE {
        node.too_long(MAX_VALUE);
    }
}

/// Three numbers, then what comes before them and how they were built.
pub(crate) fn is_semantic(text: &str) -> bool {
    let (rest, build) = text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
    let (core, before) = rest.split_once('-').map_or((rest, None), |(core, before)| (core, Some(before)));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = |part: &str| is_digits(part) && (part == "0" || !part.starts_with('0'));
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && before.is_none_or(|parts| {
            parts.split('.').all(|part| is_word(part) && (!is_digits(part) || is_number(part)))
        })
        && build.is_none_or(|parts| parts.split('.').all(is_word))
}

fn counter_map(counters: Node<'_>) {
    if counters.is_empty() {
        return counters.required("");
    }
    if counters.len() > MAX_COUNTERS {
        return counters.too_many(counters.len(), MAX_COUNTERS);
    }
    counters.entries().for_each(|(name, _)| counters.check_text(name, names::dns1123_label));
}

/// Where a device is, if that is said for each.
fn own_nodes(device: Node<'_>, per_device: bool) {
    const ONE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                       `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    if !per_device {
        if ["nodeName", "nodeSelector", "allNodes"].iter().any(|name| device.has(name)) {
            let why = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to \
                       true in the ResourceSlice spec";
            device.invalid(BadValue::verbatim("null"), why);
        }
        return;
    }
    let mut set = Vec::new();
    node_name(device.get("nodeName"), "must not be empty", &mut set);
    let selector = device.get("nodeSelector");
    if selector.is_set() {
        set.push("`nodeSelector`");
        node_selector(selector, Values::Labels);
    }
    flag(device, "allNodes", "`allNodes`", &mut set);
    match set.len() {
        0 => device.required(ONE),
        1 => {}
        _ => device.invalid(several(&set), ONE),
    }
}
