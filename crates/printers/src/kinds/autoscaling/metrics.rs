//! The metrics of a HorizontalPodAutoscaler.
//!
//! `autoscaling/v2` has a list of them. `autoscaling/v1` has one field for CPU utilization; all others
//! stand as JSON in annotations, where their fields have other names. They are shown by translating them
//! to version 2 first.

use serde_json::{Map, Value, json};

use crate::duration::UNKNOWN;
use crate::fields::Fields;
use crate::format::optional_quantity;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";

/// The target of an autoscaler without any metric.
const DEFAULT_CPU_UTILIZATION: i64 = 80;

/// How many metrics are shown.
const MAX_SHOWN: usize = 2;

/// The types of metrics and the fields that describe them.
const SOURCES: [(&str, &str); 5] = [
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
    ("Pods", "pods"),
    ("Object", "object"),
    ("External", "external"),
];

/// How Go shows a quantity that is not there.
const NIL: &str = "<nil>";

/// Current and desired value of the metrics.
pub(super) fn targets(object: Fields<'_>) -> String {
    let statuses: Vec<Fields<'_>> = object.at("status").items("currentMetrics").collect();
    let specs: Vec<Fields<'_>> = object.at("spec").items("metrics").collect();
    if specs.is_empty() {
        return join(
            &[cpu_spec(DEFAULT_CPU_UTILIZATION)].iter().map(Fields::of).collect::<Vec<_>>(),
            &statuses,
        );
    }
    join(&specs, &statuses)
}

/// [`targets`] of an autoscaler in version 1.
pub(super) fn targets_v1(object: Fields<'_>) -> String {
    let mut specs = annotated(object, METRICS, Side::Spec).unwrap_or_default();
    let target = object.at("spec").optional_int("targetCPUUtilizationPercentage");
    specs.extend(target.map(cpu_spec));
    if specs.is_empty() {
        specs.push(cpu_spec(DEFAULT_CPU_UTILIZATION));
    }
    let statuses = annotated(object, CURRENT_METRICS, Side::Status).unwrap_or_else(|| {
        let current = object.at("status").optional_int("currentCPUUtilizationPercentage");
        current.map(cpu_status).into_iter().collect()
    });
    join(
        &specs.iter().map(Fields::of).collect::<Vec<_>>(),
        &statuses.iter().map(Fields::of).collect::<Vec<_>>(),
    )
}

fn join(specs: &[Fields<'_>], statuses: &[Fields<'_>]) -> String {
    let shown = specs.iter().take(MAX_SHOWN).enumerate();
    let shown =
        shown.map(|(at, spec)| metric(*spec, statuses.get(at).copied())).collect::<Vec<_>>().join(", ");
    match specs.len() {
        ..=MAX_SHOWN => shown,
        more => format!("{shown} + {} more...", more - MAX_SHOWN),
    }
}

/// One metric; spec and status belong together by their place in the lists.
fn metric(spec: Fields<'_>, status: Option<Fields<'_>>) -> String {
    let metric_type = spec.text("type");
    let Some((_, field)) = SOURCES.into_iter().find(|(name, _)| *name == metric_type) else {
        return "<unknown type>".to_owned();
    };
    let (source, current) = (spec.at(field), status.and_then(|status| status.present(field)));
    let (target, current) = (source.at("target"), current.map(|status| status.at("current")));
    match metric_type {
        "Pods" => format!("{}/{}", or_unknown(current, "averageValue"), or_nil(target, "averageValue")),
        "Object" | "External" => value(target, current),
        _ => format!("{}: {}", source.text("name"), resource(target, current)),
    }
}

/// A metric that is not about the pods: as a whole, or divided by their number.
fn value(target: Fields<'_>, current: Option<Fields<'_>>) -> String {
    let Some(average) = optional_quantity(target, "averageValue") else {
        return format!("{}/{}", or_unknown(current, "value"), or_nil(target, "value"));
    };
    let current = current.and_then(|current| optional_quantity(current, "averageValue"));
    format!("{}/{average} (avg)", current.unwrap_or_else(|| UNKNOWN.to_owned()))
}

/// What the pods use: an amount, or a part of what they requested.
fn resource(target: Fields<'_>, current: Option<Fields<'_>>) -> String {
    if let Some(average) = optional_quantity(target, "averageValue") {
        return format!("{}/{average}", or_unknown(current, "averageValue"));
    }
    let percent = |fields: Fields<'_>| Some(format!("{}%", fields.optional_int("averageUtilization")?));
    let current = current.and_then(percent).unwrap_or_else(|| UNKNOWN.to_owned());
    format!("{current}/{}", percent(target).unwrap_or_else(|| "<auto>".to_owned()))
}

fn or_nil(fields: Fields<'_>, name: &str) -> String {
    optional_quantity(fields, name).unwrap_or_else(|| NIL.to_owned())
}

fn or_unknown(current: Option<Fields<'_>>, name: &str) -> String {
    current.map_or_else(|| UNKNOWN.to_owned(), |current| or_nil(current, name))
}

fn cpu_spec(utilization: i64) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": utilization});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

fn cpu_status(utilization: i64) -> Value {
    let current = json!({"averageUtilization": utilization});
    json!({"type": "Resource", "resource": {"name": "cpu", "current": current}})
}

/// Which of the two lists of metrics is meant.
#[derive(Clone, Copy)]
enum Side {
    Spec,
    Status,
}

/// The metrics in an annotation, in version 2; none if there are no readable ones.
fn annotated(object: Fields<'_>, annotation: &str, side: Side) -> Option<Vec<Value>> {
    let metrics: Vec<Map<String, Value>> = serde_json::from_str(object.annotation(annotation)?).ok()?;
    Some(metrics.iter().map(|metric| translated(Fields::new(metric), side)).collect())
}

fn translated(metric: Fields<'_>, side: Side) -> Value {
    let mut translated = Map::from_iter([("type".to_owned(), metric.text("type").into())]);
    for (_, field) in SOURCES {
        if let Some(source) = metric.present(field) {
            translated.insert(field.to_owned(), translated_source(source, field, side));
        }
    }
    Value::Object(translated)
}

fn translated_source(source: Fields<'_>, field: &str, side: Side) -> Value {
    let value = |(old, new): &(&str, &str)| Some(((*new).to_owned(), source.value(old)?.clone()));
    let values: Map<String, Value> = value_names(field, side).iter().filter_map(value).collect();
    let values_field = match side {
        Side::Spec => "target",
        Side::Status => "current",
    };
    json!({"name": source.text("name"), values_field: values})
}

/// What version 1 calls the values of a metric, and what version 2 does.
fn value_names(field: &str, side: Side) -> &'static [(&'static str, &'static str)] {
    match (field, side) {
        ("object", Side::Spec) => &[("targetValue", "value"), ("averageValue", "averageValue")],
        ("object", Side::Status) => &[("currentValue", "value"), ("averageValue", "averageValue")],
        (_, Side::Spec) => &[
            ("targetValue", "value"),
            ("targetAverageValue", "averageValue"),
            ("targetAverageUtilization", "averageUtilization"),
        ],
        (_, Side::Status) => &[
            ("currentValue", "value"),
            ("currentAverageValue", "averageValue"),
            ("currentAverageUtilization", "averageUtilization"),
        ],
    }
}
