//! Horizontal pod autoscalers.

use concord_meta::{GroupVersion, field::BadValue, names};

use crate::{
    gates::Gate,
    meta,
    node::{Node, Root},
    resources,
};

const SOURCES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
const POPULATE: &str = "must populate information for the given metric source";
const MAX_PERIOD: i64 = 1800;
const MAX_WINDOW: i64 = 3600;

/// How much of a reference's API version is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ApiVersion {
    Any,
    WellFormed,
    /// With a group.
    Grouped,
}

/// What an update may keep.
#[derive(Clone, Copy)]
struct Leniency {
    least: i64,
    target: ApiVersion,
    objects: ApiVersion,
}

/// What new ones may be. Of what is scaled only one kind is in the group without a name.
fn strict(root: Root<'_>) -> Leniency {
    let least = if root.gate(Gate::HPAScaleToZero) { 0 } else { 1 };
    let target = match root.get("spec").get("scaleTargetRef").str("kind") {
        "ReplicationController" => ApiVersion::WellFormed,
        _ => ApiVersion::Grouped,
    };
    Leniency { least, target, objects: ApiVersion::WellFormed }
}

pub(crate) fn autoscaler(root: Root<'_>) {
    spec(root.get("spec"), strict(root));
}

pub(crate) fn autoscaler_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    if subresource == "status" {
        let status = new.get("status");
        status.get("currentReplicas").nonnegative();
        status.get("desiredReplicas").nonnegative();
        return;
    }
    let before = old.get("spec");
    let mut leniency = strict(new);
    if before.get("minReplicas").int() == Some(0) {
        leniency.least = 0;
    }
    let (target, target_before) = (new.get("spec").get("scaleTargetRef"), before.get("scaleTargetRef"));
    if ["apiVersion", "kind"].into_iter().all(|name| target.str(name) == target_before.str(name)) {
        leniency.target = ApiVersion::Any;
    }
    let is_object = |metric: &Node<'_>| metric.str("type") == "Object" && metric.has("object");
    let objects = before.get("metrics").items().filter(is_object);
    for object in objects.map(|metric| metric.get2("object", "describedObject")) {
        if !api_version_problem(object, leniency.objects).is_empty() {
            leniency.objects = ApiVersion::Any;
        }
    }
    spec(new.get("spec"), leniency);
}

fn spec(spec: Node<'_>, leniency: Leniency) {
    let (least, most) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    if let Some(number) = least.int().filter(|number| *number < leniency.least) {
        least.invalid(number, format!("must be greater than or equal to {}", leniency.least));
    }
    let number = most.int().unwrap_or_default();
    match number {
        0 => most.required("must be set and greater than 0"),
        ..0 => most.invalid(number, "must be greater than or equal to 1"),
        _ => {}
    }
    if least.int().is_some_and(|least| number < least) {
        most.invalid(number, "must be greater than or equal to `minReplicas`");
    }
    reference(spec.get("scaleTargetRef"), leniency.target);
    let metrics = spec.get("metrics");
    metrics.items().for_each(|metric| self::metric(metric, leniency.objects));
    let scales_to_zero = metrics.items().any(|metric| ["Object", "External"].contains(&metric.str("type")));
    if least.int() == Some(0) && !scales_to_zero {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        metrics.forbidden(detail);
    }
    for direction in ["scaleUp", "scaleDown"] {
        let rules = spec.get2("behavior", direction);
        if rules.is_set() {
            scaling_rules(rules);
        }
    }
}

fn reference(node: Node<'_>, rule: ApiVersion) {
    node.get("kind").required_and(names::path_segment);
    node.get("name").required_and(names::path_segment);
    let problem = api_version_problem(node, rule);
    if !problem.is_empty() {
        node.get("apiVersion").invalid(node.str("apiVersion"), problem);
    }
}

/// What is wrong with a reference's API version; empty if nothing is.
fn api_version_problem(reference: Node<'_>, rule: ApiVersion) -> String {
    if rule == ApiVersion::Any {
        return String::new();
    }
    match reference.str("apiVersion").parse::<GroupVersion>() {
        Err(error) => error.to_string(),
        Ok(version) if rule == ApiVersion::Grouped && version.group.is_empty() => {
            "apiVersion must specify API group".to_owned()
        }
        Ok(_) => String::new(),
    }
}

fn metric(metric: Node<'_>, objects: ApiVersion) {
    const MEMBERS: [&str; 5] = ["object", "external", "pods", "resource", "containerResource"];
    let kind = metric.get("type");
    if kind.text().is_empty() {
        kind.required("must specify a metric source type");
    }
    kind.one_of(&SOURCES);
    let given: Vec<&'static str> = MEMBERS.into_iter().filter(|member| metric.has(member)).collect();
    if let Some(first) = given.first() {
        let node = metric.get(first);
        match *first {
            "object" => object_source(node, objects),
            "external" => external_source(node),
            "pods" => pods_source(node),
            "resource" => resource_source(node),
            _ => container_resource_source(node),
        }
    }
    let expected = MEMBERS.into_iter().find(|member| {
        let (first, rest) = member.split_at(1);
        kind.text().strip_prefix(&first.to_uppercase()).is_some_and(|text| text == rest)
    });
    match expected {
        Some(member) if !metric.has(member) => metric.child(member).required(POPULATE),
        Some(_) => {}
        None => kind.one_of(&SOURCES),
    }
    if given.len() != 1 {
        let mut others: Vec<_> = given.into_iter().filter(|member| Some(*member) != expected).collect();
        others.sort_unstable();
        others
            .iter()
            .for_each(|member| metric.child(member).forbidden("must populate the given metric source only"));
    }
}

fn identifier(metric: Node<'_>) {
    let name = metric.get("name");
    match name.text() {
        "" => name.required("must specify a metric name"),
        _ => name.check(names::path_segment),
    }
}

fn target(target: Node<'_>) {
    let kind = target.get("type");
    if kind.text().is_empty() {
        kind.required("must specify a metric target type");
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind.text()) {
        kind.invalid(BadValue::named(kind.text()), "must be either Utilization, Value, or AverageValue");
    }
    for name in ["value", "averageValue"] {
        let node = target.get(name);
        if let Some(quantity) =
            node.quantity().filter(|quantity| quantity.is_zero() || resources::is_negative(quantity))
        {
            node.invalid(resources::shown(&quantity), "must be positive");
        }
    }
    let utilization = target.get("averageUtilization");
    if let Some(number) = utilization.int().filter(|number| *number < 1) {
        utilization.invalid(number, "must be greater than 0");
    }
}

fn object_source(source: Node<'_>, objects: ApiVersion) {
    reference(source.get("describedObject"), objects);
    identifier(source.get("metric"));
    let node = source.get("target");
    target(node);
    if !node.has("value") && !node.has("averageValue") {
        node.child("averageValue").required("must set either a target value or averageValue");
    }
}

fn external_source(source: Node<'_>) {
    identifier(source.get("metric"));
    let node = source.get("target");
    target(node);
    match (node.has("value"), node.has("averageValue")) {
        (false, false) => node
            .child("averageValue")
            .required("must set either a target value for metric or a per-pod target"),
        (true, true) => {
            node.child("value").forbidden("may not set both a target value for metric and a per-pod target");
        }
        _ => {}
    }
}

fn pods_source(source: Node<'_>) {
    identifier(source.get("metric"));
    let node = source.get("target");
    target(node);
    if !node.has("averageValue") {
        node.child("averageValue").required("must specify a positive target averageValue");
    }
}

fn resource_source(source: Node<'_>) {
    if source.str("name").is_empty() {
        source.child("name").required("must specify a resource name");
    }
    raw_or_utilization(source.get("target"));
}

fn container_resource_source(source: Node<'_>) {
    let (name, container) = (source.get("name"), source.get("container"));
    match name.text() {
        "" => name.required("must specify a resource name"),
        text => resources::container_name(name, text),
    }
    match container.text() {
        "" => container.required("must specify a container"),
        _ => container.check(names::dns1123_label),
    }
    raw_or_utilization(source.get("target"));
}

fn raw_or_utilization(node: Node<'_>) {
    target(node);
    match (node.has("averageUtilization"), node.has("averageValue")) {
        (false, false) => node
            .child("averageUtilization")
            .required("must set either a target raw value or a target utilization"),
        (true, true) => {
            node.child("averageValue")
                .forbidden("may not set both a target raw value and a target utilization");
        }
        _ => {}
    }
}

fn scaling_rules(rules: Node<'_>) {
    let window = rules.get("stabilizationWindowSeconds");
    match window.int() {
        Some(seconds) if seconds < 0 => window.invalid(seconds, "must be greater than or equal to zero"),
        Some(seconds) if seconds > MAX_WINDOW => {
            window.invalid(seconds, format!("must be less than or equal to {MAX_WINDOW}"));
        }
        _ => {}
    }
    rules.get("selectPolicy").optional_one_of(&["Disabled", "Max", "Min"]);
    let policies = rules.get("policies");
    if policies.is_empty() {
        policies.required("must specify at least one Policy");
    }
    for policy in policies.items() {
        policy.get("type").one_of(&["Percent", "Pods"]);
        policy.get("value").positive();
        let period = policy.get("periodSeconds");
        period.positive();
        if let Some(seconds) = period.int().filter(|seconds| *seconds > MAX_PERIOD) {
            period.invalid(seconds, format!("must be less than or equal to {MAX_PERIOD}"));
        }
    }
    let tolerance = rules.get("tolerance");
    if let Some(quantity) = tolerance.quantity() {
        resources::nonnegative(tolerance, &quantity);
    }
}
