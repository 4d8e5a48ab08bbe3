//! What a plain scalar means.

/// A scalar with its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// Beyond `i64`.
    Uint(u64),
    Float(f64),
    /// A date or time; it stays text, but has to be quoted to be text elsewhere.
    Timestamp,
    /// `<<`.
    Merge,
    Text,
}

/// What Go's yaml v2 takes an untagged plain scalar for.
pub(super) fn resolve(text: &str) -> Scalar {
    if let Some(scalar) = word(text) {
        return scalar;
    }
    match text.as_bytes().first() {
        Some(b'.') => go_float(text).map_or(Scalar::Text, Scalar::Float),
        Some(b'+' | b'-' | b'0'..=b'9') if is_timestamp(text) => Scalar::Timestamp,
        Some(b'+' | b'-' | b'0'..=b'9') => number(&text.replace('_', "")),
        _ => Scalar::Text,
    }
}

fn word(text: &str) -> Option<Scalar> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        "<<" => Scalar::Merge,
        _ => return None,
    })
}

fn number(plain: &str) -> Scalar {
    let (negative, unsigned) = match plain.as_bytes().first() {
        Some(b'-') => (true, &plain[1..]),
        Some(b'+') => (false, &plain[1..]),
        _ => (false, plain),
    };
    if let Some(magnitude) = magnitude(unsigned) {
        let signed = i128::from(magnitude) * if negative { -1 } else { 1 };
        if let Ok(integer) = i64::try_from(signed) {
            return Scalar::Int(integer);
        }
        // Go reads a number beyond its signed range only without a sign.
        if unsigned.len() == plain.len() {
            return Scalar::Uint(magnitude);
        }
    }
    if is_yaml_float(unsigned) { go_float(plain).map_or(Scalar::Text, Scalar::Float) } else { Scalar::Text }
}

/// An integer in the base its prefix says: `0x`, `0o` or a leading zero, `0b`, or ten.
fn magnitude(unsigned: &str) -> Option<u64> {
    let base = |prefix: [&str; 2]| {
        let digits = prefix.iter().find_map(|prefix| unsigned.strip_prefix(prefix))?;
        // A second sign is not a digit.
        digits.starts_with(|c: char| c.is_ascii_alphanumeric()).then_some(digits)
    };
    if let Some(digits) = base(["0x", "0X"]) {
        return u64::from_str_radix(digits, 16).ok();
    }
    if let Some(digits) = base(["0b", "0B"]) {
        return u64::from_str_radix(digits, 2).ok();
    }
    if let Some(digits) = base(["0o", "0O"]) {
        return u64::from_str_radix(digits, 8).ok();
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    match unsigned.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => u64::from_str_radix(digits, 8).ok(),
        _ => unsigned.parse().ok(),
    }
}

/// Digits with an optional point and exponent, at least one digit before the exponent.
fn is_yaml_float(unsigned: &str) -> bool {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mantissa_fits = digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let exponent_fits = exponent.is_none_or(|exponent| {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !unsigned.is_empty() && digits(unsigned)
    });
    mantissa_fits && exponent_fits
}

/// Rust reads what Go reads, and names of non-finite floats besides; beyond the range Go refuses.
fn go_float(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    text.parse::<f64>().ok().filter(|float| plain && float.is_finite())
}

/// Whether Go's yaml v2 takes the text for a date or a time: `2006-1-2`, alone or followed by a time
/// after `T` with a zone or after a space without one.
fn is_timestamp(text: &str) -> bool {
    let (date, time) = text.split_at(text.find(['T', 't', ' ']).unwrap_or(text.len()));
    if !is_date(date) {
        return false;
    }
    match time.as_bytes().first() {
        None => true,
        Some(b' ') => is_time(&time[1..]),
        Some(_) => split_zone(&time[1..]).is_some_and(is_time),
    }
}

fn is_date(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let (Some(month), Some(day)) = (field(month, 12), field(day, 31)) else { return false };
    let four_digits = year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit());
    let Some(year) = year.parse::<u32>().ok().filter(|_| four_digits && month > 0 && day > 0) else {
        return false;
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    day <= days
}

fn is_time(text: &str) -> bool {
    let parts: Vec<_> = text.split(':').collect();
    let [hour, minute, second] = parts[..] else { return false };
    let (second, fraction) = second.split_once(['.', ',']).unwrap_or((second, "0"));
    let fraction_fits = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    field(hour, 23).is_some() && field(minute, 59).is_some() && field(second, 59).is_some() && fraction_fits
}

/// The time before `Z` or `+01:00`.
fn split_zone(text: &str) -> Option<&str> {
    if let Some(time) = text.strip_suffix('Z') {
        return Some(time);
    }
    let (time, zone) = text.split_at(text.rfind(['+', '-'])?);
    let (hours, minutes) = zone[1..].split_once(':')?;
    let two = |text: &str, most| text.len() == 2 && field(text, most).is_some();
    (two(hours, 24) && two(minutes, 59)).then_some(time)
}

/// A number of one or two digits.
fn field(text: &str, most: u32) -> Option<u32> {
    let digits = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number <= most)
}

#[cfg(test)]
mod tests {
    use super::{Scalar::*, *};

    #[test]
    fn scalars_mean_what_they_mean_to_yaml_v2() {
        let cases = [
            ("", Null),
            ("~", Null),
            ("Null", Null),
            ("nULL", Text),
            ("yes", Bool(true)),
            ("y", Bool(true)),
            ("On", Bool(true)),
            ("off", Bool(false)),
            ("yES", Text),
            ("0", Int(0)),
            ("-0", Int(0)),
            ("+12", Int(12)),
            ("010", Int(8)),
            ("0o10", Int(8)),
            ("09", Float(9.0)),
            ("0x1F", Int(31)),
            ("-0x1f", Int(-31)),
            ("0b101", Int(5)),
            ("-0b101", Int(-5)),
            ("1_000", Int(1000)),
            ("1__0_", Int(10)),
            ("9223372036854775807", Int(i64::MAX)),
            ("-9223372036854775808", Int(i64::MIN)),
            ("9223372036854775808", Uint(9_223_372_036_854_775_808)),
            ("18446744073709551615", Uint(u64::MAX)),
            ("18446744073709551616", Float(18_446_744_073_709_551_616.0)),
            ("+9223372036854775808", Float(9_223_372_036_854_775_808.0)),
            ("-9223372036854775809", Float(-9_223_372_036_854_775_808.0)),
            ("1.", Float(1.0)),
            (".5", Float(0.5)),
            ("-.5", Float(-0.5)),
            ("1e3", Float(1000.0)),
            ("1e", Text),
            ("1e400", Text),
            (".", Text),
            ("-", Text),
            ("+", Text),
            ("--1", Text),
            ("0x", Text),
            ("0x-1", Text),
            ("1.2.3", Text),
            ("1:30", Text),
            ("12e03", Float(12000.0)),
            ("100m", Text),
            ("1Gi", Text),
            ("nan", Text),
            ("inf", Text),
            (".infinity", Text),
            ("<<", Merge),
            ("2026-11-15", Timestamp),
            ("2026-1-5", Timestamp),
            ("2026-13-15", Text),
            ("2026-02-29", Text),
            ("2024-02-29", Timestamp),
            ("2026-11-15T22:04:45Z", Timestamp),
            ("2026-11-15t2:4:5.123Z", Timestamp),
            ("2026-11-15T22:04:45+01:00", Timestamp),
            ("2026-11-15T22:04:45", Text),
            ("2026-11-15 22:04:45", Timestamp),
            ("2026-11-15 22:04:45Z", Text),
            ("2026-11-15T25:04:45Z", Text),
            ("02026-11-15", Text),
            ("+123-1-1", Text),
            ("é", Text),
            ("2026-é", Text),
        ];
        for (text, scalar) in cases {
            assert_eq!(resolve(text), scalar, "{text}");
        }
        assert!(matches!(resolve("-.inf"), Float(float) if float == f64::NEG_INFINITY));
        assert!(matches!(resolve(".NaN"), Float(float) if float.is_nan()));
    }
}
