//! Reads a file into an [`Index`], and believes nothing it reads.

use concord_store::Revision;

use crate::{
    file::{Go, ReadError, State, StoreFile},
    index::Index,
    row::{Expiry, Row},
};

/// What a file holds.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) index: Index,
    pub(crate) state: State,
    /// The id of the next row.
    pub(crate) next_row: i64,
    /// The keys that will expire.
    pub(crate) expiring: Vec<Expiring>,
    /// How many rows were read.
    pub(crate) rows: u64,
}

/// A key that expires unless it is written again.
#[derive(Debug)]
pub(crate) struct Expiring {
    pub(crate) key: bytes::Bytes,
    pub(crate) mod_revision: Revision,
    pub(crate) expiry: Expiry,
}

/// Reads and checks every row. `progress` is told how many rows were read so far.
pub(crate) fn load(file: &StoreFile, mut progress: impl FnMut(u64)) -> Result<Loaded, ReadError> {
    let state = file.read_state()?;
    let mut check = Check::new(state);
    let mut index = Index::default();
    let mut expiring = Vec::new();
    file.read_rows(i64::MIN, |row| {
        check.row(&row)?;
        index.apply(&row);
        if let Some(expiry) = row.expiry {
            expiring.push(Expiring { key: row.key, mod_revision: row.revision, expiry });
        }
        progress(check.rows);
        Ok(Go::On)
    })?;
    check.end()?;
    index.revision = index.revision.max(state.compact_revision);
    index.oldest = state.compact_revision;
    expiring.retain(|e| index.live(&e.key).is_some_and(|live| live.mod_revision == e.mod_revision));
    Ok(Loaded { index, state, next_row: check.last_id + 1, expiring, rows: check.rows })
}

/// What the rows must look like one after another; see the description of the file.
struct Check {
    state: State,
    rows: u64,
    compacted_rows: u64,
    last_id: i64,
    last_revision: Revision,
}

impl Check {
    fn new(state: State) -> Self {
        Self { state, rows: 0, compacted_rows: 0, last_id: 0, last_revision: 0 }
    }

    fn row(&mut self, row: &Row) -> Result<(), ReadError> {
        let damaged = |what: String| Err(ReadError::Damaged(format!("row {}: {what}", row.id)));
        if row.id <= self.last_id || row.revision < self.last_revision {
            return damaged(format!("out of order after row {}", self.last_id));
        }
        if row.create_revision > row.revision || row.create_revision == 0 || row.key.is_empty() {
            return damaged("impossible content".to_owned());
        }
        if row.revision <= self.state.compact_revision {
            self.compacted_rows += 1;
        } else {
            // Nothing was ever removed from here on.
            let previous = self.last_revision.max(self.state.compact_revision);
            if row.revision > previous + 1 {
                return damaged(format!("revisions after {previous} are missing"));
            }
            if self.rows > self.compacted_rows && row.id != self.last_id + 1 {
                return damaged(format!("rows after {} are missing", self.last_id));
            }
        }
        self.rows += 1;
        self.last_id = row.id;
        self.last_revision = row.revision;
        Ok(())
    }

    fn end(&self) -> Result<(), ReadError> {
        if self.compacted_rows == self.state.compacted_rows {
            return Ok(());
        }
        Err(ReadError::Damaged(format!(
            "there are {} rows up to revision {}, there should be {}",
            self.compacted_rows, self.state.compact_revision, self.state.compacted_rows
        )))
    }
}
