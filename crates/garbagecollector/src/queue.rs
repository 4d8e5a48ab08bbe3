//! What has to be looked at, and when.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    time::{Duration, Instant},
};

use crate::graph::Key;

/// The pauses before something that failed is tried again: they double from the first to the second.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(60));

/// Objects that have to be looked at, each at most once at a time.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    ready: VecDeque<Key>,
    later: BTreeSet<(Instant, Key)>,
    slots: HashMap<Key, Slot>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    place: Place,
    failures: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Ready,
    Busy,
    /// It came up again while it was being looked at.
    BusyAgain,
    Later(Instant),
}

impl Queue {
    /// Has it looked at as soon as possible.
    pub(crate) fn add(&mut self, key: Key) {
        let Some(slot) = self.slots.get_mut(&key) else {
            self.slots.insert(key.clone(), Slot { place: Place::Ready, failures: 0 });
            return self.ready.push_back(key);
        };
        match slot.place {
            Place::Ready | Place::BusyAgain => {}
            Place::Busy => slot.place = Place::BusyAgain,
            Place::Later(at) => {
                slot.place = Place::Ready;
                self.later.remove(&(at, key.clone()));
                self.ready.push_back(key);
            }
        }
    }

    /// How many wait to be looked at.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// The next one to look at. It has to be given back.
    pub(crate) fn take(&mut self) -> Option<Key> {
        let key = self.ready.pop_front()?;
        self.slots.get_mut(&key)?.place = Place::Busy;
        Some(key)
    }

    /// It was looked at.
    pub(crate) fn done(&mut self, key: &Key) {
        let again = self.slots.remove(key).is_some_and(|slot| slot.place == Place::BusyAgain);
        if again {
            self.add(key.clone());
        }
    }

    /// It has to be looked at again after a pause.
    pub(crate) fn retry(&mut self, key: Key, now: Instant) {
        let slot = self.slots.entry(key.clone()).or_insert(Slot { place: Place::Busy, failures: 0 });
        let at = now + pause(slot.failures);
        slot.failures = slot.failures.saturating_add(1);
        slot.place = Place::Later(at);
        self.later.insert((at, key));
    }

    /// Makes ready what has waited long enough. The answer is when there is more.
    pub(crate) fn wake(&mut self, now: Instant) -> Option<Instant> {
        while let Some((at, _)) = self.later.first() {
            if *at > now {
                return Some(*at);
            }
            let Some((_, key)) = self.later.pop_first() else { break };
            if let Some(slot) = self.slots.get_mut(&key) {
                slot.place = Place::Ready;
            }
            self.ready.push_back(key);
        }
        None
    }
}

fn pause(failures: u32) -> Duration {
    PAUSES.0.saturating_mul(1 << failures.min(20)).min(PAUSES.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        name.as_bytes().into()
    }

    #[test]
    fn nothing_is_looked_at_twice_at_once_and_nothing_is_forgotten() {
        let mut queue = Queue::default();
        queue.add(key("a"));
        queue.add(key("a"));
        queue.add(key("b"));
        assert_eq!(queue.take(), Some(key("a")));
        queue.add(key("a"));
        assert_eq!(queue.take(), Some(key("b")));
        assert_eq!(queue.take(), None, "a is being looked at");
        queue.done(&key("a"));
        queue.done(&key("b"));
        assert_eq!(queue.take(), Some(key("a")));
        queue.done(&key("a"));
        assert_eq!(queue.take(), None);
        assert!(queue.slots.is_empty());
    }

    #[test]
    fn what_fails_waits_longer_each_time_unless_something_happens() {
        let (mut queue, mut now) = (Queue::default(), Instant::now());
        queue.add(key("a"));
        for failures in 0..30 {
            assert_eq!(queue.take(), Some(key("a")));
            queue.retry(key("a"), now);
            let due = queue.wake(now).expect("not yet");
            assert_eq!(due - now, pause(failures));
            assert_eq!(queue.take(), None);
            now = due;
            assert_eq!(queue.wake(now), None);
        }
        assert_eq!(pause(30), PAUSES.1);
        assert_eq!(queue.take(), Some(key("a")));
        queue.retry(key("a"), now);
        queue.add(key("a"));
        assert_eq!(queue.wake(now), None);
        assert_eq!(queue.take(), Some(key("a")), "it changed, so it is not waited for");
    }
}
