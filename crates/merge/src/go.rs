//! How Go prints JSON values. Upstream's error texts contain such prints, and clients show them.

pub(crate) use concord_meta::go::{is_print, json, quote};
use serde_json::Value;

/// `%v` of a decoded JSON value: `map[a:1 b:[x y]]`.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => concord_meta::go::float(float),
            _ => number.to_string(),
        },
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", join(items.iter().map(plain), " ")),
        Value::Object(fields) => {
            format!("map[{}]", join(fields.iter().map(|(key, value)| format!("{key}:{}", plain(value))), " "))
        }
    }
}

/// `%#v` of a decoded JSON value: `map[string]interface {}{"a":1}`.
pub(crate) fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(_) | Value::Number(_) => plain(value),
        Value::String(text) => quote(text),
        Value::Array(items) => format!("[]interface {{}}{{{}}}", join(items.iter().map(syntax), ", ")),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| format!("{}:{}", quote(key), syntax(value)));
            format!("map[string]interface {{}}{{{}}}", join(fields, ", "))
        }
    }
}

/// The Go type a JSON value is decoded into, `%T`.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// What encoding/json calls the JSON type of a value it cannot decode.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn join(parts: impl Iterator<Item = String>, separator: &str) -> String {
    parts.collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_print_as_go_prints_them() {
        let value = json!({"b": [1, "x", null], "a": {"t": true, "f": 1.5}});
        assert_eq!(plain(&value), "map[a:map[f:1.5 t:true] b:[1 x <nil>]]");
        assert_eq!(syntax(&json!({"a": ["x", 1]})), r#"map[string]interface {}{"a":[]interface {}{"x", 1}}"#);
    }
}
