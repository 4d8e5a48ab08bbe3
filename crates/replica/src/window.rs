use std::{collections::VecDeque, sync::Arc, time::Duration};

use concord_store::Revision;
use tokio::time::Instant;

use crate::Event;

/// What an event costs besides the value it superseded: the event itself, two tree slots, the entry.
const EVENT_BYTES: usize = 256;
/// A chunk is closed when it has so many events or so large a part of the window's bytes.
const CHUNK_EVENTS: usize = 512;
const CHUNK_SHARE: usize = 64;
/// Ages are known to this part of the window's age, so that a busy window needs few time marks.
const AGE_SHARE: u32 = 64;

/// The recent changes, bounded by bytes and by age.
///
/// They lie in shared chunks, so that a subscription takes those it needs without copying them. Only
/// the last chunk grows, in place unless someone shares it. A revision is never split between chunks
/// and never partly evicted.
#[derive(Debug)]
pub(crate) struct Window {
    chunks: VecDeque<Arc<Chunk>>,
    /// How many events of the first chunk have been evicted.
    evicted: usize,
    marks: VecDeque<Mark>,
    bytes: usize,
    /// The last revision that was evicted: what came after it is here.
    oldest: Revision,
    max_bytes: usize,
    max_age: Duration,
}

/// Some consecutive events.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chunk {
    pub(crate) events: Vec<Event>,
    bytes: usize,
}

impl Chunk {
    pub(crate) fn last_revision(&self) -> Revision {
        self.events.last().map_or(0, |event| event.revision)
    }
}

/// No revision up to this one, and after the previous mark's, is older than `since`.
#[derive(Debug)]
struct Mark {
    since: Instant,
    through: Revision,
}

fn cost(event: &Event) -> usize {
    EVENT_BYTES + event.previous().map_or(0, |entry| entry.key.len() + entry.value.len())
}

impl Window {
    pub(crate) fn new(max_bytes: usize, max_age: Duration) -> Self {
        Self {
            chunks: VecDeque::new(),
            evicted: 0,
            marks: VecDeque::new(),
            bytes: 0,
            oldest: 0,
            max_bytes,
            max_age,
        }
    }

    /// Appends whole revisions, in order, that were applied `now`.
    pub(crate) fn push(&mut self, events: &[Event], now: Instant) {
        for commit in events.chunk_by(|a, b| a.revision == b.revision) {
            let full = self.chunks.back().is_none_or(|chunk| {
                chunk.events.len() >= CHUNK_EVENTS || chunk.bytes >= self.max_bytes / CHUNK_SHARE
            });
            if full {
                self.chunks.push_back(Arc::default());
            }
            let Some(chunk) = self.chunks.back_mut() else { continue };
            let bytes: usize = commit.iter().map(cost).sum();
            let chunk = Arc::make_mut(chunk);
            chunk.events.extend_from_slice(commit);
            chunk.bytes += bytes;
            self.bytes += bytes;
        }
        let Some(last) = events.last() else { return };
        match self.marks.back_mut() {
            Some(mark) if now < mark.since + self.max_age / AGE_SHARE => mark.through = last.revision,
            _ => self.marks.push_back(Mark { since: now, through: last.revision }),
        }
    }

    /// Takes out what exceeds the bytes or the age. The last of the returned events has the oldest
    /// revision that can be answered from now on.
    pub(crate) fn evict(&mut self, now: Instant) -> Vec<Event> {
        let mut evicted: Vec<Event> = Vec::new();
        let mut expired = 0;
        while let Some(mark) = self.marks.front() {
            if now < self.expiry_of(mark) {
                break;
            }
            expired = mark.through;
            self.marks.pop_front();
        }
        while let Some(front) = self.front() {
            let revision = front.revision;
            if self.bytes <= self.max_bytes && revision > expired {
                break;
            }
            while let Some(event) = self.front().filter(|event| event.revision == revision) {
                evicted.push(event.clone());
                self.bytes -= cost(event);
                self.drop_front();
            }
        }
        self.oldest = evicted.last().map_or(self.oldest, |event| event.revision);
        while self.marks.front().is_some_and(|mark| mark.through <= self.oldest) {
            self.marks.pop_front();
        }
        evicted
    }

    fn front(&self) -> Option<&Event> {
        self.chunks.front()?.events.get(self.evicted)
    }

    fn drop_front(&mut self) {
        self.evicted += 1;
        if self.chunks.front().is_some_and(|chunk| chunk.events.len() == self.evicted) {
            self.chunks.pop_front();
            self.evicted = 0;
        }
    }

    /// When [`Window::evict`] will next have something to do by age alone.
    pub(crate) fn expiry(&self) -> Option<Instant> {
        self.marks.front().map(|mark| self.expiry_of(mark))
    }

    /// Nothing is evicted before it is old enough, so a mark waits for the youngest it may cover.
    fn expiry_of(&self, mark: &Mark) -> Instant {
        mark.since + self.max_age + self.max_age / AGE_SHARE
    }

    /// The oldest revision from which on every event is here, if any was evicted at all.
    pub(crate) fn oldest(&self) -> Revision {
        self.oldest
    }

    /// The chunks with all events after `revision`, and possibly some before it.
    pub(crate) fn after(&self, revision: Revision) -> VecDeque<Arc<Chunk>> {
        let start = self.chunks.partition_point(|chunk| chunk.last_revision() <= revision);
        self.chunks.range(start..).cloned().collect()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.max_bytes, self.max_age);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
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

    fn revisions(events: &[Event]) -> Vec<Revision> {
        events.iter().map(|event| event.revision).collect()
    }

    #[test]
    fn whole_revisions_leave_when_the_bytes_run_out() {
        let now = Instant::now();
        let mut window = Window::new(4 * (EVENT_BYTES + 100), Duration::from_secs(60));
        window.push(&[deleted(2, 100), deleted(2, 100), deleted(3, 100), deleted(5, 100)], now);
        assert_eq!(window.evict(now), []);
        window.push(&[deleted(6, 100)], now);
        assert_eq!(revisions(&window.evict(now)), [2, 2]);
        window.push(&[deleted(7, 100_000)], now);
        assert_eq!(revisions(&window.evict(now)), [3, 5, 6, 7], "one revision may exceed the window");
        assert_eq!((window.bytes(), window.expiry()), (0, None));
    }

    #[test]
    fn nothing_leaves_before_its_age_and_all_leaves_soon_after() {
        let (start, age) = (Instant::now(), Duration::from_secs(64));
        let mut window = Window::new(usize::MAX, age);
        for second in 0..100 {
            let now = start + Duration::from_millis(second * 500);
            window.push(&[deleted(second + 2, 100)], now);
            assert_eq!(window.evict(now), []);
        }
        let first = window.expiry().expect("the window has events");
        assert!(first >= start + age && first <= start + age + Duration::from_secs(2));
        assert_eq!(window.evict(first - Duration::from_millis(1)), []);
        assert!(!window.evict(first).is_empty());
        let end = start + Duration::from_secs(50) + age + Duration::from_secs(2);
        window.evict(end);
        assert_eq!((window.bytes(), window.expiry()), (0, None));
    }

    #[test]
    fn a_subscription_takes_no_more_chunks_than_it_needs() {
        let now = Instant::now();
        let mut window = Window::new(usize::MAX, Duration::from_secs(60));
        for revision in 2..2000 {
            window.push(&[deleted(revision, 10)], now);
        }
        let held = window.after(1990);
        assert_eq!(held.len(), 1);
        window.push(&[deleted(2000, 10)], now);
        assert_eq!(held[0].last_revision(), 1999, "a chunk that is shared does not change");
        assert_eq!(window.after(1999)[0].last_revision(), 2000);
        assert!(window.after(2000).is_empty());
    }
}
