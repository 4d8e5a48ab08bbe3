//! How fast objects are looked at now, which is what the time that is left depends on.

use std::time::{Duration, Instant};

/// What was longer ago counts for little. Long enough for a rate to be steady, and short enough for a change of load to be
/// seen soon.
const WINDOW: Duration = Duration::from_secs(10);

/// The window is as long as so many objects take: or else each of those that are slowed down to one a minute would be a surge.
const FEW: f64 = 10.0;

/// A rate whose past fades: the average since the beginning at first, and later that of the last seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meter {
    /// When it was last read, and how many objects had been looked at then.
    last: (Instant, u64),
    /// How long it has run.
    ran: Duration,
    rate: f64,
}

impl Meter {
    pub(crate) fn new(now: Instant, seen: u64) -> Self {
        Self { last: (now, seen), ran: Duration::ZERO, rate: 0.0 }
    }

    /// What was since it was last read does not count: nobody was at work.
    pub(crate) fn skip(&mut self, now: Instant, seen: u64) {
        self.last = (now, seen);
    }

    /// Objects in a second, now that so many have been looked at.
    pub(crate) fn read(&mut self, now: Instant, seen: u64) -> f64 {
        let (then, before) = self.last;
        let took = now.saturating_duration_since(then);
        if took.is_zero() {
            return self.rate;
        }
        (self.last, self.ran) = ((now, seen), self.ran + took);
        let window = WINDOW.as_secs_f64().max(FEW / self.rate);
        let share = took.as_secs_f64() / self.ran.as_secs_f64();
        let weight = share.max(1.0 - (-took.as_secs_f64() / window).exp());
        let now = seen.saturating_sub(before) as f64 / took.as_secs_f64();
        self.rate += weight * (now - self.rate);
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read every second while this many objects are looked at in each of so many seconds.
    fn rates(phases: &[(f64, u64)]) -> f64 {
        let begin = Instant::now();
        let (mut meter, mut at, mut seen, mut rate) = (Meter::new(begin, 0), 0, 0.0, 0.0);
        for (each, seconds) in phases {
            for _ in 0..*seconds {
                (at, seen) = (at + 1, seen + each);
                rate = meter.read(begin + Duration::from_secs(at), seen as u64);
            }
        }
        rate
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        for (phases, least, most) in [
            (&[(100.0, 1)][..], 99.9, 100.1),
            (&[(100.0, 600)], 99.9, 100.1),
            // The average of all would be 950, 550 and 50.
            (&[(1000.0, 570), (0.0, 30)], 0.0, 60.0),
            (&[(1000.0, 300), (100.0, 300)], 99.0, 101.0),
            (&[(0.0, 570), (1000.0, 30)], 900.0, 1000.0),
            // One every ten seconds is one every ten seconds.
            (&[(0.1, 300)], 0.06, 0.14),
            (&[(0.1, 305)], 0.06, 0.14),
            (&[(0.0, 60)], 0.0, 0.0),
        ] {
            let rate = rates(phases);
            assert!((least..=most).contains(&rate), "{phases:?}: {rate}");
        }
    }

    #[test]
    fn a_pause_is_not_counted() {
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let mut meter = Meter::new(begin, 40);
        assert!((meter.read(at(10), 140) - 10.0).abs() < 0.01);
        // Some of it is looked at again after the pause.
        meter.skip(at(1000), 130);
        assert!((meter.read(at(1000), 130) - 10.0).abs() < 0.01);
        assert!((meter.read(at(1010), 230) - 10.0).abs() < 0.01);
        assert!(meter.read(at(1011), 200) < 10.0, "what is taken back is no progress, and no overflow");
    }
}
