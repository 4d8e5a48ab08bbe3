use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Kind, ListKind, Scalar, Type, ValidationErrors, items::element_of};
use crate::{fields::PathElement, go};

/// Whether a list may hold several items with one identity. Stored objects may, applied ones may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// They may.
    Allowed,
    /// They may not.
    Refused,
}

/// Checks that a value has the types of its schema and no field that the schema does not know.
pub fn validate<T: Type>(value: &Value, ty: &T, duplicates: Duplicates) -> Result<(), ValidationErrors> {
    walk(value, ty, duplicates).into_result()
}

fn walk<T: Type>(value: &Value, ty: &T, duplicates: Duplicates) -> ValidationErrors {
    let kinds = ty.kinds();
    match (kinds.kind_of(value), value) {
        (None, _) => ValidationErrors::no_type(),
        (_, Value::Null) => ValidationErrors::default(),
        (Some(Kind::Map), Value::Object(fields)) => walk_map(fields, ty, duplicates),
        (Some(Kind::Map), other) => ValidationErrors::one(format!("expected map, got {}", boxed(other))),
        (Some(Kind::List), Value::Array(items)) => {
            walk_list(items, ty, kinds.list.unwrap_or(ListKind::Atomic), duplicates)
        }
        (Some(Kind::List), other) => ValidationErrors::one(format!("expected list, got {}", boxed(other))),
        (Some(Kind::Scalar), other) => walk_scalar(other, kinds.scalar.unwrap_or(Scalar::Untyped)),
    }
}

/// How upstream prints the wrapper around a value.
fn boxed(value: &Value) -> String {
    format!("&{{{}}}", go::plain(value))
}

fn walk_scalar(value: &Value, scalar: Scalar) -> ValidationErrors {
    let fits = match scalar {
        Scalar::Numeric => value.is_number(),
        Scalar::String => value.is_string(),
        Scalar::Boolean => value.is_boolean(),
        Scalar::Untyped => !value.is_object() && !value.is_array(),
    };
    if fits { ValidationErrors::default() } else { ValidationErrors::one(misfit(value, scalar)) }
}

fn misfit(value: &Value, scalar: Scalar) -> String {
    match scalar {
        Scalar::Numeric => format!("expected numeric (int or float), got {}", go::type_name(value)),
        Scalar::String => {
            format!("expected string, got &value.valueUnstructured{{Value:{}}}", go::syntax(value))
        }
        Scalar::Boolean => format!("expected boolean, got {}", boxed(value)),
        Scalar::Untyped => format!("expected any scalar, got {}", boxed(value)),
    }
}

fn walk_map<T: Type>(fields: &Map<String, Value>, ty: &T, duplicates: Duplicates) -> ValidationErrors {
    let mut errors = ValidationErrors::default();
    for (name, value) in fields {
        let Some(field) = super::field_type(ty, name) else {
            errors
                .append(ValidationErrors::one("field not declared in schema").below(format_args!(".{name}")));
            return errors;
        };
        let below = walk(value, &field, duplicates);
        if !below.is_empty() {
            errors.append(below.below(format_args!(".{name}")));
        }
    }
    errors
}

fn walk_list<T: Type>(
    items: &[Value],
    ty: &T,
    list: ListKind<'_>,
    duplicates: Duplicates,
) -> ValidationErrors {
    let Some(item_type) = ty.items() else { return ValidationErrors::no_type() };
    let mut errors = ValidationErrors::default();
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let below = walk(item, &item_type, duplicates);
        if list == ListKind::Atomic {
            errors.append(below.below(format_args!("[{index}]")));
            continue;
        }
        let element = match element_of(ty, list, item) {
            Ok(element) => element,
            Err(why) => {
                errors.append(ValidationErrors::one(format!("element {index}: {why}")));
                return errors;
            }
        };
        if duplicates == Duplicates::Refused && seen.contains(&element) {
            errors.append(duplicate(&element));
        }
        errors.append(below.below(&element));
        seen.insert(element);
    }
    errors
}

pub(super) fn duplicate(element: &PathElement) -> ValidationErrors {
    ValidationErrors::one(format!("duplicate entries for key {element}"))
}
