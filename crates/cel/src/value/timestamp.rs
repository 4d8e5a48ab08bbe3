//! Points in time.

use std::cmp::Ordering;
use std::fmt;

/// A point in time from the year 1 to the year 9999, with the offset that it was written with. Only `string()` shows the
/// offset.
#[derive(Debug, Clone, Copy)]
pub struct Timestamp {
    seconds: i64,
    nanoseconds: u32,
    offset_seconds: i32,
}

/// The parts of a date and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    /// From zero.
    pub(crate) day_of_year: i64,
    /// From Sunday, which is zero.
    pub(crate) day_of_week: i64,
}

const DAY: i64 = 86_400;
const SECOND: i128 = 1_000_000_000;
const MIN: i64 = -62_135_596_800;
const MAX: i64 = 253_402_300_799;

impl Timestamp {
    /// The time so many seconds after 1970, if it can be written.
    pub fn from_seconds(seconds: i64) -> Option<Self> {
        (MIN..=MAX).contains(&seconds).then_some(Self { seconds, nanoseconds: 0, offset_seconds: 0 })
    }

    /// Seconds since 1970, rounded down.
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    pub(crate) fn nanosecond(self) -> u32 {
        self.nanoseconds
    }

    pub(crate) fn as_nanoseconds(self) -> i128 {
        i128::from(self.seconds) * SECOND + i128::from(self.nanoseconds)
    }

    /// The time that far away, if it can be written.
    pub(crate) fn plus(self, nanoseconds: i128) -> Option<Self> {
        let total = self.as_nanoseconds() + nanoseconds;
        let seconds = i64::try_from(total.div_euclid(SECOND)).ok()?;
        let at = Self::from_seconds(seconds)?;
        Some(Self { nanoseconds: total.rem_euclid(SECOND) as u32, offset_seconds: self.offset_seconds, ..at })
    }

    /// The date and time at an offset from UTC.
    pub(crate) fn civil(self, offset_seconds: i64) -> Civil {
        let local = self.seconds + offset_seconds;
        let (days, rest) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        let (year, month, day) = date(days);
        Civil {
            year,
            month,
            day,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
            day_of_year: days - days_to(year, 1, 1),
            day_of_week: (days + 4).rem_euclid(7),
        }
    }

    /// Reads RFC 3339 as Go does: upper case letters, any number of digits after the seconds.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |from: usize, to: usize| {
            let digits = text.get(from..to)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i64>().ok())?
        };
        let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
        if separators.iter().any(|(at, separator)| text.as_bytes().get(*at) != Some(separator)) {
            return None;
        }
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let (nanoseconds, zone) = fraction(text.get(19..)?)?;
        let offset = offset(zone)?;
        let valid = (1..=12).contains(&month)
            && (1..=days_in(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        if !valid {
            return None;
        }
        let local = days_to(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
        let at = Self::from_seconds(local - i64::from(offset))?;
        Some(Self { nanoseconds, offset_seconds: offset, ..at })
    }
}

/// The fraction of a second, of which digits beyond nanoseconds are dropped, and what follows it.
fn fraction(text: &str) -> Option<(u32, &str)> {
    let Some(rest) = text.strip_prefix(['.', ',']) else { return Some((0, text)) };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    if end == 0 {
        return None;
    }
    let digits = format!("{:0<9}", &rest[..end.min(9)]);
    Some((digits.parse().ok()?, &rest[end..]))
}

/// `Z` or an offset like `+02:00`, in seconds.
fn offset(zone: &str) -> Option<i32> {
    if zone == "Z" {
        return Some(0);
    }
    let sign = match zone.as_bytes() {
        [b'+', _, _, b':', _, _] => 1,
        [b'-', _, _, b':', _, _] => -1,
        _ => return None,
    };
    let number = |from: usize| -> Option<i32> {
        let digits = zone.get(from..from + 2)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let (hours, minutes) = (number(1)?, number(4)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The days from 1970 to a date. Years are counted from March, so that the leap day is their last.
fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The date that many days after 1970: the inverse of [`days_to`].
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Civil { year, month, day, hour, minute, second, .. } = self.civil(i64::from(self.offset_seconds));
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if self.nanoseconds > 0 {
            let digits = format!("{:09}", self.nanoseconds);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        if self.offset_seconds == 0 {
            return f.write_str("Z");
        }
        let sign = if self.offset_seconds < 0 { '-' } else { '+' };
        let minutes = self.offset_seconds.unsigned_abs() / 60;
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanoseconds).cmp(&(other.seconds, other.nanoseconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_the_calendar_reads_as_it_is_written() {
        for days in (MIN / DAY)..=(MAX / DAY) {
            let (year, month, day) = date(days);
            assert_eq!(days_to(year, month, day), days, "{year}-{month}-{day}");
            assert!((1..=days_in(year, month)).contains(&day), "{year}-{month}-{day}");
        }
    }

    #[test]
    fn texts() {
        for text in ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "2020-02-29T12:00:00.5-08:30"]
        {
            assert_eq!(Timestamp::parse(text).map(|at| at.to_string()).as_deref(), Some(text));
        }
        for text in [
            "2021-02-29T00:00:00Z",
            "2021-01-01T24:00:00Z",
            "2021-01-01T00:00:60Z",
            "2021-1-01T00:00:00Z",
            "",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
