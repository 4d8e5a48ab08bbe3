//! Durations as people read them: `93s`, `5m30s`, `3h`, `2d5h`.

use jiff::{SignedDuration, Timestamp};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Upstream knows no leap years.
const YEAR: i64 = 365 * DAY;

/// What stands for a time that is not known.
pub(crate) const UNKNOWN: &str = "<unknown>";

/// The longest duration Go can tell, in whole seconds; the difference of two times stops there.
const LONGEST: i64 = i64::MAX / 1_000_000_000;

/// A duration to about three figures; upstream's `HumanDuration`.
///
/// Clocks differ: what lies less than two seconds ahead counts as now, what lies further ahead is
/// `<invalid>`.
///
/// ```
/// use concord_printers::human_duration;
/// use jiff::SignedDuration;
/// assert_eq!(human_duration(SignedDuration::from_secs(93)), "93s");
/// assert_eq!(human_duration(SignedDuration::from_secs(330)), "5m30s");
/// ```
#[must_use]
pub fn human_duration(duration: SignedDuration) -> String {
    let seconds = match whole_seconds(duration) {
        Ok(seconds) => seconds,
        Err(text) => return text.to_owned(),
    };
    match seconds {
        ..120 => format!("{seconds}s"),
        120..600 => two_units(seconds, (MINUTE, "m"), (1, "s")),
        600..10_800 => one_unit(seconds, MINUTE, "m"),
        10_800..28_800 => two_units(seconds, (HOUR, "h"), (MINUTE, "m")),
        28_800..172_800 => one_unit(seconds, HOUR, "h"),
        172_800..691_200 => two_units(seconds, (DAY, "d"), (HOUR, "h")),
        691_200..63_072_000 => one_unit(seconds, DAY, "d"),
        63_072_000..252_288_000 => two_units(seconds, (YEAR, "y"), (DAY, "d")),
        _ => one_unit(seconds, YEAR, "y"),
    }
}

/// A duration in its greatest unit alone; upstream's `ShortHumanDuration`.
#[must_use]
pub fn short_human_duration(duration: SignedDuration) -> String {
    let seconds = match whole_seconds(duration) {
        Ok(seconds) => seconds,
        Err(text) => return text.to_owned(),
    };
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3_600 => one_unit(seconds, MINUTE, "m"),
        3_600..86_400 => one_unit(seconds, HOUR, "h"),
        86_400..31_536_000 => one_unit(seconds, DAY, "d"),
        _ => one_unit(seconds, YEAR, "y"),
    }
}

/// Not negative; otherwise what to write instead.
fn whole_seconds(duration: SignedDuration) -> Result<i64, &'static str> {
    match duration.as_secs() {
        ..-1 => Err("<invalid>"),
        -1 => Err("0s"),
        seconds => Ok(seconds.min(LONGEST)),
    }
}

fn one_unit(seconds: i64, unit: i64, name: &str) -> String {
    format!("{}{name}", seconds / unit)
}

/// The smaller unit is left out when it adds nothing.
fn two_units(seconds: i64, greater: (i64, &str), smaller: (i64, &str)) -> String {
    match seconds % greater.0 / smaller.0 {
        0 => one_unit(seconds, greater.0, greater.1),
        rest => format!("{}{}{rest}{}", seconds / greater.0, greater.1, smaller.1),
    }
}

/// How long ago that was.
pub(crate) fn since(time: Option<Timestamp>, now: Timestamp) -> String {
    time.map_or_else(|| UNKNOWN.to_owned(), |time| human_duration(now.duration_since(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_like_upstream() {
        let table = [
            (i64::MIN, "<invalid>", "<invalid>"),
            (-2, "<invalid>", "<invalid>"),
            (-1, "0s", "0s"),
            (0, "0s", "0s"),
            (1, "1s", "1s"),
            (59, "59s", "59s"),
            (60, "60s", "1m"),
            (93, "93s", "1m"),
            (119, "119s", "1m"),
            (120, "2m", "2m"),
            (330, "5m30s", "5m"),
            (599, "9m59s", "9m"),
            (600, "10m", "10m"),
            (3 * HOUR - 1, "179m", "2h"),
            (3 * HOUR, "3h", "3h"),
            (3 * HOUR + 61, "3h1m", "3h"),
            (8 * HOUR - 1, "7h59m", "7h"),
            (8 * HOUR + 61, "8h", "8h"),
            (2 * DAY - 1, "47h", "1d"),
            (2 * DAY, "2d", "2d"),
            (2 * DAY + 5 * HOUR, "2d5h", "2d"),
            (8 * DAY - 1, "7d23h", "7d"),
            (8 * DAY + 5 * HOUR, "8d", "8d"),
            (YEAR - 1, "364d", "364d"),
            (YEAR, "365d", "1y"),
            (2 * YEAR - 1, "729d", "1y"),
            (2 * YEAR, "2y", "2y"),
            (2 * YEAR + 3 * DAY, "2y3d", "2y"),
            (8 * YEAR - 1, "7y364d", "7y"),
            (8 * YEAR + 3 * DAY, "8y", "8y"),
            (i64::MAX, "292y", "292y"),
        ];
        for (seconds, human, short) in table {
            let duration = SignedDuration::from_secs(seconds);
            assert_eq!(human_duration(duration), human, "{seconds} seconds");
            assert_eq!(short_human_duration(duration), short, "{seconds} seconds");
        }
    }

    #[test]
    fn parts_of_a_second_are_cut_off_towards_zero() {
        assert_eq!(human_duration(SignedDuration::from_millis(-1_999)), "0s");
        assert_eq!(human_duration(SignedDuration::from_millis(119_999)), "119s");
    }

    #[test]
    fn an_absent_time_is_unknown() {
        assert_eq!(since(None, Timestamp::UNIX_EPOCH), "<unknown>");
        assert_eq!(since(Some(Timestamp::MIN), Timestamp::MAX), "292y");
        assert_eq!(since(Some(Timestamp::MAX), Timestamp::MIN), "<invalid>");
    }
}
