//! What identifies the items of lists.

use serde_json::Value;

use super::{ListKind, Type};
use crate::{fields::PathElement, go};

/// The path element of an item of a set or a map list; `ty` is the type of the list.
pub(super) fn element_of<T: Type>(ty: &T, list: ListKind<'_>, item: &Value) -> Result<PathElement, String> {
    match list {
        ListKind::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        ListKind::Set => set_item(item),
        ListKind::Map(keys) => map_item(ty, keys, item),
    }
}

fn set_item(item: &Value) -> Result<PathElement, String> {
    let why = match item {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        scalar => return Ok(PathElement::Value(scalar.clone())),
    };
    Err(why.to_owned())
}

/// Key fields that are absent count with their default; without one they are left out of the key, which then
/// names another item than any value would.
fn map_item<T: Type>(ty: &T, keys: &[String], item: &Value) -> Result<PathElement, String> {
    let Some(fields) = item.as_object() else {
        let what = if item.is_null() { "a null element" } else { "non-map elements" };
        return Err(format!("associative list with keys may not have {what}"));
    };
    let item_type = ty.items();
    let default = |key: &str| item_type.as_ref().and_then(|ty| ty.default_of(key));
    let values = keys.iter().filter_map(|key| {
        let value = fields.get(key).cloned().or_else(|| default(key))?;
        Some((key.clone(), value))
    });
    let values: Vec<_> = values.collect();
    if values.is_empty() {
        let keys: Vec<String> = keys.iter().map(|key| go::quote(key)).collect();
        let keys = keys.join(" ");
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{keys}] (and doesn't have default \
             values for any key fields)"
        ));
    }
    Ok(PathElement::key(values))
}
