use std::time::Duration;

use rand::RngExt as _;

/// Pauses that double from failure to failure, each between half and all of its nominal length, so that the servers of
/// a fleet do not come back at the same moment.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

const MIN: Duration = Duration::from_millis(100);
const MAX: Duration = Duration::from_secs(30);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { next: MIN }
    }

    pub(crate) fn reset(&mut self) {
        self.next = MIN;
    }

    /// Waits for as long as it is time to.
    pub(crate) async fn pause(&mut self) {
        let pause = self.step();
        tokio::time::sleep(pause).await;
    }

    fn step(&mut self) -> Duration {
        let nominal = self.next.min(MAX);
        self.next = nominal * 2;
        nominal.mul_f64(rand::rng().random_range(0.5..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_limit_and_start_over() {
        let mut backoff = Backoff::new();
        for doublings in 0..20 {
            let nominal = (MIN * (1 << doublings.min(10))).min(MAX);
            let pause = backoff.step();
            assert!(nominal / 2 <= pause && pause <= nominal, "{pause:?} for {nominal:?}");
        }
        backoff.reset();
        assert!(backoff.step() <= MIN);
    }
}
