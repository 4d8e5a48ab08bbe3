use std::{cmp::Ordering, iter::Peekable, num::NonZeroUsize, sync::Arc};

use bytes::Bytes;
use concord_store::{KeyRange, Revision};

use crate::{
    Entry, Error,
    history::{History, OverlayIter},
    live::LiveIter,
    state::State,
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
    revision: Revision,
}

impl Snapshot {
    pub(crate) fn new(state: State) -> Self {
        Self { revision: state.revision, state: Arc::new(state) }
    }

    pub(crate) fn history(&self) -> &History {
        &self.state.history
    }

    /// The revision this is the state of.
    pub fn revision(&self) -> Revision {
        self.revision
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
        Ok(Self { state: Arc::clone(&self.state), revision })
    }

    /// The entry of `key`, if it exists.
    pub fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.state.get(key, self.revision)
    }

    /// The entries of `range`, in key order.
    pub fn scan(&self, range: &KeyRange) -> Entries<'_> {
        Entries(if range.is_empty() {
            Source::Nothing
        } else if self.revision == self.state.revision {
            Source::Newest(self.state.live(range))
        } else {
            Source::Past(Merge {
                live: self.state.live(range).peekable(),
                past: self.state.history.overlay(range, self.revision).into_iter().peekable(),
            })
        })
    }

    /// The first `limit` entries of `range`, and where to go on.
    pub fn page(&self, range: &KeyRange, limit: NonZeroUsize) -> Page {
        let mut entries = self.scan(range);
        let page = entries.by_ref().take(limit.get()).cloned().collect();
        Page { entries: page, resume: entries.next().map(|entry| entry.key.clone()) }
    }

    /// How many keys there are. Immediate at the newest revision of the snapshot, a walk over all
    /// keys at an older one.
    pub fn len(&self) -> usize {
        if self.revision == self.state.revision {
            self.state.len()
        } else {
            self.scan(&KeyRange::all()).count()
        }
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.scan(&KeyRange::all()).next().is_none()
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
/// of the snapshot it goes straight through them; at an older one it first collects what changed since.
pub struct Entries<'a>(Source<'a>);

enum Source<'a> {
    Nothing,
    Newest(LiveIter<'a>),
    Past(Merge<'a>),
}

impl<'a> Iterator for Entries<'a> {
    type Item = &'a Entry;

    fn next(&mut self) -> Option<&'a Entry> {
        match &mut self.0 {
            Source::Nothing => None,
            Source::Newest(live) => live.next(),
            Source::Past(merge) => merge.next(),
        }
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
    fn next(&mut self) -> Option<&'a Entry> {
        loop {
            let order = match (self.live.peek(), self.past.peek()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(live), Some((key, _))) => live.key.as_ref().cmp(*key),
            };
            let live = if order.is_le() { self.live.next() } else { None };
            if order.is_lt() {
                return live;
            }
            // The key changed since: what it is now says nothing.
            if let Some((_, Some(entry))) = self.past.next() {
                return Some(entry);
            }
        }
    }
}
