//! Values out of generic maps.

use serde_json::Value;

use super::{Result, scalar::by_hand};
use crate::{
    base64,
    mismatch::Mismatch,
    types::{Scalar, Shape},
};

/// An object or list that is none.
pub(super) fn cannot_restore(shape: &Shape, value: &Value) -> Mismatch {
    let kind = kind(value);
    Mismatch::Unstructured(match shape {
        Shape::Struct { .. } => format!("cannot restore struct from: {kind}"),
        Shape::Map { .. } => format!("cannot restore map from {kind}"),
        _ => format!("cannot restore slice from {kind}"),
    })
}

/// Go's kind of a value in a generic map.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

pub(super) fn scalar(scalar: Scalar, go: &str, value: &mut Value) -> Result {
    match (scalar, &mut *value) {
        (Scalar::String, Value::String(_))
        | (Scalar::Bool, Value::Bool(_))
        | (Scalar::Float64, Value::Number(_))
        | (Scalar::Raw | Scalar::FreeForm | Scalar::FieldsV1, _) => Ok(()),
        (Scalar::Int32 | Scalar::Int64, Value::Number(number)) => {
            let integer = integer(number).ok_or_else(|| cannot_convert(value, go))?;
            *value = if scalar == Scalar::Int32 { wrapped(integer).into() } else { integer.into() };
            Ok(())
        }
        // Go can make a text of an integer, but this is not meant.
        (Scalar::String, Value::Number(number)) if !number.is_f64() => Err(cannot_convert(value, go)),
        (Scalar::Bytes, _) => bytes(value),
        (Scalar::Time | Scalar::MicroTime | Scalar::Quantity | Scalar::IntOrString, _) => {
            by_hand(scalar, value)
        }
        (Scalar::String, _) => Err(unrecognized("string")),
        (Scalar::Bool, _) => Err(unrecognized("bool")),
        (Scalar::Int32, _) => Err(unrecognized("int32")),
        (Scalar::Int64, _) => Err(unrecognized("int64")),
        (Scalar::Float64, _) => Err(unrecognized("float64")),
    }
}

fn cannot_convert(value: &Value, go: &str) -> Mismatch {
    Mismatch::Unstructured(format!("cannot convert {} to {go}", kind(value)))
}

fn unrecognized(kind: &str) -> Mismatch {
    Mismatch::Unstructured(format!("unrecognized type: {kind}"))
}

/// Floats without a fraction are integers here.
fn integer(number: &serde_json::Number) -> Option<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it has no fraction, and what is too large is cut off"
    )]
    let whole = || number.as_f64().filter(|float| float.fract() == 0.0).map(|float| float as i64);
    number.as_i64().or_else(whole)
}

/// Upstream's conversion keeps the lower half of an integer that is too large.
#[expect(clippy::cast_possible_truncation, reason = "as upstream does")]
fn wrapped(integer: i64) -> i32 {
    integer as i32
}

fn bytes(value: &mut Value) -> Result {
    match value {
        Value::String(text) => match base64::canonical(text) {
            Ok(canonical) => {
                *text = canonical.unwrap_or_else(|| std::mem::take(text));
                Ok(())
            }
            Err(offset) => {
                let text = format!("error decoding from json: {}", Mismatch::Base64(offset));
                Err(Mismatch::Unstructured(text))
            }
        },
        Value::Array(items) => {
            let bytes: Option<Vec<u8>> = items.iter().map(byte).collect();
            let bytes = bytes.ok_or_else(|| unrecognized("uint8"))?;
            *value = base64::encode(&bytes).into();
            Ok(())
        }
        other => {
            let text = format!("cannot restore slice from {}", kind(other));
            Err(Mismatch::Unstructured(text))
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as upstream does")]
fn byte(item: &Value) -> Option<u8> {
    match item {
        Value::Null => Some(0),
        Value::Number(number) => integer(number).map(|integer| integer as u8),
        _ => None,
    }
}
