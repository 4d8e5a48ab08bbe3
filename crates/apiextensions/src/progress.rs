//! How far the definitions in the log are served.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use concord_endpoints::Follower;
use concord_replica::{Event, Snapshot, View};
use concord_store::Revision;
use tokio::sync::watch;

/// How long a request waits for definitions that are not served yet. Compiling even the largest one takes less.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sees each change of a definition before anybody can read it, so that it is known when requests have to wait.
///
/// Making routes of a definition takes too long for a view. This only takes note that there is something to do.
pub struct DefinitionsView {
    prefix: Bytes,
    progress: Arc<Progress>,
}

/// What was written and what is served, as revisions.
pub struct Progress {
    written: AtomicU64,
    served: watch::Sender<Option<Revision>>,
}

impl DefinitionsView {
    /// A view of what is stored under keys that begin with `prefix`, such as `/registry/`.
    pub fn new(prefix: &str) -> Self {
        let progress = Progress { written: AtomicU64::new(0), served: watch::Sender::new(None) };
        let prefix = format!("{prefix}apiextensions.k8s.io/customresourcedefinitions/");
        Self { prefix: prefix.into(), progress: Arc::new(progress) }
    }

    /// How far what it sees is served.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }
}

impl View for DefinitionsView {
    fn name(&self) -> &str {
        "definitions"
    }

    fn prefixes(&self) -> Vec<Bytes> {
        vec![self.prefix.clone()]
    }

    fn reset(&mut self, snapshot: &Snapshot) {
        self.progress.written.store(snapshot.revision(), Ordering::Release);
    }

    fn apply(&mut self, revision: Revision, _events: &[Event]) {
        self.progress.written.store(revision, Ordering::Release);
    }
}

impl Progress {
    /// Whether everything that was defined when the server started is served.
    pub(crate) fn has_begun(&self) -> bool {
        self.served.borrow().is_some()
    }

    /// What was defined at this revision is served.
    pub(crate) fn reached(&self, revision: Revision) {
        self.served.send_replace(Some(revision));
    }
}

#[async_trait]
impl Follower for Progress {
    fn is_current(&self) -> bool {
        *self.served.borrow() >= Some(self.written.load(Ordering::Acquire))
    }

    async fn catch_up(&self) {
        let written = self.written.load(Ordering::Acquire);
        let mut served = self.served.subscribe();
        let caught_up = served.wait_for(|served| *served >= Some(written));
        if tokio::time::timeout(PATIENCE, caught_up).await.is_err() {
            tracing::warn!(written, "Definitions are not served in time, answering without them.");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_written_is_waited_for_until_it_is_served() {
        let mut view = DefinitionsView::new("/registry/");
        let progress = view.progress();
        assert!(!progress.has_begun());
        progress.reached(5);
        assert!(progress.is_current() && progress.has_begun());

        view.apply(7, &[]);
        assert!(!progress.is_current());
        let waiting = tokio::spawn({
            let progress = progress.clone();
            async move { progress.catch_up().await }
        });
        tokio::task::yield_now().await;
        progress.reached(6);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        progress.reached(7);
        waiting.await.expect("it ends");
        assert!(progress.is_current());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever() {
        let mut view = DefinitionsView::new("/registry/");
        view.apply(1, &[]);
        view.progress().catch_up().await;
    }
}
