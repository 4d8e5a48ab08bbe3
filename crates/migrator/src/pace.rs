//! How much is written at once.

use std::time::{Duration, Instant};

/// The most that is under way at once.
const MOST: f64 = 32.0;

/// What there is at once in the beginning. Slow writes alone do not bring it below that: it may be everybody else who is
/// busy, and then one at a time would take for ever without helping anybody.
const FEW: f64 = 8.0;

/// How many times as long as at its best a write may take before there is less at once, and how much longer anyway: what
/// writes wait for, all others wait for as well.
const SLOW: f64 = 3.0;
const BLINK: f64 = 0.005;

/// Adapts how much is under way at once: a little more with every write that goes well, half of it when the server says
/// that it is too much, and a little less when writes take long. And keeps to a rate, if one is given.
#[derive(Debug)]
pub(crate) struct Pace {
    limit: f64,
    /// What a write takes at its best, in seconds. It forgets slowly, so that a store that became slower is believed.
    best: f64,
    rate: Option<f64>,
    /// When the next write may begin, if there is a rate.
    next: Option<Instant>,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self { limit: FEW, best: f64::INFINITY, rate: None, next: None }
    }

    pub(crate) fn set_rate(&mut self, rate: Option<f64>) {
        if self.rate != rate {
            (self.rate, self.next) = (rate, None);
        }
    }

    /// How many writes may be under way.
    pub(crate) fn limit(&self) -> usize {
        self.limit as usize
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

    /// A write went well and took so long.
    pub(crate) fn went_well(&mut self, took: Duration) {
        let took = took.as_secs_f64();
        self.best = took.min(self.best * 1.003);
        let more = self.limit + 1.0 / self.limit;
        self.limit = match took > self.best * SLOW + BLINK {
            true if self.limit > FEW => (self.limit * 0.98).max(FEW),
            true => more.min(FEW),
            false => more.min(MOST),
        };
    }

    /// The server cannot do so much.
    pub(crate) fn was_too_much(&mut self) {
        self.limit = (self.limit / 2.0).max(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Duration = Duration::from_millis(2);

    #[test]
    fn there_is_more_at_once_until_it_is_too_much() {
        let mut pace = Pace::new();
        (0..1000).for_each(|_| pace.went_well(FAST));
        assert_eq!(pace.limit(), MOST as usize);
        pace.was_too_much();
        assert_eq!(pace.limit(), MOST as usize / 2);
        (0..20).for_each(|_| pace.was_too_much());
        assert_eq!(pace.limit(), 1, "something is always under way");
    }

    #[test]
    fn slow_writes_are_a_brake_until_they_are_the_rule() {
        let mut pace = Pace::new();
        (0..1000).for_each(|_| pace.went_well(FAST));
        (0..200).for_each(|_| pace.went_well(FAST * 50));
        assert_eq!(pace.limit(), FEW as usize);
        (0..20_000).for_each(|_| pace.went_well(FAST * 50));
        assert!(pace.limit() > 10, "the store is slower now: {}", pace.limit());
        let mut pace = Pace::new();
        pace.went_well(FAST);
        (0..20).for_each(|_| pace.was_too_much());
        (0..100).for_each(|_| pace.went_well(FAST * 50));
        assert_eq!(pace.limit(), FEW as usize, "slow is better than for ever");
    }

    #[test]
    fn a_rate_is_kept() {
        let mut pace = Pace::new();
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
