//! JSON to values, typed by its declaration.

use std::sync::Arc;

use serde_json::{Number, Value};

use super::{List, MapValue, Text, Val};
use crate::decl::{self, Decl, DeclKind, ListSemantics};
use crate::error::EvalError;
use crate::library::{base64, time};
use crate::types::Type;

static ATOMIC: ListSemantics = ListSemantics::Atomic;

/// The value of a part of an object. Lists and maps stay as they are until something is read from them.
pub(crate) fn from_json<'a>(value: &'a Value, decl: &'a Decl) -> Result<Val<'a>, EvalError> {
    match (value, &decl.kind) {
        (Value::Null, _) => Ok(Val::Null),
        (_, DeclKind::Optional(inner)) => from_json(value, inner).map(Val::some),
        (Value::Array(values), DeclKind::List(element, semantics)) => {
            Ok(Val::List(List::Json(values, element, semantics)))
        }
        (Value::Object(map), DeclKind::Map(value)) => Ok(Val::Map(MapValue::Json(map, value))),
        (Value::Object(map), DeclKind::Object(object)) => Ok(Val::Map(MapValue::Object(map, object))),
        (Value::Number(number), DeclKind::Simple(Type::Double)) => {
            Ok(Val::Double(number.as_f64().unwrap_or(0.0)))
        }
        (Value::Number(number), DeclKind::Simple(Type::Uint)) => Ok(Val::Uint(number.as_u64().unwrap_or(0))),
        (Value::String(text), DeclKind::Simple(simple)) => from_text(text, simple),
        (_, DeclKind::Simple(_)) => Ok(dynamic(value)),
        _ => Err(EvalError::new(format!("invalid data, expected {}", decl.to_type()))),
    }
}

fn from_text<'a>(text: &'a str, simple: &Type) -> Result<Val<'a>, EvalError> {
    match simple {
        Type::Bytes => match base64::decode(text) {
            Some(bytes) => Ok(Val::Bytes(Arc::from(bytes))),
            None => Err(EvalError::new(format!("failed to base64 decode {text}"))),
        },
        Type::Timestamp => time::parse_date_or_timestamp(text)
            .map(Val::Timestamp)
            .ok_or_else(|| EvalError::new(format!("Invalid date format, expected RFC3339: {text}"))),
        Type::Duration => time::parse_duration(text)
            .map(Val::Duration)
            .ok_or_else(|| EvalError::new(format!("Invalid duration: {text}"))),
        _ => Ok(Val::String(Text::Borrowed(text))),
    }
}

fn dynamic(value: &Value) -> Val<'_> {
    match value {
        Value::Null => Val::Null,
        Value::Bool(value) => Val::Bool(*value),
        Value::Number(number) => from_number(number),
        Value::String(text) => Val::String(Text::Borrowed(text)),
        Value::Array(values) => Val::List(List::Json(values, decl::dynamic(), &ATOMIC)),
        Value::Object(map) => Val::Map(MapValue::Json(map, decl::dynamic())),
    }
}

fn from_number<'a>(number: &Number) -> Val<'a> {
    match number.as_i64() {
        Some(value) => Val::Int(value),
        None => Val::Double(number.as_f64().unwrap_or(0.0)),
    }
}
