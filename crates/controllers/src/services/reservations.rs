use std::{
    collections::HashMap,
    hash::Hash,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// Longer than a request takes from choosing a number until the replica shows it.
const KEPT: Duration = Duration::from_secs(30);

/// From how many on they are looked through for those that can be forgotten.
const MANY: usize = 256;

/// Numbers that requests of this server have chosen and not yet stored, so that two requests at once do not choose the
/// same. It only saves them another attempt: what is stored decides.
#[derive(Debug)]
pub(crate) struct Reservations<K>(Mutex<HashMap<K, Instant>>);

impl<K: Eq + Hash + Copy> Reservations<K> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    /// Whether somebody chose it a moment ago.
    pub(crate) fn contains(&self, key: K) -> bool {
        self.0.lock().get(&key).is_some_and(|since| since.elapsed() < KEPT)
    }

    /// The first of the candidates that is free, which is then reserved. When all that are free are reserved, one of them
    /// nevertheless: requests that failed must not use up a small range.
    pub(crate) fn choose(
        &self,
        candidates: impl Iterator<Item = K>,
        is_free: impl Fn(K) -> bool,
        dry_run: bool,
    ) -> Option<K> {
        let mut reserved = self.0.lock();
        if reserved.len() >= MANY {
            reserved.retain(|_, since| since.elapsed() < KEPT);
        }
        let mut second_best = None;
        let is_reserved = |key: &K| reserved.get(key).is_some_and(|since| since.elapsed() < KEPT);
        let mut free = candidates.filter(|key| is_free(*key));
        let best = free.find(|key| {
            let taken = is_reserved(key);
            if taken && second_best.is_none() {
                second_best = Some(*key);
            }
            !taken
        });
        let chosen = best.or(second_best)?;
        if !dry_run {
            reserved.insert(chosen, Instant::now());
        }
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_chosen_twice_while_something_else_is_free() {
        let reservations = Reservations::new();
        let choose = |dry_run| reservations.choose(1..=3, |number| number != 2, dry_run);
        assert_eq!(choose(true), Some(1));
        assert_eq!(choose(false), Some(1), "a dry run reserves nothing");
        assert_eq!(choose(false), Some(3));
        assert_eq!(choose(false), Some(1), "reserved, but not stored");
        assert!(reservations.contains(1) && !reservations.contains(2));
        assert_eq!(reservations.choose(1..=3, |_| false, false), None);
    }
}
