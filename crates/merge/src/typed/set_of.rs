use std::collections::BTreeMap;

use serde_json::Value;

use super::{Kind, ListKind, MapKind, Type, items::element_of};
use crate::fields::{FieldSet, PathElement};

/// The fields a value has: every leaf, every item of a list, every key of a map, and what is empty.
///
/// Structs are not in the set themselves, only what they hold: nobody owns `.spec` for having set
/// `.spec.replicas`.
pub fn set_of<T: Type>(value: &Value, ty: &T) -> FieldSet {
    walk(value, ty).1
}

/// Whether the value is a member itself, and what is below it.
fn walk<T: Type>(value: &Value, ty: &T) -> (bool, FieldSet) {
    let kinds = ty.kinds();
    match kinds.kind_of(value) {
        None => (false, FieldSet::new()),
        Some(Kind::Scalar) => (true, FieldSet::new()),
        Some(Kind::Map) if kinds.map == Some(MapKind::Atomic) => (true, FieldSet::new()),
        Some(Kind::Map) => (false, fields(value, ty)),
        Some(Kind::List) => match kinds.list {
            None | Some(ListKind::Atomic) => (true, FieldSet::new()),
            Some(list) => (false, items(value, ty, list)),
        },
    }
}

fn fields<T: Type>(value: &Value, ty: &T) -> FieldSet {
    let fields = value.as_object().into_iter().flatten();
    FieldSet::from_first_level(fields.filter_map(|(name, value)| {
        let declared = ty.field(name);
        let is_key = declared.is_none();
        let (member, below) = walk(value, &declared.or_else(|| ty.values())?);
        let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        Some((PathElement::field(name), member || is_key || empty, below))
    }))
}

fn items<T: Type>(value: &Value, ty: &T, list: ListKind<'_>) -> FieldSet {
    let (Some(items), Some(item_type)) = (value.as_array(), ty.items()) else { return FieldSet::new() };
    let mut seen: BTreeMap<PathElement, FieldSet> = BTreeMap::new();
    for item in items {
        let Ok(element) = element_of(ty, list, item) else { continue };
        // Several items of one identity are owned together, as if they were one atomic item.
        seen.entry(element)
            .and_modify(|below| *below = FieldSet::new())
            .or_insert_with(|| walk(item, &item_type).1);
    }
    FieldSet::from_first_level(seen.into_iter().map(|(element, below)| (element, true, below)))
}
