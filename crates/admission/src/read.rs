//! Reading of stored configurations. They were validated when they were written; what is of a wrong type nevertheless
//! reads as absent.

use concord_meta::labels::{LabelSelector, Selector};
use concord_registry::Object;
use serde::Deserialize as _;
use serde_json::Value;

pub(crate) fn text<'a>(object: &'a Object, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn member<'a>(object: &'a Object, field: &str) -> Option<&'a Object> {
    object.get(field).and_then(Value::as_object)
}

pub(crate) fn objects<'a>(object: &'a Object, field: &str) -> impl Iterator<Item = &'a Object> {
    object.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

pub(crate) fn texts(object: &Object, field: &str) -> Vec<String> {
    let list = object.get(field).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

/// A label selector; one that is absent selects nothing, as in Go. The error is its text.
pub(crate) fn selector(object: &Object, field: &str) -> Result<Selector, String> {
    match object.get(field).filter(|value| !value.is_null()) {
        None => Ok(Selector::nothing()),
        Some(value) => {
            let selector = LabelSelector::deserialize(value).map_err(|error| error.to_string())?;
            selector.to_selector().map_err(|error| error.to_string())
        }
    }
}
