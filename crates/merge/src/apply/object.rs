//! The few fields of metadata that ownership needs.

use std::borrow::Cow;

use serde_json::{Map, Value};

pub(super) fn metadata<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(field)
}

pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    metadata(object, field).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn managed_fields(object: &Value) -> &Value {
    metadata(object, "managedFields").unwrap_or(&Value::Null)
}

pub(super) fn without_managed_fields(mut object: Value) -> Value {
    set_managed_fields(&mut object, None);
    object
}

/// The same without a copy of an object that has none.
pub(super) fn cow_without_managed_fields(object: &Value) -> Cow<'_, Value> {
    match metadata(object, "managedFields") {
        None => Cow::Borrowed(object),
        Some(_) => Cow::Owned(without_managed_fields(object.clone())),
    }
}

/// Sets or removes managedFields. An object without metadata gets some only if there is something to set.
pub(super) fn set_managed_fields(object: &mut Value, entries: Option<Value>) {
    let Some(object) = object.as_object_mut() else { return };
    match (object.get_mut("metadata").and_then(Value::as_object_mut), entries) {
        (Some(metadata), Some(entries)) => drop(metadata.insert("managedFields".to_owned(), entries)),
        (Some(metadata), None) => drop(metadata.remove("managedFields")),
        (None, Some(entries)) => {
            let metadata = Map::from_iter([("managedFields".to_owned(), entries)]);
            object.insert("metadata".to_owned(), Value::Object(metadata));
        }
        (None, None) => {}
    }
}
