//! Metrics: v1 has in one level what v2 has in two.

use concord_meta::Quantity;
use serde_json::{Map, Value};

use crate::{Object, member, put, take};

/// A source of metrics, and its fields by their names in v1 and in v2.
type Source = (&'static str, &'static [(&'static str, &'static str)]);

/// What is wanted of metrics.
pub(super) const SPEC: [Source; 5] = [
    (
        "object",
        &[
            ("target", "describedObject"),
            ("metricName", "metric.name"),
            ("targetValue", "target.value"),
            ("selector", "metric.selector"),
            ("averageValue", "target.averageValue"),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "metric.name"),
            ("targetAverageValue", "target.averageValue"),
            ("selector", "metric.selector"),
        ],
    ),
    (
        "resource",
        &[
            ("name", "name"),
            ("targetAverageUtilization", "target.averageUtilization"),
            ("targetAverageValue", "target.averageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name"),
            ("targetAverageUtilization", "target.averageUtilization"),
            ("targetAverageValue", "target.averageValue"),
            ("container", "container"),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "metric.name"),
            ("metricSelector", "metric.selector"),
            ("targetValue", "target.value"),
            ("targetAverageValue", "target.averageValue"),
        ],
    ),
];

/// What metrics were seen.
pub(super) const STATUS: [Source; 5] = [
    (
        "object",
        &[
            ("target", "describedObject"),
            ("metricName", "metric.name"),
            ("currentValue", "current.value"),
            ("selector", "metric.selector"),
            ("averageValue", "current.averageValue"),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "metric.name"),
            ("currentAverageValue", "current.averageValue"),
            ("selector", "metric.selector"),
        ],
    ),
    (
        "resource",
        &[
            ("name", "name"),
            ("currentAverageUtilization", "current.averageUtilization"),
            ("currentAverageValue", "current.averageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name"),
            ("currentAverageUtilization", "current.averageUtilization"),
            ("currentAverageValue", "current.averageValue"),
            ("container", "container"),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "metric.name"),
            ("metricSelector", "metric.selector"),
            ("currentValue", "current.value"),
            ("currentAverageValue", "current.averageValue"),
        ],
    ),
];

/// A metric of v2 as v1 has it.
pub(super) fn to_v1(metric: &mut Object, sources: &[Source]) {
    for (source, fields) in sources {
        let Some(old) = member(metric, source).map(std::mem::take) else { continue };
        let mut new = Object::new();
        for (v1, v2) in *fields {
            put(&mut new, v1, at(&old, v2).filter(|value| !value.is_null()).cloned());
        }
        metric.insert((*source).to_owned(), new.into());
    }
}

/// A metric of v1 as v2 has it.
pub(super) fn to_v2(metric: &mut Object, sources: &[Source]) {
    for (source, fields) in sources {
        let Some(mut old) = member(metric, source).map(std::mem::take) else { continue };
        let mut new = Object::new();
        for (v1, v2) in *fields {
            if let Some(value) = take(&mut old, v1) {
                insert_at(&mut new, v2, value);
            }
        }
        metric.insert((*source).to_owned(), new.into());
    }
}

/// Says of the targets of a metric which of their values counts. v1 does not say it: the fields that are given do.
pub(super) fn set_target_type(metric: &mut Object) {
    for (source, _) in SPEC {
        let Some(metric_source) = member(metric, source) else { continue };
        let target = metric_source.entry("target").or_insert_with(|| Value::Object(Map::new()));
        let Some(target) = target.as_object_mut() else { continue };
        let has = |name: &str| target.contains_key(name);
        let kind = match source {
            "object" if !has("averageValue") => "Value",
            "external" if has("value") => "Value",
            "resource" | "containerResource" if has("averageUtilization") => "Utilization",
            _ => "AverageValue",
        };
        // v1 has a value there in any case. Zero beside an average means that there was none.
        if source == "object" && has("averageValue") && target.get("value").is_some_and(is_zero) {
            target.remove("value");
        }
        target.insert("type".to_owned(), kind.into());
    }
}

fn is_zero(quantity: &Value) -> bool {
    quantity
        .as_str()
        .and_then(|text| text.parse::<Quantity>().ok())
        .is_some_and(|quantity| quantity.is_zero())
}

fn at<'a>(object: &'a Object, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        None => object.get(path),
        Some((outer, inner)) => object.get(outer)?.get(inner),
    }
}

fn insert_at(object: &mut Object, path: &str, value: Value) {
    let Some((outer, inner)) = path.split_once('.') else {
        object.insert(path.to_owned(), value);
        return;
    };
    let outer = object.entry(outer).or_insert_with(|| Value::Object(Map::new()));
    if let Some(outer) = outer.as_object_mut() {
        outer.insert(inner.to_owned(), value);
    }
}
