//! Backup, restore and check: whole passes over a file that tell how far they are.
//!
//! A copy is made row by row from one consistent snapshot, each row checked on the way, into a file of
//! its own that only gets its name when it is complete and durable. So a backup is never a half one,
//! never carries damage on, and can be made while a server uses the store.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use crate::{
    OpenError,
    file::{Go, ReadError, StoreFile, explain, open_readable, open_writable},
    load::load,
    lock::Lock,
};

/// Rows copied per transaction.
const CHUNK: u64 = 4096;

/// How far a pass over a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Rows done.
    pub done: u64,
    /// Rows there are.
    pub total: u64,
}

/// What a store file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The newest revision.
    pub revision: u64,
    /// The oldest revision that can still be read.
    pub oldest: u64,
    /// Keys that exist.
    pub keys: u64,
    /// Rows of the log, old versions included.
    pub rows: u64,
}

/// Why a backup, restore or check did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The file to read or to write cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),

    /// The file to write exists.
    #[error("{} exists: it is never overwritten, give another path or move it away", .0.display())]
    Exists(PathBuf),

    /// The new file could not be completed; what there was of it is removed.
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// The file being made.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
}

/// Copies the store at `source` to the new file `target`. A server may be using `source`.
///
/// # Errors
///
/// [`BackupError`]; `target` then does not exist.
pub fn backup(source: &Path, target: &Path, progress: impl FnMut(Progress)) -> Result<Report, BackupError> {
    let from = open_readable(source)?;
    copy(&from, source, target, progress)
}

/// Makes a store at `target` from a backup. Refuses while a server uses `target` or a store is there.
///
/// # Errors
///
/// [`BackupError`]; nothing was changed then.
pub fn restore(source: &Path, target: &Path, progress: impl FnMut(Progress)) -> Result<Report, BackupError> {
    let _lock = Lock::acquire(target)?;
    let from = open_readable(source)?;
    copy(&from, source, target, progress)
}

/// Reads everything and checks it, SQLite's own structures included. A server may be using the store.
///
/// # Errors
///
/// [`OpenError::Damaged`] with the first thing that is wrong.
pub fn check(path: &Path, mut progress: impl FnMut(Progress)) -> Result<Report, OpenError> {
    let file = open_readable(path)?;
    let sqlite = |error| explain(path, &error);
    let connection = file.connection();
    connection.execute_batch("BEGIN").map_err(sqlite)?;
    let verdict: String =
        connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(sqlite)?;
    if verdict != "ok" {
        return Err(OpenError::Damaged { path: path.to_owned(), reason: verdict });
    }
    let total = file.count_rows().map_err(sqlite)?;
    let loaded = load(&file, |done| {
        if done % CHUNK == 0 || done == total {
            progress(Progress { done, total });
        }
    });
    let loaded = loaded.map_err(|error| error.explain(path))?;
    Ok(Report {
        revision: loaded.index.revision,
        oldest: loaded.index.oldest,
        keys: loaded.index.live_count() as u64,
        rows: loaded.rows,
    })
}

fn copy(
    from: &StoreFile,
    source: &Path,
    target: &Path,
    mut progress: impl FnMut(Progress),
) -> Result<Report, BackupError> {
    if target.exists() {
        return Err(BackupError::Exists(target.to_owned()));
    }
    let partial = with_suffix(target, ".partial");
    remove_store(&partial);
    let result = copy_to(from, source, &partial, &mut progress)
        .and_then(|()| Ok(check(&partial, |_| {})?))
        .and_then(|report| put_in_place(&partial, target).map(|()| report));
    if result.is_err() {
        remove_store(&partial);
    }
    result
}

fn copy_to(
    from: &StoreFile,
    source: &Path,
    partial: &Path,
    progress: &mut impl FnMut(Progress),
) -> Result<(), BackupError> {
    let read = |error: ReadError| BackupError::Open(error.explain(source));
    let write =
        |error: rusqlite::Error| BackupError::Write { path: partial.to_owned(), reason: error.to_string() };
    // One snapshot for everything that is read.
    from.connection().execute_batch("BEGIN").map_err(|error| read(error.into()))?;
    let state = from.read_state().map_err(read)?;
    let total = from.count_rows().map_err(|error| read(error.into()))?;
    let to = open_writable(partial)?;
    to.connection().execute_batch("BEGIN").and_then(|()| to.write_state(state)).map_err(write)?;
    let mut written = Ok(());
    let mut done = 0;
    from.read_rows(i64::MIN, |row| {
        done += 1;
        written = to.append(&row);
        if written.is_ok() && done % CHUNK == 0 {
            progress(Progress { done, total });
            written = to.connection().execute_batch("COMMIT; BEGIN");
        }
        Ok(if written.is_ok() { Go::On } else { Go::Stop })
    })
    .map_err(read)?;
    written
        .and_then(|()| to.connection().execute_batch("COMMIT"))
        .and_then(|()| to.checkpoint_all())
        .and_then(|()| to.leave_wal())
        .map_err(write)?;
    progress(Progress { done, total });
    Ok(())
}

/// Gives the complete file its name, durably.
fn put_in_place(partial: &Path, target: &Path) -> Result<(), BackupError> {
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = || {
        File::open(partial)?.sync_all()?;
        // Fails if somebody made the target meanwhile, where a rename would overwrite it.
        std::fs::hard_link(partial, target)?;
        std::fs::remove_file(partial)?;
        File::open(directory)?.sync_all()
    };
    place().map_err(|error: std::io::Error| BackupError::Write {
        path: target.to_owned(),
        reason: error.to_string(),
    })
}

fn remove_store(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let path = with_suffix(path, suffix);
        if let Err(error) = std::fs::remove_file(&path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "Partial copy could not be removed");
        }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}
