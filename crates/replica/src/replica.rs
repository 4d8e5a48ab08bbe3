use std::{sync::Arc, time::Duration};

use concord_store::{Revision, Store};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    Config, Error, Scope, Snapshot, Status, Subscription, View,
    applier::Applier,
    consistent::{self, Asker},
    shared::Shared,
    view::Views,
};

/// A copy of the whole log of a store, in memory, that follows it. See the crate's documentation.
///
/// While the store is away, [`Replica::newest`] and everything else that asks for what is here goes on;
/// what asks for the store's present fails with the store's error.
#[derive(Debug)]
pub struct Replica {
    shared: Arc<Shared>,
    asker: Asker,
    cancel: CancellationToken,
    /// Locked only to join them; dropping them ends them.
    tasks: tokio::sync::Mutex<JoinSet<Option<()>>>,
}

impl Replica {
    /// Starts to load and follow `store`, feeding `views`. Returns at once: reads answer
    /// [`Error::NotLoaded`] until the load is done, which [`Replica::not_older_than`] waits for.
    ///
    /// Must be called within a Tokio runtime with time enabled.
    pub fn start(store: Arc<dyn Store>, config: Config, views: Vec<Box<dyn View>>) -> Self {
        let shared = Arc::new(Shared::new(&config));
        let (asker, answerer) =
            consistent::channel(Arc::clone(&store), Arc::clone(&shared), config.revision_timeout);
        let applier = Applier::new(store, config, Arc::clone(&shared), Views::new(views));
        let cancel = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(cancel.clone().run_until_cancelled_owned(applier.run()));
        tasks.spawn(cancel.clone().run_until_cancelled_owned(answerer.run()));
        Self { shared, asker, cancel, tasks: tokio::sync::Mutex::new(tasks) }
    }

    /// The newest snapshot there is. It may be older than the store.
    ///
    /// # Errors
    ///
    /// [`Error::NotLoaded`] and [`Error::Failed`].
    pub fn newest(&self) -> Result<Snapshot, Error> {
        self.shared.newest()
    }

    /// The state at an exact revision of the history window.
    ///
    /// # Errors
    ///
    /// [`Error::Expired`] before the window, [`Error::TooNew`] after it; those of
    /// [`Replica::newest`].
    pub fn at(&self, revision: Revision) -> Result<Snapshot, Error> {
        self.newest()?.at(revision)
    }

    /// The newest snapshot once it has reached `revision`. Revision 0 waits for the first load only.
    ///
    /// # Errors
    ///
    /// [`Error::TooNew`] or [`Error::NotLoaded`] when `timeout` has passed; [`Error::Failed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn not_older_than(&self, revision: Revision, timeout: Duration) -> Result<Snapshot, Error> {
        self.not_older_than_until(revision, Instant::now() + timeout).await
    }

    async fn not_older_than_until(&self, revision: Revision, deadline: Instant) -> Result<Snapshot, Error> {
        // The common case needs neither a timer nor a place in the queue.
        if let Ok(snapshot) = self.newest().and_then(|snapshot| reached(snapshot, revision)) {
            return Ok(snapshot);
        }
        let mut publications = self.shared.publications.subscribe();
        loop {
            publications.mark_unchanged();
            let error = match self.newest().and_then(|snapshot| reached(snapshot, revision)) {
                Err(error @ (Error::TooNew { .. } | Error::NotLoaded)) => error,
                decided => return decided,
            };
            tokio::select! {
                biased;
                _ = publications.changed() => {}
                () = self.cancel.cancelled() => return Err(error),
                () = tokio::time::sleep_until(deadline) => return Err(error),
            }
        }
    }

    /// A snapshot that has every commit answered before this call, by whichever server. Many concurrent
    /// callers share questions to the store.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] when the store cannot say how new it is, [`Error::StoreWentBack`], and those
    /// of [`Replica::not_older_than`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn consistent(&self, timeout: Duration) -> Result<Snapshot, Error> {
        let deadline = Instant::now() + timeout;
        let Ok(revision) = tokio::time::timeout_at(deadline, self.asker.revision()).await else {
            let reason = format!("no answer within {timeout:?}");
            return Err(concord_store::Error::unavailable(reason).into());
        };
        self.not_older_than_until(revision?, deadline).await
    }

    /// Subscribes to the changes after a revision of the history window.
    ///
    /// # Errors
    ///
    /// [`Error::Expired`] before the window, [`Error::TooNew`] after it, [`Error::Shutdown`]; those of
    /// [`Replica::newest`].
    pub fn subscribe(&self, scope: Scope, after: Revision) -> Result<Subscription, Error> {
        Subscription::begin(&self.shared, scope, Some(after)).map(|(_, subscription)| subscription)
    }

    /// The newest snapshot and every change in `scope` after it: initial state and what follows,
    /// without a gap between them.
    ///
    /// # Errors
    ///
    /// [`Error::Shutdown`]; those of [`Replica::newest`].
    pub fn snapshot_and_subscribe(&self, scope: Scope) -> Result<(Snapshot, Subscription), Error> {
        Subscription::begin(&self.shared, scope, None)
    }

    /// How the replica is doing.
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// Stops following, closes all subscriptions and waits until nothing runs any more. What is here
    /// can still be read.
    pub async fn shutdown(&self) {
        self.cancel.cancel();
        let mut tasks = self.tasks.lock().await;
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "A task of the replica did not end well");
            }
        }
        self.shared.stop();
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.cancel.cancel();
        self.shared.stop();
    }
}

fn reached(snapshot: Snapshot, revision: Revision) -> Result<Snapshot, Error> {
    if snapshot.revision() < revision {
        return Err(Error::TooNew { requested: revision, current: snapshot.revision() });
    }
    Ok(snapshot)
}
