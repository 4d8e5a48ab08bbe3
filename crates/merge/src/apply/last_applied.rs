//! The way from client-side to server-side apply for `kubectl`: what its last client-side apply set may be
//! taken without force, and its annotation is kept true.

use serde_json::Value;

use super::{
    conflict::Conflicts,
    field_manager::{ApplyError, ApplyRequest, FieldManager},
    object,
    versions::Versions,
};
use crate::{
    fields::FieldSet,
    go,
    typed::{Duplicates, compare, set_of},
};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// All annotations of an object together, keys and values.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Only this manager is meant; any other name opts out.
const MANAGER: &str = "kubectl";

/// Returns the conflicts as an error unless all are explained by the annotation.
pub(super) fn resolve<V: Versions>(
    manager: &FieldManager<V>,
    live: &Value,
    request: ApplyRequest<'_>,
    conflicts: Conflicts,
) -> Result<(), ApplyError> {
    let allowed = (request.manager == MANAGER).then(|| allowed(manager, live)).flatten();
    let Some(allowed) = allowed else { return Err(ApplyError::Conflicts(conflicts)) };
    let left: Vec<_> =
        conflicts.0.into_iter().filter(|conflict| !allowed.contains(&conflict.path.0)).collect();
    if left.is_empty() { Ok(()) } else { Err(ApplyError::Conflicts(Conflicts(left))) }
}

/// What the last client-side apply set and the live object still has as it was set.
fn allowed<V: Versions>(manager: &FieldManager<V>, live: &Value) -> Option<FieldSet> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    if last.get("apiVersion") != live.get("apiVersion") {
        return None;
    }
    let last = manager.typed("convert last applied", "to typed", &last, Duplicates::Refused).ok()?;
    let difference = compare(&last.object, live, &last.ty).ok()?;
    let applied = set_of(&last.object, &last.ty);
    Some(applied.difference(&difference.changed()).difference(&difference.removed))
}

fn annotation(object: &Value) -> Option<&str> {
    let annotation = object::metadata(object, "annotations")?.get(ANNOTATION)?.as_str();
    annotation.filter(|annotation| !annotation.is_empty())
}

/// Brings the annotation up to date if there is one.
pub(super) fn refresh(object: &mut Value, request: ApplyRequest<'_>) {
    if request.manager != MANAGER || annotation(object).is_none() {
        return;
    }
    let mut config = request.config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return;
    };
    let encoded = format!("{}\n", go::json(&config));
    annotations.insert(ANNOTATION.to_owned(), encoded.into());
    let len = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    if annotations.iter().map(len).sum::<usize>() > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}
