//! How many pods there should be.

mod metrics;

use jiff::Timestamp;

use crate::column::{AGE, NAME};
use crate::fields::Fields;
use crate::format::age;
use crate::printer::BuiltIn;
use crate::{Column, Printer, Row};

pub(super) fn printer(version: &str, kind: &str) -> Option<&'static dyn Printer> {
    match (version, kind) {
        ("v1", "HorizontalPodAutoscaler") => Some(&AUTOSCALER_V1),
        (_, "HorizontalPodAutoscaler") => Some(&AUTOSCALER),
        (_, "Scale") => Some(&SCALE),
        _ => None,
    }
}

static AUTOSCALER_V1: BuiltIn = BuiltIn {
    columns: AUTOSCALER_COLUMNS,
    print: |object, now| autoscaler(object, metrics::targets_v1(object), now),
};

static AUTOSCALER: BuiltIn = BuiltIn {
    columns: AUTOSCALER_COLUMNS,
    print: |object, now| autoscaler(object, metrics::targets(object), now),
};

static AUTOSCALER_COLUMNS: &[Column] = &[
    NAME,
    Column::string("Reference", "Object that is scaled."),
    Column::string("Targets", "Current and desired value of the first few metrics."),
    Column::string("MinPods", "Least number of pods."),
    Column::string("MaxPods", "Greatest number of pods."),
    Column::string("Replicas", "Number of pods."),
    AGE,
];

fn autoscaler(object: Fields<'_>, targets: String, now: Timestamp) -> Row {
    let spec = object.at("spec");
    let reference = spec.at("scaleTargetRef");
    row![
        object.name(),
        format!("{}/{}", reference.text("kind"), reference.text("name")),
        targets,
        spec.optional_int("minReplicas").unwrap_or(1).to_string(),
        spec.int("maxReplicas"),
        object.at("status").int("currentReplicas"),
        age(object, now),
    ]
}

/// Upstream does not mark the first column as the object's name.
static SCALE: BuiltIn = BuiltIn {
    columns: &[
        Column::string("Name", "Name of the object."),
        Column::integer("Desired", "Pods that should exist."),
        Column::integer("Available", "Pods that exist."),
        AGE,
    ],
    print: scale,
};

fn scale(object: Fields<'_>, now: Timestamp) -> Row {
    row![
        object.name(),
        object.at("spec").int("replicas"),
        object.at("status").int("replicas"),
        age(object, now),
    ]
}
