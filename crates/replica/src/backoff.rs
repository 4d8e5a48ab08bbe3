use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// Pauses that double from failure to failure. Each is between half and all of its nominal length, so
/// that many replicas of one store do not come back at the same moment.
#[derive(Debug)]
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(min: Duration, max: Duration) -> Self {
        Self { min, max, next: min }
    }

    pub(crate) fn reset(&mut self) {
        self.next = self.min;
    }

    /// How long to wait now.
    pub(crate) fn pause(&mut self) -> Duration {
        let nominal = self.next.min(self.max);
        self.next = nominal.saturating_mul(2);
        // Keyed anew for every instance: as random as jitter has to be.
        let random = RandomState::new().hash_one(0) % 1024;
        nominal / 2 + (nominal / 2 / 1024).saturating_mul(u32::try_from(random).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_limit_and_start_over() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(300));
        for nominal in [100, 200, 300, 300] {
            let pause = backoff.pause().as_millis();
            assert!((nominal / 2..=nominal).contains(&pause), "{pause} ms for {nominal} ms");
        }
        backoff.reset();
        assert!(backoff.pause() <= Duration::from_millis(100));
    }
}
