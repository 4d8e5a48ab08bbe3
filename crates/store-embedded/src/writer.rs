//! The one thread that writes: group commit, expiry and compaction.
//!
//! Each round takes all requests that have gathered, decides them in order, writes what they change
//! in one SQLite transaction with one sync, makes it visible, and only then answers. While it syncs,
//! the next batch gathers.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use concord_store::{Committed, Error, Revision};
use tokio::sync::oneshot;

use crate::{
    batch::Batch,
    checkpointer::Checkpoints,
    expiry::{Expiries, deadline},
    file::{State, StoreFile},
    load::Loaded,
    queue::{Gather, Request, Waiting, Wakeup},
    retention::Retention,
    row::Row,
    shared::Shared,
};

/// At most so many keys expire in one round, so that requests are not kept waiting.
const EXPIRE_AT_ONCE: usize = 512;
/// At least so many superseded rows are deleted in a round that has some; see [`Writer::condemn`].
const DELETE_AT_LEAST: usize = 128;
/// So many when nobody waits.
const DELETE_WHEN_IDLE: usize = 1024;
/// Pages given back to the file system per idle round.
const RECLAIM_PAGES: u32 = 512;
/// Smaller files are not worth shrinking, in pages.
const RECLAIM_MIN_PAGES: i64 = 4096;
/// A batch waits for as many urgent requests as the last one had, for a quarter of the time that one took, but
/// no longer than this.
const GATHER_AT_MOST: Duration = Duration::from_millis(1);
/// When to try again after the file could not be written, a full disk for example.
const RETRY: Duration = Duration::from_secs(1);

pub(crate) struct Writer {
    shared: Arc<Shared>,
    file: StoreFile,
    checkpoints: Checkpoints,
    state: State,
    next_row: i64,
    expiries: Expiries,
    retention: Retention,
    /// Rows no readable revision needs any more.
    condemned: VecDeque<i64>,
    /// Whether there may be unused pages to give back.
    reclaim: bool,
}

/// What one round writes.
#[derive(Debug, Default)]
struct Round {
    rows: Vec<Row>,
    /// Keys whose time has come, with the revision they had.
    expired: Vec<(Bytes, Revision)>,
    compact: Option<Revision>,
    delete: Vec<i64>,
    /// Write something though nothing is asked for, to see whether it can be done again.
    probe: bool,
}

/// Answers that wait for the round to be durable.
enum Answer {
    Transact(oneshot::Sender<Result<Committed, Error>>, Result<Committed, Error>),
    Compact(oneshot::Sender<Result<(), Error>>, Result<(), Error>),
    Refresh(oneshot::Sender<Result<bool, Error>>, bool),
}

/// Why a round was not written.
enum RoundError {
    /// Nothing of it is in the file.
    NotWritten(String),
    /// It may or may not be.
    Unknown(String),
}

impl Writer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        file: StoreFile,
        checkpoints: Checkpoints,
        loaded: Loaded,
        retention: Retention,
    ) -> Self {
        let mut expiries = Expiries::default();
        for expiring in loaded.expiring {
            expiries.add(expiring.key, expiring.mod_revision, deadline(expiring.expiry.remaining()));
        }
        let (state, next_row) = (loaded.state, loaded.next_row);
        let condemned = VecDeque::new();
        Self { shared, file, checkpoints, state, next_row, expiries, retention, condemned, reclaim: true }
    }

    /// Works until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        let mut gather = Gather::default();
        while let Wakeup::Work(waiting) = self.shared.queue.wait(self.wake_at(), gather) {
            let count = waiting.iter().filter(|waiting| waiting.is_urgent).count();
            let begun = Instant::now();
            self.round(waiting);
            gather = Gather { count, pause: (begun.elapsed() / 4).min(GATHER_AT_MOST) };
        }
        if self.shared.failure().is_none()
            && let Err(error) = self.file.checkpoint_all()
        {
            tracing::warn!(%error, "Checkpoint at close failed; the next open will do it");
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        if self.shared.failure().is_some() {
            return None;
        }
        if self.shared.in_trouble() {
            return Some(Instant::now() + RETRY);
        }
        if !self.condemned.is_empty() || self.reclaim || self.shared.index.read().can_forget() {
            return Some(Instant::now());
        }
        [self.expiries.next(), self.retention.next()].into_iter().flatten().min()
    }

    fn round(&mut self, waiting: Vec<Waiting>) {
        if let Some(failure) = self.shared.failure() {
            waiting.into_iter().for_each(|waiting| refuse(waiting.request, &failure));
            return;
        }
        let idle = waiting.is_empty();
        let (round, answers) = self.decide(waiting);
        if round.is_empty() {
            answers.into_iter().for_each(Answer::send);
            if idle && self.reclaim {
                self.reclaim();
            }
            return;
        }
        match self.write(&round) {
            Ok(state) => {
                self.installed(&round, state);
                answers.into_iter().for_each(Answer::send);
            }
            Err(error) => self.failed(round, answers, &error),
        }
    }

    fn decide(&mut self, waiting: Vec<Waiting>) -> (Round, Vec<Answer>) {
        let idle = waiting.is_empty();
        let mut round = Round::default();
        let mut answers = Vec::with_capacity(waiting.len());
        let index = self.shared.index.read();
        let mut batch = Batch::new(&index, self.next_row);
        for Waiting { request, .. } in waiting {
            answers.push(match request {
                Request::Transact { txn, answer } => Answer::Transact(answer, batch.transact(&txn)),
                Request::Compact { revision, answer } => {
                    let allowed = check_compact(revision, index.revision);
                    if allowed.is_ok() && revision > index.oldest {
                        round.compact = round.compact.max(Some(revision));
                    }
                    Answer::Compact(answer, allowed)
                }
                Request::Refresh { key, revision, ttl, answer } => {
                    let is_alive = batch.is_at(&key, revision);
                    if is_alive {
                        self.expiries.refresh(&key, revision, deadline(ttl));
                    }
                    Answer::Refresh(answer, is_alive)
                }
            });
        }
        let now = Instant::now();
        for _ in 0..EXPIRE_AT_ONCE {
            let Some((key, mod_revision)) = self.expiries.pop_due(now) else { break };
            batch.expire(&key, mod_revision);
            round.expired.push((key, mod_revision));
        }
        if let Some(revision) = self.retention.tick(now, index.revision)
            && revision > index.oldest
        {
            round.compact = round.compact.max(Some(revision));
        }
        round.rows = batch.into_rows();
        drop(index);
        round.delete = self.condemn(if idle { DELETE_WHEN_IDLE } else { round.rows.len() * 2 });
        round.probe = idle && self.shared.in_trouble();
        (round, answers)
    }

    /// Superseded rows to delete now. Twice as many as rows are written, so that deletion keeps up
    /// with any writer, and not many more, so that no writer waits long for it.
    fn condemn(&mut self, wanted: usize) -> Vec<i64> {
        let count = wanted.max(DELETE_AT_LEAST);
        if self.condemned.len() < count && self.shared.index.read().can_forget() {
            let missing = count - self.condemned.len();
            self.condemned.extend(self.shared.index.write().forget(missing));
        }
        let count = count.min(self.condemned.len());
        self.condemned.drain(..count).collect()
    }

    /// Makes the round durable. Returns the state it leaves in the file.
    fn write(&self, round: &Round) -> Result<State, RoundError> {
        let connection = self.file.connection();
        let prepared = || -> rusqlite::Result<State> {
            connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            round.rows.iter().try_for_each(|row| self.file.append(row))?;
            self.write_compaction(round)
        };
        let state = prepared().map_err(|error| self.roll_back(&error))?;
        match connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([])) {
            // A checkpoint beside us may have failed meanwhile: nothing is acknowledged after a failed sync.
            Ok(_) if self.shared.failure().is_some() => {
                Err(RoundError::Unknown("another sync of the store failed at the same time".to_owned()))
            }
            Ok(_) => Ok(state),
            Err(error) if is_io(&error) => Err(RoundError::Unknown(error.to_string())),
            Err(error) => Err(self.roll_back(&error)),
        }
    }

    fn write_compaction(&self, round: &Round) -> rusqlite::Result<State> {
        let mut state = self.state;
        if let Some(revision) = round.compact {
            // Rows after the compaction revision were never deleted: their ids tell how many they are.
            let first = self.file.first_row_after(state.compact_revision)?;
            let end = self.file.first_row_after(revision)?;
            state.compacted_rows += (end - first).cast_unsigned();
            state.compact_revision = revision;
        }
        for run in round.delete.chunk_by(|a, b| a + 1 == *b) {
            self.file.delete_rows(run[0], run[run.len() - 1])?;
        }
        state.compacted_rows -= round.delete.len() as u64;
        if state != self.state || round.probe {
            self.file.write_state(state)?;
        }
        Ok(state)
    }

    fn roll_back(&self, cause: &rusqlite::Error) -> RoundError {
        if is_io(cause) {
            self.shared.fail(&cause.to_string());
        }
        let connection = self.file.connection();
        if !connection.is_autocommit()
            && let Err(error) = connection.execute_batch("ROLLBACK")
        {
            return RoundError::Unknown(format!("{cause}, and rolling back failed: {error}"));
        }
        RoundError::NotWritten(cause.to_string())
    }

    fn installed(&mut self, round: &Round, state: State) {
        self.state = state;
        if self.shared.trouble.lock().take().is_some() {
            tracing::info!("Store can write again");
        }
        if let Some(last) = round.rows.last() {
            self.next_row = last.id + 1;
        }
        for row in &round.rows {
            if let Some(expiry) = row.expiry {
                self.expiries.add(row.key.clone(), row.revision, deadline(expiry.ttl));
            }
        }
        if let Some(revision) = round.compact {
            self.shared.index.write().oldest = revision;
        }
        self.reclaim |= !round.delete.is_empty();
        self.shared.publish(&round.rows);
        let bytes = round.rows.iter().map(Row::size).sum::<usize>() + round.delete.len() * 1024;
        self.checkpoints.written(bytes, &self.file, &self.shared);
    }

    fn failed(&mut self, round: Round, answers: Vec<Answer>, error: &RoundError) {
        // What was due stays due.
        for (key, mod_revision) in round.expired {
            self.expiries.add(key, mod_revision, deadline(RETRY));
        }
        self.condemned.extend(round.delete);
        let refusal = match error {
            RoundError::NotWritten(reason) => {
                if self.shared.trouble.lock().replace(reason.clone()).is_none() {
                    tracing::warn!(reason, "Store could not write; it will try again");
                }
                Error::unavailable(format!("the store file cannot be written: {reason}"))
            }
            RoundError::Unknown(reason) => {
                self.shared.fail(reason);
                Error::outcome_unknown(reason)
            }
        };
        answers.into_iter().for_each(|answer| answer.fail(&refusal));
    }
}

impl Writer {
    /// Gives unused pages back, a few at a time, while they are a quarter of the file or more.
    fn reclaim(&mut self) {
        let step = || -> rusqlite::Result<bool> {
            let (pages, unused) = self.file.pages()?;
            if pages < RECLAIM_MIN_PAGES || unused * 4 < pages {
                return Ok(false);
            }
            self.file.reclaim(RECLAIM_PAGES)?;
            Ok(true)
        };
        match step() {
            Ok(more) => self.reclaim = more,
            Err(error) => {
                self.reclaim = false;
                tracing::warn!(%error, "Store could not give unused space back");
                if is_io(&error) {
                    self.shared.fail(&error.to_string());
                }
            }
        }
        self.checkpoints.written(RECLAIM_PAGES as usize * 4096, &self.file, &self.shared);
    }
}

impl Round {
    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.compact.is_none() && self.delete.is_empty() && !self.probe
    }
}

impl Answer {
    /// Whoever asked may have gone away, which is fine.
    fn send(self) {
        match self {
            Self::Transact(sender, answer) => drop(sender.send(answer)),
            Self::Compact(sender, answer) => drop(sender.send(answer)),
            Self::Refresh(sender, is_alive) => drop(sender.send(Ok(is_alive))),
        }
    }

    /// Answers after the round was not written.
    fn fail(self, refusal: &Error) {
        match self {
            // It was decided on values that are not durable, but it would not have written anything.
            Self::Transact(sender, Err(_)) => drop(sender.send(Err(Error::unavailable(refusal)))),
            Self::Transact(sender, Ok(_)) => drop(sender.send(Err(refusal.clone()))),
            Self::Compact(sender, _) => drop(sender.send(Err(refusal.clone()))),
            Self::Refresh(sender, _) => drop(sender.send(Err(Error::unavailable(refusal)))),
        }
    }
}

fn refuse(request: Request, failure: &Error) {
    match request {
        Request::Transact { answer, .. } => drop(answer.send(Err(failure.clone()))),
        Request::Compact { answer, .. } => drop(answer.send(Err(failure.clone()))),
        Request::Refresh { answer, .. } => drop(answer.send(Err(failure.clone()))),
    }
}

fn check_compact(requested: Revision, current: Revision) -> Result<(), Error> {
    if requested > current { Err(Error::FutureRevision { requested, current }) } else { Ok(()) }
}

/// Whether the disk itself failed, so that nobody knows what it kept. A full disk is not meant: SQLite
/// tells it apart and has not written the end of the transaction then.
pub(crate) fn is_io(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::SystemIoFailure)
}
