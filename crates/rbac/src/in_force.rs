use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use concord_replica::Replica;
use concord_store::{CommitStream, Committed, Error, Revision, Scan, ScanPage, Store, Txn};

use crate::view::prefixes;

/// How long to wait for the replica. It is behind by less than a millisecond, unless the store's stream is cut.
const WAIT: Duration = Duration::from_secs(10);

/// A store that acknowledges a change of roles or bindings only when it is in force here.
///
/// A commit is answered when it is durable, and reaches the replica, with its views, a moment later. In that moment a client
/// that was told that a right is revoked could see it used. The few writes that change rights wait it out, so that the many
/// decisions need not ask how new the rules are that they are made by.
///
/// Other servers of a fleet follow when the change reaches them, as upstream's do.
pub struct InForce {
    store: Arc<dyn Store>,
    replica: Arc<Replica>,
    prefixes: Vec<Bytes>,
}

impl InForce {
    /// Writes to `store`, whose replica it is, under keys that begin with `prefix`.
    pub fn new(store: Arc<dyn Store>, replica: Arc<Replica>, prefix: &str) -> Self {
        Self { store, replica, prefixes: prefixes(prefix).into() }
    }

    /// Holds back the answers to changes under these keys as well: of other things that the server decides by.
    #[must_use]
    pub fn and(mut self, prefixes: impl IntoIterator<Item = Bytes>) -> Self {
        self.prefixes.extend(prefixes);
        self
    }

    fn concerns(&self, txn: &Txn) -> bool {
        let is_rule = |key: &Bytes| self.prefixes.iter().any(|prefix| key.starts_with(prefix));
        txn.writes.iter().any(|write| is_rule(write.key()))
    }
}

#[async_trait]
impl Store for InForce {
    async fn transact(&self, txn: Txn) -> Result<Committed, Error> {
        let concerns = self.concerns(&txn);
        let committed = self.store.transact(txn).await?;
        if concerns {
            let seen = self.replica.not_older_than(committed.revision, WAIT).await;
            // It is durable, and it is not in force: neither success nor failure can be said.
            seen.map_err(|error| {
                Error::outcome_unknown(format_args!("committed, but not in force yet: {error}"))
            })?;
        }
        Ok(committed)
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Error> {
        self.store.scan(scan).await
    }

    fn follow(&self, after: Revision) -> CommitStream {
        self.store.follow(after)
    }

    async fn current_revision(&self) -> Result<Revision, Error> {
        self.store.current_revision().await
    }

    async fn compact(&self, revision: Revision) -> Result<(), Error> {
        self.store.compact(revision).await
    }

    async fn health(&self) -> Result<(), Error> {
        self.store.health().await
    }

    async fn refresh(&self, key: &Bytes, revision: Revision, ttl: Duration) -> Result<bool, Error> {
        self.store.refresh(key, revision, ttl).await
    }

    async fn scan_kept(&self, scan: Scan) -> Result<ScanPage, Error> {
        self.store.scan_kept(scan).await
    }

    async fn is_stale(&self, key: &Bytes, revision: Revision) -> Result<bool, Error> {
        self.store.is_stale(key, revision).await
    }
}
