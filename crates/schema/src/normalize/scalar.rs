//! Values without fields.

use concord_meta::Quantity;
use serde_json::{Number, Value};

use super::{Result, Walk};
use crate::{
    base64,
    mismatch::Mismatch,
    time::{self, Layout},
    types::Scalar,
};

impl Walk<'_> {
    pub(super) fn scalar(&mut self, scalar: Scalar, go: &str, value: &mut Value) -> Result {
        match (scalar, &mut *value) {
            (Scalar::String, Value::String(_))
            | (Scalar::Bool, Value::Bool(_))
            | (Scalar::Float64, Value::Number(_))
            | (Scalar::Raw | Scalar::FreeForm | Scalar::FieldsV1, _) => {}
            (Scalar::Int32 | Scalar::Int64, Value::Number(number)) => {
                if !fits(number, scalar) {
                    self.refuse(number_text(number), go);
                }
            }
            (Scalar::Bytes, Value::String(text)) => self.bytes(text),
            (Scalar::Bytes, Value::Array(items)) => {
                let bytes: Vec<u8> = items.iter().map(|item| self.byte(item)).collect();
                *value = base64::encode(&bytes).into();
            }
            (Scalar::Time | Scalar::MicroTime | Scalar::Quantity | Scalar::IntOrString, _) => {
                return by_hand(scalar, value).map_err(|mismatch| self.in_context(mismatch));
            }
            _ => self.refuse(found(value), go),
        }
        Ok(())
    }

    /// Bytes may be given as a list of numbers.
    fn byte(&mut self, item: &Value) -> u8 {
        match item {
            Value::Null => 0,
            Value::Number(number) => {
                number.as_u64().and_then(|byte| byte.try_into().ok()).unwrap_or_else(|| {
                    self.refuse(number_text(number), "uint8");
                    0
                })
            }
            other => {
                self.refuse(found(other), "uint8");
                0
            }
        }
    }

    fn bytes(&mut self, text: &mut String) {
        match base64::canonical(text) {
            Ok(None) => {}
            Ok(Some(canonical)) => *text = canonical,
            Err(offset) => {
                self.saved.get_or_insert(Mismatch::Base64(offset));
            }
        }
    }
}

/// What Go calls a value of a kind that does not fit. Numbers out of range are told with their digits: see
/// [`number_text`].
pub(super) fn found(value: &Value) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    found.to_owned()
}

/// A number that does not fit. How the client wrote it is no longer known; this is how most would.
fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() >= 1e15 => {
            format!("number {float:.0}")
        }
        _ => format!("number {number}"),
    }
}

fn fits(number: &Number, scalar: Scalar) -> bool {
    number.as_i64().is_some_and(|value| scalar == Scalar::Int64 || i32::try_from(value).is_ok())
}

/// Types with a reader of their own, which ends the reading when it fails.
pub(super) fn by_hand(scalar: Scalar, value: &mut Value) -> Result {
    match scalar {
        Scalar::Time => moment(value, Layout::Seconds),
        Scalar::MicroTime => moment(value, Layout::Micros),
        Scalar::Quantity => quantity(value),
        _ => int_or_string(value),
    }
}

/// Such a reader does not know the field it is in.
fn wrong<T>(found: String, expected: &str) -> Result<T> {
    Err(Mismatch::Value { found, expected: expected.to_owned() })
}

fn moment(value: &mut Value, layout: Layout) -> Result {
    let Value::String(text) = value else { return wrong(found(value), "string") };
    *value = time::canonical(text, layout)?.map_or(Value::Null, Value::String);
    Ok(())
}

/// Numbers are quantities too. Anything else is read as the text it has in the document, and refused.
fn quantity(value: &mut Value) -> Result {
    let quantity: Quantity = match &*value {
        Value::String(text) => text.trim().parse()?,
        other => other.to_string().parse()?,
    };
    let canonical = quantity.to_string();
    if value.as_str() != Some(&*canonical) {
        *value = Value::String(canonical);
    }
    Ok(())
}

fn int_or_string(value: &Value) -> Result {
    match value {
        Value::String(_) => Ok(()),
        Value::Number(number) if fits(number, Scalar::Int32) => Ok(()),
        Value::Number(number) => wrong(number_text(number), "int32"),
        other => wrong(found(other), "int32"),
    }
}
