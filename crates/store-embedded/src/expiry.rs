use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use concord_store::Revision;

use crate::row::{Expiry, millis};

/// When which keys expire. Entries of keys that were written again since are only noticed when their
/// time comes.
#[derive(Debug, Default)]
pub(crate) struct Expiries {
    heap: BinaryHeap<Reverse<(Instant, Revision, Bytes)>>,
    /// Keys that live longer than their place in the heap says, and how long.
    refreshed: HashMap<Bytes, (Revision, Instant)>,
}

impl Expiries {
    pub(crate) fn add(&mut self, key: Bytes, mod_revision: Revision, at: Instant) {
        self.heap.push(Reverse((at, mod_revision, key)));
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Lets a key that expires live until then.
    pub(crate) fn refresh(&mut self, key: &Bytes, mod_revision: Revision, at: Instant) {
        let now = Instant::now();
        // Those that were written again since: nobody asks for them any more.
        self.refreshed.retain(|_, (_, until)| *until > now);
        self.refreshed.insert(Bytes::copy_from_slice(key), (mod_revision, at));
    }

    /// The next key whose time has come, with the revision it must still have.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<(Bytes, Revision)> {
        while self.next()? <= now {
            let Reverse((_, revision, key)) = self.heap.pop()?;
            match self.refreshed.get(&key) {
                Some((refreshed, until)) if *refreshed == revision && *until > now => {
                    self.heap.push(Reverse((*until, revision, key)));
                }
                _ => return Some((key, revision)),
            }
        }
        None
    }
}

impl Expiry {
    pub(crate) fn after(ttl: Duration) -> Self {
        Self { ttl, at_unix_ms: unix_ms().saturating_add(millis(ttl)) }
    }

    /// How long a key that was read from the file has left.
    pub(crate) fn remaining(self) -> Duration {
        Duration::from_millis(self.at_unix_ms.saturating_sub(unix_ms())).min(self.ttl)
    }
}

/// The deadline for a key that lives `ttl` from now; far in the future for absurd ones.
pub(crate) fn deadline(ttl: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    let now = Instant::now();
    now.checked_add(ttl.min(FAR)).unwrap_or(now + Duration::from_secs(365 * 24 * 3600))
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_set_back_prolongs_no_life_beyond_the_ttl() {
        let ttl = Duration::from_secs(10);
        let expiry = Expiry { ttl, at_unix_ms: unix_ms() + 3_600_000 };
        assert_eq!(expiry.remaining(), ttl);
        let expiry = Expiry { ttl, at_unix_ms: 1 };
        assert_eq!(expiry.remaining(), Duration::ZERO);
    }

    #[test]
    fn keys_come_due_in_order() {
        let (mut expiries, now) = (Expiries::default(), Instant::now());
        expiries.add("b".into(), 2, now + Duration::from_secs(2));
        expiries.add("a".into(), 1, now + Duration::from_secs(1));
        assert_eq!(expiries.next(), Some(now + Duration::from_secs(1)));
        assert_eq!(expiries.pop_due(now), None);
        let later = now + Duration::from_secs(5);
        assert_eq!(expiries.pop_due(later), Some(("a".into(), 1)));
        assert_eq!(expiries.pop_due(later), Some(("b".into(), 2)));
        assert_eq!(expiries.pop_due(later), None);
    }

    #[test]
    fn a_refreshed_key_comes_due_later_and_what_was_put_after_it_does_not_care() {
        let (mut expiries, now) = (Expiries::default(), Instant::now());
        let seconds = |n| now + Duration::from_secs(n);
        expiries.add("a".into(), 1, seconds(1));
        expiries.add("b".into(), 2, seconds(2));
        expiries.refresh(&"a".into(), 1, seconds(5));
        // Somebody put it again, for a shorter time.
        expiries.refresh(&"b".into(), 2, seconds(9));
        expiries.add("b".into(), 3, seconds(3));
        assert_eq!(expiries.pop_due(seconds(4)), Some(("b".into(), 3)));
        assert_eq!(expiries.pop_due(seconds(4)), None);
        assert_eq!(expiries.pop_due(seconds(6)), Some(("a".into(), 1)));
        assert_eq!(expiries.pop_due(seconds(9)), Some(("b".into(), 2)));
        expiries.refresh(&"c".into(), 4, now);
        expiries.refresh(&"d".into(), 4, seconds(60));
        assert!(!expiries.refreshed.contains_key(&b"c"[..]), "what is over is forgotten");
    }
}
