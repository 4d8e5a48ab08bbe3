//! Following the log: one watch after another, as one stream.

use std::{sync::Arc, time::Duration};

use concord_store::{Commit, CommitStream, Error, Revision};
use futures_util::stream;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    call::Client,
    commits::{Commits, Hole},
    member::backoff,
    scan,
    watch::{End, Watch},
};

/// The longest pause between two attempts to watch.
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// How often the same hole is taken for a mishap.
const MAX_HOLES: u32 = 3;

/// Carries out [`concord_store::Store::follow`].
pub(crate) fn follow(client: Arc<Client>, after: Revision, shutdown: CancellationToken) -> CommitStream {
    let follower = Follower {
        place: client.members.preferred(),
        commits: Commits::after(after, client.visible.clone()),
        client,
        watch: None,
        failures: 0,
        holes: 0,
    };
    Box::pin(stream::unfold(Some((follower, shutdown)), |state| async move {
        let (mut follower, shutdown) = state?;
        let run = tokio::select! {
            biased;
            () = shutdown.cancelled() => Err(Error::unavailable("the store was shut down")),
            run = follower.run() => run,
        };
        let next = run.is_ok().then_some((follower, shutdown));
        Some((run, next))
    }))
}

struct Follower {
    client: Arc<Client>,
    commits: Commits,
    watch: Option<Watch>,
    /// The member to watch next.
    place: usize,
    /// Since the last event.
    failures: u32,
    holes: u32,
}

impl Follower {
    /// Waits for the next commits, through as many outages as it takes.
    async fn run(&mut self) -> Result<Vec<Commit>, Error> {
        loop {
            let batch = match &mut self.watch {
                Some(watch) => watch.next().await,
                None => match self.open().await? {
                    Ok(()) => continue,
                    Err(end) => Err(end),
                },
            };
            match batch.map(|batch| self.commits.add(batch)) {
                Ok(Ok(commits)) if commits.is_empty() => {}
                Ok(Ok(commits)) => {
                    (self.failures, self.holes) = (0, 0);
                    return Ok(commits);
                }
                Ok(Err(hole)) => self.hole(&hole).await?,
                Err(End::Compacted { oldest }) => return Err(Error::Compacted { oldest }),
                Err(End::Lost(reason)) => self.lost(&reason).await,
            }
        }
    }

    /// Starts at the last revision, not after it: so etcd tells when that one is compacted, and with it
    /// perhaps deletions of the next.
    async fn open(&mut self) -> Result<Result<(), End>, Error> {
        let after = self.commits.last();
        if after == 0 {
            // etcd would take it for now.
            return Err(Error::invalid("0 is not a revision"));
        }
        let watch = match Watch::all_keys(&self.client, self.client.members.at(self.place), after).await {
            Ok(watch) => watch,
            Err(end) => return Ok(Err(end)),
        };
        if watch.revision < after {
            // The member lags behind, or the log is not the one we followed: restored from a backup, say.
            match scan::future_revision(&self.client, after).await {
                Err(Error::Unavailable { reason }) => return Ok(Err(End::Lost(reason))),
                other => other?,
            }
        }
        self.commits = Commits::after(after, self.client.visible.clone());
        self.watch = Some(watch);
        Ok(Ok(()))
    }

    async fn lost(&mut self, reason: &str) {
        let url = &self.client.members.at(self.place).url;
        let after = self.commits.last();
        // An outage of hours is one line per few seconds at most, for the backoff.
        info!(url, reason, after, "the etcd watch ended, watching again");
        self.watch = None;
        self.place = self.place.wrapping_add(1);
        self.failures = self.failures.saturating_add(1);
        tokio::time::sleep(backoff(self.failures - 1, MAX_BACKOFF)).await;
    }

    async fn hole(&mut self, hole: &Hole) -> Result<(), Error> {
        self.holes += 1;
        let Hole { expected, got } = hole;
        warn!(expected, got, "etcd left out a revision");
        if self.holes >= MAX_HOLES {
            return Err(Error::unavailable(format!(
                "etcd leaves out revision {expected} and goes on at {got}"
            )));
        }
        self.lost("a revision was left out").await;
        Ok(())
    }
}
