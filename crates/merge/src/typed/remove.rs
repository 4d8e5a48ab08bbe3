use serde_json::{Map, Value};

use super::{Kind, ListKind, MapKind, Type, items::element_of};
use crate::fields::{FieldSet, PathElement};

/// The value without the items and fields of a set; `None` if nothing is left.
///
/// A value from which everything was cut goes away too: upstream leaves a null there, which its structs lose.
pub fn remove<T: Type>(value: &Value, set: &FieldSet, ty: &T) -> Option<Value> {
    let kinds = ty.kinds();
    match (kinds.kind_of(value)?, value) {
        (Kind::Scalar, value) => Some(value.clone()),
        (Kind::Map, Value::Object(fields)) if kinds.map != Some(MapKind::Atomic) => {
            cut_fields(fields, set, ty)
        }
        (Kind::List, Value::Array(items)) => match kinds.list? {
            ListKind::Atomic => None,
            list => cut_items(items, set, ty, list),
        },
        (Kind::Map | Kind::List, _) => None,
    }
}

fn cut_fields<T: Type>(fields: &Map<String, Value>, set: &FieldSet, ty: &T) -> Option<Value> {
    let kept = fields.iter().filter_map(|(name, value)| {
        let kept = cut(&PathElement::field(name), value, set, super::field_type(ty, name))?;
        Some((name.clone(), kept))
    });
    let kept: Map<String, Value> = kept.collect();
    (!kept.is_empty()).then_some(Value::Object(kept))
}

fn cut_items<T: Type>(items: &[Value], set: &FieldSet, ty: &T, list: ListKind<'_>) -> Option<Value> {
    let item_type = ty.items();
    let kept = items.iter().filter_map(|item| match element_of(ty, list, item) {
        Ok(element) => cut(&element, item, set, item_type.clone()),
        Err(_) => Some(item.clone()),
    });
    let kept: Vec<Value> = kept.collect();
    (!kept.is_empty()).then_some(Value::Array(kept))
}

fn cut<T: Type>(element: &PathElement, value: &Value, set: &FieldSet, ty: Option<T>) -> Option<Value> {
    if set.has(element) {
        return None;
    }
    match (set.below(element), ty) {
        (Some(below), Some(ty)) => remove(value, below, &ty),
        _ => Some(value.clone()),
    }
}
