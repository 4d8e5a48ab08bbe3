//! Conversions between types.

use std::sync::Arc;

use super::{Run, no_overload, time};
use crate::error::EvalError;
use crate::eval::Context;
use crate::value::{Text, Timestamp, Val};

type Answer<'a> = Result<Val<'a>, EvalError>;

pub(super) fn find(name: &str) -> Option<Run> {
    Some(match name {
        "bool" => to_bool,
        "bytes" => to_bytes,
        "double" => to_double,
        "duration" => to_duration,
        "dyn" => |args, _| args.first().cloned().ok_or_else(no_overload),
        "int" => to_int,
        "string" => to_string,
        "timestamp" => to_timestamp,
        "type" => |args, _| args.first().map(|value| Val::Type(value.type_of())).ok_or_else(no_overload),
        "uint" => to_uint,
        _ => return None,
    })
}

/// A text that does not read as the type.
fn bad_text<'a>(to: &str) -> Answer<'a> {
    Err(EvalError::new(format!("type conversion error from 'string' to '{to}'")))
}

fn range_error<'a>(what: &str) -> Answer<'a> {
    Err(EvalError::new(what))
}

fn to_bool<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Bool(value)] => Ok(Val::Bool(*value)),
        [Val::String(text)] => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
            _ => bad_text("bool"),
        },
        _ => Err(no_overload()),
    }
}

fn to_bytes<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Bytes(bytes)] => Ok(Val::Bytes(Arc::clone(bytes))),
        [Val::String(text)] => Ok(Val::Bytes(Arc::from(text.as_bytes()))),
        _ => Err(no_overload()),
    }
}

fn to_double<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Double(value)] => Ok(Val::Double(*value)),
        [Val::Int(value)] => Ok(Val::Double(*value as f64)),
        [Val::Uint(value)] => Ok(Val::Double(*value as f64)),
        [Val::String(text)] => match parse_double(text) {
            Some(value) => Ok(Val::Double(value)),
            None => bad_text("double"),
        },
        _ => Err(no_overload()),
    }
}

/// Go's `ParseFloat`: no spaces, no overflow, and words for infinity.
fn parse_double(text: &str) -> Option<f64> {
    let word = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
    let value: f64 = text.parse().ok()?;
    (value.is_finite() || matches!(word.as_str(), "inf" | "infinity" | "nan")).then_some(value)
}

fn to_int<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Int(value)] => Ok(Val::Int(*value)),
        [Val::Uint(value)] => match i64::try_from(*value) {
            Ok(value) => Ok(Val::Int(value)),
            Err(_) => range_error("integer overflow"),
        },
        // Both ends are excluded, because rounding to a double may have moved them.
        [Val::Double(value)] if *value > i64::MIN as f64 && *value < i64::MAX as f64 => {
            Ok(Val::Int(*value as i64))
        }
        [Val::Double(_)] => range_error("integer overflow"),
        [Val::String(text)] => match text.strip_prefix('+').unwrap_or(text).parse() {
            Ok(value) if !text.starts_with("+-") => Ok(Val::Int(value)),
            _ => bad_text("int"),
        },
        [Val::Timestamp(at)] => Ok(Val::Int(at.seconds())),
        [Val::Duration(nanoseconds)] => Ok(Val::Int(*nanoseconds)),
        _ => Err(no_overload()),
    }
}

fn to_uint<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Uint(value)] => Ok(Val::Uint(*value)),
        [Val::Int(value)] => match u64::try_from(*value) {
            Ok(value) => Ok(Val::Uint(value)),
            Err(_) => range_error("unsigned integer overflow"),
        },
        [Val::Double(value)] if *value >= 0.0 && *value < u64::MAX as f64 => Ok(Val::Uint(*value as u64)),
        [Val::Double(_)] => range_error("unsigned integer overflow"),
        [Val::String(text)] => match text.parse() {
            Ok(value) if !text.starts_with('+') => Ok(Val::Uint(value)),
            _ => bad_text("uint"),
        },
        _ => Err(no_overload()),
    }
}

fn to_string<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    let text = match args {
        [Val::String(text)] => return Ok(Val::String(text.clone())),
        [Val::Bool(value)] => value.to_string(),
        [Val::Int(value)] => value.to_string(),
        [Val::Uint(value)] => value.to_string(),
        [Val::Double(value)] => double_text(*value),
        [Val::Bytes(bytes)] => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return range_error("invalid UTF-8 in bytes, cannot convert to string"),
        },
        [Val::Timestamp(at)] => at.to_string(),
        [Val::Duration(nanoseconds)] => time::format_seconds(*nanoseconds),
        [Val::Ip(ip)] => ip.to_string(),
        [Val::Cidr(cidr)] => cidr.to_string(),
        _ => return Err(no_overload()),
    };
    Ok(Val::String(Text::from(text)))
}

/// The shortest text that reads as the same number, as Go's `%g` with the least precision.
pub(super) fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => value.to_string(),
    }
}

/// The shortest text that reads as the same number, never with an exponent.
pub(super) fn double_text_plain(value: f64) -> String {
    value.to_string()
}

fn to_duration<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Duration(value)] | [Val::Int(value)] => Ok(Val::Duration(*value)),
        [Val::String(text)] => match time::parse_duration(text) {
            Some(value) => Ok(Val::Duration(value)),
            None => bad_text("google.protobuf.Duration"),
        },
        _ => Err(no_overload()),
    }
}

fn to_timestamp<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Timestamp(at)] => Ok(Val::Timestamp(*at)),
        [Val::Int(seconds)] => match Timestamp::from_seconds(*seconds) {
            Some(at) => Ok(Val::Timestamp(at)),
            None => range_error("timestamp overflow"),
        },
        [Val::String(text)] => match Timestamp::parse(text) {
            Some(at) => Ok(Val::Timestamp(at)),
            None => bad_text("google.protobuf.Timestamp"),
        },
        _ => Err(no_overload()),
    }
}
