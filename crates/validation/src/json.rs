//! What Go says about bytes that should be a JSON object.

use std::fmt::Write;

/// The bytes that a text in base64 stands for; what is not base64 is left out.
pub(crate) fn base64(text: &str) -> Vec<u8> {
    let digit = |b: u8| match b {
        b'A'..=b'Z' => Some(b - b'A'),
        b'a'..=b'z' => Some(b - b'a' + 26),
        b'0'..=b'9' => Some(b - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (mut bits, mut count, mut out) = (0_u32, 0, Vec::with_capacity(text.len() / 4 * 3));
    for digit in text.bytes().filter_map(digit) {
        bits = bits << 6 | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from(bits >> count & 0xff).unwrap_or_default());
        }
    }
    out
}

/// What `encoding/json` says when it reads these bytes into a map; nothing if it succeeds.
///
/// The common cases have Go's words; what else serde_json finds is said in its own.
pub(crate) fn object_problem(bytes: &[u8]) -> Option<String> {
    read(bytes, "map[string]interface {}", serde_json::Value::is_object).err()
}

/// The JSON in these bytes, which has to be of a form that Go's type takes, or what `encoding/json` says about it.
pub(crate) fn read(
    bytes: &[u8],
    go_type: &str,
    fits: fn(&serde_json::Value) -> bool,
) -> Result<serde_json::Value, String> {
    let start = bytes.iter().find(|b| !b" \t\r\n".contains(b));
    let Some(start) = start else { return Err("unexpected end of JSON input".to_owned()) };
    match serde_json::from_slice::<serde_json::Value>(bytes) {
        Ok(value) if fits(&value) || value.is_null() => Ok(value),
        Ok(value) => {
            let kind = kind(&value);
            Err(format!("json: cannot unmarshal {kind} into Go value of type {go_type}"))
        }
        Err(error) if error.is_eof() => Err("unexpected end of JSON input".to_owned()),
        Err(_) if !b"{[\"-0123456789tfn".contains(start) => {
            Err(format!("invalid character {} looking for beginning of value", character(*start)))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// A member of a struct in Go: its name, which any case fits, its type, and whether it is a number.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) go_type: &'static str,
    pub(crate) number: bool,
}

/// The list of structs in these bytes, with the members that the struct has under the names that the API gives them.
pub(crate) fn structs(bytes: &[u8], name: &str, fields: &[Field]) -> Result<serde_json::Value, String> {
    let list = read(bytes, &format!("[]core.{name}"), serde_json::Value::is_array)?;
    let items = list.as_array().into_iter().flatten();
    items.map(|item| one_struct(item, name, fields)).collect()
}

fn one_struct(item: &serde_json::Value, name: &str, fields: &[Field]) -> Result<serde_json::Value, String> {
    if !item.is_object() && !item.is_null() {
        return Err(format!("json: cannot unmarshal {} into Go value of type core.{name}", kind(item)));
    }
    let mut read = serde_json::Map::new();
    for (key, value) in item.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        let Some(field) = fields.iter().find(|field| field.name.eq_ignore_ascii_case(key)) else { continue };
        if if field.number { !value.is_i64() } else { !value.is_string() } {
            let (what, go_type) = (kind(value), field.go_type);
            let member = format!("{name}.{}", field.name);
            return Err(format!(
                "json: cannot unmarshal {what} into Go struct field {member} of type {go_type}"
            ));
        }
        let (first, rest) = field.name.split_at(1);
        read.insert(format!("{}{rest}", first.to_lowercase()), value.clone());
    }
    Ok(read.into())
}

/// What Go calls the kind of a value.
pub(crate) fn kind(value: &serde_json::Value) -> &'static str {
    match value {
        serde_json::Value::Array(_) => "array",
        serde_json::Value::Object(_) => "object",
        serde_json::Value::String(_) => "string",
        serde_json::Value::Bool(_) => "bool",
        _ => "number",
    }
}

/// A byte as Go quotes it.
fn character(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b' '..=b'~' | 0x80.. => format!("'{}'", char::from(byte)),
        _ => {
            let mut out = String::from("'");
            write!(out, "\\x{byte:02x}").expect("writing to a String does not fail");
            out.push('\'');
            out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        assert_eq!(base64("e30="), b"{}");
        assert_eq!(base64("aGVsbG8gd29ybGQ="), b"hello world");
        assert_eq!(base64(""), b"");
    }

    #[test]
    fn problems_are_told_in_gos_words() {
        let table = [
            ("{}", None),
            ("null", None),
            ("", Some("unexpected end of JSON input")),
            ("{", Some("unexpected end of JSON input")),
            ("[]", Some("json: cannot unmarshal array into Go value of type map[string]interface {}")),
            ("bad", Some("invalid character 'b' looking for beginning of value")),
        ];
        for (text, problem) in table {
            assert_eq!(object_problem(text.as_bytes()).as_deref(), problem, "{text}");
        }
    }
}
