use std::sync::Arc;

use concord_store::{Commit, CommitStream, Error, Revision};
use futures_util::{StreamExt, stream};
use tokio::sync::watch;

use crate::{
    file::Go,
    queue::closed,
    row::Row,
    shared::{Shared, commit_of, read_failed},
};

/// Commits handed out at once.
const RUN: usize = 1024;
/// And bytes of them, when they come from the file.
const RUN_BYTES: usize = 4 << 20;

/// A follower's place in the log. From memory while it keeps up, else from the file.
struct Follower {
    shared: Arc<Shared>,
    committed: watch::Receiver<Revision>,
    /// What the recent commits know it by.
    number: u64,
    /// The last revision handed out.
    at: Revision,
    done: bool,
}

pub(crate) fn follow(shared: Arc<Shared>, closing: watch::Receiver<bool>, after: Revision) -> CommitStream {
    let committed = shared.committed.subscribe();
    let number = shared.recent.lock().join(after);
    let follower = Follower { shared, committed, number, at: after, done: false };
    stream::unfold((follower, closing), |(mut follower, mut closing)| async move {
        if follower.done {
            return None;
        }
        let run = tokio::select! {
            run = follower.next() => run,
            _ = closing.wait_for(|closing| *closing) => Err(closed()),
        };
        follower.done = run.is_err();
        Some((run, (follower, closing)))
    })
    .boxed()
}

impl Follower {
    async fn next(&mut self) -> Result<Vec<Commit>, Error> {
        if self.at == 0 {
            return Err(Error::invalid("0 is not a revision"));
        }
        self.shared.index.read().check_readable(self.at)?;
        let at = self.at;
        self.committed.wait_for(|committed| *committed > at).await.map_err(|_| closed())?;
        let recent = self.shared.recent.lock().from(at + 1, RUN);
        let run = match recent {
            Some(run) => run,
            None => self.read_file().await?,
        };
        self.at = run.last().map_or(at, |commit| commit.revision);
        self.shared.recent.lock().taken(self.number, self.at);
        Ok(run)
    }

    async fn read_file(&self) -> Result<Vec<Commit>, Error> {
        let (shared, at) = (self.shared.clone(), self.at);
        let read = tokio::task::spawn_blocking(move || {
            let run = read_commits(&shared, at);
            // A compaction may have taken rows away while they were read.
            shared.index.read().check_readable(at)?;
            run
        });
        read.await.map_err(|error| Error::unavailable(format!("reading the log failed: {error}")))?
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.shared.recent.lock().leave(self.number);
    }
}

/// Reads the commits after `at`, as many as make a run and all of each.
fn read_commits(shared: &Shared, at: Revision) -> Result<Vec<Commit>, Error> {
    // Rows become readable a moment before their commit counts as durable.
    let durable = *shared.committed.borrow();
    let reader = shared.reader.lock();
    let first = reader.first_row_after(at).map_err(|error| read_failed(&error.into()))?;
    let (mut commits, mut rows, mut bytes) = (Vec::new(), Vec::<Row>::new(), 0);
    reader
        .read_rows(first, |row| {
            if rows.last().is_some_and(|last| last.revision != row.revision) {
                commits.push(commit_of(&rows));
                rows.clear();
            }
            if row.revision > durable || commits.len() >= RUN || bytes >= RUN_BYTES {
                rows.clear();
                return Ok(Go::Stop);
            }
            bytes += row.size();
            rows.push(row);
            Ok(Go::On)
        })
        .map_err(|error| read_failed(&error))?;
    if !rows.is_empty() {
        commits.push(commit_of(&rows));
    }
    match commits.first() {
        Some(first) if first.revision == at + 1 => Ok(commits),
        _ => Err(Error::unavailable(format!("the commit after revision {at} is missing in the store file"))),
    }
}
