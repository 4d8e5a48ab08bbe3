//! Dates, times and durations.

use concord_meta::go;

/// `2006-01-02`.
pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| bytes[range].iter().all(u8::is_ascii_digit);
    if bytes.len() != 10
        || !(digits(0..4) && digits(5..7) && digits(8..10))
        || bytes[4] != b'-'
        || bytes[7] != b'-'
    {
        return false;
    }
    let number = |range: std::ops::Range<usize>| text[range].parse::<u32>().unwrap_or_default();
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day)
}

fn days_in(year: u32, month: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A date, a `t` and a time with a zone. Only the part between the first `t` and a second one is looked at, the
/// numbers of the zone are not, and any character may stand before a fraction: as upstream has it.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    lower.len() >= 4 && is_date(date) && is_time(time)
}

fn is_time(time: &str) -> bool {
    let Some((clock, rest)) = time.split_at_checked(8) else { return false };
    let clock = clock.as_bytes();
    let two = |at: usize| clock[at].is_ascii_digit() && clock[at + 1].is_ascii_digit();
    let shaped = two(0) && clock[2] == b':' && two(3) && clock[5] == b':' && two(6);
    shaped
        && &clock[..2] <= b"23".as_slice()
        && &clock[3..5] <= b"59".as_slice()
        && &clock[6..] <= b"59".as_slice()
        && (is_zone(rest) || is_zone(without_fraction(rest)))
}

fn without_fraction(text: &str) -> &str {
    let mut chars = text.chars();
    // Go's `.` does not match a line break.
    if chars.next().is_none_or(|c| c == '\n') {
        return text;
    }
    let digits = chars.as_str();
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == digits.len() { text } else { rest }
}

fn is_zone(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes[at].is_ascii_digit();
    text == "z"
        || (bytes.len() == 6
            && b"+-".contains(&bytes[0])
            && bytes[3] == b':'
            && [1, 2, 4, 5].into_iter().all(digit))
}

/// The names of the units. Of each the last stands also for everything that begins with it.
const UNITS: [&[&str]; 8] = [
    &["ns", "nano"],
    &["us", "µs", "micro"],
    &["ms", "milli"],
    &["s", "sec"],
    &["m", "min"],
    &["h", "hr", "hour"],
    &["d", "day"],
    &["w", "wk", "week"],
];

/// A duration of Go, or any text in which a number before a unit can be found.
pub(super) fn is_duration(text: &str) -> bool {
    if go::parse_duration(text).is_ok() {
        return true;
    }
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let after = rest[number..].trim_start_matches(['\t', '\n', '\x0c', '\r', ' ']);
        let unit =
            after.len() - after.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == 'µ').len();
        if unit > 0 {
            if rest[..number].parse::<i64>().is_err() {
                return false;
            }
            found |= is_unit(&after[..unit].to_lowercase());
        }
        rest = &after[unit..];
    }
    found
}

fn is_unit(unit: &str) -> bool {
    UNITS.iter().any(|variants| {
        variants.contains(&unit) || variants.last().is_some_and(|last| unit.starts_with(last))
    })
}
