//! JSON as Go writes it and reads it: fields in the order of the struct, `<`, `>` and `&` escaped, names read in any case.
//!
//! It matters where JSON stands in a string that others compare: in annotations.

use concord_meta::Quantity;
use concord_schema::parse_time;
use serde_json::{Map, Value};

/// What a value is.
pub(crate) enum Kind {
    /// A string.
    Text,
    /// An int32.
    Number,
    /// A quantity; a string when it is written.
    Quantity,
    /// A time; null if there is none.
    Time,
    /// A map of strings, sorted when it is written.
    Labels,
    /// A list of these.
    List(&'static Kind),
    /// A struct.
    Struct(&'static [Field]),
}

/// A field of a struct.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// It is written as its zero value if it is absent.
    pub(crate) always: bool,
}

/// How structs are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// By the names of the API, without what is absent.
    Api,
    /// As Go does without being told anything: names begin with capitals, and what is absent is null.
    Untagged,
}

/// Writes a value.
pub(crate) fn marshal(value: &Value, kind: &Kind, style: Style) -> String {
    let mut out = String::new();
    write(value, kind, style, &mut out);
    out
}

fn write(value: &Value, kind: &Kind, style: Style, out: &mut String) {
    match (kind, value) {
        (Kind::Struct(fields), value) => write_struct(value, fields, style, out),
        (Kind::Text, Value::Null) => out.push_str("\"\""),
        (Kind::Quantity, Value::Null) => out.push_str("\"0\""),
        (Kind::Number, Value::Null) => out.push('0'),
        (Kind::List(items), Value::Array(values)) => {
            out.push('[');
            for (at, value) in values.iter().enumerate() {
                separate(at, out);
                write(value, items, style, out);
            }
            out.push(']');
        }
        (Kind::Labels, Value::Object(labels)) => {
            out.push('{');
            for (at, (name, value)) in labels.iter().enumerate() {
                separate(at, out);
                write_text(name, out);
                out.push(':');
                write(value, &Kind::Text, style, out);
            }
            out.push('}');
        }
        (_, Value::String(text)) => write_text(text, out),
        (_, other) => out.push_str(&other.to_string()),
    }
}

fn separate(at: usize, out: &mut String) {
    if at > 0 {
        out.push(',');
    }
}

fn write_struct(value: &Value, fields: &[Field], style: Style, out: &mut String) {
    out.push('{');
    let begin = out.len();
    for field in fields {
        let member = value.get(field.name).unwrap_or(&Value::Null);
        let absent = member.is_null() || (member == "" && !field.always);
        if absent && !field.always && style == Style::Api {
            continue;
        }
        separate(usize::from(out.len() > begin), out);
        match style {
            Style::Api => write_text(field.name, out),
            Style::Untagged => write_text(&capitalized(field.name), out),
        }
        out.push(':');
        match (style, absent && !field.always) {
            (Style::Untagged, true) => out.push_str("null"),
            _ => write(member, &field.kind, style, out),
        }
    }
    out.push('}');
}

fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
}

/// Reads a text. Nothing if Go would refuse it, or if it is null.
///
/// Unknown fields are dropped, fields that are always written have their zero value.
pub(crate) fn unmarshal(text: &str, kind: &Kind) -> Option<Value> {
    // The text is as deep as this reader allows, which is less than any object may be.
    read(serde_json::from_str(text).ok()?, kind).filter(|value| !value.is_null())
}

fn read(value: Value, kind: &Kind) -> Option<Value> {
    match (kind, value) {
        (Kind::Struct(fields), Value::Object(members)) => read_struct(members, fields),
        (_, Value::Null) => Some(Value::Null),
        (Kind::Text, text @ Value::String(_)) => Some(text),
        (Kind::Number, Value::Number(number)) => {
            number.as_i64().filter(|number| i32::try_from(*number).is_ok()).map(Value::from)
        }
        (Kind::Quantity, Value::String(text)) => quantity(&text),
        (Kind::Quantity, Value::Number(number)) => quantity(&number.to_string()),
        (Kind::Time, Value::String(text)) => parse_time(&text).map(|_| Value::String(text)),
        (Kind::Labels, Value::Object(labels)) => {
            labels.values().all(Value::is_string).then_some(Value::Object(labels))
        }
        (Kind::List(items), Value::Array(values)) => values
            .into_iter()
            .map(|value| read_item(value, items))
            .collect::<Option<Vec<_>>>()
            .map(Value::Array),
        _ => None,
    }
}

/// An item that is null has the zero value.
fn read_item(value: Value, kind: &Kind) -> Option<Value> {
    match (kind, value) {
        (Kind::Struct(fields), Value::Null) => read_struct(Map::new(), fields),
        (kind, value) => read(value, kind),
    }
}

fn read_struct(members: Map<String, Value>, fields: &[Field]) -> Option<Value> {
    let mut object = Map::new();
    for (name, value) in members {
        let exact = fields.iter().find(|field| field.name == name);
        let Some(field) =
            exact.or_else(|| fields.iter().find(|field| field.name.eq_ignore_ascii_case(&name)))
        else {
            continue;
        };
        let value = read(value, &field.kind)?;
        if !value.is_null() {
            object.insert(field.name.to_owned(), value);
        }
    }
    for field in fields.iter().filter(|field| field.always) {
        if !object.contains_key(field.name)
            && let Some(zero) = zero(&field.kind)
        {
            object.insert(field.name.to_owned(), zero);
        }
    }
    Some(Value::Object(object))
}

fn zero(kind: &Kind) -> Option<Value> {
    match kind {
        Kind::Text => Some("".into()),
        Kind::Number => Some(0.into()),
        Kind::Quantity => Some("0".into()),
        Kind::Struct(fields) => read_struct(Map::new(), fields),
        Kind::Time | Kind::Labels | Kind::List(_) => None,
    }
}

fn quantity(text: &str) -> Option<Value> {
    let quantity: Quantity = text.trim().parse().ok()?;
    Some(quantity.to_string().into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SHAPE: Kind = Kind::Struct(&[
        Field { name: "zeta", kind: Kind::Text, always: true },
        Field { name: "alpha", kind: Kind::Number, always: false },
        Field { name: "amount", kind: Kind::Quantity, always: true },
        Field { name: "labels", kind: Kind::Labels, always: false },
        Field { name: "when", kind: Kind::Time, always: true },
        Field { name: "more", kind: Kind::List(&Kind::Text), always: false },
    ]);

    #[test]
    fn structs_are_written_in_their_order() {
        let value = json!({"more": ["a<b", "\u{2028}\u{1}"], "alpha": 0, "labels": {"b": "2", "a": "1"}});
        assert_eq!(
            marshal(&value, &SHAPE, Style::Api),
            r#"{"zeta":"","alpha":0,"amount":"0","labels":{"a":"1","b":"2"},"when":null,"more":["a\u003cb","\u2028\u0001"]}"#
        );
        assert_eq!(
            marshal(&json!({"zeta": "\"\\\n\r\t\u{8}\u{c}&>"}), &SHAPE, Style::Untagged),
            r#"{"Zeta":"\"\\\n\r\t\b\f\u0026\u003e","Alpha":null,"Amount":"0","Labels":null,"When":null,"More":null}"#
        );
    }

    #[test]
    fn names_are_read_in_any_case_and_unknown_ones_dropped() {
        let read = |text| unmarshal(text, &SHAPE);
        assert_eq!(
            read(
                r#"{"Zeta":"z","ALPHA":-1,"amount":0.5,"other":{},"when":"2024-02-29T01:02:03+01:00","more":null}"#
            ),
            Some(json!({"zeta": "z", "alpha": -1, "amount": "500m", "when": "2024-02-29T01:02:03+01:00"}))
        );
        assert_eq!(read("{}"), Some(json!({"zeta": "", "amount": "0"})));
        for text in [
            "",
            "null",
            "[]",
            "3",
            "{\"alpha\":1.5}",
            "{\"alpha\":2147483648}",
            "{\"alpha\":\"1\"}",
            "{\"zeta\":1}",
            "{\"amount\":\"much\"}",
            "{\"labels\":{\"a\":1}}",
            "{\"more\":{}}",
            "{\"when\":\"yesterday\"}",
            "{\"when\":\"2024-13-01T00:00:00Z\"}",
            "{\"when\":\"2024-01-01T00:00:00\"}",
            "{\"when\":\"2024-01-01T00:00:00.Z\"}",
            "{\"when\":\"2024-01-01T00:00:00+1:00\"}",
            "{\"when\":5}",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
