use std::{cmp::Ordering, iter::Peekable, num::NonZeroUsize, sync::Arc};

use bytes::Bytes;
use concord_store::{KeyRange, Revision};

use crate::{
    Entry, Error,
    history::{History, OverlayIter},
    kept::Kept,
    live::LiveIter,
    state::{Found, State},
    unpacked::Unpacked,
};

/// The whole keyspace at one revision.
///
/// A snapshot never changes and stays valid for as long as it is held. It is a pointer: clone it
/// freely, but do not keep it for long without need, since it keeps alive what was current then.
///
/// It also knows the revisions of the history window as it was when the snapshot was taken, see
/// [`Snapshot::at`].
#[derive(Debug, Clone)]
pub struct Snapshot {
    state: Arc<State>,
    /// `None` at the newest revision that the state knows.
    past: Option<Past>,
}

/// What a snapshot of an older revision has besides.
#[derive(Debug, Clone)]
struct Past {
    revision: Revision,
    unpacked: Arc<Unpacked>,
}

impl Past {
    fn lend<'a>(&'a self, found: Found<'a>) -> &'a Entry {
        match found {
            Found::Live(entry) | Found::Past(Kept::Small(entry)) => entry,
            Found::Past(kept) => self.unpacked.lend(kept.entry()),
        }
    }
}

impl Snapshot {
    pub(crate) fn new(state: State) -> Self {
        Self { state: Arc::new(state), past: None }
    }

    pub(crate) fn history(&self) -> &History {
        &self.state.history
    }

    /// The revision this is the state of.
    pub fn revision(&self) -> Revision {
        self.past.as_ref().map_or(self.state.revision, |past| past.revision)
    }

    /// The oldest revision [`Snapshot::at`] can answer.
    pub fn oldest(&self) -> Revision {
        self.state.oldest
    }

    /// The state at another revision of the same history window. The first page of a list and all
    /// that follow it are read at the same revision this way.
    ///
    /// # Errors
    ///
    /// [`Error::Expired`] before the window, [`Error::TooNew`] after it.
    pub fn at(&self, revision: Revision) -> Result<Self, Error> {
        if revision < self.state.oldest {
            return Err(Error::Expired { requested: revision, oldest: self.state.oldest });
        }
        if revision > self.state.revision {
            return Err(Error::TooNew { requested: revision, current: self.state.revision });
        }
        let past = (revision < self.state.revision).then(|| Past { revision, unpacked: Arc::default() });
        Ok(Self { state: Arc::clone(&self.state), past })
    }

    /// The entry of `key`, if it exists.
    pub fn get(&self, key: &[u8]) -> Option<&Entry> {
        match &self.past {
            None => self.state.get(key),
            Some(past) => self.state.get_at(key, past.revision).map(|found| past.lend(found)),
        }
    }

    /// The entries of `range`, in key order.
    pub fn scan(&self, range: &KeyRange) -> Entries<'_> {
        Entries(match &self.past {
            _ if range.is_empty() => Source::Nothing,
            None => Source::Newest(self.state.live(range)),
            Some(past) => Source::Past(self.merge(range, past), past),
        })
    }

    fn merge(&self, range: &KeyRange, past: &Past) -> Merge<'_> {
        Merge {
            live: self.state.live(range).peekable(),
            past: self.state.history.overlay(range, past.revision).into_iter().peekable(),
        }
    }

    /// The first `limit` entries of `range`, and where to go on.
    pub fn page(&self, range: &KeyRange, limit: NonZeroUsize) -> Page {
        let mut entries = self.scan(range);
        let page = entries.by_ref().take(limit.get()).cloned().collect();
        Page { entries: page, resume: entries.find_next().map(|found| found.key().clone()) }
    }

    /// How many keys there are. Immediate at the newest revision of the snapshot, a walk over all
    /// keys at an older one.
    pub fn len(&self) -> usize {
        match self.past {
            None => self.state.len(),
            Some(_) => self.scan(&KeyRange::all()).count(),
        }
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.scan(&KeyRange::all()).find_next().is_none()
    }
}

/// One page of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The entries, in key order.
    pub entries: Vec<Entry>,
    /// The first key of the next page, if there is one: read it as
    /// [`range.starting_at(resume)`](KeyRange::starting_at) of a snapshot at the same revision.
    pub resume: Option<Bytes>,
}

/// The entries of a range of a [`Snapshot`], in key order. Yields references. At the newest revision
/// of the snapshot it goes straight through them; at an older one it first collects what changed since,
/// and unpacks what is large. What was unpacked is held by the snapshot until it is dropped.
pub struct Entries<'a>(Source<'a>);

enum Source<'a> {
    Nothing,
    Newest(LiveIter<'a>),
    Past(Merge<'a>, &'a Past),
}

impl<'a> Entries<'a> {
    /// Where the next entry is. Unpacks nothing.
    fn find_next(&mut self) -> Option<Found<'a>> {
        match &mut self.0 {
            Source::Nothing => None,
            Source::Newest(live) => live.next().map(Found::Live),
            Source::Past(merge, _) => merge.next(),
        }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = &'a Entry;

    fn next(&mut self) -> Option<&'a Entry> {
        match &mut self.0 {
            Source::Nothing => None,
            Source::Newest(live) => live.next(),
            Source::Past(merge, past) => merge.next().map(|found| past.lend(found)),
        }
    }

    fn count(mut self) -> usize {
        std::iter::from_fn(|| self.find_next()).count()
    }
}

impl std::fmt::Debug for Entries<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entries").finish_non_exhaustive()
    }
}

/// The entries as they are now, and what those that changed since were before, merged by key.
struct Merge<'a> {
    live: Peekable<LiveIter<'a>>,
    past: Peekable<OverlayIter<'a>>,
}

impl<'a> Merge<'a> {
    fn next(&mut self) -> Option<Found<'a>> {
        loop {
            let order = match (self.live.peek(), self.past.peek()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(live), Some((key, _))) => live.key.as_ref().cmp(*key),
            };
            let live = if order.is_le() { self.live.next() } else { None };
            if order.is_lt() {
                return live.map(Found::Live);
            }
            // The key changed since: what it is now says nothing.
            if let Some((_, Some(kept))) = self.past.next() {
                return Some(Found::Past(kept));
            }
        }
    }
}
