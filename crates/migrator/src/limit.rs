//! How much is written at once.

use std::time::{Duration, Instant};

/// Between what and what it may be.
///
/// It begins with the few. What is slow does not bring it below them: it may be everybody else who is busy, and then one at a
/// time would take for ever without helping anybody.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    few: f64,
    most: f64,
}

impl Bounds {
    /// For writes each of which asks the store for itself. With so few, etcd 3.6 on two cores writes nine tenths of what it
    /// can at all, and reads take less than twice as long (docs/benchmarks.md).
    pub(crate) const ALONE: Self = Self { few: 8.0, most: 32.0 };

    /// For writes that share requests: those that one request has, and those that are being made for the next. Fewer would be
    /// more requests, and more to do for the store.
    pub(crate) const TOGETHER: Self = Self { few: 48.0, most: 64.0 };
}

/// What is too much is said by all who are under way at once: it counts once in this time.
const ROUND: Duration = Duration::from_millis(100);

/// How much more there may be for every round of writes that went well.
const STEP: f64 = 0.25;

/// How many times as long as at its best a write may take before there is less at once, and how much longer anyway: what
/// writes wait for, the writes of others wait for as well.
const SLOW_WRITE: f64 = 3.0;
const BLINK: f64 = 0.005;

/// The same for what a read takes without migrations; and what is nobody's trouble anyway. Beyond some number of writes a
/// store only lets them wait for each other, and reads with them: nothing is gained by more.
const SLOW_READ: f64 = 1.75;
const QUICK_READ: f64 = 0.001;

/// How much of what reads took lately is forgotten with a new one.
const FORGET: f64 = 0.25;

/// Adapts how much is under way at once: a little more with every write that goes well, half of it when the server says
/// that it is too much, and a little less when writes take long, or when reads take longer than they would without.
#[derive(Debug)]
pub(crate) struct Limit {
    bounds: Bounds,
    limit: f64,
    /// What a write takes at its best, in seconds. It forgets slowly, so that a store that became slower is believed.
    best: f64,
    /// What a read takes while nothing is migrated, in seconds, if that is known.
    usual: Option<f64>,
    /// What reads took lately, in seconds.
    lately: f64,
    /// When it was last too much.
    braked: Option<Instant>,
}

impl Limit {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let limit = bounds.few;
        Self { bounds, limit, best: f64::INFINITY, usual: None, lately: 0.0, braked: None }
    }

    /// How many writes may be under way.
    pub(crate) fn get(&self) -> usize {
        self.limit as usize
    }

    /// A read takes so long while nothing is migrated.
    pub(crate) fn set_usual(&mut self, usual: Duration) {
        self.lately = usual.as_secs_f64();
        self.usual = Some(self.lately);
    }

    /// A read took so long while writes were under way.
    pub(crate) fn read_took(&mut self, took: Duration) {
        let Some(usual) = self.usual else { return };
        // One that took very long says no more than one that took too long: what was it that it waited for?
        let took = took.as_secs_f64().min(2.0 * longest_read(usual));
        self.lately += (took - self.lately) * FORGET;
        if self.are_reads_slow() && self.limit > self.bounds.few {
            self.limit = (self.limit * 0.9).max(self.bounds.few);
        }
    }

    fn are_reads_slow(&self) -> bool {
        self.usual.is_some_and(|usual| self.lately > longest_read(usual))
    }

    /// A write went well and took so long.
    pub(crate) fn went_well(&mut self, took: Duration) {
        let took = took.as_secs_f64();
        self.best = took.min(self.best * 1.003);
        let more = self.limit + STEP / self.limit;
        let Bounds { few, most } = self.bounds;
        let is_slow = took > self.best * SLOW_WRITE + BLINK;
        self.limit = match is_slow || self.are_reads_slow() {
            true if self.limit <= few => more.min(few),
            true if is_slow => (self.limit * 0.98).max(few),
            true => self.limit,
            false => more.min(most),
        };
    }

    /// The server cannot do so much.
    pub(crate) fn was_too_much(&mut self, now: Instant) {
        if self.braked.is_some_and(|at| now.saturating_duration_since(at) < ROUND) {
            return;
        }
        self.braked = Some(now);
        self.limit = (self.limit / 2.0).max(1.0);
    }
}

fn longest_read(usual: f64) -> f64 {
    (usual * SLOW_READ).max(QUICK_READ)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: f64 = Bounds::ALONE.few;
    const MOST: f64 = Bounds::ALONE.most;
    const FAST: Duration = Duration::from_millis(2);

    fn grown() -> Limit {
        let mut limit = Limit::new(Bounds::ALONE);
        (0..3000).for_each(|_| limit.went_well(FAST));
        assert_eq!(limit.get(), MOST as usize);
        limit
    }

    #[test]
    fn there_is_more_at_once_until_it_is_too_much() {
        let (mut limit, begin) = (grown(), Instant::now());
        (0..30).for_each(|_| limit.was_too_much(begin));
        assert_eq!(limit.get(), MOST as usize / 2, "all of them say the same");
        (1..20).for_each(|round| limit.was_too_much(begin + ROUND * round));
        assert_eq!(limit.get(), 1, "something is always under way");
    }

    #[test]
    fn slow_writes_are_a_brake_until_they_are_the_rule() {
        let mut limit = grown();
        (0..200).for_each(|_| limit.went_well(FAST * 50));
        assert_eq!(limit.get(), FEW as usize);
        (0..20_000).for_each(|_| limit.went_well(FAST * 50));
        assert!(limit.get() > 10, "the store is slower now: {}", limit.get());
        let mut limit = Limit::new(Bounds::ALONE);
        limit.went_well(FAST);
        let begin = Instant::now();
        (0..20).for_each(|round| limit.was_too_much(begin + ROUND * round));
        (0..200).for_each(|_| limit.went_well(FAST * 50));
        assert_eq!(limit.get(), FEW as usize, "slow is better than for ever");
    }

    #[test]
    fn slow_reads_are_a_brake_as_long_as_they_are_slow() {
        let mut limit = grown();
        limit.read_took(FAST * 100);
        assert_eq!(limit.get(), MOST as usize, "nobody knows what is usual");
        limit.set_usual(FAST);
        (0..100).for_each(|_| limit.read_took(FAST * 3 / 2));
        assert_eq!(limit.get(), MOST as usize, "that is not much longer");
        limit.read_took(Duration::from_secs(10));
        limit.read_took(FAST);
        assert!(limit.get() > 25, "one alone is no reason: {}", limit.get());
        for _ in 0..100 {
            limit.read_took(FAST * 5);
            (0..20).for_each(|_| limit.went_well(FAST));
        }
        assert_eq!(limit.get(), FEW as usize);
        for _ in 0..200 {
            limit.read_took(FAST);
            (0..20).for_each(|_| limit.went_well(FAST));
        }
        assert_eq!(limit.get(), MOST as usize);
    }
}
