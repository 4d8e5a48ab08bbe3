use std::fmt::{self, Display, Formatter};

/// A moment to the second, as managedFields record it. This crate never asks a clock for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds since 1970, UTC.
    pub unix: i64,
}

const DAY: i64 = 86_400;

impl Time {
    /// Reads RFC 3339, in any zone; fractions of a second are dropped. `None` if it is not a time.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.split_at_checked(10)?;
        let (clock, rest) = rest.strip_prefix('T')?.split_at_checked(8)?;
        let zone = match rest.strip_prefix('.') {
            None => rest,
            Some(fraction) => {
                let zone = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
                if zone.len() == fraction.len() {
                    return None;
                }
                zone
            }
        };
        let [year, month, day] = numbers(date, "-", [4, 2, 2])?;
        let [hour, minute, second] = numbers(clock, ":", [2, 2, 2])?;
        let valid = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
        if !valid || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let unix = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
        Some(Self { unix: unix - offset(zone)? })
    }
}

/// Seconds east of Greenwich.
fn offset(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (sign, clock) = match zone.split_at_checked(1)? {
        ("+", clock) => (1, clock),
        ("-", clock) => (-1, clock),
        _ => return None,
    };
    let [hours, minutes] = numbers(clock, ":", [2, 2])?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

fn numbers<const N: usize>(text: &str, separator: &str, widths: [usize; N]) -> Option<[i64; N]> {
    let mut numbers = [0; N];
    let mut parts = text.split(separator);
    for (number, width) in numbers.iter_mut().zip(widths) {
        let part =
            parts.next().filter(|part| part.len() == width && part.bytes().all(|b| b.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01. Years start in March here, so that the leap day is the last of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// RFC 3339 in UTC, such as `2026-11-15T22:30:00Z`.
impl Display for Time {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (day, second) = (self.unix.div_euclid(DAY), self.unix.rem_euclid(DAY));
        // 400 years have 146,097 days; a guess from that is at most two years early.
        let mut year = 1969 + (day * 400).div_euclid(146_097);
        while days(year + 1, 1, 1) <= day {
            year += 1;
        }
        let month = (1..=12).rev().find(|month| days(year, *month, 1) <= day).unwrap_or(1);
        let date = day - days(year, month, 1) + 1;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(out, "{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_printed() {
        let cases = [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2026-11-15T22:30:00Z", 1_794_781_800),
            ("1969-12-31T23:59:59Z", -1),
            ("1968-12-31T00:00:00Z", -31_622_400),
        ];
        for (text, unix) in cases {
            assert_eq!(Time::parse(text), Some(Time { unix }), "{text}");
            assert_eq!(Time { unix }.to_string(), text);
        }
        assert_eq!(Time::parse("2026-11-15T23:30:00.25+01:00"), Some(Time { unix: 1_794_781_800 }));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "now",
            "2026-11-15",
            "2026-02-29T00:00:00Z",
            "2026-11-15T24:00:00Z",
            "2026-11-15T22:30:00",
            "2026-11-15T22:30:00.Z",
        ] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }
}
