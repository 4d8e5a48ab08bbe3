//! How Go prints JSON values. Upstream's error texts contain such prints, and clients show them.

use serde_json::{Number, Value};
use std::fmt::Write as _;

/// `%v` of a decoded JSON value: `map[a:1 b:[x y]]`.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => self::number(number),
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

/// `%q`.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        escape(character, &mut quoted);
    }
    quoted.push('"');
    quoted
}

fn escape(character: char, out: &mut String) {
    let written = match character {
        '"' | '\\' => write!(out, "\\{character}"),
        '\x07' => write!(out, "\\a"),
        '\x08' => write!(out, "\\b"),
        '\x0c' => write!(out, "\\f"),
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\t' => write!(out, "\\t"),
        '\x0b' => write!(out, "\\v"),
        control if control.is_ascii_control() => write!(out, "\\x{:02x}", u32::from(control)),
        control if control.is_control() => write!(out, "\\u{:04x}", u32::from(control)),
        printable => write!(out, "{printable}"),
    };
    written.expect("a String takes everything");
}

/// A number as encoding/json and `%v` print it: whole floats lose their point, exponents appear only where
/// Go uses them.
pub(crate) fn number(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    let magnitude = float.abs();
    if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        return float.to_string();
    }
    let text = format!("{float:e}");
    if text.contains("e-") { text } else { text.replace('e', "e+") }
}

/// A JSON text as Go writes it, with the three characters that HTML gives a meaning to escaped. They can only
/// occur inside strings, where the escape means the same.
pub(crate) fn escape_html(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                write!(escaped, "\\u{:04x}", u32::from(character)).expect("a String takes everything");
            }
            other => escaped.push(other),
        }
    }
    escaped
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
        assert_eq!(quote("a\"\n\x01\u{85}é"), r#""a\"\n\x01\u0085é""#);
    }

    #[test]
    fn numbers_print_as_go_prints_them() {
        let cases = [
            (json!(1), "1"),
            (json!(1.0), "1"),
            (json!(-0.25), "-0.25"),
            (json!(1e21), "1e+21"),
            (json!(1e-7), "1e-7"),
        ];
        for (value, expected) in cases {
            assert_eq!(plain(&value), expected);
        }
    }

    #[test]
    fn html_is_escaped() {
        assert_eq!(escape_html(r#"{"a":"<&>"}"#), r#"{"a":"\u003c\u0026\u003e"}"#);
    }
}
