//! Compiled patterns that everybody shares, in as much memory as they may have together.
//!
//! Patterns are part of what users define, and there may be thousands, of which most are used rarely. So those that have
//! been used lately are kept, and others are compiled again when they are needed.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{Error, Regex, compile};

/// How many bytes all patterns that are kept may take: a few hundred usual ones, and more of them than a server has in
/// use at a time. To compile one again takes less than a millisecond.
pub const SHARED_BYTES: usize = 32 << 20;

static SHARED: Mutex<Shared> = Mutex::new(Shared::new(SHARED_BYTES));

/// A pattern, compiled when it is first needed.
#[derive(Debug)]
pub struct Pattern {
    text: Box<str>,
    compiled: Mutex<Weak<Kept>>,
}

#[derive(Debug)]
struct Kept {
    regex: Regex,
    /// Whether somebody used it again since it was its turn. Those that are used once go first.
    used: AtomicBool,
}

#[derive(Debug)]
struct Shared {
    by_text: BTreeMap<Arc<str>, Arc<Kept>>,
    /// Whose turn it is to be forgotten, unless it was used.
    turns: VecDeque<Arc<str>>,
    bytes: usize,
    limit: usize,
}

impl Pattern {
    /// Whether there is such a pattern, [`crate::check`] says.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), compiled: Mutex::default() }
    }

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Calls a function with the compiled form.
    ///
    /// # Errors
    ///
    /// What is wrong with the pattern.
    pub fn with<T>(&self, use_it: impl FnOnce(&Regex) -> T) -> Result<T, Error> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = match compiled.upgrade() {
            Some(kept) => {
                kept.used.store(true, Ordering::Relaxed);
                kept
            }
            None => {
                let kept = shared(&self.text)?;
                *compiled = Arc::downgrade(&kept);
                kept
            }
        };
        drop(compiled);
        Ok(use_it(&kept.regex))
    }
}

/// Calls a function with the compiled form of a pattern, which is kept for the next one who asks.
///
/// # Errors
///
/// What is wrong with the pattern.
pub fn with<T>(pattern: &str, use_it: impl FnOnce(&Regex) -> T) -> Result<T, Error> {
    Ok(use_it(&shared(pattern)?.regex))
}

fn shared(pattern: &str) -> Result<Arc<Kept>, Error> {
    let lock = || SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = lock().get(pattern) {
        return Ok(kept);
    }
    // Two may do this at once: better than one that waits for another's pattern.
    let kept = Arc::new(Kept { regex: compile(pattern)?, used: AtomicBool::default() });
    lock().add(pattern, Arc::clone(&kept));
    Ok(kept)
}

impl Shared {
    const fn new(limit: usize) -> Self {
        Self { by_text: BTreeMap::new(), turns: VecDeque::new(), bytes: 0, limit }
    }

    fn get(&self, text: &str) -> Option<Arc<Kept>> {
        self.by_text.get(text).inspect(|kept| kept.used.store(true, Ordering::Relaxed)).cloned()
    }

    fn add(&mut self, text: &str, kept: Arc<Kept>) {
        let text: Arc<str> = text.into();
        self.bytes += size(&text, &kept);
        match self.by_text.insert(Arc::clone(&text), kept) {
            Some(before) => self.bytes -= size(&text, &before),
            None => self.turns.push_back(text),
        }
        while self.bytes > self.limit
            && let Some(text) = self.turns.pop_front()
        {
            self.turn(text);
        }
    }

    fn turn(&mut self, text: Arc<str>) {
        let Some(kept) = self.by_text.get(&text) else { return };
        if kept.used.swap(false, Ordering::Relaxed) {
            self.turns.push_back(text);
            return;
        }
        self.bytes -= size(&text, kept);
        self.by_text.remove(&text);
    }
}

/// What keeping a pattern takes, about.
fn size(text: &str, kept: &Kept) -> usize {
    2 * text.len() + kept.regex.footprint() + 128
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(pattern: &str) -> Arc<Kept> {
        Arc::new(Kept { regex: compile(pattern).expect("a pattern"), used: AtomicBool::default() })
    }

    #[test]
    fn those_that_are_used_are_kept_within_the_limit() {
        let mut shared = Shared::new(1_000_000);
        shared.add("often", kept("often"));
        for number in 0..1000 {
            let pattern = format!("^a{{{}}}$", number % 500);
            shared.add(&pattern, kept(&pattern));
            assert!(shared.bytes <= 1_000_000);
            assert!(shared.get("often").is_some(), "after {number}");
        }
        assert!(shared.by_text.len() > 4 && shared.by_text.len() < 100);
        assert_eq!(shared.turns.len(), shared.by_text.len());
    }

    #[test]
    fn a_pattern_is_compiled_once_and_by_whoever_needs_it() {
        let (one, other) = (Pattern::new("^shared-by-two$"), Pattern::new("^shared-by-two$"));
        assert_eq!(one.with(|regex| regex.is_match("shared-by-two")), Ok(true));
        assert_eq!(other.with(|regex| regex.is_match("no")), Ok(false));
        let compiled = |pattern: &Pattern| pattern.compiled.lock().expect("the lock").as_ptr();
        assert_eq!(compiled(&one), compiled(&other));
        assert!(Pattern::new("[a").with(|_| ()).is_err());
    }
}
