//! HorizontalPodAutoscaler: v1 has one target, the utilization of CPU. What else v2 has it keeps in annotations.

mod metrics;
mod shapes;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use self::metrics::{SPEC, STATUS};
use crate::{
    Object,
    go_json::{Kind, Style, marshal, unmarshal},
    member, put, take,
};

const METRIC_SPECS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const METRIC_STATUSES: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// All annotations that only keep fields of other versions. No others than a conversion wrote may stay.
const ANNOTATIONS: [&str; 6] = [
    METRIC_SPECS,
    METRIC_STATUSES,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// The percentage of CPU that is meant where no metric is given.
const DEFAULT_UTILIZATION: i32 = 80;

/// Makes a v2 one of v1.
pub(crate) fn to_v1(object: &mut Object) {
    take_annotations(object);
    let mut kept: Vec<(&str, String)> = Vec::new();
    if let Some(spec) = member(object, "spec") {
        let mut metrics = take_list(spec, "metrics");
        let utilization = metrics.iter().find_map(cpu_utilization).cloned();
        put(spec, "targetCPUUtilizationPercentage", utilization);
        metrics.retain(|metric| cpu_utilization(metric).is_none());
        keep(&mut kept, METRIC_SPECS, metrics, |metric| metrics::to_v1(metric, &SPEC), &shapes::METRIC_SPECS);
        if let Some(behavior) = take(spec, "behavior") {
            kept.push((BEHAVIOR, marshal(&behavior, &shapes::BEHAVIOR, Style::Untagged)));
        }
    }
    if let Some(status) = member(object, "status") {
        let seen = take_list(status, "currentMetrics");
        let utilization = seen.iter().rev().find_map(current_cpu_utilization).cloned();
        put(status, "currentCPUUtilizationPercentage", utilization);
        let to_v1 = |metric: &mut Object| metrics::to_v1(metric, &STATUS);
        keep(&mut kept, METRIC_STATUSES, seen, to_v1, &shapes::METRIC_STATUSES);
        let conditions = take_list(status, "conditions");
        keep(&mut kept, CONDITIONS, conditions, |_| (), &shapes::CONDITIONS);
    }
    if !kept.is_empty() {
        let annotations = entry(entry(object, "metadata"), "annotations");
        annotations.extend(kept.into_iter().map(|(name, text)| (name.to_owned(), text.into())));
    }
}

/// Keeps a list in an annotation, unless it is empty.
fn keep(
    kept: &mut Vec<(&'static str, String)>,
    annotation: &'static str,
    mut list: Vec<Value>,
    change: impl Fn(&mut Object),
    kind: &Kind,
) {
    list.iter_mut().filter_map(Value::as_object_mut).for_each(change);
    if !list.is_empty() {
        kept.push((annotation, marshal(&list.into(), kind, Style::Api)));
    }
}

/// Makes a v1 one of v2.
pub(crate) fn to_v2(object: &mut Object) {
    let annotations = take_annotations(object);
    let kept = |name: &str, kind: &Kind| {
        annotations.get(name).and_then(Value::as_str).and_then(|text| unmarshal(text, kind))
    };
    let list = |value: Option<Value>| match value {
        Some(Value::Array(list)) => Some(list),
        _ => None,
    };
    let spec = entry(object, "spec");
    let mut metrics = list(kept(METRIC_SPECS, &shapes::METRIC_SPECS)).unwrap_or_default();
    for metric in metrics.iter_mut().filter_map(Value::as_object_mut) {
        metrics::to_v2(metric, &SPEC);
        metrics::set_target_type(metric);
    }
    metrics.extend(take(spec, "targetCPUUtilizationPercentage").as_ref().map(cpu_metric));
    if metrics.is_empty() {
        metrics.push(cpu_metric(&DEFAULT_UTILIZATION.into()));
    }
    spec.insert("metrics".to_owned(), metrics.into());
    let behavior = kept(BEHAVIOR, &shapes::BEHAVIOR);
    put(
        spec,
        "behavior",
        behavior.filter(|behavior| behavior.as_object().is_some_and(|rules| !rules.is_empty())),
    );
    let status = entry(object, "status");
    let seen = take(status, "currentCPUUtilizationPercentage");
    let seen = seen.map(|utilization| vec![current_cpu_metric(&utilization)]);
    let known = list(kept(METRIC_STATUSES, &shapes::METRIC_STATUSES)).map(|mut metrics| {
        let statuses = metrics.iter_mut().filter_map(Value::as_object_mut);
        statuses.for_each(|metric| metrics::to_v2(metric, &STATUS));
        metrics
    });
    put(status, "currentMetrics", known.or(seen).map(Value::Array));
    put(status, "conditions", kept(CONDITIONS, &shapes::CONDITIONS));
}

/// Leaves v2 without annotations that keep its fields in other versions.
pub(crate) fn drop_annotations(object: &mut Object) {
    take_annotations(object);
}

/// The annotations that keep fields of other versions, taken out.
fn take_annotations(object: &mut Object) -> Map<String, Value> {
    let Some(metadata) = member(object, "metadata") else { return Map::new() };
    let Some(annotations) = member(metadata, "annotations") else { return Map::new() };
    let taken = ANNOTATIONS.iter().filter_map(|name| annotations.remove_entry(*name)).collect();
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    taken
}

fn take_list(object: &mut Object, name: &str) -> Vec<Value> {
    match object.remove(name) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// The member of this name, made if it is not there. What is no object is not the kind's, and is replaced.
fn entry<'a>(object: &'a mut Object, name: &str) -> &'a mut Object {
    let member = object.entry(name).or_insert(Value::Null);
    if !member.is_object() {
        *member = Value::Object(Map::new());
    }
    member.as_object_mut().expect("it is one, or was made one")
}

/// The utilization that a metric wants of CPU, if that is what it is about.
fn cpu_utilization(metric: &Value) -> Option<&Value> {
    cpu(metric)?.get("target")?.get("averageUtilization").filter(|value| !value.is_null())
}

/// The utilization of CPU that a metric saw.
fn current_cpu_utilization(metric: &Value) -> Option<&Value> {
    cpu(metric)?.get("current")?.get("averageUtilization").filter(|value| !value.is_null())
}

fn cpu(metric: &Value) -> Option<&Value> {
    let resource = metric.get("resource").filter(|_| metric["type"] == "Resource")?;
    (resource["name"] == "cpu").then_some(resource)
}

fn cpu_metric(utilization: &Value) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": utilization});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

fn current_cpu_metric(utilization: &Value) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": utilization}}})
}
