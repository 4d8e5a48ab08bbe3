//! A store in which a write waits for the test, between the decision and the commit.

use std::sync::Arc;

use async_trait::async_trait;
use concord_store::{CommitStream, Committed, Error, Revision, Scan, ScanPage, Store, Txn};
use tokio::sync::Notify;

/// Holds up transactions that write keys of a prefix.
pub(crate) struct Gate<S> {
    pub(crate) inner: Arc<S>,
    pub(crate) prefix: &'static str,
    /// Told when a transaction arrives.
    pub(crate) arrived: Notify,
    /// Lets one transaction through.
    pub(crate) open: Notify,
}

#[async_trait]
impl<S: Store> Store for Gate<S> {
    async fn transact(&self, txn: Txn) -> Result<Committed, Error> {
        if txn.writes.iter().any(|write| write.key().starts_with(self.prefix.as_bytes())) {
            self.arrived.notify_one();
            self.open.notified().await;
        }
        self.inner.transact(txn).await
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Error> {
        self.inner.scan(scan).await
    }

    fn follow(&self, after: Revision) -> CommitStream {
        self.inner.follow(after)
    }

    async fn current_revision(&self) -> Result<Revision, Error> {
        self.inner.current_revision().await
    }

    async fn compact(&self, revision: Revision) -> Result<(), Error> {
        self.inner.compact(revision).await
    }

    async fn health(&self) -> Result<(), Error> {
        self.inner.health().await
    }
}
