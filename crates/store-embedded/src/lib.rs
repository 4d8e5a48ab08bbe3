//! The embedded engine: the log in one SQLite file.
//!
//! SQLite is used as what it is best at, a crash-safe file of rows; the log on top of it is ours, in the
//! shape etcd gives it: rows in revision order in the file, an index of keys in memory, one writer
//! that commits in groups. `docs/decisions/0001-embedded-engine.md` says why SQLite.
//!
//! What it never does: acknowledge before the sync returned, repair a damaged file by itself, let two
//! processes write, or block the caller's thread on the disk.
//!
//! Start with [`EmbeddedStore`] here and `writer.rs`; `file.rs` describes the file, `index.rs` the index.
//! [`backup`], [`restore`] and [`check`] are for operators.

mod backup;
mod batch;
mod checkpointer;
mod expiry;
mod file;
mod follow;
mod index;
mod load;
mod lock;
mod open_error;
mod queue;
mod recent;
mod retention;
mod row;
mod shared;
mod writer;

use std::{
    path::PathBuf,
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bytes::Bytes;
use concord_store::{Change, CommitStream, Committed, Error, KeyValue, Revision, Scan, ScanPage, Store, Txn};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

pub use backup::{BackupError, Progress, Report, backup, check, restore};
pub use open_error::OpenError;

use crate::{
    checkpointer::Checkpoints,
    file::{open_readable, open_writable},
    index::Found,
    lock::Lock,
    queue::{CloseOnExit, Request, closed},
    retention::Retention,
    shared::{Shared, read_failed},
    writer::Writer,
};

/// How to open a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// The store file; made if it does not exist. Its directory must exist.
    pub path: PathBuf,
    /// How long old revisions stay readable. Five minutes by default, as with kube-apiserver on etcd;
    /// `None` keeps them until [`Store::compact`] is called.
    pub retention: Option<Duration>,
}

impl Options {
    /// The defaults for the store at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), retention: Some(Duration::from_secs(5 * 60)) }
    }
}

/// A store in a file of this machine.
///
/// Dropping it closes it as [`EmbeddedStore::close`] does, but makes the dropping thread wait.
pub struct EmbeddedStore {
    shared: Arc<Shared>,
    closing: watch::Sender<bool>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl EmbeddedStore {
    /// Opens or makes the store. Blocks: it reads the whole file and checks all of it.
    ///
    /// # Errors
    ///
    /// [`OpenError`], having changed nothing in a file that is damaged or not ours.
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        let lock = Lock::acquire(&options.path)?;
        let file = open_writable(&options.path)?;
        let loaded = load::load(&file, |_| {}).map_err(|error| error.explain(&options.path))?;
        // A log left behind by a crash may have been read from memory the disk never got.
        let durable = file.checkpoint_all().and_then(|()| file.tidy_on_close());
        durable.map_err(|error| file::explain(&options.path, &error))?;
        Self::start(options, lock, file, loaded)
    }

    fn start(
        options: &Options,
        lock: Lock,
        file: file::StoreFile,
        mut loaded: load::Loaded,
    ) -> Result<Self, OpenError> {
        let reader = open_readable(&options.path)?;
        let checkpointer = open_writable(&options.path)?;
        for file in [&reader, &checkpointer] {
            file.tidy_on_close().map_err(|error| file::explain(&options.path, &error))?;
        }
        let io = |error: std::io::Error| OpenError::Io {
            path: options.path.clone(),
            reason: format!("cannot start a thread: {error}"),
        };
        let index = std::mem::take(&mut loaded.index);
        let retention = Retention::new(options.retention, Instant::now(), index.revision);
        let shared = Arc::new(Shared::new(options.path.clone(), index, reader));
        let checkpoints = Checkpoints::start(checkpointer, shared.clone()).map_err(io)?;
        let writer = Writer::new(shared.clone(), file, checkpoints, loaded, retention);
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || {
            let _closed_after = CloseOnExit(&theirs.queue);
            writer.run();
            drop(lock);
        });
        let (closing, _) = watch::channel(false);
        Ok(Self { shared, closing, writer: Mutex::new(Some(thread.map_err(io)?)) })
    }

    /// Answers what was asked so far, ends all followers, and lets go of the file and its lock. All
    /// later requests are answered with [`Error::Unavailable`].
    pub async fn close(&self) {
        self.begin_close();
        let Some(thread) = self.writer.lock().take() else { return };
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        if !matches!(joined, Ok(Ok(()))) {
            tracing::error!("Store writer panicked");
        }
    }

    fn begin_close(&self) {
        self.closing.send_replace(true);
        self.shared.queue.close();
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Request,
        bytes: usize,
    ) -> Result<T, Error> {
        let (sender, receiver) = oneshot::channel();
        self.shared.queue.push(request(sender), bytes).await?;
        receiver.await.unwrap_or_else(|_| Err(Error::outcome_unknown("the store writer stopped")))
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.begin_close();
        if let Some(thread) = self.writer.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("Store writer panicked");
        }
    }
}

#[async_trait]
impl Store for EmbeddedStore {
    async fn transact(&self, txn: Txn) -> Result<Committed, Error> {
        txn.validate()?;
        let bytes = txn.size();
        self.ask(|answer| Request::Transact { txn, answer }, bytes).await
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Error> {
        scan.validate()?;
        self.check_open()?;
        let found = self.shared.index.read().scan(&scan.range, scan.revision, scan.limit)?;
        let revision = found.revision;
        let resume = found.resume;
        let in_memory = found.entries.iter().all(|entry| matches!(entry, Found::Live(_)));
        let entries = if in_memory {
            resolve(&self.shared, found.entries)?
        } else {
            let shared = self.shared.clone();
            let read = tokio::task::spawn_blocking(move || {
                let entries = resolve(&shared, found.entries);
                // A compaction may have taken rows away while they were read.
                shared.index.read().check_readable(revision)?;
                entries
            });
            read.await.map_err(|error| Error::unavailable(format!("reading the store failed: {error}")))??
        };
        Ok(ScanPage { revision, entries, resume })
    }

    fn follow(&self, after: Revision) -> CommitStream {
        follow::follow(self.shared.clone(), self.closing.subscribe(), after)
    }

    async fn current_revision(&self) -> Result<Revision, Error> {
        self.check_open()?;
        Ok(*self.shared.committed.borrow())
    }

    async fn compact(&self, revision: Revision) -> Result<(), Error> {
        self.ask(|answer| Request::Compact { revision, answer }, 0).await
    }

    async fn refresh(&self, key: &Bytes, revision: Revision, ttl: Duration) -> Result<bool, Error> {
        let key = key.clone();
        self.ask(|answer| Request::Refresh { key, revision, ttl, answer }, 0).await
    }

    async fn health(&self) -> Result<(), Error> {
        self.check_open()?;
        if let Some(failure) = self.shared.failure() {
            return Err(failure);
        }
        match self.shared.trouble.lock().as_ref() {
            Some(reason) => Err(Error::unavailable(format!("the last write failed: {reason}"))),
            None => Ok(()),
        }
    }
}

impl EmbeddedStore {
    fn check_open(&self) -> Result<(), Error> {
        if *self.closing.borrow() { Err(closed()) } else { Ok(()) }
    }
}

/// Fills in the values of superseded versions from the file.
fn resolve(shared: &Shared, found: Vec<Found>) -> Result<Vec<KeyValue>, Error> {
    let missing = |key: &[u8]| {
        let key = String::from_utf8_lossy(key);
        Error::unavailable(format!("an old version of {key} is missing in the store file"))
    };
    let read = |row, key: &[u8]| match shared.reader.lock().read_row(row) {
        Ok(Some(row)) => match row.change() {
            Change::Put(kv) if kv.key == key => Ok(kv),
            _ => Err(missing(key)),
        },
        Ok(None) => Err(missing(key)),
        Err(error) => Err(read_failed(&error)),
    };
    let entry = |found| match found {
        Found::Live(kv) => Ok(kv),
        Found::InFile { row, key } => read(row, &key),
    };
    found.into_iter().map(entry).collect()
}
