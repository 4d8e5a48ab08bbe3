//! Objects in, cells out.

mod arbitrary;

use jiff::Timestamp;
use serde_json::Value;

use super::printer;
use crate::Row;

/// Two days and five hours after most objects here were created.
fn now() -> Timestamp {
    "2026-01-03T05:00:00Z".parse().expect("a time")
}

fn row(group: &str, version: &str, kind: &str, object: &Value) -> Row {
    let object = object.as_object().expect("an object");
    printer(group, version, kind).row(object, now())
}
