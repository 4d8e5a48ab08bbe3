//! rusqlite: one table keyed by the row's id, a write-ahead log, one sync per transaction.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, SyncSender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use rusqlite::{Connection, backup::Backup, params};

use crate::engine::{Copy, Engine, Row};

/// What can be set; the defaults are what the decision record recommends.
#[derive(Debug, Clone)]
pub struct Options {
    page_size: u32,
    cache_kib: u32,
    mmap_mib: u32,
    exclusive: bool,
    auto_vacuum: bool,
    without_rowid: bool,
    /// Pages in the write-ahead log at which the writer itself checkpoints; 0 leaves that to a thread
    /// with its own connection.
    autocheckpoint: u32,
    /// The thread is asked to checkpoint after so much was written.
    due_kib: u32,
    /// The writer does it itself when the write-ahead log is longer than this.
    help_kib: u32,
    /// The writer finishes what the thread could not, because commits went on meanwhile: the log then
    /// starts over and does not grow, which makes each sync cheaper.
    hand_over: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            page_size: 4096,
            cache_kib: 8192,
            mmap_mib: 0,
            exclusive: false,
            auto_vacuum: true,
            without_rowid: false,
            autocheckpoint: 0,
            due_kib: 1024,
            help_kib: 32768,
            hand_over: true,
        }
    }
}

impl FromStr for Options {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut options = Self::default();
        for setting in text.split(',').filter(|setting| !setting.is_empty()) {
            let (name, value) = setting.split_once('=').with_context(|| format!("{setting}: no value"))?;
            let value: u32 = value.parse().with_context(|| format!("{setting}: no number"))?;
            match name {
                "page_size" => options.page_size = value,
                "cache_kib" => options.cache_kib = value,
                "mmap_mib" => options.mmap_mib = value,
                "exclusive" => options.exclusive = value != 0,
                "auto_vacuum" => options.auto_vacuum = value != 0,
                "without_rowid" => options.without_rowid = value != 0,
                "due_kib" => options.due_kib = value,
                "hand_over" => options.hand_over = value != 0,
                "help_kib" => options.help_kib = value,
                "autocheckpoint" => options.autocheckpoint = value,
                _ => bail!("there is no setting {name:?}"),
            }
        }
        Ok(options)
    }
}

pub struct Sqlite {
    connection: Connection,
    path: PathBuf,
    auto_vacuum: bool,
    checkpointer: Option<Checkpointer>,
}

impl Sqlite {
    pub fn open(dir: &Path, options: &Options) -> Result<Self> {
        let path = dir.join("store.db");
        let connection = Connection::open(&path)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        let pragma = |name, value: &str| connection.pragma_update(None, name, value);
        pragma("page_size", &options.page_size.to_string())?;
        pragma("auto_vacuum", if options.auto_vacuum { "INCREMENTAL" } else { "NONE" })?;
        pragma("locking_mode", if options.exclusive { "EXCLUSIVE" } else { "NORMAL" })?;
        pragma("journal_mode", "WAL")?;
        pragma("synchronous", "FULL")?;
        pragma("cache_size", &format!("-{}", options.cache_kib))?;
        pragma("mmap_size", &(u64::from(options.mmap_mib) << 20).to_string())?;
        pragma("journal_size_limit", &(64 << 20).to_string())?;
        pragma("wal_autocheckpoint", &options.autocheckpoint.to_string())?;
        let (key, rowid) = if options.without_rowid { ("INT", "WITHOUT ROWID") } else { ("INTEGER", "") };
        connection.execute_batch(&format!(
            "CREATE TABLE IF NOT EXISTS log (id {key} PRIMARY KEY, revision INTEGER NOT NULL,
             kind INTEGER NOT NULL, key BLOB NOT NULL, value BLOB, crc INTEGER NOT NULL) {rowid}"
        ))?;
        let checkpointer = if options.autocheckpoint == 0 {
            Some(Checkpointer::start(path.clone(), options)?)
        } else {
            None
        };
        Ok(Self { connection, path, auto_vacuum: options.auto_vacuum, checkpointer })
    }
}

impl Sqlite {
    fn written(&mut self, rows: usize) {
        if let Some(checkpointer) = &mut self.checkpointer {
            // The rows, and the pages above them that every commit changes: for a single row the most of it.
            checkpointer.written(rows * 1100 + 2 * 4096, &self.connection);
        }
    }
}

impl Engine for Sqlite {
    fn append(&mut self, rows: &[Row]) -> Result<()> {
        let transaction = self.connection.transaction()?;
        let mut insert = transaction.prepare_cached("INSERT INTO log VALUES (?,?,?,?,?,?)")?;
        for row in rows {
            insert.execute(params![
                row.id.cast_signed(),
                row.revision.cast_signed(),
                row.kind,
                row.key,
                row.value,
                row.crc()
            ])?;
        }
        drop(insert);
        transaction.commit()?;
        self.written(rows.len());
        Ok(())
    }

    fn scan(&mut self, each: &mut dyn FnMut(Row)) -> Result<()> {
        let mut select = self.connection.prepare_cached("SELECT * FROM log ORDER BY id")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let decoded = Row {
                id: row.get::<_, i64>(0)?.cast_unsigned(),
                revision: row.get::<_, i64>(1)?.cast_unsigned(),
                kind: row.get(2)?,
                key: row.get_ref(3)?.as_blob()?.to_vec(),
                value: row.get_ref(4)?.as_blob()?.to_vec(),
            };
            each(decoded.check(row.get(5)?)?);
        }
        Ok(())
    }

    fn delete(&mut self, ids: &[u64]) -> Result<()> {
        let transaction = self.connection.transaction()?;
        let mut delete = transaction.prepare_cached("DELETE FROM log WHERE id = ?")?;
        for id in ids {
            delete.execute([id.cast_signed()])?;
        }
        drop(delete);
        transaction.commit()?;
        self.written(ids.len());
        Ok(())
    }

    fn reclaim(&mut self) -> Result<()> {
        // Without it the file keeps its size; the free pages are used again.
        if self.auto_vacuum {
            self.connection.execute_batch("PRAGMA incremental_vacuum")?;
        }
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }

    fn backup(&self) -> Copy {
        let from = self.path.clone();
        Box::new(move |to| {
            let from = Connection::open(from)?;
            let mut to = Connection::open(to.join("backup.db"))?;
            // All pages in one step: a copy in several starts over whenever another connection commits.
            Backup::new(&from, &mut to)?.step(-1)?;
            Ok(())
        })
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.checkpointer = None;
    }
}

/// Moves pages from the write-ahead log into the file, off the path of commits. Only when every page was
/// moved does the log start over, and under steady load a thread beside the writer never sees that
/// moment: when the log has grown too long the writer itself finishes the job.
struct Checkpointer {
    asked: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    ended: Arc<AtomicBool>,
    hand_over: bool,
    pending: usize,
    length: usize,
    due: usize,
    help: usize,
}

impl Checkpointer {
    fn start(path: PathBuf, options: &Options) -> Result<Self> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        let (asked, asks) = mpsc::sync_channel(1);
        let thread = thread::spawn(move || {
            for () in asks {
                checkpoint(&connection);
                end.store(true, Ordering::Release);
            }
        });
        let (due, help) = (options.due_kib as usize * 1024, options.help_kib as usize * 1024);
        let hand_over = options.hand_over;
        Ok(Self {
            asked: Some(asked),
            thread: Some(thread),
            ended,
            hand_over,
            pending: 0,
            length: 0,
            due,
            help,
        })
    }

    fn written(&mut self, bytes: usize, connection: &Connection) {
        self.pending += bytes;
        self.length += bytes;
        if self.ended.swap(false, Ordering::AcqRel) && self.hand_over {
            checkpoint(connection);
            self.length = 0;
        }
        if self.pending < self.due {
            return;
        }
        self.pending = 0;
        if self.length < self.help {
            // A full channel means that a checkpoint is due already.
            self.asked.as_ref().map(|asked| asked.try_send(()).ok());
        } else {
            checkpoint(connection);
            self.length = 0;
        }
    }
}

/// Moves what it can without waiting for anyone. What fails now is done by a later round, or by the next
/// open.
fn checkpoint(connection: &Connection) {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).ok();
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.asked = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
