//! Objects in, cells out. The cells were compared with those of a kube-apiserver 1.36.

#![allow(clippy::needless_pass_by_value, reason = "the checks are given literals")]

mod arbitrary;
mod cluster;
mod columns;
mod network;
mod pods;
mod scaling;
mod storage;
mod workloads;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::printer;
use crate::Row;

/// What every kind can have: group, version, kind.
type Kind = (&'static str, &'static str, &'static str);

/// Two days and five hours after the objects here were created.
fn now() -> Timestamp {
    "2026-01-03T05:00:00Z".parse().expect("a time")
}

/// The row of an object, which gets a name and an age.
fn row((group, version, kind): Kind, mut object: Value) -> Row {
    let metadata = &mut object["metadata"];
    metadata["name"] = "x".into();
    metadata["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    printer(group, version, kind).row(object.as_object().expect("an object"), now())
}

#[track_caller]
fn check(kind: Kind, object: Value, cells: Value) {
    assert_eq!(Value::Array(row(kind, object.clone()).cells), cells, "{object}");
}

/// One cell of an object.
fn cell(kind: Kind, column: usize, object: Value) -> Value {
    row(kind, object).cells[column].clone()
}

#[test]
fn kinds_without_a_printer_show_when_they_were_created() {
    for kind in
        [("", "v1", "LimitRange"), ("storage.k8s.io", "v1", "CSIStorageCapacity"), ("x.io", "v1", "Y")]
    {
        check(kind, json!({}), json!(["x", "2026-01-01T00:00:00Z"]));
    }
    let created = |metadata: Value| {
        let object = json!({"metadata": metadata});
        printer("", "v1", "LimitRange").row(object.as_object().expect("an object"), now()).cells[1].clone()
    };
    assert_eq!(created(json!({})), "0001-01-01T00:00:00Z");
    assert_eq!(created(json!({"creationTimestamp": "2026-01-01T01:00:00.5+01:00"})), "2026-01-01T00:00:00Z");
}
