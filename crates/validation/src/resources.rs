//! Names and amounts of resources.

use concord_meta::{Quantity, QuantityFormat, field::BadValue};
use serde_json::Value;

use crate::{
    node::Node,
    rules::{NEGATIVE, NOT_POSITIVE, qualified_name},
};

const OBJECTS: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

const COMPUTE: [&str; 9] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

/// A quantity as it stands in an object: a text, or a number that was written without quotes.
pub(crate) fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

impl Node<'_> {
    pub(crate) fn quantity(self) -> Option<Quantity> {
        self.value().and_then(quantity)
    }
}

fn zero() -> Quantity {
    Quantity::new(0, QuantityFormat::DecimalSi)
}

pub(crate) fn is_negative(quantity: &Quantity) -> bool {
    *quantity < zero()
}

/// As errors show it.
pub(crate) fn shown(quantity: &Quantity) -> BadValue {
    BadValue::from(&quantity.to_string())
}

pub(crate) fn is_hugepages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_quota_hugepages(name: &str) -> bool {
    is_hugepages(name) || name.starts_with("requests.hugepages-")
}

/// Kubernetes' own resources.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

pub(crate) fn is_overcommit_allowed(name: &str) -> bool {
    is_native(name) && !is_hugepages(name)
}

/// Resources that somebody else named.
pub(crate) fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && qualified_name(&format!("requests.{name}")).is_empty()
}

fn is_standard(name: &str) -> bool {
    COMPUTE.contains(&name)
        || OBJECTS.contains(&name)
        || ["storage", "requests.storage"].contains(&name)
        || is_quota_hugepages(name)
}

/// Whether quotas know the resource.
pub(crate) fn is_standard_quota(name: &str) -> bool {
    is_standard(name) && name != "storage"
}

fn is_integer(name: &str) -> bool {
    OBJECTS.contains(&name) || is_extended(name)
}

/// A resource's name in general.
pub(crate) fn name(node: Node<'_>, name: &str) -> bool {
    let problems = qualified_name(name);
    let malformed = !problems.is_empty();
    for problem in problems {
        node.invalid(BadValue::named(name), problem);
    }
    if !malformed && !name.contains('/') && !is_standard(name) {
        node.invalid(BadValue::named(name), "must be a standard resource type or fully qualified");
        return false;
    }
    !malformed
}

/// The name of a resource that a container can ask for.
pub(crate) fn container_name(node: Node<'_>, resource: &str) {
    name(node, resource);
    if !resource.contains('/') {
        if !["cpu", "memory", "ephemeral-storage"].contains(&resource) && !is_hugepages(resource) {
            node.invalid(BadValue::named(resource), "must be a standard resource for containers");
        }
    } else if !is_native(resource) && !is_extended(resource) {
        node.invalid(BadValue::named(resource), "doesn't follow extended resource name standard");
    }
}

/// The name of a resource that a whole pod can ask for.
pub(crate) fn pod_name(node: Node<'_>, resource: &str) {
    let supported = ["cpu", "memory"].contains(&resource) || is_hugepages(resource);
    if name(node, resource) && !supported {
        node.not_supported(BadValue::named(resource), &["cpu", "hugepages-", "memory"]);
    }
}

/// The name of a resource that a quota can limit.
pub(crate) fn quota_name(node: Node<'_>, resource: &str) {
    name(node, resource);
    if !resource.contains('/') && !is_standard_quota(resource) {
        node.invalid(BadValue::named(resource), "must be a standard resource for quota");
    }
}

/// An amount of a resource: not negative, and whole for what is counted.
pub(crate) fn amount(node: Node<'_>, resource: &str) {
    let Some(quantity) = node.quantity() else { return };
    nonnegative(node, &quantity);
    if is_integer(resource) && quantity.milli_value() % 1000 != 0 {
        node.invalid(shown(&quantity), "must be an integer");
    }
}

/// A quantity that is not negative.
pub(crate) fn nonnegative(node: Node<'_>, quantity: &Quantity) {
    if is_negative(quantity) {
        node.invalid(shown(quantity), NEGATIVE);
    }
}

/// A quantity that is more than nothing.
pub(crate) fn positive(node: Node<'_>, quantity: &Quantity) {
    if *quantity <= zero() {
        node.invalid(shown(quantity), NOT_POSITIVE);
    }
}

/// A quantity whose whole part is not negative; errors show the number.
pub(crate) fn basic(node: Node<'_>) {
    if let Some(quantity) = node.quantity()
        && quantity.value() < 0
    {
        node.invalid(quantity.value(), "must be a valid resource quantity");
    }
}

/// The rule for the names of resources in a list of requirements.
pub(crate) type NameRule = fn(Node<'_>, &str);

/// `limits` and `requests`, and how they fit together.
pub(crate) fn requirements(node: Node<'_>, rule: NameRule, allow_indivisible: bool) {
    let (limits, requests) = (node.get("limits"), node.get("requests"));
    for (name, limit) in limits.entries() {
        rule(limit, name);
        amount(limit, name);
        hugepages(limit, name, allow_indivisible);
    }
    for (name, request) in requests.entries() {
        rule(request, name);
        amount(request, name);
        request_against_limit(request, name, limits, requests);
        hugepages(request, name, allow_indivisible);
    }
    let any = |test: fn(&str) -> bool| {
        [limits, requests]
            .into_iter()
            .any(|list| list.object().is_some_and(|list| list.keys().any(|name| test(name))))
    };
    if any(is_hugepages) && !any(|name| name == "cpu" || name == "memory") {
        node.forbidden("HugePages require cpu or memory");
    }
}

fn request_against_limit(request: Node<'_>, name: &str, limits: Node<'_>, requests: Node<'_>) {
    let limit = limits.raw(name).and_then(quantity);
    let (Some(asked), overcommit) = (request.quantity(), is_overcommit_allowed(name)) else { return };
    match limit {
        Some(limit) if asked != limit && !overcommit => {
            requests.invalid(shown(&asked), format!("must be equal to {name} limit of {limit}"));
        }
        Some(limit) if asked > limit => {
            requests.invalid(shown(&asked), format!("must be less than or equal to {name} limit of {limit}"));
        }
        None if !overcommit => limits.required("Limit must be set for non overcommitable resources"),
        _ => {}
    }
}

fn hugepages(node: Node<'_>, name: &str, allow_indivisible: bool) {
    let Some(size) = name.strip_prefix("hugepages-") else { return };
    let Some(quantity) = node.quantity() else { return };
    if !allow_indivisible && !is_divisible(size, &quantity) {
        node.invalid(shown(&quantity), format!("{quantity} is not positive integer multiple of {name}"));
    }
}

/// Whether an amount of huge pages is a whole number of pages.
pub(crate) fn is_divisible(size: &str, quantity: &Quantity) -> bool {
    size.parse::<Quantity>().is_ok_and(|size| {
        size > zero()
            && size.milli_value() % 1000 == 0
            && size.value() != 0
            && quantity.value() % size.value() == 0
    })
}

/// What running a pod costs besides its containers: a list of limits.
pub(crate) fn overhead(node: Node<'_>, allow_indivisible: bool) {
    let limits = node.child("limits").holding(node.value());
    for (name, limit) in limits.entries() {
        container_name(limit, name);
        amount(limit, name);
        hugepages(limit, name, allow_indivisible);
    }
    let has = |test: fn(&str) -> bool| node.object().is_some_and(|list| list.keys().any(|name| test(name)));
    if has(is_hugepages) && !has(|name| name == "cpu" || name == "memory") {
        node.forbidden("HugePages require cpu or memory");
    }
}
