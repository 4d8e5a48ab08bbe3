//! How often a watch speaks.
//!
//! To send something takes about as much for one event as for twenty. Where few watch, each event is sent at once. Where
//! many do, telling each of them everything on its own takes longer than the next event, and then all of them wait for the
//! processor: so a watch that said something rests for twice as long as it takes to tell everybody once, and then says
//! together what has happened. While it rests it does not listen: to wake it for each event would cost as much as it saves.
//! The first event after a pause is never held back.

use std::time::Duration;

use concord_registry::Audience;
use tokio::time::{Instant, sleep_until};

/// Twice what it takes to send something to one watcher: as long as nobody has to wait for [`LONGEST`], telling all of them
/// takes up half of a processor at most.
const EACH: Duration = Duration::from_micros(40);
/// Nobody waits longer than this, however many watch.
const LONGEST: Duration = Duration::from_millis(20);
/// Shorter than this the clock does not tick.
const SHORTEST: Duration = Duration::from_millis(1);

/// The pace of one watch.
pub(super) struct Pace {
    audience: Audience,
    /// When it said something last.
    last: Option<Instant>,
}

impl Pace {
    pub(super) fn new(audience: Audience) -> Self {
        Self { audience, last: None }
    }

    /// Lets the time pass in which it is too early to say something again. Cancel safe.
    pub(super) async fn rest(&self) {
        if let Some((last, pause)) = self.last.zip(pause(self.audience.size())) {
            sleep_until(last + pause).await;
        }
    }

    /// Something was said. If there was more than goes out at once, the rest need not wait.
    pub(super) fn said(&mut self, everything: bool) {
        self.last = everything.then(Instant::now);
    }
}

/// How long it takes to tell everybody, if that can be waited for.
fn pause(audience: usize) -> Option<Duration> {
    let all = EACH.saturating_mul(u32::try_from(audience).unwrap_or(u32::MAX));
    (all >= SHORTEST).then_some(all.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_there_are_the_longer_is_the_pause() {
        for (audience, expected) in
            [(0, None), (24, None), (25, Some(1)), (100, Some(4)), (500, Some(20)), (usize::MAX, Some(20))]
        {
            assert_eq!(pause(audience), expected.map(Duration::from_millis), "{audience}");
        }
    }

    async fn rested(pace: &Pace) -> Duration {
        let begin = Instant::now();
        pace.rest().await;
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn only_who_said_everything_a_moment_ago_rests() {
        let audience = Audience::default();
        let others = vec![audience.clone(); 500];
        let mut pace = Pace::new(audience.clone());
        assert_eq!(rested(&pace).await, Duration::ZERO, "nothing was said yet");
        pace.said(true);
        assert!(rested(&pace).await >= Duration::from_millis(20));
        assert_eq!(rested(&pace).await, Duration::ZERO, "that was a moment ago");
        pace.said(false);
        assert_eq!(rested(&pace).await, Duration::ZERO, "there is more to say");
        pace.said(true);
        drop(others);
        assert_eq!(rested(&pace).await, Duration::ZERO, "nobody else is there");
    }
}
