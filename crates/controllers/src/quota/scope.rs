//! Which objects a quota is about.

use concord_registry::Object;
use serde_json::Value;

use super::{
    at, text,
    usage::{Measure, is_terminating},
};

/// Whether an object is among those that a quota is about. Only pods and claims have anything that a scope can say.
pub(super) fn matches(quota: &Object, measure: Measure, object: &Object) -> bool {
    let list = |path: &[&str]| at(quota, path).and_then(Value::as_array).into_iter().flatten();
    let scopes = list(&["spec", "scopes"]).all(|scope| {
        let scope = scope.as_str().unwrap_or_default();
        is_in(measure, object, scope, "Exists", &[])
    });
    scopes
        && list(&["spec", "scopeSelector", "matchExpressions"]).all(|selector| {
            let text = |name: &str| selector[name].as_str().unwrap_or_default();
            let values = selector["values"].as_array().map_or(&[][..], Vec::as_slice);
            is_in(measure, object, text("scopeName"), text("operator"), values)
        })
}

fn is_in(measure: Measure, object: &Object, scope: &str, operator: &str, values: &[Value]) -> bool {
    match (measure, scope) {
        (Measure::Pods, "Terminating") => is_terminating(object),
        (Measure::Pods, "NotTerminating") => !is_terminating(object),
        (Measure::Pods, "BestEffort") => is_best_effort(object),
        (Measure::Pods, "NotBestEffort") => !is_best_effort(object),
        (Measure::Pods, "CrossNamespacePodAffinity") => has_affinity_elsewhere(object),
        (Measure::Pods, "PriorityClass") => {
            let class = text(object, &["spec", "priorityClassName"]);
            selects(&[class], operator, values)
        }
        (Measure::Claims, "VolumeAttributesClass") => selects(&classes(object), operator, values),
        _ => false,
    }
}

/// What of an object that is there can change which scopes it is in.
pub(super) fn decisive(measure: Measure, object: &Object) -> (bool, bool, Vec<String>) {
    match measure {
        Measure::Pods => (is_terminating(object), is_best_effort(object), Vec::new()),
        Measure::Claims => (false, false, classes(object).into_iter().map(str::to_owned).collect()),
        Measure::Services | Measure::Count => Default::default(),
    }
}

fn classes(claim: &Object) -> [&str; 3] {
    [
        text(claim, &["spec", "volumeAttributesClassName"]),
        text(claim, &["status", "currentVolumeAttributesClassName"]),
        text(claim, &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"]),
    ]
}

/// Whether one of the names, of which empty ones do not count, is selected; or the absence of all of them.
fn selects(names: &[&str], operator: &str, values: &[Value]) -> bool {
    let mut names = names.iter().filter(|name| !name.is_empty()).peekable();
    let absent = names.peek().is_none();
    let listed = |name: &&&str| values.iter().any(|value| value == **name);
    match operator {
        "Exists" => !absent,
        "DoesNotExist" => absent,
        "In" => names.any(|name| listed(&name)),
        "NotIn" => absent || names.any(|name| !listed(&name)),
        _ => false,
    }
}

fn is_best_effort(pod: &Object) -> bool {
    text(pod, &["status", "qosClass"]) == "BestEffort"
}

fn has_affinity_elsewhere(pod: &Object) -> bool {
    let is_elsewhere = |term: &Value| {
        term["namespaces"].as_array().is_some_and(|namespaces| !namespaces.is_empty())
            || term["namespaceSelector"].is_object()
    };
    let rules = ["podAffinity", "podAntiAffinity"]
        .into_iter()
        .filter_map(|kind| at(pod, &["spec", "affinity", kind]));
    rules.into_iter().any(|rules| {
        let list = |name: &str| rules[name].as_array().into_iter().flatten();
        list("requiredDuringSchedulingIgnoredDuringExecution").any(is_elsewhere)
            || list("preferredDuringSchedulingIgnoredDuringExecution")
                .any(|weighted| is_elsewhere(&weighted["podAffinityTerm"]))
    })
}
