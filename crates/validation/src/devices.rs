//! Devices: what drivers have, what is wanted of it, and what was given.
//!
//! The rules are about the form that objects have since v1beta2.

mod capacity;
mod claim;
mod pool_request;
mod slice;
mod status;
mod uuid;

use concord_cel::devices;
use concord_meta::names;

use crate::{
    conditions::conditions,
    meta,
    node::{Node, Root},
    pod::sources::csi_driver_name,
    resources::is_extended,
    rules::{IMMUTABLE, pattern, qualified_name, same},
};

pub(crate) use self::{
    claim::{claim, claim_template, claim_template_update, claim_update},
    pool_request::{pool_request, pool_request_update},
    slice::{is_semantic, slice, slice_update, slice_warnings},
};

const MAX_SELECTORS: usize = 32;
const MAX_CONFIG: usize = 32;
const MAX_EXPRESSION: usize = 10 * 1024;
const MAX_PARAMETERS: usize = 10 * 1024;
const MAX_POOL_NAME: usize = 253;
const MAX_ID: usize = 32;
const MAX_RULE_CONDITIONS: usize = 8;
const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

pub(crate) fn class(root: Root<'_>) {
    class_spec(root);
}

pub(crate) fn class_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    class_spec(new);
}

fn class_spec(root: Root<'_>) {
    let spec = root.get("spec");
    selectors(spec.get("selectors"));
    limited(spec.get("config"), MAX_CONFIG, configuration);
    let name = spec.get("extendedResourceName");
    if name.is_set() && !is_extended(name.text()) {
        name.invalid(name.text(), "must be a valid extended resource name");
    }
}

pub(crate) fn taint_rule(root: Root<'_>) {
    taint_rule_spec(root, None);
}

pub(crate) fn taint_rule_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    if subresource == "status" {
        let list = new.get("status").get("conditions");
        conditions(list);
        if list.len() > MAX_RULE_CONDITIONS {
            list.too_many(list.len(), MAX_RULE_CONDITIONS);
        }
        return;
    }
    taint_rule_spec(new, Some(old));
}

fn taint_rule_spec<'v>(root: Root<'v>, old: Option<Root<'v>>) {
    let spec = root.get("spec");
    let selector = spec.get("deviceSelector");
    let check = |name: &'static str, rule: for<'n> fn(Node<'n>)| {
        let node = selector.get(name);
        if node.is_set() {
            rule(node);
        }
    };
    // The first and the last are only known to releases before 1.35.
    check("deviceClassName", |node| node.required_and(names::dns1123_subdomain));
    check("driver", driver);
    check("pool", pool_name);
    check("device", |node| node.check(names::dns1123_label));
    check("selectors", selectors);
    let before = old.map(|old| old.get("spec").get("taint").str("effect"));
    taint(spec.get("taint"), before);
}

/// A taint. An effect that it has already need not be one of those that there are now.
fn taint(taint: Node<'_>, effect_before: Option<&str>) {
    taint.get("key").check(qualified_name);
    taint.get("value").optional_and(names::label_value);
    let effect = taint.get("effect");
    if effect_before != Some(effect.text()) {
        effect.required_one_of(&EFFECTS);
    }
}

fn toleration(toleration: Node<'_>) {
    toleration.get("key").optional_and(qualified_name);
    let (operator, value) = (toleration.get("operator"), toleration.get("value"));
    match operator.text() {
        "Exists" if value.text().is_empty() => {}
        "Exists" => value.invalid(value.text(), "must be empty for operator `Exists`"),
        "Equal" => value.check(names::label_value),
        "" => operator.required(""),
        _ => operator.unsupported(&["Equal", "Exists"]),
    }
    let effect = toleration.get("effect");
    if !effect.text().is_empty() {
        effect.one_of(&EFFECTS);
    }
}

/// Each item is right, and there are not too many.
fn limited<'v>(list: Node<'v>, max: usize, check: impl Fn(Node<'v>)) {
    if list.len() > max {
        return list.too_many(list.len(), max);
    }
    list.items().for_each(check);
}

/// The same for a list in which each item has a name of its own.
fn set<'v>(list: Node<'v>, max: usize, name: impl Fn(Node<'v>) -> &'v str, check: impl Fn(Node<'v>)) {
    if list.len() > max {
        return list.too_many(list.len(), max);
    }
    list.items().for_each(check);
    distinct(list, name);
}

fn distinct<'v>(list: Node<'v>, name: impl Fn(Node<'v>) -> &'v str) {
    let mut seen: Vec<&str> = Vec::new();
    for item in list.items() {
        let name = name(item);
        match seen.contains(&name) {
            true => item.duplicate(name),
            false => seen.push(name),
        }
    }
}

fn selectors(list: Node<'_>) {
    limited(list, MAX_SELECTORS, |selector| {
        let cel = selector.get("cel");
        match cel.is_set() {
            false => cel.required(""),
            true if cel.str("expression").len() > MAX_EXPRESSION => {
                cel.get("expression").too_long(MAX_EXPRESSION)
            }
            true => {
                let expression = cel.get("expression");
                if let Err(why) = devices::compile(expression.text()) {
                    expression.invalid(expression.text(), why);
                }
            }
        }
    });
}

fn configuration(config: Node<'_>) {
    let opaque = config.get("opaque");
    if !opaque.is_set() {
        return opaque.required("");
    }
    driver(opaque.get("driver"));
    raw(opaque.get("parameters"), MAX_PARAMETERS);
}

/// Something that only a driver understands: an object.
fn raw(node: Node<'_>, max: usize) {
    let Some(value) = node.value() else { return node.required("") };
    if value.to_string().len() > max {
        node.too_long(max);
    } else if !value.is_object() {
        node.invalid("<value omitted>", "must be a valid JSON object");
    }
}

fn driver(node: Node<'_>) {
    csi_driver_name(node, node.text());
}

fn pool_name(node: Node<'_>) {
    let name = node.text();
    if name.is_empty() {
        return node.required("");
    }
    if name.len() > MAX_POOL_NAME {
        node.too_long(MAX_POOL_NAME);
    }
    for part in name.split('/') {
        node.check_text(part, names::dns1123_subdomain);
    }
}

/// The name of an attribute or a capacity, which may have a domain.
fn qualified(node: Node<'_>, name: &str) {
    match name.split('/').collect::<Vec<_>>().as_slice() {
        [id] => identifier(node, id),
        [domain, id] => {
            match *domain {
                "" => node.invalid("", "the domain must not be empty"),
                domain => csi_driver_name(node, domain),
            }
            match *id {
                "" => node.invalid("", "the name must not be empty"),
                id => identifier(node, id),
            }
        }
        _ => {}
    }
}

fn fully_qualified(node: Node<'_>) {
    qualified(node, node.text());
    if !node.text().contains('/') {
        node.invalid(node.text(), "a fully qualified name must be a domain and a name separated by a slash");
    }
}

fn identifier(node: Node<'_>, id: &str) {
    if id.len() > MAX_ID {
        node.too_long(MAX_ID);
    }
    let is_start = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let fits = id.bytes().all(|byte| is_start(byte) || byte.is_ascii_digit());
    if !fits || !id.bytes().next().is_some_and(is_start) {
        let text = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
                    alphanumeric characters or '_'";
        node.invalid(id, pattern(text, "[A-Za-z_][A-Za-z0-9_]*", &["my_name", "MY_NAME", "MyName"]));
    }
}

/// What a device waits for before it can be used, and what says that it cannot.
fn binding(node: Node<'_>) {
    let (conditions, failures) = (node.get("bindingConditions"), node.get("bindingFailureConditions"));
    for list in [conditions, failures] {
        limited(list, 4, |item| item.check(qualified_name));
    }
    distinct(conditions, Node::text);
    let mut seen: Vec<&str> = Vec::new();
    for failure in failures.items() {
        let name = failure.text();
        match seen.contains(&name) {
            true => failure.duplicate(name),
            false => seen.push(name),
        }
        if conditions.items().any(|condition| condition.text() == name) {
            failure.invalid(name, "bindingFailureConditions must not overlap with bindingConditions");
        }
    }
    if conditions.is_empty() && !failures.is_empty() {
        conditions.wrong("bindingConditions are required to use bindingFailureConditions");
    }
    if failures.is_empty() && !conditions.is_empty() {
        failures.wrong("bindingFailureConditions are required to use bindingConditions");
    }
}

/// A member has not changed.
fn unchanged<'v>(new: Node<'v>, old: Node<'v>) {
    if !same(new.value(), old.value()) {
        new.invalid(new.shown(), IMMUTABLE);
    }
}
