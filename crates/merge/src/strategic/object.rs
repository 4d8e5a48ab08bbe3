//! Merging objects field by field.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    DELETE_FROM_PRIMITIVE_LIST, DIRECTIVE, Fields, PatchField, PatchSchema, PatchStrategy, RETAIN_KEYS,
    Result, SET_ELEMENT_ORDER, StrategicMergeError, list, order,
};
use crate::go;

pub(super) fn merge<S: PatchSchema>(mut live: Fields, mut patch: Fields, schema: &S) -> Result<Fields> {
    if let Some(directive) = patch.get(DIRECTIVE).cloned() {
        return replace_or_delete(directive, patch);
    }
    retain_keys(&mut live, &mut patch)?;
    order::set_element_orders(&mut live, &mut patch, schema)?;
    for (key, change) in patch {
        match directive_target(&key, DELETE_FROM_PRIMITIVE_LIST) {
            Some(Some(target)) => delete_from_primitive_list(&mut live, target, change, schema)?,
            Some(None) => return Err(StrategicMergeError::BadPrimitiveList),
            None => merge_field(&mut live, key, change, schema)?,
        }
    }
    Ok(live)
}

fn replace_or_delete(directive: Value, mut patch: Fields) -> Result<Fields> {
    match directive.as_str() {
        Some("replace") => {
            patch.remove(DIRECTIVE);
            Ok(patch)
        }
        Some("delete") => Ok(Fields::new()),
        _ => Err(StrategicMergeError::unknown_directive(directive, patch)),
    }
}

/// The field a directive such as `$setElementOrder/ports` speaks of: `Some(None)` if it names none.
pub(super) fn directive_target<'a>(key: &'a str, prefix: &str) -> Option<Option<&'a str>> {
    key.strip_prefix(prefix).map(|rest| rest.strip_prefix('/'))
}

fn retain_keys(live: &mut Fields, patch: &mut Fields) -> Result<()> {
    let retained = match patch.remove(RETAIN_KEYS) {
        None => return Ok(()),
        Some(Value::Array(keys)) => keys,
        Some(_) => return Err(StrategicMergeError::BadRetainKeys),
    };
    let retained: BTreeSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let is_field = |(key, change): &(&String, &Value)| {
        !change.is_null()
            && !key.starts_with(DELETE_FROM_PRIMITIVE_LIST)
            && !key.starts_with(SET_ELEMENT_ORDER)
    };
    if !patch.iter().filter(is_field).all(|(key, _)| retained.contains(key.as_str())) {
        return Err(StrategicMergeError::BadRetainKeys);
    }
    live.retain(|key, _| retained.contains(key.as_str()));
    Ok(())
}

fn delete_from_primitive_list<S: PatchSchema>(
    live: &mut Fields,
    key: &str,
    change: Value,
    schema: &S,
) -> Result<()> {
    if change.is_null() {
        live.remove(key);
        return Ok(());
    }
    // A directive that does not meet a list has nothing to delete from.
    if let (Some(Value::Array(current)), Value::Array(change)) = (live.get_mut(key), change) {
        field(schema, key)?;
        *current = list::delete(std::mem::take(current), &change)?;
    }
    Ok(())
}

fn merge_field<S: PatchSchema>(live: &mut Fields, key: String, change: Value, schema: &S) -> Result<()> {
    if change.is_null() {
        live.remove(&key);
        return Ok(());
    }
    let merged = match (live.remove(&key), change) {
        (Some(Value::Object(current)), Value::Object(change)) => {
            let field = field(schema, &key)?;
            Some(Value::Object(match field.strategy {
                PatchStrategy::Replace => change,
                PatchStrategy::Default | PatchStrategy::Merge => merge(current, change, &field.schema)?,
            }))
        }
        (Some(Value::Array(current)), Value::Array(change)) => {
            Some(Value::Array(list::merge(current, change, &field(schema, &key)?)?))
        }
        (Some(current), change) if go::type_name(&current) == go::type_name(&change) => Some(change),
        (_, change) => take(change),
    };
    if let Some(merged) = merged {
        live.insert(key, merged);
    }
    Ok(())
}

pub(super) fn field<S: PatchSchema>(schema: &S, name: &str) -> Result<PatchField<S>> {
    let unknown =
        || StrategicMergeError::UnknownField { name: schema.name().to_owned(), field: name.to_owned() };
    schema.field(name).ok_or_else(unknown)
}

/// A value of the patch that meets nothing in the live object: without nulls and directives. Upstream leaves
/// the directives other than `$patch` in and loses them when it decodes into a struct; dynamic objects would
/// keep them.
pub(super) fn take(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(key, value)| !value.is_null() && !is_directive(key));
            Some(kept.filter_map(|(key, value)| Some((key, take(value)?))).collect())
        }
        Value::Array(items) => Some(items.into_iter().filter_map(take).collect()),
        scalar => Some(scalar),
    }
}

fn is_directive(key: &str) -> bool {
    let parallel = [DELETE_FROM_PRIMITIVE_LIST, SET_ELEMENT_ORDER];
    key == RETAIN_KEYS || parallel.iter().any(|prefix| directive_target(key, prefix).is_some())
}
