use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Instant,
};

use parking_lot::Mutex;

/// How many requests of a kind run, and how many there were at most within the last second: what runs at the
/// moment of a scrape says little.
pub(crate) struct InFlight {
    running: AtomicI64,
    since: Instant,
    peaks: Mutex<Peaks>,
}

/// The peaks of a second and of the one before it.
#[derive(Default)]
struct Peaks {
    second: u64,
    now: i64,
    before: i64,
}

impl Peaks {
    /// Moves on to `second`, in which at least `running` requests run.
    fn advance(&mut self, second: u64, running: i64) {
        match second.saturating_sub(self.second) {
            0 => self.now = self.now.max(running),
            1 => (self.before, self.now) = (self.now, running),
            _ => (self.before, self.now) = (running, running),
        }
        self.second = self.second.max(second);
    }
}

impl Default for InFlight {
    fn default() -> Self {
        Self { running: AtomicI64::new(0), since: Instant::now(), peaks: Mutex::default() }
    }
}

/// A request that runs.
pub(crate) struct Running(Arc<InFlight>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl InFlight {
    /// Counts a request until the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Running {
        let running = self.running.fetch_add(1, Ordering::Relaxed) + 1;
        self.peaks.lock().advance(self.since.elapsed().as_secs(), running);
        Running(self.clone())
    }

    /// The most requests at once, lately.
    pub(crate) fn peak(&self) -> i64 {
        let mut peaks = self.peaks.lock();
        peaks.advance(self.since.elapsed().as_secs(), self.running.load(Ordering::Relaxed));
        peaks.now.max(peaks.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_remembered_for_a_second() {
        let mut peaks = Peaks::default();
        let mut at = |second, running| {
            peaks.advance(second, running);
            peaks.now.max(peaks.before)
        };
        assert_eq!(at(0, 3), 3);
        assert_eq!(at(0, 1), 3);
        assert_eq!(at(1, 1), 3, "still within a second of it");
        assert_eq!(at(2, 1), 1);
        assert_eq!(at(9, 5), 5);
        assert_eq!(at(20, 0), 0);
        assert_eq!(at(19, 2), 2, "a clock read a little earlier by another thread");
    }

    #[test]
    fn requests_count_while_they_run() {
        let in_flight = Arc::new(InFlight::default());
        let (one, two) = (in_flight.begin(), in_flight.begin());
        drop(one);
        assert_eq!(in_flight.running.load(Ordering::Relaxed), 1);
        assert_eq!(in_flight.peak(), 2);
        drop(two);
        assert_eq!(in_flight.running.load(Ordering::Relaxed), 0);
    }
}
