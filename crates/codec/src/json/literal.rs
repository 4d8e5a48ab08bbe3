use serde_json::{Number, Value};

/// A number with Go's choice between integer and float, or nothing when it exceeds a float.
pub(crate) fn number(literal: &str) -> Option<Value> {
    // What Go's reader calls an integer has no point; `1e3` fails to parse as one and becomes a float.
    if !literal.contains('.')
        && let Ok(integer) = literal.parse::<i64>()
    {
        return Some(Value::Number(integer.into()));
    }
    let float = literal.parse::<f64>().ok()?;
    Number::from_f64(float).map(Value::Number)
}

/// The text of a string literal, given without its quotes and known to be well-formed JSON apart from
/// its encoding.
pub(crate) fn unquote(raw: &[u8], has_escapes: bool) -> String {
    if !has_escapes {
        return match std::str::from_utf8(raw) {
            Ok(text) => text.to_owned(),
            Err(_) => coerce(raw),
        };
    }
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        push_coerced(&mut text, &rest[..at]);
        rest = push_escape(&mut text, &rest[at + 1..]);
    }
    push_coerced(&mut text, rest);
    text
}

fn coerce(raw: &[u8]) -> String {
    let mut text = String::with_capacity(raw.len() + 8);
    push_coerced(&mut text, raw);
    text
}

/// Go replaces every byte that is not part of a character, where Rust's lossy conversion replaces runs.
fn push_coerced(text: &mut String, raw: &[u8]) {
    for chunk in raw.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
}

/// Reads one escape, given what follows the backslash, and returns what follows the escape.
fn push_escape<'a>(text: &mut String, raw: &'a [u8]) -> &'a [u8] {
    let Some((kind, rest)) = raw.split_first() else { return raw };
    let c = match kind {
        b'b' => '\x08',
        b'f' => '\x0c',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return push_unicode(text, rest),
        other => char::from(*other),
    };
    text.push(c);
    rest
}

fn push_unicode<'a>(text: &mut String, raw: &'a [u8]) -> &'a [u8] {
    let (unit, rest) = hex(raw);
    if let (Some(low), after) = low_surrogate(rest)
        && (0xd800..0xdc00).contains(&unit)
    {
        let code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        return after;
    }
    text.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
    rest
}

fn low_surrogate(raw: &[u8]) -> (Option<u32>, &[u8]) {
    let Some(digits) = raw.strip_prefix(b"\\u") else { return (None, raw) };
    let (unit, rest) = hex(digits);
    ((0xdc00..0xe000).contains(&unit).then_some(unit), rest)
}

/// Four hexadecimal digits.
fn hex(raw: &[u8]) -> (u32, &[u8]) {
    let (digits, rest) = raw.split_at(raw.len().min(4));
    let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0);
    (digits.iter().fold(0, |unit, byte| unit * 16 + digit(byte)), rest)
}
