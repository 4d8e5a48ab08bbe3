//! Durations as Kubernetes flags take them, in Go's notation: `10s`, `1m30s`, `250ms`.

use std::time::Duration;

const FORM: &str = "expected a number with a unit, such as 250ms, 10s or 1m30s";

/// Reads a duration that is not negative.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    if text.is_empty() {
        return Err(FORM.to_owned());
    }
    let (mut rest, mut total) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let (number, after) = split(rest, |c| c.is_ascii_digit() || c == '.');
        let (unit, after) = split(after, |c| !c.is_ascii_digit() && c != '.');
        let number: f64 = number.parse().map_err(|_| FORM.to_owned())?;
        let part = Duration::try_from_secs_f64(number * seconds_per(unit)?);
        let part = part.map_err(|error| error.to_string())?;
        total = total.checked_add(part).ok_or("the duration is too long")?;
        rest = after;
    }
    Ok(total)
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

fn seconds_per(unit: &str) -> Result<f64, String> {
    match unit {
        "h" => Ok(3600.0),
        "m" => Ok(60.0),
        "s" => Ok(1.0),
        "ms" => Ok(1e-3),
        "us" | "µs" => Ok(1e-6),
        "ns" => Ok(1e-9),
        _ => Err(FORM.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("0", 0),
            ("0s", 0),
            ("250ms", 250),
            ("10s", 10_000),
            ("1.5s", 1_500),
            ("1m30s", 90_000),
            ("1h", 3_600_000),
            ("1000us", 1),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(expected)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in
            ["", "10", "s", "-1s", "1d", "1s2", "1..5s", "10 s", "1e999h", "99999999999999999999h", "ä"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
