//! When a watch says something although nothing happens.

use std::time::Duration;

use tokio::time::Instant;

/// How often a bookmark is sent, about: each watch has its own rhythm, so that they do not all wake at once.
const BOOKMARK: Duration = Duration::from_secs(60);
/// How long before the end the last bookmark comes, so that the client can go on from there.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// The times of a watch.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    end: Instant,
    bookmark: Option<Instant>,
    period: Duration,
}

/// What it is time for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    Bookmark,
    End,
}

impl Schedule {
    pub(super) fn new(now: Instant, lifetime: Duration, bookmarks: bool) -> Self {
        let mut schedule = Self {
            end: now + lifetime,
            bookmark: None,
            period: BOOKMARK.mul_f64(rand::random_range(0.75..1.0)),
        };
        if bookmarks {
            schedule.plan(now);
        }
        schedule
    }

    /// When to look again.
    pub(super) fn next(&self) -> Instant {
        self.bookmark.map_or(self.end, |bookmark| bookmark.min(self.end))
    }

    /// What it is time for now.
    pub(super) fn due(&mut self, now: Instant) -> Due {
        if now >= self.end {
            return Due::End;
        }
        if self.bookmark.is_none_or(|bookmark| now < bookmark) {
            return Due::Nothing;
        }
        self.plan(now);
        Due::Bookmark
    }

    /// The next bookmark comes in its time, or shortly before the end if that is sooner.
    fn plan(&mut self, now: Instant) {
        let last = self.end.checked_sub(LAST_BOOKMARK).filter(|last| *last > now);
        self.bookmark = last.map(|last| last.min(now + self.period));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_ends_in_its_time() {
        let now = Instant::now();
        let mut schedule = Schedule::new(now, Duration::from_secs(100), false);
        assert_eq!(schedule.next(), now + Duration::from_secs(100));
        assert_eq!(schedule.due(now + Duration::from_secs(99)), Due::Nothing);
        assert_eq!(schedule.due(now + Duration::from_secs(100)), Due::End);
    }

    #[test]
    fn bookmarks_come_about_every_minute_and_before_the_end() {
        let now = Instant::now();
        let mut schedule = Schedule::new(now, Duration::from_secs(200), true);
        let mut times = Vec::new();
        loop {
            let next = schedule.next();
            match schedule.due(next) {
                Due::Bookmark => times.push((next - now).as_secs_f64()),
                Due::End => break,
                Due::Nothing => panic!("looked for nothing"),
            }
        }
        assert!((4..=5).contains(&times.len()), "{times:?}");
        assert!((45.0..=60.0).contains(&times[0]), "{times:?}");
        assert!((times[times.len() - 1] - 198.0).abs() < 0.001, "{times:?}");
    }

    #[test]
    fn a_short_watch_has_no_time_for_bookmarks() {
        let now = Instant::now();
        let schedule = Schedule::new(now, Duration::from_secs(1), true);
        assert_eq!(schedule.next(), now + Duration::from_secs(1));
    }
}
