//! `string.format` and `strings.quote`.

use super::{convert, no_overload, time};
use crate::error::EvalError;
use crate::eval::Context;
use crate::types::Type;
use crate::value::{Text, Val};

type Answer<'a> = Result<Val<'a>, EvalError>;

const STRING_TYPES: &str =
    "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps";

/// In double quotes, with the escapes of the language.
pub(super) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0C' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0B' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A piece of a template.
enum Piece<'t> {
    Text(&'t str),
    Clause { letter: char, precision: Option<usize> },
}

fn pieces(template: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some(percent) = rest.find('%') {
        pieces.push(Piece::Text(&rest[..percent]));
        rest = &rest[percent + 1..];
        if rest.starts_with('%') {
            pieces.push(Piece::Text("%"));
            rest = &rest[1..];
            continue;
        }
        let (precision, after) = precision(rest)?;
        let Some(letter) = after.chars().next() else { return Err("unexpected end of string".to_owned()) };
        if !"sdfebxXo".contains(letter) {
            let message = "could not parse formatting clause: unrecognized formatting clause";
            return Err(format!("{message} \"{letter}\""));
        }
        pieces.push(Piece::Clause { letter, precision });
        rest = &after[letter.len_utf8()..];
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

/// `.2` before a clause.
fn precision(text: &str) -> Result<(Option<usize>, &str), String> {
    let Some(rest) = text.strip_prefix('.') else { return Ok((None, text)) };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    match rest[..end].parse::<usize>() {
        // No number has more digits than this that mean anything.
        Ok(precision) => Ok((Some(precision.min(1000)), &rest[end..])),
        Err(_) => Err(format!(
            "could not parse formatting clause: error while parsing precision: error while converting precision to \
             integer: strconv.Atoi: parsing \"{}\": invalid syntax",
            &rest[..end]
        )),
    }
}

/// What is wrong with a template and arguments of these types: of which argument, and what.
pub(crate) fn check(template: &str, types: &[&Type]) -> Result<(), (Option<usize>, String)> {
    let whole = |message: String| (None, message);
    let mut next = 0;
    for piece in pieces(template).map_err(whole)? {
        let Piece::Clause { letter, .. } = piece else { continue };
        let Some(found) = types.get(next) else { return Err(whole(format!("index {next} out of range"))) };
        let fits = match letter {
            _ if found.is_dyn() => true,
            's' => !matches!(found, Type::Opaque(..) | Type::Object(_)),
            'f' | 'e' => matches!(found, Type::Double),
            'b' => matches!(found, Type::Int | Type::Uint | Type::Bool),
            'x' | 'X' => matches!(found, Type::Int | Type::Uint | Type::String | Type::Bytes),
            _ => matches!(found, Type::Int | Type::Uint),
        };
        if !fits {
            let name = match found {
                Type::Opaque(name, _) => name.to_string(),
                Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
                Type::Duration => "google.protobuf.Duration".to_owned(),
                Type::Null => "null_type".to_owned(),
                other => other.to_string().split('(').next().unwrap_or_default().to_owned(),
            };
            return Err((Some(next), wrong(letter, &name)));
        }
        next += 1;
    }
    if next < types.len() {
        let message =
            format!("too many arguments supplied to string.format (expected {next}, got {})", types.len());
        return Err(whole(message));
    }
    Ok(())
}

/// An argument that its clause cannot write.
fn wrong(letter: char, found: &str) -> String {
    let reason = match letter {
        'd' => "decimal clause can only be used on integers",
        'o' => "octal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'x' | 'X' => "only integers, byte buffers, and strings can be formatted as hex",
        _ => {
            return format!(
                "error during formatting: string clause can only be used on {STRING_TYPES}, was given {found}"
            );
        }
    };
    format!("error during formatting: {reason}, was given {found}")
}

pub(super) fn format<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    let [Val::String(template), Val::List(values)] = args else { return Err(no_overload()) };
    let mut out = String::new();
    let mut next = 0;
    for piece in pieces(template).map_err(EvalError::new)? {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Clause { letter, precision } => {
                let missing = || Err(EvalError::new(format!("index {next} out of range")));
                let value = values.get(next).unwrap_or_else(missing)?;
                next += 1;
                let written = write_clause(letter, precision, &value)
                    .ok_or_else(|| EvalError::new(wrong(letter, &value.type_name())))?;
                context.work.steps(written.len())?;
                out.push_str(&written);
            }
        }
    }
    Ok(Val::String(Text::from(out)))
}

fn write_clause(letter: char, precision: Option<usize>, value: &Val<'_>) -> Option<String> {
    match letter {
        's' => top(value),
        'd' => integer(value, |value| value.to_string()),
        'o' => integer(value, |value| format!("{value:o}")),
        'b' => match value {
            Val::Bool(value) => Some(u8::from(*value).to_string()),
            _ => integer(value, |value| format!("{value:b}")),
        },
        'x' => hexadecimal(value),
        'X' => hexadecimal(value).map(|text| text.to_uppercase()),
        'f' => double(value).map(|value| fixed(value, precision.unwrap_or(6))),
        _ => double(value).map(scientific),
    }
}

fn integer(value: &Val<'_>, write: fn(u64) -> String) -> Option<String> {
    match value {
        Val::Int(value) if *value < 0 => Some(format!("-{}", write(value.unsigned_abs()))),
        Val::Int(value) => Some(write(value.unsigned_abs())),
        Val::Uint(value) => Some(write(*value)),
        _ => None,
    }
}

fn hexadecimal(value: &Val<'_>) -> Option<String> {
    let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match value {
        Val::String(text) => Some(bytes(text.as_bytes())),
        Val::Bytes(data) => Some(bytes(data)),
        _ => integer(value, |value| format!("{value:x}")),
    }
}

fn double(value: &Val<'_>) -> Option<f64> {
    match value {
        Val::Double(value) => Some(*value),
        Val::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// The words for what is no finite number.
fn not_finite(value: f64) -> Option<String> {
    let text = match value {
        _ if value.is_nan() => "NaN",
        f64::INFINITY => "∞",
        f64::NEG_INFINITY => "-∞",
        _ => return None,
    };
    Some(text.to_owned())
}

fn fixed(value: f64, precision: usize) -> String {
    not_finite(value).unwrap_or_else(|| format!("{value:.precision$}"))
}

/// Always six digits: upstream ignores the precision here.
fn scientific(value: f64) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    if let Some(text) = not_finite(value) {
        return text;
    }
    let text = format!("{value:.6e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let raised = format!("{:02}", exponent.unsigned_abs());
    let raised: String = raised.bytes().map(|digit| DIGITS[usize::from(digit - b'0')]).collect();
    format!("{digits}×10{}{raised}", if exponent < 0 { "⁻" } else { "" })
}

/// A value as `%s` writes it.
fn top(value: &Val<'_>) -> Option<String> {
    match value {
        Val::String(text) => Some(text.to_string()),
        Val::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Val::Double(value) => Some(not_finite(*value).unwrap_or_else(|| convert::double_text(*value))),
        Val::Timestamp(at) => Some(at.to_string()),
        Val::Duration(nanoseconds) => Some(time::format_seconds(*nanoseconds)),
        _ => show(value),
    }
}

/// A value inside of a list or map, written so that it could be read again.
pub(super) fn show(value: &Val<'_>) -> Option<String> {
    Some(match value {
        Val::Null => "null".to_owned(),
        Val::Bool(value) => value.to_string(),
        Val::Int(value) => value.to_string(),
        Val::Uint(value) => value.to_string(),
        Val::Double(value) => fixed(*value, 6),
        Val::String(text) => format!("\"{text}\""),
        Val::Bytes(bytes) => format!("b\"{}\"", String::from_utf8_lossy(bytes)),
        Val::Timestamp(at) => format!("timestamp(\"{at}\")"),
        Val::Duration(nanoseconds) => format!("duration(\"{}\")", time::format_seconds(*nanoseconds)),
        Val::Type(Type::List(_)) => "list".to_owned(),
        Val::Type(Type::Map(..)) => "map".to_owned(),
        Val::Type(Type::Null) => "null_type".to_owned(),
        Val::Type(named) => named.to_string(),
        Val::List(list) => {
            let items: Option<Vec<String>> = list.to_vec().iter().map(show).collect();
            format!("[{}]", items?.join(", "))
        }
        Val::Map(map) => {
            let entry = |(key, value): &(Val<'_>, Val<'_>)| Some(format!("{}:{}", show(key)?, show(value)?));
            let entries: Option<Vec<String>> = map.entries().iter().map(entry).collect();
            format!("{{{}}}", entries?.join(", "))
        }
        _ => return None,
    })
}
