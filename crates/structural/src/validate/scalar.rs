//! Types, strings, formats and enumerations.

use concord_meta::{
    field::{BadValue, Error},
    go,
};
use serde_json::Value;

use super::{Mode, Object, Walk};
use crate::{
    formats::Format,
    schema::{Kind, Node},
};

/// What Go calls a value: its JSON type and the format of its Go type.
fn go_type(value: &Value) -> (Kind, &'static str) {
    match value {
        Value::Null => (Kind::Any, ""),
        Value::Bool(_) => (Kind::Boolean, ""),
        Value::String(_) => (Kind::String, ""),
        Value::Number(number) if number.is_f64() => (Kind::Number, "float64"),
        Value::Number(_) => (Kind::Integer, "int64"),
        Value::Array(_) => (Kind::Array, ""),
        Value::Object(_) => (Kind::Object, ""),
    }
}

/// Whether a float is close enough to an integer that JSON can carry.
pub(super) fn is_json_integer(float: f64) -> bool {
    const MOST: f64 = 9_007_199_254_740_991.0;
    const EPSILON: f64 = 1e-9;
    if !float.is_finite() || float.abs() > MOST {
        return false;
    }
    let whole = float.trunc();
    if float == whole {
        return true;
    }
    // What Go makes of a negative number here is never close to it.
    let positive = if float < 0.0 { return false } else { whole };
    positive != 0.0 && (float - positive).abs() / (float + positive) < EPSILON
}

impl<'a> Walk<'a> {
    /// Whether int-or-string is checked as a type of its own.
    fn is_int_or_string(&self, node: Node<'a>) -> bool {
        node.is_int_or_string() && self.mode == Mode::Object
    }

    fn allows(&self, node: Node<'a>, kind: Kind) -> bool {
        if self.is_int_or_string(node) {
            return matches!(kind, Kind::Integer | Kind::String);
        }
        node.kind() == kind && kind != Kind::Any
    }

    fn expected(&self, node: Node<'a>) -> &'static str {
        if self.is_int_or_string(node) { "integer,string" } else { node.kind().name() }
    }

    fn checked_format(node: Node<'a>) -> Option<Format> {
        node.checked_format().filter(|format| *format != Format::Unknown)
    }

    pub(super) fn is_typed(&self, node: Node<'a>) -> bool {
        !self.expected(node).is_empty() || Self::checked_format(node).is_some()
    }

    fn wrong_type(&mut self, expected: &str, found: &str) {
        self.add_here(|field, name| {
            let detail = format!("{name} in body must be of type {expected}: {}", go::quote(found));
            Error::type_invalid(field, found, detail)
        });
    }

    /// Whether null may stand here.
    pub(super) fn null(&mut self, node: Node<'a>) -> bool {
        let expected = self.expected(node);
        let fits = expected.is_empty() || node.is_nullable();
        if !fits {
            self.wrong_type(expected, "null");
        }
        fits
    }

    /// Whether a value that is not null has the declared type.
    pub(super) fn check_type(&mut self, node: Node<'a>, value: &Value) -> bool {
        let (kind, format) = go_type(value);
        let is_whole = value.as_f64().is_some_and(is_json_integer);
        let fits = self.allows(node, kind)
            || (kind == Kind::Number && is_whole && self.allows(node, Kind::Integer))
            || (kind == Kind::Integer && self.allows(node, Kind::Number));
        let is_text = matches!(kind, Kind::String | Kind::Array);
        let has_format = Self::checked_format(node).is_some();
        if has_format && !is_text && !fits {
            self.wrong_type(node.format(), format);
            return false;
        }
        let is_numeric = self.allows(node, Kind::Number) || self.allows(node, Kind::Integer);
        // Upstream leaves texts to the format, and takes lists along.
        if fits || (has_format && is_text && !is_numeric) {
            return true;
        }
        self.wrong_type(self.expected(node), kind.name());
        false
    }

    /// Upstream stops at the first thing that is wrong with a string.
    pub(super) fn string(&mut self, node: Node<'a>, text: &'a str) {
        let limits = node.limits();
        if limits.max_length.is_some() || limits.min_length.is_some() {
            let length = super::count_of(text.chars().count());
            if let Some(max) = limits.max_length.filter(|max| length > *max) {
                return self.add_here(|field, _| match usize::try_from(max) {
                    Ok(max) => Error::too_long(field, max),
                    Err(_) => Error { detail: "value is too long".into(), ..Error::too_long(field, 0) },
                });
            }
            if let Some(min) = limits.min_length.filter(|min| length < *min) {
                return self.add_here(|field, name| {
                    Error::invalid(field, text, format!("{name} in body should be at least {min} chars long"))
                });
            }
        }
        let Some(pattern) = node.pattern() else { return };
        let shown = match pattern.is_match(text) {
            Ok(true) => return,
            Ok(false) => pattern.text().to_owned(),
            Err(error) => format!("{}, but pattern is invalid: {error}", pattern.text()),
        };
        self.add_here(|field, name| {
            Error::invalid(field, text, format!("{name} in body should match '{shown}'"))
        });
    }

    /// Whether the check of the format applied, as a count.
    pub(super) fn format(&mut self, node: Node<'a>, text: &'a str) -> u32 {
        let Some(format) = Self::checked_format(node) else { return 0 };
        if matches!(format, Format::Int32 | Format::Int64 | Format::Float | Format::Double) {
            return 0;
        }
        if !format.holds(text) {
            self.add_here(|field, name| {
                let detail = format!("{name} in body must be of type {}: {}", node.format(), go::quote(text));
                Error::type_invalid(field, text, detail)
            });
        }
        1
    }

    pub(super) fn enumeration(&mut self, node: Node<'a>, value: &Value) {
        let values = node.enumeration();
        if !values.is_empty() && !values.iter().any(|allowed| is_allowed(value, allowed)) {
            let shown = match value.as_f64().filter(|_| value.is_f64()) {
                Some(float) => BadValue::verbatim(crate::go::float(float)),
                None => value.into(),
            };
            self.not_enumerated(node, shown);
        }
    }

    pub(super) fn enumeration_of_object(&mut self, node: Node<'a>, object: &Object) {
        let values = node.enumeration();
        if !values.is_empty() && !values.iter().any(|allowed| allowed.as_object() == Some(object)) {
            self.not_enumerated(node, BadValue::from(&Value::Object(object.clone())));
        }
    }

    fn not_enumerated(&mut self, node: Node<'a>, value: BadValue) {
        let text = |value: &Value| value.as_str().map_or_else(|| go::json(value), str::to_owned);
        let texts: Vec<_> = node.enumeration().iter().map(text).collect();
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        self.add_here(|field, _| Error::not_supported(field, value, &texts));
    }
}

/// Whether Go, which converts the value to the type of the other, finds them equal. Null equals nothing.
fn is_allowed(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) => false,
        (Value::Number(number), Value::Number(allowed)) => match (number.as_i64(), allowed.as_i64()) {
            (Some(number), Some(allowed)) => number == allowed,
            (None, Some(allowed)) => {
                number.as_f64().is_some_and(|float| super::number::truncated(float) == allowed)
            }
            (_, None) => number.as_f64() == allowed.as_f64(),
        },
        // A number is converted to the character with that code.
        (Value::Number(number), Value::String(allowed)) if !number.is_f64() => {
            let code = number.as_i64().and_then(|code| u32::try_from(code).ok());
            let c = code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
            allowed.chars().eq([c])
        }
        (value, allowed) => value == allowed,
    }
}
