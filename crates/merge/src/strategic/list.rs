//! Merging lists: objects by their merge key, scalars by value.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    DIRECTIVE, Fields, PatchField, PatchSchema, PatchStrategy, Result, StrategicMergeError, identity, object,
    order,
};
use crate::go;

/// What the items of a list are. All are of one type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Items {
    Objects,
    Scalars,
}

pub(super) fn merge<S: PatchSchema>(
    live: Vec<Value>,
    patch: Vec<Value>,
    field: &PatchField<S>,
) -> Result<Vec<Value>> {
    if field.strategy != PatchStrategy::Merge {
        return Ok(patch);
    }
    if live.is_empty() && patch.is_empty() {
        return Ok(live);
    }
    match items(&live, &patch)? {
        Items::Scalars => order::arrange(union(&live, &patch), &patch, &live, None),
        Items::Objects => {
            let key = field.merge_key.as_deref().ok_or(StrategicMergeError::NoMergeKeyDeclared)?;
            let (live, patch) = obey_directives(live, patch, key)?;
            let merged = merge_objects(live.clone(), &patch, key, &field.schema)?;
            order::arrange(merged, &patch, &live, Some(key))
        }
    }
}

/// The list without the values of a `$deleteFromPrimitiveList`.
pub(super) fn delete(live: Vec<Value>, deleted: &[Value]) -> Result<Vec<Value>> {
    if live.is_empty() && deleted.is_empty() {
        return Ok(live);
    }
    if items(&live, deleted)? == Items::Objects {
        return Err(StrategicMergeError::NoMergeKeyDeclared);
    }
    let deleted: BTreeSet<String> = deleted.iter().map(identity).collect();
    Ok(live.into_iter().filter(|item| !deleted.contains(&identity(item))).collect())
}

/// The one type of all items of both lists.
pub(super) fn items(live: &[Value], patch: &[Value]) -> Result<Items> {
    let Some(first) = live.iter().chain(patch).next() else { return Err(StrategicMergeError::NoElements) };
    if first.is_array() {
        return Err(StrategicMergeError::ListOfLists);
    }
    let kind = go::type_name(first);
    if first.is_null() || live.iter().chain(patch).any(|item| go::type_name(item) != kind) {
        return Err(StrategicMergeError::MixedTypes(vec![live.into(), patch.into()]));
    }
    Ok(if first.is_object() { Items::Objects } else { Items::Scalars })
}

fn union(live: &[Value], patch: &[Value]) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    live.iter().chain(patch).filter(|item| seen.insert(identity(item))).cloned().collect()
}

/// The live items that survive the `$patch` items of the patch, and the patch without those.
fn obey_directives(live: Vec<Value>, patch: Vec<Value>, key: &str) -> Result<(Vec<Value>, Vec<Value>)> {
    let (mut kept, mut deleted, mut replace) = (Vec::new(), BTreeSet::new(), false);
    for item in patch {
        let Value::Object(fields) = item else { return Err(StrategicMergeError::not_a_map(item)) };
        match fields.get(DIRECTIVE).cloned() {
            None => kept.push(Value::Object(fields)),
            Some(Value::String(word)) if word == "delete" => {
                let Some(value) = fields.get(key) else {
                    return Err(StrategicMergeError::no_merge_key(fields, key));
                };
                deleted.insert(identity(value));
            }
            Some(Value::String(word)) if word == "replace" => replace = true,
            Some(Value::String(word)) if word == "merge" => {
                return Err(StrategicMergeError::MergeDirectiveInList);
            }
            Some(other) => return Err(StrategicMergeError::unknown_directive(other, fields)),
        }
    }
    if replace {
        return Ok((kept, Vec::new()));
    }
    let survives = |item: &Value| item.get(key).is_none_or(|value| !deleted.contains(&identity(value)));
    Ok((live.into_iter().filter(survives).collect(), kept))
}

fn merge_objects<S: PatchSchema>(
    mut merged: Vec<Value>,
    patch: &[Value],
    key: &str,
    schema: &S,
) -> Result<Vec<Value>> {
    let mut places = BTreeMap::new();
    for (place, item) in merged.iter().enumerate() {
        if let Some(value) = item.get(key) {
            places.entry(identity(value)).or_insert(place);
        }
    }
    for item in patch {
        let change = as_map(item)?;
        let identity = identity(merge_value(change, key)?);
        match places.get(&identity) {
            Some(place) => {
                let current = as_map(&merged[*place])?.clone();
                merged[*place] = Value::Object(object::merge(current, change.clone(), schema)?);
            }
            None => {
                places.insert(identity, merged.len());
                merged.push(item.clone());
            }
        }
    }
    Ok(merged)
}

pub(super) fn as_map(item: &Value) -> Result<&Fields> {
    item.as_object().ok_or_else(|| StrategicMergeError::not_a_map(item.clone()))
}

pub(super) fn merge_value<'a>(item: &'a Fields, key: &str) -> Result<&'a Value> {
    item.get(key).ok_or_else(|| StrategicMergeError::no_merge_key(item.clone(), key))
}
