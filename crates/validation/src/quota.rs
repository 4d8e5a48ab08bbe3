//! Quotas and ranges of limits.

use std::collections::BTreeSet;

use concord_meta::{Quantity, QuantityFormat, field::BadValue};
use serde_json::Value;

use crate::{
    internal, meta,
    node::{Node, Root},
    resources::{self, amount, quota_name, shown},
    rules::{IMMUTABLE, qualified_name},
};

const POD_RESOURCES: [&str; 7] =
    ["pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
const PAIRS: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["NotTerminating", "Terminating"]];
const EXISTS_ONLY: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";

fn amounts(list: Node<'_>) {
    for (name, node) in list.entries() {
        quota_name(node, name);
        amount(node, name);
    }
}

pub(crate) fn resource_quota(root: Root<'_>) {
    spec(root.get("spec"));
    status(root.get("status"));
}

fn status(status: Node<'_>) {
    amounts(status.get("hard"));
    amounts(status.get("used"));
}

fn spec(spec: Node<'_>) {
    amounts(spec.get("hard"));
    scopes(spec);
    if spec.has("scopeSelector") {
        scope_selector(spec);
    }
}

fn is_known(scope: &str) -> bool {
    ["PriorityClass", "VolumeAttributesClass", "CrossNamespacePodAffinity"].contains(&scope)
        || PAIRS.iter().any(|pair| pair.contains(&scope))
}

fn applies(scope: &str, resource: &str) -> bool {
    match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => POD_RESOURCES.contains(&resource),
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => ["persistentvolumeclaims", "requests.storage"].contains(&resource),
        _ => true,
    }
}

/// The limited resources that a scope does not apply to.
fn misfits(spec: Node<'_>, scope: &str) -> usize {
    let hard = spec.get("hard").object();
    let names = hard.into_iter().flatten().map(|(name, _)| name);
    names.filter(|name| resources::is_standard_quota(name) && !applies(scope, name)).count()
}

fn scopes(spec: Node<'_>) {
    let scopes = spec.get("scopes");
    let all: Vec<&str> = scopes.list().iter().filter_map(Value::as_str).collect();
    for scope in &all {
        if !is_known(scope) {
            scopes.wrong("unsupported scope");
        }
        (0..misfits(spec, scope)).for_each(|_| scopes.wrong("unsupported scope applied to resource"));
    }
    for pair in PAIRS {
        if pair.iter().all(|scope| all.contains(scope)) {
            scopes.wrong("conflicting scopes");
        }
    }
}

/// How many values there are is a matter of the operator.
fn scope_values<'v>(expressions: Node<'v>, operator: &str, values: Option<&'v Value>) {
    let values = expressions.child("values").holding(values);
    match operator {
        "In" | "NotIn" if values.is_empty() => values
            .required("must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"),
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            values.wrong("must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector")
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => {
            expressions.child("operator").invalid(BadValue::named(operator), "not a valid selector operator")
        }
    }
}

fn scope_selector(spec: Node<'_>) {
    let selector = spec.get("scopeSelector");
    let expressions = selector.get("matchExpressions");
    let mut all: Vec<&str> = Vec::new();
    for expression in expressions.list() {
        let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
        let (scope, operator) = (text("scopeName"), text("operator"));
        if !is_known(scope) {
            expressions.child("scopeName").invalid(BadValue::named(scope), "unsupported scope");
        }
        for _ in 0..misfits(spec, scope) {
            let shown = internal::shown("ScopeSelector", selector.value());
            expressions.invalid(shown, "unsupported scope applied to resource");
        }
        let exists_only = is_known(scope) && !["PriorityClass", "VolumeAttributesClass"].contains(&scope);
        if exists_only && operator != "Exists" {
            expressions.child("operator").invalid(BadValue::named(operator), EXISTS_ONLY);
        }
        scope_values(expressions, operator, expression.get("values"));
        all.push(expression.get("scopeName").and_then(Value::as_str).unwrap_or_default());
    }
    for pair in PAIRS {
        if pair.iter().all(|scope| all.contains(scope)) {
            expressions.invalid(spec.get("scopes").shown(), "conflicting scopes");
        }
    }
}

pub(crate) fn resource_quota_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    if subresource == "status" {
        return status(new.get("status"));
    }
    let node = new.get("spec");
    spec(node);
    let scopes = node.get("scopes");
    let set = |node: Node<'v>| -> BTreeSet<&str> { node.list().iter().filter_map(Value::as_str).collect() };
    if set(scopes) != set(old.get("spec").get("scopes")) {
        scopes.wrong(IMMUTABLE);
    }
}

/// What to tell who makes a quota that lets more be asked for than be used.
pub(crate) fn warnings<'v>(new: Root<'v>, old: Option<Root<'v>>) {
    if old.is_some() {
        return;
    }
    let hard = new.get("spec").get("hard");
    let of = |name: &str| hard.raw(name).and_then(resources::quantity);
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let plain = ["cpu", "memory"].contains(&resource).then(|| resource.to_owned());
        let names = [Some(format!("requests.{resource}")), plain];
        let request = names.into_iter().flatten().find_map(|name| Some((of(&name)?, name)));
        let limit = format!("limits.{resource}");
        if let (Some((asked, name)), Some(most)) = (request, of(&limit))
            && asked > most
        {
            new.warn(format!("ResourceQuota {name} ({asked}) should be less than {limit} ({most})"));
        }
    }
}

pub(crate) fn limit_range(root: Root<'_>) {
    let mut seen: Vec<&str> = Vec::new();
    for limit in root.get("spec").get("limits").items() {
        let kind = limit.get("type");
        limit_type(kind);
        if seen.contains(&kind.text()) {
            kind.duplicate(BadValue::named(kind.text()));
        }
        seen.push(kind.text());
        limit_resources(limit, kind.text());
        let lists = ["min", "max", "default", "defaultRequest", "maxLimitRequestRatio"];
        let keys: BTreeSet<&str> = lists
            .into_iter()
            .filter(|list| kind.text() != "Pod" || !list.starts_with("default"))
            .flat_map(|list| limit.get(list).object().into_iter().flatten().map(|(key, _)| key.as_str()))
            .collect();
        keys.into_iter().for_each(|key| bounds(limit, key, kind.text() == "Pod"));
    }
}

fn limit_type(kind: Node<'_>) {
    let text = kind.text();
    let problems = qualified_name(text);
    let well_formed = problems.is_empty();
    problems.into_iter().for_each(|problem| kind.invalid(BadValue::named(text), problem));
    if well_formed && !text.contains('/') && !["Pod", "Container", "PersistentVolumeClaim"].contains(&text) {
        kind.invalid(BadValue::named(text), "must be a standard limit type or fully qualified");
    }
}

fn limit_resources(limit: Node<'_>, kind: &str) {
    let check = |list: &'static str| {
        for (name, node) in limit.get(list).entries() {
            match kind {
                "Pod" | "Container" => resources::container_name(node, name),
                _ => drop(resources::name(node, name)),
            }
        }
    };
    check("max");
    check("min");
    for list in ["default", "defaultRequest"] {
        match kind {
            "Pod" if !limit.get(list).is_empty() => {
                limit.child(list).forbidden("may not be specified when `type` is 'Pod'");
            }
            "Pod" => {}
            _ => check(list),
        }
    }
    if kind == "PersistentVolumeClaim" && !["min", "max"].iter().any(|list| limit.get(list).has("storage")) {
        let detail = "either minimum or maximum storage value is required, but neither was provided";
        limit.child("limits").required(detail);
    }
    check("maxLimitRequestRatio");
}

fn bounds<'v>(limit: Node<'v>, key: &'v str, is_pod: bool) {
    let of = |list: &str| limit.raw(list).and_then(|list| list.get(key)).and_then(resources::quantity);
    let (min, max, ratio) = (of("min"), of("max"), of("maxLimitRequestRatio"));
    let default = of("default").filter(|_| !is_pod);
    let request = of("defaultRequest").filter(|_| !is_pod);
    let refuse = |list: &'static str, value: &Quantity, detail: String| {
        limit.child(list).key(key).invalid(shown(value), detail);
    };
    let greater =
        |a: &Option<Quantity>, b: &Option<Quantity>| a.clone().zip(b.clone()).filter(|(a, b)| a > b);
    // Of each pair the first may not be the greater one: what they are called, and where and with which of them it is told.
    for (less, more, [less_name, more_name], place, tells_less) in [
        (&min, &max, ["min value", "max value"], "min", true),
        (&min, &request, ["min value", "default request value"], "defaultRequest", false),
        (&request, &max, ["default request value", "max value"], "defaultRequest", true),
        (&request, &default, ["default request value", "default limit value"], "defaultRequest", true),
        (&min, &default, ["min value", "default value"], "default", true),
        (&default, &max, ["default value", "max value"], "default", false),
    ] {
        if let Some((less, more)) = greater(less, more) {
            let told = if tells_less { &less } else { &more };
            refuse(place, told, format!("{less_name} {less} is greater than {more_name} {more}"));
        }
    }
    if let Some(ratio) = &ratio {
        ratio_bounds(limit.child("maxLimitRequestRatio").key(key), ratio, &min, &max);
    }
    if let (Some(default), Some(request)) = (&default, &request)
        && !resources::is_overcommit_allowed(key)
        && default != request
    {
        let detail = format!("default value {default} must equal to defaultRequest value {request} in {key}");
        refuse("defaultRequest", request, detail);
    }
}

fn ratio_bounds(node: Node<'_>, ratio: &Quantity, min: &Option<Quantity>, max: &Option<Quantity>) {
    if *ratio < Quantity::new(1, QuantityFormat::DecimalSi) {
        node.invalid(shown(ratio), format!("ratio {ratio} is less than 1"));
    }
    if let (Some(min), Some(max)) = (min, max) {
        let small = [ratio, min, max].iter().all(|quantity| quantity.value() < i64::MAX / 1000);
        let number = |quantity: &Quantity| match small {
            true => as_float(quantity.milli_value()),
            false => as_float(quantity.value()),
        };
        let most = number(max) / number(min);
        let wanted = if small { number(ratio) / 1000.0 } else { number(ratio) };
        if wanted > most {
            node.invalid(shown(ratio), format!("ratio {ratio} is greater than max/min = {most:.6}"));
        }
    }
}

/// Go's conversion, which rounds large numbers too.
#[expect(clippy::cast_precision_loss, reason = "upstream compares ratios as floats")]
fn as_float(number: i64) -> f64 {
    number as f64
}

pub(crate) fn limit_range_update<'v>(_: &str, new: Root<'v>, _: Root<'v>) {
    meta::whole(new);
    limit_range(new);
}
