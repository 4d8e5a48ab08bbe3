//! How fast objects are written, if somebody has said how fast they may be.

use std::time::{Duration, Instant};

/// So much of what was not used is saved up: whoever wakes up a little late catches up, and in no second there is more
/// than a tenth too much.
const CREDIT: Duration = Duration::from_millis(100);

/// The longest time between two writes, in seconds, however low the rate is.
const LONGEST: f64 = 3600.0;

/// Keeps to a rate, if one is given.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    rate: Option<f64>,
    /// When the next write may begin, if there is a rate.
    next: Option<Instant>,
}

impl Pace {
    pub(crate) fn set_rate(&mut self, rate: Option<f64>) {
        if self.rate != rate {
            (self.rate, self.next) = (rate, None);
        }
    }

    /// How long the next write has to wait, if it is ready at `now`.
    pub(crate) fn wait(&self, now: Instant) -> Duration {
        self.next.map_or(Duration::ZERO, |next| next.saturating_duration_since(now))
    }

    /// A write begins at `now`.
    pub(crate) fn begin(&mut self, now: Instant) {
        let earliest = now.checked_sub(CREDIT).unwrap_or(now);
        let begin = self.next.map_or(now, |next| next.max(earliest));
        self.next = self.rate.map(|rate| begin + Duration::from_secs_f64((1.0 / rate).min(LONGEST)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept() {
        let mut pace = Pace::default();
        let begin = Instant::now();
        pace.begin(begin);
        assert_eq!(pace.wait(begin), Duration::ZERO);
        pace.set_rate(Some(10.0));
        let mut wait = |at: Instant| {
            let wait = pace.wait(at);
            pace.begin(at);
            wait.as_millis()
        };
        assert_eq!([wait(begin), wait(begin), wait(begin)], [0, 100, 200]);
        let later = begin + Duration::from_secs(10);
        assert_eq!([wait(later), wait(later), wait(later)], [0, 0, 100], "little is saved up");
    }

    #[test]
    fn whoever_wakes_up_late_keeps_to_the_rate() {
        let mut pace = Pace::default();
        pace.set_rate(Some(500.0));
        let (begin, mut now, mut count) = (Instant::now(), Instant::now(), 0);
        while now.duration_since(begin) < Duration::from_secs(10) {
            let wait = pace.wait(now);
            if wait.is_zero() {
                pace.begin(now);
                count += 1;
            }
            // Timers are a little late, always.
            now += wait + Duration::from_micros(700);
        }
        assert!((4500..=5500).contains(&count), "{count} instead of 5000");
    }

    #[test]
    fn no_rate_is_too_low_or_too_high() {
        for rate in [f64::MIN_POSITIVE, 1e-20, 1e-3, 1e300, f64::MAX] {
            let mut pace = Pace::default();
            pace.set_rate(Some(rate));
            let now = Instant::now();
            pace.begin(now);
            pace.begin(now);
            assert!(pace.wait(now) <= Duration::from_secs(7200), "{rate}");
        }
    }
}
