use std::path::PathBuf;

use concord_store::{Commit, Error, Revision};
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use crate::{
    file::{ReadError, StoreFile},
    index::Index,
    queue::Queue,
    recent::Recent,
    row::Row,
};

/// What the handle, the writer and the checkpointer share. Locks are never held together.
pub(crate) struct Shared {
    pub(crate) path: PathBuf,
    /// Only the writer changes it, and only to take in what is durable.
    pub(crate) index: RwLock<Index>,
    pub(crate) recent: Mutex<Recent>,
    /// The newest durable revision. Sent after `index` and `recent` have it.
    pub(crate) committed: watch::Sender<Revision>,
    pub(crate) queue: Queue,
    /// Reads superseded versions.
    pub(crate) reader: Mutex<StoreFile>,
    /// Why the store takes no more writes. A sync that failed once cannot be retried: the system may
    /// have thrown the pages away and report success the next time. So the store stays readable at
    /// what is known to be durable until the process is restarted and reads the file anew.
    failure: Mutex<Option<String>>,
    /// The last write that failed for want of space or permission, until one succeeds.
    pub(crate) trouble: Mutex<Option<String>>,
}

impl Shared {
    pub(crate) fn new(path: PathBuf, index: Index, reader: StoreFile) -> Self {
        let (committed, _) = watch::channel(index.revision);
        Self {
            path,
            index: RwLock::new(index),
            recent: Mutex::default(),
            committed,
            queue: Queue::new(),
            reader: Mutex::new(reader),
            failure: Mutex::default(),
            trouble: Mutex::default(),
        }
    }

    /// Ends writing until the next start, for the first reason given.
    pub(crate) fn fail(&self, reason: &str) {
        let mut failure = self.failure.lock();
        if failure.is_none() {
            tracing::error!(store = %self.path.display(), reason, "Store takes no more writes until it is restarted");
            *failure = Some(reason.to_owned());
        }
    }

    pub(crate) fn failure(&self) -> Option<Error> {
        let failure = self.failure.lock();
        failure.as_ref().map(|reason| {
            Error::unavailable(format!(
                "an earlier write may be lost ({reason}): the store is read-only until the disk is \
                 checked and the server restarted"
            ))
        })
    }

    /// Whether the last attempt to write failed in a way that may pass.
    pub(crate) fn in_trouble(&self) -> bool {
        self.trouble.lock().is_some()
    }

    /// Makes durable rows visible: first to readers, then to followers, then to who waits for them.
    pub(crate) fn publish(&self, rows: &[Row]) {
        let Some(last) = rows.last() else { return };
        let mut index = self.index.write();
        rows.iter().for_each(|row| index.apply(row));
        drop(index);
        let mut recent = self.recent.lock();
        for rows in rows.chunk_by(|a, b| a.revision == b.revision) {
            let size = rows.iter().map(Row::size).sum();
            recent.push(commit_of(rows), size);
        }
        drop(recent);
        self.committed.send_replace(last.revision);
    }
}

/// The commit that these rows of one revision are.
pub(crate) fn commit_of(rows: &[Row]) -> Commit {
    let revision = rows.first().map_or(0, |row| row.revision);
    Commit { revision, changes: rows.iter().map(Row::change).collect() }
}

/// Trouble with the file while it is open.
pub(crate) fn read_failed(error: &ReadError) -> Error {
    Error::unavailable(format!("the store file cannot be read: {error}"))
}
