//! Times and durations, with Go's syntax.

use jiff::tz::{Offset, TimeZone};

use super::{Run, no_overload};
use crate::error::EvalError;
use crate::value::{Civil, Timestamp, Val};

const SECOND: i64 = 1_000_000_000;

pub(super) fn find(name: &str) -> Option<Run> {
    Some(match name {
        "getFullYear" => |args, _| calendar(args, |at, _| at.year),
        "getMonth" => |args, _| calendar(args, |at, _| at.month - 1),
        "getDayOfYear" => |args, _| calendar(args, |at, _| at.day_of_year),
        "getDayOfMonth" => |args, _| calendar(args, |at, _| at.day - 1),
        "getDate" => |args, _| calendar(args, |at, _| at.day),
        "getDayOfWeek" => |args, _| calendar(args, |at, _| at.day_of_week),
        "getHours" => |args, _| clock(args, 3600 * SECOND, |at, _| at.hour),
        "getMinutes" => |args, _| clock(args, 60 * SECOND, |at, _| at.minute),
        "getSeconds" => |args, _| clock(args, SECOND, |at, _| at.second),
        "getMilliseconds" => {
            |args, _| clock(args, SECOND / 1000, |_, nanosecond| i64::from(nanosecond / 1_000_000))
        }
        _ => return None,
    })
}

/// Reads a part of a date and time; the nanosecond is given besides.
type Read = fn(Civil, u32) -> i64;

fn calendar<'a>(args: &[Val<'a>], read: Read) -> Result<Val<'a>, EvalError> {
    let (at, offset) = match args {
        [Val::Timestamp(at)] => (*at, 0),
        [Val::Timestamp(at), Val::String(zone)] => (*at, offset(zone, *at)?),
        _ => return Err(no_overload()),
    };
    Ok(Val::Int(read(at.civil(offset), at.nanosecond())))
}

/// Of a timestamp the field, of a duration the whole in that unit.
fn clock<'a>(args: &[Val<'a>], unit: i64, read: Read) -> Result<Val<'a>, EvalError> {
    match args {
        [Val::Duration(nanoseconds)] => Ok(Val::Int(nanoseconds / unit)),
        _ => calendar(args, read),
    }
}

/// The offset from UTC in seconds, of a zone by name at that time or as written like `-08:00`.
fn offset(zone: &str, at: Timestamp) -> Result<i64, EvalError> {
    let unknown = || EvalError::new(format!("unknown time zone {zone}"));
    let Some((hours, minutes)) = zone.split_once(':') else {
        return named_offset(zone, at).ok_or_else(unknown);
    };
    let number = |text: &str| {
        let parsed: Result<i64, _> = text.parse();
        parsed.map_err(|_| EvalError::new(format!("strconv.Atoi: parsing \"{text}\": invalid syntax")))
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let minutes = if zone.starts_with('-') { -minutes } else { minutes };
    // A day and more from UTC is no zone; without the limit, the sum could overflow.
    if hours.abs() > 24 || minutes.abs() > 24 * 60 {
        return Err(unknown());
    }
    Ok(hours * 3600 + minutes * 60)
}

fn named_offset(name: &str, at: Timestamp) -> Option<i64> {
    if matches!(name, "" | "UTC") {
        return Some(0);
    }
    // The last day of the year 9999 is beyond what the library knows; no zone changes there.
    let limit = jiff::Timestamp::MAX.as_second();
    let instant = jiff::Timestamp::from_second(at.seconds().min(limit)).ok()?;
    let offset: Offset = TimeZone::get(name).ok()?.to_offset(instant);
    Some(i64::from(offset.seconds()))
}

/// The time that far away, if it is one that can be written.
pub(super) fn shift(at: Timestamp, nanoseconds: i128) -> Result<Timestamp, EvalError> {
    at.plus(nanoseconds).ok_or_else(|| EvalError::new("timestamp overflow"))
}

/// A timestamp, or a date, which is its midnight.
pub(crate) fn parse_date_or_timestamp(text: &str) -> Option<Timestamp> {
    if text.len() == 10 {
        return Timestamp::parse(&format!("{text}T00:00:00Z"));
    }
    Timestamp::parse(text)
}

/// Seconds with a fraction, as in JSON of protobuf: `3600s`, `1.5s`.
pub(super) fn format_seconds(nanoseconds: i64) -> String {
    let seconds = nanoseconds as f64 / SECOND as f64;
    format!("{}s", super::convert::double_text_plain(seconds))
}

/// Go's `time.ParseDuration`: `1h30m`, `-1.5s`, `300ms`.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let (value, after) = rest.split_at(number);
        let unit = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        total = total.checked_add(part(value, &after[..unit])?)?;
        rest = &after[unit..];
    }
    let total = if negative { -total } else { total };
    i64::try_from(total).ok()
}

fn part(value: &str, unit: &str) -> Option<i128> {
    let unit: i128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut total = whole.checked_mul(unit)?;
    let mut scale = unit;
    for digit in fraction.bytes() {
        scale /= 10;
        total += i128::from(digit - b'0') * scale;
    }
    Some(total)
}
