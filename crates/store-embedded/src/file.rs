//! The file: how rows and the compaction state stand in SQLite.
//!
//! ```text
//! log    id | revision | key | value (NULL: deleted) | create_revision | ttl_ms | expires_ms | crc
//! state  one row: compact_revision | compacted_rows | crc
//! ```
//!
//! `log` is only appended to, and compaction deletes from it. What makes damage visible: each row has a
//! checksum over its place and content; ids only grow; revisions after `compact_revision` have no gap
//! and neither have their rows' ids; and `compacted_rows` says how many rows there must be before.

use std::{path::Path, time::Duration};

use bytes::Bytes;
use concord_store::Revision;
use rusqlite::{Connection, OpenFlags, OptionalExtension, config::DbConfig, params};

use crate::{
    OpenError,
    row::{Expiry, Row, millis},
};

/// "CONC": tells our files from other SQLite files.
const APPLICATION_ID: i64 = 0x434f_4e43;
/// Raised when the tables change; older files are then converted at open, newer ones refused.
const FORMAT: i64 = 1;

/// SQLite's default, which we keep.
const PAGE_BYTES: u64 = 4096;

/// A connection to a store file.
pub(crate) struct StoreFile {
    connection: Connection,
}

/// The one row of `state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    /// The oldest revision that can be read.
    pub(crate) compact_revision: Revision,
    /// How many rows of `log` have a revision up to and including `compact_revision`.
    pub(crate) compacted_rows: u64,
}

impl State {
    fn checksum(self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.compact_revision.to_le_bytes());
        hasher.update(&self.compacted_rows.to_le_bytes());
        hasher.finalize()
    }
}

impl Default for State {
    fn default() -> Self {
        Self { compact_revision: 1, compacted_rows: 0 }
    }
}

/// Opens the file for writing; makes it if there is none.
pub(crate) fn open_writable(path: &Path) -> Result<StoreFile, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let length = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let file = connect(path, flags)?;
    let explain = |error| explain(path, &error);
    let fresh = file.is_empty().map_err(explain)?;
    if fresh && (1..PAGE_BYTES).contains(&length) {
        // SQLite takes less than a page for nothing, and we would make a new store of it.
        let reason = format!("it has only {length} bytes");
        return Err(OpenError::Damaged { path: path.to_owned(), reason });
    }
    if fresh {
        // Has to be said before the first page is written.
        file.connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(explain)?;
    } else {
        file.check_format(path)?;
    }
    file.configure_writer().map_err(explain)?;
    if fresh {
        file.create_tables().map_err(explain)?;
    }
    Ok(file)
}

/// Opens an existing file without any right to change it.
pub(crate) fn open_readable(path: &Path) -> Result<StoreFile, OpenError> {
    if !path.exists() {
        return Err(OpenError::Io { path: path.to_owned(), reason: "there is no such file".to_owned() });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let file = connect(path, flags)?;
    file.check_format(path)?;
    file.connection.pragma_update(None, "query_only", true).map_err(|error| explain(path, &error))?;
    Ok(file)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<StoreFile, OpenError> {
    let open = || {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        // Or closing a damaged store again would change it: see `StoreFile::tidy_on_close`.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        // In KiB. What is read again and again is in the index; rows are appended, and read and removed once.
        connection.pragma_update(None, "cache_size", -2048)?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(StoreFile { connection })
    };
    open().map_err(|error| explain(path, &error))
}

impl StoreFile {
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// A file that does not exist yet, or whose making was cut off before the tables were there.
    fn is_empty(&self) -> rusqlite::Result<bool> {
        let tables: i64 =
            self.connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        let application: i64 =
            self.connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
        Ok(tables == 0 && application == 0)
    }

    /// Refuses what is no store of ours before anything is changed in it.
    fn check_format(&self, path: &Path) -> Result<(), OpenError> {
        let pragma = |name| {
            self.connection
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
                .map_err(|error| explain(path, &error))
        };
        let application = pragma("application_id")?;
        if application != APPLICATION_ID {
            let reason = format!("its application id is {application:#x}");
            return Err(OpenError::NotAStore { path: path.to_owned(), reason });
        }
        match pragma("user_version")? {
            FORMAT => Ok(()),
            found => Err(OpenError::Format { path: path.to_owned(), found, supported: FORMAT }),
        }
    }

    /// A commit is one append to the write-ahead log and one sync of it. Moving the pages into the
    /// file is left to the checkpointer, off the path of commits.
    fn configure_writer(&self) -> rusqlite::Result<()> {
        self.connection.pragma_update(None, "journal_mode", "WAL")?;
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        self.connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        self.connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
        Ok(())
    }

    fn create_tables(&self) -> rusqlite::Result<()> {
        // One transaction: a crash leaves an empty file or a store, nothing between.
        self.connection.execute_batch(&format!(
            "BEGIN IMMEDIATE;
             CREATE TABLE log (
                 id INTEGER PRIMARY KEY,
                 revision INTEGER NOT NULL,
                 key BLOB NOT NULL,
                 value BLOB,
                 create_revision INTEGER NOT NULL,
                 ttl_ms INTEGER,
                 expires_ms INTEGER,
                 crc INTEGER NOT NULL
             );
             CREATE TABLE state (
                 id INTEGER PRIMARY KEY CHECK (id = 0),
                 compact_revision INTEGER NOT NULL,
                 compacted_rows INTEGER NOT NULL,
                 crc INTEGER NOT NULL
             );
             PRAGMA application_id = {APPLICATION_ID};
             PRAGMA user_version = {FORMAT};"
        ))?;
        self.write_state(State::default())?;
        self.connection.execute_batch("COMMIT")
    }

    /// From now on, closing moves the write-ahead log into the file and removes it, so that a store that is
    /// not in use is one file. Only for a store that was found to be whole.
    pub(crate) fn tidy_on_close(&self) -> rusqlite::Result<()> {
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        Ok(())
    }

    /// Copies everything from the write-ahead log into the file and empties it. Afterwards all that
    /// was read is durable in the file itself, whatever became of earlier syncs.
    pub(crate) fn checkpoint_all(&self) -> rusqlite::Result<()> {
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    }

    /// Copies what it can without waiting for anyone.
    pub(crate) fn checkpoint_passive(&self) -> rusqlite::Result<()> {
        self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
    }

    /// Goes back to a single file without companions, for a copy that is going to be moved.
    pub(crate) fn leave_wal(&self) -> rusqlite::Result<()> {
        self.connection.pragma_update(None, "journal_mode", "DELETE")
    }

    pub(crate) fn append(&self, row: &Row) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached("INSERT INTO log VALUES (?,?,?,?,?,?,?,?)")?;
        statement.execute(params![
            row.id,
            row.revision.cast_signed(),
            row.key.as_ref(),
            row.value.as_deref(),
            row.create_revision.cast_signed(),
            row.expiry.map(|expiry| millis(expiry.ttl).cast_signed()),
            row.expiry.map(|expiry| expiry.at_unix_ms.cast_signed()),
            row.checksum(),
        ])?;
        Ok(())
    }

    pub(crate) fn delete_rows(&self, first: i64, last: i64) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached("DELETE FROM log WHERE id BETWEEN ? AND ?")?;
        statement.execute([first, last])?;
        Ok(())
    }

    pub(crate) fn write_state(&self, state: State) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached("REPLACE INTO state VALUES (0,?,?,?)")?;
        statement.execute(params![
            state.compact_revision.cast_signed(),
            state.compacted_rows.cast_signed(),
            state.checksum(),
        ])?;
        Ok(())
    }

    pub(crate) fn read_state(&self) -> Result<State, ReadError> {
        let (state, crc) = self.connection.query_row("SELECT * FROM state", [], |row| {
            let state = State {
                compact_revision: row.get::<_, i64>(1)?.cast_unsigned(),
                compacted_rows: row.get::<_, i64>(2)?.cast_unsigned(),
            };
            Ok((state, row.get::<_, i64>(3)?))
        })?;
        if crc == i64::from(state.checksum()) {
            Ok(state)
        } else {
            Err(ReadError::Damaged("the compaction state fails its checksum".to_owned()))
        }
    }

    /// Calls `each` with every row from `first_id` on, in order, until it says stop. Every row has
    /// passed its checksum.
    pub(crate) fn read_rows(
        &self,
        first_id: i64,
        mut each: impl FnMut(Row) -> Result<Go, ReadError>,
    ) -> Result<(), ReadError> {
        let mut statement = self.connection.prepare_cached("SELECT * FROM log WHERE id >= ? ORDER BY id")?;
        let mut rows = statement.query([first_id])?;
        while let Some(row) = rows.next()? {
            if each(decode(row)?)? == Go::Stop {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn read_row(&self, id: i64) -> Result<Option<Row>, ReadError> {
        let mut statement = self.connection.prepare_cached("SELECT * FROM log WHERE id = ?")?;
        let mut rows = statement.query([id])?;
        rows.next()?.map(decode).transpose()
    }

    /// The first row whose revision is greater than `revision`, or the end of the log. Revisions grow with
    /// ids, so this is a binary search and needs no index that every commit would have to keep.
    pub(crate) fn first_row_after(&self, revision: Revision) -> rusqlite::Result<i64> {
        let end: i64 =
            self.connection.query_row("SELECT coalesce(max(id), 0) + 1 FROM log", [], |row| row.get(0))?;
        let mut probe = self
            .connection
            .prepare_cached("SELECT id, revision FROM log WHERE id >= ? AND id < ? ORDER BY id LIMIT 1")?;
        let (mut low, mut high) = (0, end);
        while low < high {
            let middle = low + (high - low) / 2;
            let found = probe
                .query_row([middle, high], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
                .optional()?;
            match found {
                Some((id, at)) if at.cast_unsigned() <= revision => low = id + 1,
                _ => high = middle,
            }
        }
        // Compaction leaves gaps: the next row may be further on.
        let first =
            self.connection.query_row("SELECT min(id) FROM log WHERE id >= ?", [low], |row| row.get(0));
        Ok(first.optional()?.flatten().unwrap_or(end))
    }

    /// How many rows stand before `id`.
    pub(crate) fn count_rows_before(&self, id: i64) -> rusqlite::Result<u64> {
        let count: i64 =
            self.connection.query_row("SELECT count(*) FROM log WHERE id < ?", [id], |row| row.get(0))?;
        Ok(count.cast_unsigned())
    }

    pub(crate) fn count_rows(&self) -> rusqlite::Result<u64> {
        self.count_rows_before(i64::MAX)
    }

    /// Pages of the file, and how many of them are unused.
    pub(crate) fn pages(&self) -> rusqlite::Result<(i64, i64)> {
        let pragma = |name| self.connection.pragma_query_value(None, name, |row| row.get(0));
        Ok((pragma("page_count")?, pragma("freelist_count")?))
    }

    /// Gives up to `pages` unused pages back to the file system.
    pub(crate) fn reclaim(&self, pages: u32) -> rusqlite::Result<()> {
        self.connection.execute_batch(&format!("PRAGMA incremental_vacuum({pages})"))
    }
}

/// Whether to go on reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    On,
    Stop,
}

/// Why rows could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("{0}")]
    Damaged(String),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

impl ReadError {
    pub(crate) fn explain(&self, path: &Path) -> OpenError {
        match self {
            Self::Damaged(reason) => OpenError::Damaged { path: path.to_owned(), reason: reason.clone() },
            Self::Sqlite(error) => explain(path, error),
        }
    }
}

fn decode(row: &rusqlite::Row<'_>) -> Result<Row, ReadError> {
    let id: i64 = row.get(0)?;
    let damaged = |what: &str| ReadError::Damaged(format!("row {id} {what}"));
    let parse = || -> rusqlite::Result<(Row, i64)> {
        let expiry = match (row.get::<_, Option<i64>>(5)?, row.get::<_, Option<i64>>(6)?) {
            (Some(ttl), Some(at)) => Some(Expiry {
                ttl: Duration::from_millis(ttl.cast_unsigned()),
                at_unix_ms: at.cast_unsigned(),
            }),
            _ => None,
        };
        let decoded = Row {
            id,
            revision: row.get::<_, i64>(1)?.cast_unsigned(),
            key: Bytes::copy_from_slice(row.get_ref(2)?.as_blob()?),
            value: row.get_ref(3)?.as_blob_or_null()?.map(Bytes::copy_from_slice),
            create_revision: row.get::<_, i64>(4)?.cast_unsigned(),
            expiry,
        };
        Ok((decoded, row.get(7)?))
    };
    let (decoded, crc) = parse().map_err(|_| damaged("has columns of the wrong type"))?;
    if crc != i64::from(decoded.checksum()) {
        return Err(damaged("fails its checksum"));
    }
    Ok(decoded)
}

/// Tells damage and foreign files from trouble with the system.
pub(crate) fn explain(path: &Path, error: &rusqlite::Error) -> OpenError {
    use rusqlite::ErrorCode;
    let path = path.to_owned();
    let reason = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::NotAStore { path, reason },
        // The last two are a missing or altered table, seen only after the format was found to be ours.
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::Unknown) | None => OpenError::Damaged { path, reason },
        Some(_) => OpenError::Io { path, reason },
    }
}
