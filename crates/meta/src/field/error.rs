//! What is wrong with a field.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::Path;
use crate::go;

/// The kinds of field errors. Each is the `reason` of a cause in a `Status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorType {
    /// A value that must be given is not.
    Required,
    /// A value is malformed or out of bounds.
    Invalid,
    /// A value has another type than the schema says.
    TypeInvalid,
    /// A value is none of an enumeration's.
    NotSupported,
    /// A value that must be unique occurs twice.
    Duplicate,
    /// A value is well-formed but not allowed here.
    Forbidden,
    /// Something the value names does not exist.
    NotFound,
    /// A value has too many bytes or characters.
    TooLong,
    /// A value has too few characters.
    TooShort,
    /// A list has too many items.
    TooMany,
    /// A list has too few items.
    TooFew,
    /// The server failed, not the input.
    Internal,
}

impl ErrorType {
    /// The `reason` of the cause.
    #[must_use]
    pub fn cause(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::NotFound => "FieldValueNotFound",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::Internal => "InternalError",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "Not found",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
        }
    }
}

/// A value as an error shows it: strings quoted, numbers and booleans bare, the rest as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadValue(Cow<'static, str>);

impl BadValue {
    /// Text that is shown as it is, such as JSON whose members are already in upstream's order.
    pub fn verbatim(text: impl Into<Cow<'static, str>>) -> Self {
        Self(text.into())
    }

    /// A string that has a type of its own in Go; those are shown as JSON, which escapes other
    /// characters than a quoted string does.
    #[must_use]
    pub fn named(text: &str) -> Self {
        Self(go::json(&Value::from(text)).into())
    }

    /// A list of strings; upstream shows an absent one as `null`.
    pub fn strings<S: AsRef<str>>(items: &[S]) -> Self {
        let items = items.iter().map(|item| Value::from(item.as_ref())).collect();
        Self(go::json(&Value::Array(items)).into())
    }
}

impl From<&str> for BadValue {
    fn from(text: &str) -> Self {
        Self(go::quote(text).into())
    }
}

impl From<&String> for BadValue {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<i64> for BadValue {
    fn from(number: i64) -> Self {
        Self(number.to_string().into())
    }
}

impl From<usize> for BadValue {
    fn from(number: usize) -> Self {
        Self(number.to_string().into())
    }
}

impl From<bool> for BadValue {
    fn from(value: bool) -> Self {
        Self(if value { "true" } else { "false" }.into())
    }
}

impl From<&Value> for BadValue {
    fn from(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::from(text),
            Value::Number(number) if number.is_f64() => {
                Self(number.as_f64().map_or_else(|| number.to_string(), go::float).into())
            }
            value => Self(go::json(value).into()),
        }
    }
}

/// One thing that is wrong with one field. It prints as `field: Invalid value: "x": detail`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {}", self.body())]
pub struct Error {
    /// What kind of error it is.
    pub error_type: ErrorType,
    /// The path of the field.
    pub field: String,
    /// The value at fault, where the message shows it.
    pub value: Option<BadValue>,
    /// What the value should have been; may be empty.
    pub detail: Cow<'static, str>,
}

impl Error {
    fn new(
        error_type: ErrorType,
        field: &Path,
        value: Option<BadValue>,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { error_type, field: field.to_string(), value, detail: detail.into() }
    }

    /// A value must be given.
    pub fn required(field: &Path, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorType::Required, field, None, detail)
    }

    /// A value is malformed.
    pub fn invalid(field: &Path, value: impl Into<BadValue>, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorType::Invalid, field, Some(value.into()), detail)
    }

    /// A value has the wrong type.
    pub fn type_invalid(
        field: &Path,
        value: impl Into<BadValue>,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(ErrorType::TypeInvalid, field, Some(value.into()), detail)
    }

    /// A value is none of `supported`, which are listed in the given order.
    pub fn not_supported(field: &Path, value: impl Into<BadValue>, supported: &[&str]) -> Self {
        let values: Vec<_> = supported.iter().map(|value| go::quote(value)).collect();
        let detail = match values.len() {
            0 => String::new(),
            _ => format!("supported values: {}", values.join(", ")),
        };
        Self::new(ErrorType::NotSupported, field, Some(value.into()), detail)
    }

    /// A value occurs twice.
    pub fn duplicate(field: &Path, value: impl Into<BadValue>) -> Self {
        Self::new(ErrorType::Duplicate, field, Some(value.into()), "")
    }

    /// A value is not allowed here.
    pub fn forbidden(field: &Path, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorType::Forbidden, field, None, detail)
    }

    /// What a value names does not exist.
    pub fn not_found(field: &Path, value: impl Into<BadValue>) -> Self {
        Self::new(ErrorType::NotFound, field, Some(value.into()), "")
    }

    /// A value has more than `max` bytes.
    #[must_use]
    pub fn too_long(field: &Path, max: usize) -> Self {
        let detail = format!("may not be more than {max} {}", plural(max, "byte"));
        Self::new(ErrorType::TooLong, field, None, detail)
    }

    /// A value has more than `max` characters.
    #[must_use]
    pub fn too_long_characters(field: &Path, max: usize) -> Self {
        let detail = format!("may not be more than {max} {}", plural(max, "character"));
        Self::new(ErrorType::TooLong, field, None, detail)
    }

    /// A value has fewer than `min` characters.
    #[must_use]
    pub fn too_short(field: &Path, min: usize) -> Self {
        let detail = format!("must be at least {min} {}", plural(min, "character"));
        Self::new(ErrorType::TooShort, field, None, detail)
    }

    /// A list has `actual` items, more than `max`.
    #[must_use]
    pub fn too_many(field: &Path, actual: usize, max: usize) -> Self {
        let detail = format!("must have at most {max} {}", plural(max, "item"));
        Self::new(ErrorType::TooMany, field, Some(actual.into()), detail)
    }

    /// A list has `actual` items, fewer than `min`.
    #[must_use]
    pub fn too_few(field: &Path, actual: usize, min: usize) -> Self {
        let detail = format!("must have at least {min} {}", plural(min, "item"));
        Self::new(ErrorType::TooFew, field, Some(actual.into()), detail)
    }

    /// The server failed while it looked at a field.
    pub fn internal(field: &Path, error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorType::Internal, field, None, error)
    }

    /// The message without the field: the `message` of the cause.
    #[must_use]
    pub fn body(&self) -> String {
        let mut body = self.error_type.prefix().to_owned();
        let value = self.value.iter().map(|value| value.0.as_ref());
        let detail = Some(self.detail.as_ref()).filter(|detail| !detail.is_empty());
        for part in value.chain(detail) {
            body.push_str(": ");
            body.push_str(part);
        }
        body
    }
}

fn plural(count: usize, unit: &str) -> impl fmt::Display {
    format!("{unit}{}", if count == 1 { "" } else { "s" })
}

/// Several errors as one text: one bare, more as `[a, b]`, equal ones once.
#[must_use]
pub fn aggregate(errors: &[Error]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in errors.iter().map(ToString::to_string) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.len() {
        0 | 1 => texts.concat(),
        _ => format!("[{}]", texts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_read_as_upstreams_do() {
        let field = &Path::new("spec").child("x");
        let table = [
            (Error::required(field, ""), "Required value"),
            (Error::required(field, "why"), "Required value: why"),
            (Error::invalid(field, "a\"b", "why"), r#"Invalid value: "a\"b": why"#),
            (Error::invalid(field, -3_i64, "why"), "Invalid value: -3: why"),
            (Error::invalid(field, true, ""), "Invalid value: true"),
            (Error::invalid(field, &json!({"a": ["<"]}), "why"), r#"Invalid value: {"a":["\u003c"]}: why"#),
            (Error::invalid(field, &json!(1.5e-7), ""), "Invalid value: 1.5e-07"),
            (Error::invalid(field, &json!("s"), ""), r#"Invalid value: "s""#),
            (Error::type_invalid(field, "string", "why"), r#"Invalid value: "string": why"#),
            (
                Error::not_supported(field, "z", &["a", ""]),
                r#"Unsupported value: "z": supported values: "a", """#,
            ),
            (Error::not_supported(field, "z", &[]), r#"Unsupported value: "z""#),
            (Error::duplicate(field, "a"), r#"Duplicate value: "a""#),
            (Error::forbidden(field, "why"), "Forbidden: why"),
            (Error::not_found(field, "a"), r#"Not found: "a""#),
            (Error::too_long(field, 128), "Too long: may not be more than 128 bytes"),
            (Error::too_long(field, 1), "Too long: may not be more than 1 byte"),
            (Error::too_long_characters(field, 2), "Too long: may not be more than 2 characters"),
            (Error::too_short(field, 1), "Too short: must be at least 1 character"),
            (Error::too_many(field, 9, 8), "Too many: 9: must have at most 8 items"),
            (Error::too_few(field, 0, 1), "Too few: 0: must have at least 1 item"),
            (Error::internal(field, "boom"), "Internal error: boom"),
        ];
        for (error, body) in table {
            assert_eq!(error.body(), body);
            assert_eq!(error.to_string(), format!("spec.x: {body}"));
        }
    }

    #[test]
    fn many_errors_are_one_text() {
        let error = |name: &str| Error::required(&Path::new(name), "");
        assert_eq!(aggregate(&[]), "");
        assert_eq!(aggregate(&[error("a")]), "a: Required value");
        assert_eq!(aggregate(&[error("a"), error("a")]), "a: Required value");
        let three = aggregate(&[error("b"), error("a"), error("b")]);
        assert_eq!(three, "[b: Required value, a: Required value]");
    }
}
