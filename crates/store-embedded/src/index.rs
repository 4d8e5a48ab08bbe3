//! Which versions of which keys exist and where.
//!
//! The newest value of each key is in memory; it is the same buffer that a replica in this process
//! holds, so it costs nothing twice. Superseded versions are only remembered by their row in the file.
//!
//! Example: `k` is put at revisions 5 and 8, deleted at 9 and put again at 12.
//!
//! ```text
//! history of k: [5 row 1] [8 row 2] [9 row 3, deleted]      live: 12 row 4
//! superseded:   (at 8, row 1) (at 9, row 2) (at 9, row 3)
//! ```
//!
//! Compacting at 8 forgets what was superseded at or before 8: row 1. Revision 8 still reads row 2.
//! Compacting at 9 forgets rows 2 and 3 as well: at revision 9 the key is absent without them.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
};

use bytes::Bytes;
use concord_store::{Error, KeyRange, KeyValue, Revision};

use crate::row::Row;

#[derive(Debug)]
pub(crate) struct Index {
    keys: BTreeMap<Bytes, Versions>,
    /// What compaction will forget, ordered by when it was superseded. For each key the order is
    /// that of its history.
    superseded: VecDeque<Superseded>,
    pub(crate) revision: Revision,
    /// The oldest revision that can be read.
    pub(crate) oldest: Revision,
}

#[derive(Debug, Default)]
struct Versions {
    live: Option<Live>,
    /// Oldest first.
    history: VecDeque<Past>,
}

/// The newest version of a key that exists.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(crate) value: Bytes,
    pub(crate) create_revision: Revision,
    pub(crate) mod_revision: Revision,
    row: i64,
}

#[derive(Debug)]
struct Past {
    revision: Revision,
    row: i64,
    deleted: bool,
}

#[derive(Debug)]
struct Superseded {
    at: Revision,
    key: Bytes,
    row: i64,
}

/// An entry of a scan: at hand, or to be read from the file.
#[derive(Debug)]
pub(crate) enum Found {
    Live(KeyValue),
    InFile { row: i64, key: Bytes },
}

/// One page of [`Found`] entries.
#[derive(Debug)]
pub(crate) struct FoundPage {
    pub(crate) revision: Revision,
    pub(crate) entries: Vec<Found>,
    pub(crate) resume: Option<Bytes>,
}

impl Default for Index {
    fn default() -> Self {
        Self { keys: BTreeMap::new(), superseded: VecDeque::new(), revision: 1, oldest: 1 }
    }
}

impl Index {
    pub(crate) fn live(&self, key: &[u8]) -> Option<&Live> {
        self.keys.get(key)?.live.as_ref()
    }

    pub(crate) fn live_count(&self) -> usize {
        self.keys.values().filter(|versions| versions.live.is_some()).count()
    }

    /// Takes in a row that is durable. Rows come in the order of their ids.
    pub(crate) fn apply(&mut self, row: &Row) {
        self.revision = self.revision.max(row.revision);
        let versions = self.keys.entry(row.key.clone()).or_default();
        if let Some(old) = versions.live.take() {
            versions.history.push_back(Past { revision: old.mod_revision, row: old.row, deleted: false });
            self.superseded.push_back(Superseded { at: row.revision, key: row.key.clone(), row: old.row });
        }
        versions.live = Live::from_row(row);
        if versions.live.is_none() {
            versions.history.push_back(Past { revision: row.revision, row: row.id, deleted: true });
            self.superseded.push_back(Superseded { at: row.revision, key: row.key.clone(), row: row.id });
        }
    }

    /// Drops up to `limit` versions that no readable revision needs; their rows may be deleted.
    pub(crate) fn forget(&mut self, limit: usize) -> Vec<i64> {
        let mut rows = Vec::new();
        while rows.len() < limit && self.superseded.front().is_some_and(|front| front.at <= self.oldest) {
            let Some(Superseded { key, row, .. }) = self.superseded.pop_front() else { break };
            rows.push(row);
            let Some(versions) = self.keys.get_mut(&key) else { continue };
            versions.history.pop_front();
            if versions.live.is_none() && versions.history.is_empty() {
                self.keys.remove(&key);
            } else if versions.history.is_empty() {
                versions.history.shrink_to_fit();
            }
        }
        rows
    }

    /// Whether [`Index::forget`] has something to do.
    pub(crate) fn can_forget(&self) -> bool {
        self.superseded.front().is_some_and(|front| front.at <= self.oldest)
    }

    /// Whether `revision` can be read.
    pub(crate) fn check_readable(&self, revision: Revision) -> Result<(), Error> {
        if revision > self.revision {
            return Err(Error::FutureRevision { requested: revision, current: self.revision });
        }
        if revision < self.oldest {
            return Err(Error::Compacted { oldest: self.oldest });
        }
        Ok(())
    }

    pub(crate) fn scan(
        &self,
        range: &KeyRange,
        revision: Option<Revision>,
        limit: usize,
    ) -> Result<FoundPage, Error> {
        let revision = revision.unwrap_or(self.revision);
        self.check_readable(revision)?;
        let mut page = FoundPage { revision, entries: Vec::new(), resume: None };
        if range.is_empty() {
            return Ok(page);
        }
        let end = range.end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let keys = self.keys.range::<Bytes, _>((Bound::Included(&range.start), end));
        for (key, versions) in keys {
            let Some(found) = versions.at(key, revision) else { continue };
            if page.entries.len() == limit {
                page.resume = Some(key.clone());
                break;
            }
            page.entries.push(found);
        }
        Ok(page)
    }
}

impl Versions {
    fn at(&self, key: &Bytes, revision: Revision) -> Option<Found> {
        if let Some(live) = self.live.as_ref().filter(|live| live.mod_revision <= revision) {
            return Some(Found::Live(live.entry(key.clone())));
        }
        let past = self.history.iter().rfind(|past| past.revision <= revision)?;
        (!past.deleted).then(|| Found::InFile { row: past.row, key: key.clone() })
    }
}

impl Live {
    /// What the key is after this row; nothing if the row deletes it.
    pub(crate) fn from_row(row: &Row) -> Option<Self> {
        row.value.as_ref().map(|value| Self {
            value: value.clone(),
            create_revision: row.create_revision,
            mod_revision: row.revision,
            row: row.id,
        })
    }

    pub(crate) fn entry(&self, key: Bytes) -> KeyValue {
        KeyValue {
            key,
            value: self.value.clone(),
            create_revision: self.create_revision,
            mod_revision: self.mod_revision,
        }
    }
}
