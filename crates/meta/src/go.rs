//! Values written the way Go writes them.
//!
//! Error messages of the API quote values with Go's verbs, and clients compare those messages. The
//! few forms that occur are made here and nowhere else.

mod duration;

use std::fmt::Write;

use serde_json::Value;

pub use duration::parse_duration;

/// A string as `%q` writes it: in double quotes, printable characters as they are, the rest escaped.
///
/// ```
/// assert_eq!(concord_meta::go::quote("a\"b\n\u{200b}"), r#""a\"b\n\u200b""#);
/// ```
#[must_use]
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if is_print(c) => out.push(c),
            c => escape(&mut out, c),
        }
    }
    out.push('"');
    out
}

fn escape(out: &mut String, c: char) {
    let code = u32::from(c);
    let written = match code {
        0..0x20 | 0x7f => write!(out, "\\x{code:02x}"),
        0x80..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
    written.expect("writing to a String does not fail");
}

/// Whether Go's `unicode.IsPrint` holds: letters, marks, numbers, punctuation, symbols and the
/// ASCII space.
///
/// The table behind `str::escape_debug` is made from the same categories. It treats a combining
/// mark at the start of a string specially, hence the letter in front.
#[must_use]
pub fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    let mut pair = String::from("a");
    pair.push(c);
    pair.escape_debug().nth(1) == Some(c)
}

/// A list of strings as `%q` writes it: `["a" "b"]`.
#[must_use]
pub fn quote_slice<S: AsRef<str>>(items: &[S]) -> String {
    let items: Vec<_> = items.iter().map(|item| quote(item.as_ref())).collect();
    format!("[{}]", items.join(" "))
}

/// A list of strings as `%#v` writes it: `[]string{"a", "b"}`.
#[must_use]
pub fn string_slice<S: AsRef<str>>(items: &[S]) -> String {
    let items: Vec<_> = items.iter().map(|item| quote(item.as_ref())).collect();
    format!("[]string{{{}}}", items.join(", "))
}

/// A value as `encoding/json` writes it: `<`, `>`, `&` and the two line separators escaped, floats
/// in Go's form, members in the order of the map.
#[must_use]
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value);
    out
}

fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => write_json_string(out, text),
        Value::Number(number) => out.push_str(&json_number(number)),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write_json(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (at, (name, member)) in members.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write_json_string(out, name);
                out.push(':');
                write_json(out, member);
            }
            out.push('}');
        }
        Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
    }
}

fn write_json_string(out: &mut String, text: &str) {
    // serde_json and Go agree on everything but these five characters.
    for c in Value::from(text).to_string().chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
}

fn json_number(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => {
            let plain = float == 0.0 || (1e-6..1e21).contains(&float.abs());
            if plain { float.to_string() } else { exponent(float, 1) }
        }
        _ => number.to_string(),
    }
}

/// A float as `%v` writes it: shortest digits, an exponent below 1e-4 and from 1e21 on.
#[must_use]
pub fn float(float: f64) -> String {
    let plain = float == 0.0 || (1e-4..1e21).contains(&float.abs());
    if plain { float.to_string() } else { exponent(float, 2) }
}

/// `1e+21`, `1e-07`: Go always signs the exponent and gives it `digits` digits at least.
fn exponent(float: f64, digits: usize) -> String {
    let text = format!("{float:e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    format!("{mantissa}e{sign}{exponent:0>digits$}")
}

/// A signed decimal number as `strconv.ParseInt` reads it, or the text of its error.
///
/// # Errors
///
/// The text Go gives, such as `strconv.ParseInt: parsing "x": invalid syntax`.
pub fn parse_int(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    text.parse().map_err(|_| number_error("ParseInt", text, digits))
}

/// An unsigned decimal number as `strconv.ParseUint` reads it (it takes no sign), or the text of its
/// error.
///
/// # Errors
///
/// The text Go gives, such as `strconv.ParseUint: parsing "-1": invalid syntax`.
pub fn parse_uint(text: &str) -> Result<u64, String> {
    let signed = text.starts_with('+');
    text.parse().ok().filter(|_| !signed).ok_or_else(|| number_error("ParseUint", text, text))
}

fn number_error(function: &str, text: &str, digits: &str) -> String {
    let numeric = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let problem = if numeric { "value out of range" } else { "invalid syntax" };
    format!("strconv.{function}: parsing {}: {problem}", quote(text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        let table = [
            ("", r#""""#),
            ("plain 'text'", r#""plain 'text'""#),
            ("tab\tline\nquote\"back\\", r#""tab\tline\nquote\"back\\""#),
            ("\u{0}\u{1f}\u{7f}\u{7}\u{b}", r#""\x00\x1f\x7f\a\v""#),
            ("é日本", "\"é日本\""),
            ("e\u{301}", "\"e\u{301}\""),
            ("\u{a0}\u{ad}\u{2028}", r#""\u00a0\u00ad\u2028""#),
            ("\u{1f600}\u{e0001}\u{10ffff}", "\"\u{1f600}\\U000e0001\\U0010ffff\""),
        ];
        for (text, expected) in table {
            assert_eq!(quote(text), expected, "{text:?}");
        }
    }

    #[test]
    fn json_is_written_as_go_writes_it() {
        let table = [
            (json!(null), "null"),
            (json!([1, -2, true, "a<b>&c"]), r#"[1,-2,true,"a\u003cb\u003e\u0026c"]"#),
            (json!({"b": 1.0, "a": {}}), r#"{"a":{},"b":1}"#),
            (json!([1e21, 1e-7, 0.5, 1e-5]), "[1e+21,1e-7,0.5,0.00001]"),
            (json!("\u{2028}\n"), r#""\u2028\n""#),
        ];
        for (value, expected) in table {
            assert_eq!(json(&value), expected);
        }
    }

    #[test]
    fn floats_are_written_as_go_writes_them() {
        let table = [(1.5, "1.5"), (3.0, "3"), (1e21, "1e+21"), (1.25e-7, "1.25e-07"), (-0.001, "-0.001")];
        for (value, expected) in table {
            assert_eq!(float(value), expected);
        }
    }

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        let invalid = |function: &str, text: &str| {
            format!("strconv.{function}: parsing {}: invalid syntax", quote(text))
        };
        assert_eq!(parse_int("-5"), Ok(-5));
        assert_eq!(parse_int("+5"), Ok(5));
        for text in ["", "abc", "1_0", "0x1", "-", " 1", "5.0"] {
            assert_eq!(parse_int(text), Err(invalid("ParseInt", text)));
            assert_eq!(parse_uint(text), Err(invalid("ParseUint", text)));
        }
        assert_eq!(parse_uint("18446744073709551615"), Ok(u64::MAX));
        for text in ["-1", "+1"] {
            assert_eq!(parse_uint(text), Err(invalid("ParseUint", text)));
        }
        let huge = "18446744073709551616";
        let out_of_range = r#"parsing "18446744073709551616": value out of range"#;
        assert_eq!(parse_uint(huge), Err(format!("strconv.ParseUint: {out_of_range}")));
        assert_eq!(parse_int(huge), Err(format!("strconv.ParseInt: {out_of_range}")));
    }

    #[test]
    fn slices_are_written_as_go_source() {
        assert_eq!(string_slice(&["a", "b\""]), r#"[]string{"a", "b\""}"#);
        assert_eq!(string_slice::<&str>(&[]), "[]string{}");
    }

    proptest! {
        #[test]
        fn written_json_reads_back(text in ".*", float in proptest::num::f64::NORMAL) {
            let value = json!({ "text": text, "float": float });
            let written: Value = serde_json::from_str(&json(&value)).expect("valid JSON");
            prop_assert_eq!(&written["text"], &value["text"]);
            let read = written["float"].as_f64().expect("a number");
            prop_assert!((read - float).abs() <= float.abs() * 1e-15);
        }
    }
}
