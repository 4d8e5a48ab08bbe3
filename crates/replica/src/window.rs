use std::{collections::VecDeque, time::Duration};

use concord_store::Revision;
use tokio::time::Instant;

use crate::{Event, history::History, kept::Kept, packed::Packer, record::Record};

/// What an event costs besides the value it superseded: the event, its place in the index, the entry.
const EVENT_BYTES: usize = 256;
/// A chunk of the history is closed when it has this part of the window's bytes, because memory is
/// freed by chunk.
const CHUNK_SHARE: usize = 64;
/// Ages are known to this part of the window's age, so that a busy window needs few time marks.
const AGE_SHARE: u32 = 64;

/// Bounds the history by bytes and by age. A revision is never evicted in part.
#[derive(Debug)]
pub(crate) struct Window {
    marks: VecDeque<Mark>,
    bytes: usize,
    /// The bytes pushed since a chunk was closed for its bytes.
    open_bytes: usize,
    max_bytes: usize,
    max_age: Duration,
    packer: Packer,
}

/// No revision up to this one, and after the previous mark's, is older than `since`.
#[derive(Debug)]
struct Mark {
    since: Instant,
    through: Revision,
}

/// The same when an event leaves as when it came: what it superseded does not change its form any more.
fn cost(event: &Record) -> usize {
    EVENT_BYTES + event.previous().map_or(0, Kept::bytes)
}

impl Window {
    pub(crate) fn new(max_bytes: usize, max_age: Duration) -> Self {
        let packer = Packer::default();
        Self { marks: VecDeque::new(), bytes: 0, open_bytes: 0, max_bytes, max_age, packer }
    }

    /// Appends whole revisions, in order, that were applied `now`.
    pub(crate) fn push(&mut self, history: &mut History, events: &[Event], now: Instant) {
        for commit in events.chunk_by(|a, b| a.revision == b.revision) {
            for event in commit {
                let bytes = cost(history.push(event, &mut self.packer));
                self.bytes += bytes;
                self.open_bytes += bytes;
            }
            let seal = self.open_bytes > self.max_bytes / CHUNK_SHARE;
            if seal {
                self.open_bytes = 0;
            }
            history.end_revision(seal);
        }
        let Some(last) = events.last() else { return };
        match self.marks.back_mut() {
            Some(mark) if now < mark.since + self.max_age / AGE_SHARE => mark.through = last.revision,
            _ => self.marks.push_back(Mark { since: now, through: last.revision }),
        }
    }

    /// Removes what exceeds the bytes or the age and returns the last revision that was removed: the
    /// oldest that can be answered from now on.
    pub(crate) fn evict(&mut self, history: &mut History, now: Instant) -> Option<Revision> {
        let mut expired = 0;
        while let Some(mark) = self.marks.front() {
            if now < self.expiry_of(mark) {
                break;
            }
            expired = mark.through;
            self.marks.pop_front();
        }
        let mut oldest = None;
        while let Some(front) = history.front() {
            let over = self.bytes > self.max_bytes || front.revision <= expired;
            if !over && Some(front.revision) != oldest {
                break;
            }
            oldest = Some(front.revision);
            self.bytes -= cost(front);
            history.pop_front();
        }
        while self.marks.front().is_some_and(|mark| Some(mark.through) <= oldest) {
            self.marks.pop_front();
        }
        oldest
    }

    /// When [`Window::evict`] will next have something to do by age alone.
    pub(crate) fn expiry(&self) -> Option<Instant> {
        self.marks.front().map(|mark| self.expiry_of(mark))
    }

    /// Nothing is evicted before it is old enough, so a mark waits for the youngest it may cover.
    fn expiry_of(&self, mark: &Mark) -> Instant {
        mark.since + self.max_age + self.max_age / AGE_SHARE
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use concord_store::KeyValue;

    use super::*;
    use crate::EventKind;

    fn deleted(revision: Revision, size: usize) -> Event {
        let previous = KeyValue {
            key: "k".into(),
            value: vec![0; size - 1].into(),
            create_revision: 1,
            mod_revision: 1,
        };
        Event { revision, kind: EventKind::Deleted { previous: Arc::new(previous) } }
    }

    /// A window with its history.
    struct Both(Window, History);

    impl Both {
        fn new(max_bytes: usize, max_age: Duration) -> Self {
            Self(Window::new(max_bytes, max_age), History::default())
        }

        fn push(&mut self, events: &[Event], now: Instant) {
            self.0.push(&mut self.1, events, now);
        }

        fn evict(&mut self, now: Instant) -> Option<Revision> {
            self.0.evict(&mut self.1, now)
        }

        fn is_empty(&self) -> bool {
            (self.0.bytes(), self.0.expiry(), self.1.front().is_none()) == (0, None, true)
        }
    }

    #[test]
    fn whole_revisions_leave_when_the_bytes_run_out() {
        let now = Instant::now();
        let mut window = Both::new(4 * (EVENT_BYTES + 100), Duration::from_secs(60));
        window.push(&[deleted(2, 100), deleted(2, 100), deleted(3, 100), deleted(5, 100)], now);
        assert_eq!(window.evict(now), None);
        window.push(&[deleted(6, 100)], now);
        assert_eq!(window.evict(now), Some(2));
        assert_eq!(window.1.front().map(|event| event.revision), Some(3));
        window.push(&[deleted(7, 5_000)], now);
        assert_eq!(window.evict(now), Some(7), "one revision may exceed the window");
        assert!(window.is_empty());
    }

    #[test]
    fn nothing_leaves_before_its_age_and_all_leaves_soon_after() {
        let (start, age) = (Instant::now(), Duration::from_secs(64));
        let mut window = Both::new(usize::MAX, age);
        for second in 0..100 {
            let now = start + Duration::from_millis(second * 500);
            window.push(&[deleted(second + 2, 100)], now);
            assert_eq!(window.evict(now), None);
        }
        let first = window.0.expiry().expect("the window has events");
        assert!(first >= start + age && first <= start + age + Duration::from_secs(2));
        assert_eq!(window.evict(first - Duration::from_millis(1)), None);
        assert!(window.evict(first).is_some());
        let end = start + Duration::from_secs(50) + age + Duration::from_secs(2);
        assert_eq!(window.evict(end), Some(101));
        assert!(window.is_empty());
    }

    #[test]
    fn a_subscription_takes_no_more_chunks_than_it_needs() {
        let now = Instant::now();
        let mut window = Both::new(usize::MAX, Duration::from_secs(60));
        for revision in 2..2000 {
            window.push(&[deleted(revision, 10)], now);
        }
        let held = window.1.clone();
        window.push(&[deleted(2000, 10)], now);
        let last = |history: &History| {
            history.after(1990).back().and_then(|chunk| chunk.events.last().map(Record::event))
        };
        assert_eq!(window.1.after(1990).len(), 1);
        assert_eq!(last(&held), Some(deleted(1999, 10)), "what is shared does not change");
        assert_eq!(last(&window.1), Some(deleted(2000, 10)));
        assert!(window.1.after(2000).is_empty());
    }

    #[test]
    fn what_is_packed_counts_as_what_it_takes() {
        let now = Instant::now();
        let mut window = Both::new(usize::MAX, Duration::from_secs(60));
        window.push(&[deleted(2, 100_000)], now);
        let packed = window.0.bytes();
        assert!(packed > EVENT_BYTES && packed < EVENT_BYTES + 10_000, "{packed}");
        window.push(&[deleted(3, 1000)], now);
        assert_eq!(window.0.bytes(), packed + EVENT_BYTES + 1000);
        let read = window.1.front().map(Record::event);
        assert_eq!(read, Some(deleted(2, 100_000)));
        assert_eq!(window.0.bytes(), packed + EVENT_BYTES + 1000, "reading it does not make it larger");
        assert_eq!(window.evict(now + Duration::from_secs(120)), Some(3));
        assert!(window.is_empty());
    }
}
