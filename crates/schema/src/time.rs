//! Times as Go's `time.Parse` reads them in the two layouts of the API, and as the API writes them.

use std::fmt;

const DAY: i64 = 86_400;

/// Go's zero time, 0001-01-01T00:00:00Z, which the API writes as null.
const ZERO: i64 = -62_135_596_800;
const YEAR_0: i64 = -62_167_219_200;
const YEAR_10000: i64 = 253_402_300_800;

/// How precise a time is written and how it must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `2006-01-02T15:04:05Z07:00`; fractions may be given and are dropped.
    Seconds,
    /// `2006-01-02T15:04:05.000000Z07:00`, with exactly six digits.
    Micros,
}

impl Layout {
    fn text(self) -> &'static str {
        match self {
            Self::Seconds => "2006-01-02T15:04:05Z07:00",
            Self::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// A text that is no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TimeError {
    value: Vec<u8>,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Problem {
    CannotParse { layout: Layout, rest: Vec<u8>, element: &'static str },
    OutOfRange(&'static str),
    ExtraText(Vec<u8>),
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "parsing time {}", quote(&self.value))?;
        match &self.problem {
            Problem::CannotParse { layout, rest, element } => {
                write!(f, " as \"{}\": cannot parse {} as \"{element}\"", layout.text(), quote(rest))
            }
            Problem::OutOfRange(what) => write!(f, ": {what} out of range"),
            Problem::ExtraText(rest) => write!(f, ": extra text: {}", quote(rest)),
        }
    }
}

/// The package's own way to quote: every byte that is not printable ASCII is escaped.
fn quote(text: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for &byte in text {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=0x7f => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

/// The time as the API writes it, in UTC; `None` for Go's zero time.
pub(crate) fn canonical(text: &str, layout: Layout) -> Result<Option<String>, TimeError> {
    let (unix, micros) = parse(text.as_bytes(), layout)
        .map_err(|problem| TimeError { value: text.as_bytes().to_vec(), problem })?;
    Ok((unix != ZERO || micros != 0).then(|| format(unix, micros, layout)))
}

/// Seconds since 1970 and the microseconds beyond them, of a time as the API writes it: to the second, or with six
/// digits beyond it. `None` if it is written otherwise.
pub fn parse_time(text: &str) -> Option<(i64, u32)> {
    let layout = if text.contains('.') { Layout::Micros } else { Layout::Seconds };
    parse(text.as_bytes(), layout).ok()
}

/// The time as the API writes it, to the second or, with microseconds, with six digits beyond it. `None` for a time
/// outside of the years that four digits can tell.
pub fn format_time(unix: i64, micros: Option<u32>) -> Option<String> {
    if !(YEAR_0..YEAR_10000).contains(&unix) {
        return None;
    }
    let layout = if micros.is_some() { Layout::Micros } else { Layout::Seconds };
    Some(format(unix, micros.unwrap_or_default(), layout))
}

/// Seconds since 1970 and the microseconds beyond them, as far as the layout has them.
fn parse(text: &[u8], layout: Layout) -> Result<(i64, u32), Problem> {
    let mut reader = Reader { rest: text, layout };
    let year = reader.year()?;
    reader.literal("-")?;
    let month = reader.number("01", true, 1..=12, "month")?;
    reader.literal("-")?;
    let day = reader.number("02", true, 0..=99, "day")?;
    reader.literal("T")?;
    let hour = reader.number("15", false, 0..=23, "hour")?;
    reader.literal(":")?;
    let minute = reader.number("04", true, 0..=59, "minute")?;
    reader.literal(":")?;
    let second = reader.number("05", true, 0..=59, "second")?;
    let micros = match layout {
        Layout::Seconds => reader.skip_fraction(),
        Layout::Micros => reader.micros()?,
    };
    let offset = reader.zone()?;
    if !reader.rest.is_empty() {
        return Err(Problem::ExtraText(reader.rest.to_vec()));
    }
    if day < 1 || day > days_in(year, month) {
        return Err(Problem::OutOfRange("day"));
    }
    Ok((days(year, month, day) * DAY + hour * 3600 + minute * 60 + second - offset, micros))
}

struct Reader<'a> {
    rest: &'a [u8],
    layout: Layout,
}

impl<'a> Reader<'a> {
    fn bad(&self, rest: &[u8], element: &'static str) -> Problem {
        Problem::CannotParse { layout: self.layout, rest: rest.to_vec(), element }
    }

    fn literal(&mut self, literal: &'static str) -> Result<(), Problem> {
        let rest = self.rest.strip_prefix(literal.as_bytes());
        self.rest = rest.ok_or_else(|| self.bad(self.rest, literal))?;
        Ok(())
    }

    fn year(&mut self) -> Result<i64, Problem> {
        let digits = self.rest.split_at_checked(4).filter(|(year, _)| year.iter().all(u8::is_ascii_digit));
        let (year, rest) = digits.ok_or_else(|| self.bad(self.rest, "2006"))?;
        self.rest = rest;
        Ok(decimal(year))
    }

    /// Two digits; one is enough where the layout does not fix it.
    fn number(
        &mut self,
        element: &'static str,
        fixed: bool,
        range: std::ops::RangeInclusive<i64>,
        what: &'static str,
    ) -> Result<i64, Problem> {
        let digits = self.rest.iter().take(2).take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 || fixed && digits == 1 {
            return Err(self.bad(self.rest, element));
        }
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        let number = decimal(number);
        if range.contains(&number) { Ok(number) } else { Err(Problem::OutOfRange(what)) }
    }

    /// Go accepts a fraction that the layout does not have.
    fn skip_fraction(&mut self) -> u32 {
        if let [b'.' | b',', digit, ..] = self.rest
            && digit.is_ascii_digit()
        {
            let digits = self.rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            self.rest = &self.rest[1 + digits..];
        }
        0
    }

    fn micros(&mut self) -> Result<u32, Problem> {
        let fraction = self.rest.split_at_checked(7).filter(|(fraction, _)| {
            matches!(fraction[0], b'.' | b',') && fraction[1..].iter().all(u8::is_ascii_digit)
        });
        let (fraction, rest) = fraction.ok_or_else(|| self.bad(self.rest, ".000000"))?;
        self.rest = rest;
        Ok(u32::try_from(decimal(&fraction[1..])).unwrap_or(0))
    }

    /// Seconds east of Greenwich. Offsets of 24 hours and 60 minutes are let through, as Go does.
    fn zone(&mut self) -> Result<i64, Problem> {
        if let Some(rest) = self.rest.strip_prefix(b"Z") {
            self.rest = rest;
            return Ok(0);
        }
        let bad = self.bad(self.rest, "Z07:00");
        let Some((&[sign, h1, h2, b':', m1, m2], rest)) = self.rest.split_first_chunk::<6>() else {
            return Err(bad);
        };
        let hours = two_digits([h1, h2]);
        // The minutes are not looked at when the hours are bad.
        let minutes = hours.and(two_digits([m1, m2]));
        if hours.is_some_and(|hours| hours > 24) {
            return Err(Problem::OutOfRange("time zone offset hour"));
        }
        if minutes.is_some_and(|minutes| minutes > 60) {
            return Err(Problem::OutOfRange("time zone offset minute"));
        }
        let (Some(hours), Some(minutes), b'+' | b'-') = (hours, minutes, sign) else { return Err(bad) };
        self.rest = rest;
        let seconds = hours * 3600 + minutes * 60;
        Ok(if sign == b'-' { -seconds } else { seconds })
    }
}

fn two_digits(digits: [u8; 2]) -> Option<i64> {
    digits.iter().all(u8::is_ascii_digit).then(|| decimal(&digits))
}

fn decimal(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
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

/// The inverse of [`days`], over cycles of 400 years.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (cycle, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    (cycle * 400 + year, month, day_of_month)
}

fn format(unix: i64, micros: u32, layout: Layout) -> String {
    let (year, month, day) = date(unix.div_euclid(DAY));
    let second = unix.rem_euclid(DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = match layout {
        Layout::Seconds => String::new(),
        Layout::Micros => format!(".{micros:06}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(layout: Layout, text: &str, expect: &str) {
        let found = match canonical(text, layout) {
            Ok(time) => time.unwrap_or_else(|| "null".to_owned()),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expect);
    }

    #[test]
    fn times_are_written_to_the_second_in_utc() {
        for (text, expect) in [
            ("2026-11-15T23:46:35Z", "2026-11-15T23:46:35Z"),
            ("2026-11-15T23:46:35.999999999Z", "2026-11-15T23:46:35Z"),
            ("2026-11-15T23:46:35,5Z", "2026-11-15T23:46:35Z"),
            ("2026-11-15T1:46:35Z", "2026-11-15T01:46:35Z"),
            ("2024-02-29T00:30:00+01:00", "2024-02-28T23:30:00Z"),
            ("2023-12-31T23:30:00-01:00", "2024-01-01T00:30:00Z"),
            ("0001-01-01T00:00:00Z", "null"),
            ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"),
        ] {
            check(Layout::Seconds, text, expect);
        }
    }

    #[test]
    fn bad_times_read_as_go_says_it() {
        let layout = "2006-01-02T15:04:05Z07:00";
        for (text, rest, element) in [
            ("x", "x", "2006"),
            ("", "", "2006"),
            ("2026", "", "-"),
            ("2026-1-02", "1-02", "01"),
            ("2026-11-15 23:46:35Z", " 23:46:35Z", "T"),
            ("2026-11-15T23:46:35", "", "Z07:00"),
            ("2026-11-15T23:46:35+0100", "+0100", "Z07:00"),
            ("2026-11-15T23:46:35x01:00", "x01:00", "Z07:00"),
        ] {
            let expect =
                format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{rest}\" as \"{element}\"");
            check(Layout::Seconds, text, &expect);
        }
        for (text, expect) in [
            ("2026-13-15T23:46:35Z", "month out of range"),
            ("2026-02-30T23:46:35Z", "day out of range"),
            ("2026-02-28T24:46:35Z", "hour out of range"),
            ("2026-02-28T23:46:60Z", "second out of range"),
            ("2026-02-28T23:46:35+25:00", "time zone offset hour out of range"),
            ("2026-02-28T23:46:35Zjunk", "extra text: \"junk\""),
        ] {
            check(Layout::Seconds, text, &format!("parsing time \"{text}\": {expect}"));
        }
        check(
            Layout::Seconds,
            "\u{e9}\"",
            "parsing time \"\\xc3\\xa9\\\"\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\\xc3\\xa9\\\"\" as \"2006\"",
        );
    }

    #[test]
    fn micro_times_have_six_digits() {
        check(Layout::Micros, "2026-11-15T23:46:35.000001+01:00", "2026-11-15T22:46:35.000001Z");
        check(Layout::Micros, "0001-01-01T00:00:00.000000Z", "null");
        let head = "parsing time \"2026-11-15T23:46:35Z\" as \"2006-01-02T15:04:05.000000Z07:00\"";
        check(Layout::Micros, "2026-11-15T23:46:35Z", &format!("{head}: cannot parse \"Z\" as \".000000\""));
    }

    #[test]
    fn dates_and_days_are_inverse() {
        for day in (-800_000..3_000_000).step_by(997) {
            let (year, month, of_month) = date(day);
            assert_eq!(days(year, month, of_month), day);
        }
    }
}
