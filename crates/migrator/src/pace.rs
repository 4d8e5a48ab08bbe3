//! How fast objects are written, if somebody has said how fast they may be.

use std::time::{Duration, Instant};

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
        // What was not used is not saved up.
        let begin = self.next.map_or(now, |next| next.max(now));
        self.next = self.rate.map(|rate| begin + Duration::from_secs_f64(1.0 / rate));
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
        assert_eq!([wait(later), wait(later)], [0, 100], "what was not used is not saved up");
    }
}
