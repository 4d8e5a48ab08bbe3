//! Durations as Go writes them: `1h30m`, `1.5s`, `250ms`.

use std::fmt::Write;

/// The units, with their nanoseconds; micro has two characters that look alike.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// A duration as `time.ParseDuration` reads it, in nanoseconds, or the text of its error.
///
/// ```
/// use concord_meta::go::parse_duration;
/// assert_eq!(parse_duration("1m0.5s"), Ok(60_500_000_000));
/// assert_eq!(parse_duration("5"), Err("time: missing unit in duration \"5\"".to_owned()));
/// ```
///
/// # Errors
///
/// The text Go gives.
pub fn parse_duration(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {}", quote(text));
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0_u64;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let (unit, after) = split(after, |c| c == '.' || c.is_ascii_digit());
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", quote(text)));
        }
        let Some((_, nanos)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!("time: unknown unit {} in duration {}", quote(unit), quote(text)));
        };
        let part = nanoseconds(whole, fraction, *nanos).ok_or_else(invalid)?;
        total = total.checked_add(part).ok_or_else(invalid)?;
        rest = after;
    }
    let total = i128::from(total) * if text.starts_with('-') { -1 } else { 1 };
    i64::try_from(total).map_err(|_| invalid())
}

fn digits(text: &str) -> (&str, &str) {
    split(text, |c| !c.is_ascii_digit())
}

fn split(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

/// Fractions of a nanosecond are cut off.
fn nanoseconds(whole: &str, fraction: &str, unit: u64) -> Option<u64> {
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // An hour has 13 digits of nanoseconds: more digits of a fraction of it do not count.
    let fraction = &fraction[..fraction.len().min(18)];
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let value: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let part = u64::try_from(value * u128::from(unit) / scale).ok()?;
    whole.checked_mul(unit)?.checked_add(part)
}

/// The `time` package quotes in its own way: byte by byte.
fn quote(text: &str) -> String {
    let mut out = String::from('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=0x7f => out.push(char::from(byte)),
            _ => write!(out, "\\x{byte:02x}").expect("writing to a String does not fail"),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let second = 1_000_000_000;
        let table = [
            ("0", 0),
            ("-0", 0),
            ("5s", 5 * second),
            ("+5s", 5 * second),
            ("-1.5h", -5400 * second),
            ("1h15m30.918273645s", 4_530_918_273_645),
            (".5s", second / 2),
            ("1.s", second),
            ("10ns", 10),
            ("1us1\u{b5}s1\u{3bc}s", 3000),
            ("0.9ns", 0),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
        ];
        for (text, nanos) in table {
            assert_eq!(parse_duration(text), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn bad_durations_get_gos_complaint() {
        let table = [
            ("", r#"time: invalid duration """#),
            ("abc", r#"time: invalid duration "abc""#),
            ("-", r#"time: invalid duration "-""#),
            (".s", r#"time: invalid duration ".s""#),
            ("1", r#"time: missing unit in duration "1""#),
            ("1s2", r#"time: missing unit in duration "1s2""#),
            ("1d", r#"time: unknown unit "d" in duration "1d""#),
            ("1 s", r#"time: unknown unit " s" in duration "1 s""#),
            ("1\u{e9}\"", r#"time: unknown unit "\xc3\xa9\"" in duration "1\xc3\xa9\"""#),
            ("9223372036854775808ns", r#"time: invalid duration "9223372036854775808ns""#),
            ("99999999h", r#"time: invalid duration "99999999h""#),
        ];
        for (text, complaint) in table {
            assert_eq!(parse_duration(text), Err(complaint.to_owned()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in r"[-+]?([0-9.]{0,22}[a-z]{0,2}){0,3}") {
            if let Ok(nanos) = parse_duration(&text) {
                prop_assert!(nanos == 0 || text.starts_with('-') == (nanos < 0));
            }
        }
    }
}
