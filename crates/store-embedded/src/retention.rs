use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use concord_store::Revision;

/// Samples per retention period: history is kept for the period and at most a fifth longer.
const SAMPLES: u32 = 5;

/// Decides which revision to compact to: the newest that was current a retention period ago.
#[derive(Debug)]
pub(crate) struct Retention {
    keep: Option<Duration>,
    samples: VecDeque<(Instant, Revision)>,
}

impl Retention {
    /// Keeps history for this long; for ever if `None`.
    pub(crate) fn new(keep: Option<Duration>, now: Instant, revision: Revision) -> Self {
        Self { keep, samples: VecDeque::from([(now, revision)]) }
    }

    /// When to call [`Retention::tick`] next.
    pub(crate) fn next(&self) -> Option<Instant> {
        let (last, _) = self.samples.back()?;
        Some(*last + self.keep? / SAMPLES)
    }

    /// Takes a sample if it is time for one. Returns the revision to compact to, if there is one.
    pub(crate) fn tick(&mut self, now: Instant, current: Revision) -> Option<Revision> {
        if now < self.next()? {
            return None;
        }
        let keep = self.keep?;
        self.samples.push_back((now, current));
        let mut target = None;
        while let Some((at, revision)) = self.samples.front().copied()
            && now.duration_since(at) >= keep
        {
            self.samples.pop_front();
            target = Some(revision);
        }
        target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_is_kept_for_the_period_and_little_longer() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut retention = Retention::new(Some(Duration::from_secs(300)), start, 10);
        assert_eq!(retention.next(), Some(at(60)));
        assert_eq!(retention.tick(at(59), 11), None);
        for minute in 1..5 {
            assert_eq!(retention.tick(at(minute * 60), 10 + minute), None);
        }
        assert_eq!(retention.tick(at(300), 15), Some(10));
        assert_eq!(retention.tick(at(361), 16), Some(11));
        assert_eq!(
            retention.tick(at(3600), 99),
            Some(16),
            "after a long sleep the newest that is old enough"
        );
    }

    #[test]
    fn no_period_keeps_everything() {
        let now = Instant::now();
        let mut retention = Retention::new(None, now, 1);
        assert_eq!(retention.next(), None);
        assert_eq!(retention.tick(now + Duration::from_secs(1 << 30), 5), None);
    }
}
