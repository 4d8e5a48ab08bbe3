//! JSON as sigs.k8s.io/json reads it and encoding/json writes it.

mod encode;
mod literal;
mod parse;

use serde_json::{Map, Value};

pub use self::encode::{encode, encode_body, encode_into, encode_object};
pub(crate) use self::{
    encode::{write_integer, write_string},
    literal::{number, unquote},
};
use crate::{
    DecodeError,
    strict::{Field, Fields, Violation},
    warning::FieldValidation,
};

/// What a body may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Length in bytes; default 3 MiB, as upstream's request bodies.
    pub max_bytes: usize,
    /// Nesting; default 500.
    ///
    /// Upstream allows 10,000 levels, which Go's growing stacks can walk. Here everything that later
    /// walks, compares, clones or drops a value recurses on a stack of fixed size, so the bound is where
    /// that is safe and still far above any real object.
    pub max_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 3 * 1024 * 1024, max_depth: 500 }
    }
}

/// How a body is read.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// What the body may cost.
    pub limits: Limits,
    /// Whether violations are collected; they never make decoding itself fail.
    pub validation: FieldValidation,
    /// The fields the type knows; unknown ones are dropped. Without it everything is kept.
    pub fields: Option<&'a dyn Fields>,
}

impl<'a> Options<'a> {
    fn root(&self) -> Field<'a> {
        self.fields.map_or(Field::Any, Fields::root)
    }

    pub(crate) fn collects(&self) -> bool {
        self.validation != FieldValidation::Ignore
    }
}

/// An object and what was wrong with its fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object. Of duplicate fields the last one counts, unknown ones are absent.
    pub object: Map<String, Value>,
    /// Duplicate and unknown fields in document order; empty when they were not asked for.
    pub violations: Vec<Violation>,
}

/// Reads a JSON object.
///
/// Integers that fit an `i64` stay integers, every other number becomes a float. Invalid UTF-8 inside
/// strings becomes U+FFFD, one per byte, and so do lone surrogates. A `null` document is an empty object,
/// as it is for Go.
///
/// # Errors
///
/// When the body is too long, too deep, not JSON, not an object, or holds a number beyond a float.
pub fn decode(body: &[u8], options: &Options<'_>) -> Result<Decoded, DecodeError> {
    if body.len() > options.limits.max_bytes {
        return Err(DecodeError::TooLarge { limit: options.limits.max_bytes });
    }
    let parsed = parse::Parser::new(body, options, true).document()?;
    let found = match parsed.value {
        Value::Object(object) => {
            return parsed
                .number
                .map_or_else(|| Ok(Decoded { object, violations: parsed.violations.into_vec() }), Err);
        }
        Value::Null if parsed.number.is_none() => {
            return Ok(Decoded { object: Map::new(), violations: Vec::new() });
        }
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(_) | Value::Null => "number",
    };
    Err(DecodeError::NotAnObject { found })
}

/// Reads any JSON value, such as the list that a JSON patch is. Violations are not collected.
///
/// # Errors
///
/// As [`decode`], except that every kind of value is taken.
pub fn decode_value(body: &[u8], limits: Limits) -> Result<Value, DecodeError> {
    if body.len() > limits.max_bytes {
        return Err(DecodeError::TooLarge { limit: limits.max_bytes });
    }
    let options = Options { limits, validation: FieldValidation::Ignore, fields: None };
    let parsed = parse::Parser::new(body, &options, false).document()?;
    parsed.number.map_or(Ok(parsed.value), Err)
}

/// Whether a value nests deeper than `limit` levels. What was decoded is within its limits; what was put
/// together afterwards, such as by a patch that copies, may not be.
pub fn depth_exceeds(value: &Value, limit: usize) -> bool {
    let mut pending = vec![(value, 0)];
    while let Some((value, outside)) = pending.pop() {
        match value {
            Value::Array(_) | Value::Object(_) if outside >= limit => return true,
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, outside + 1))),
            Value::Object(members) => pending.extend(members.values().map(|member| (member, outside + 1))),
            _ => {}
        }
    }
    false
}
