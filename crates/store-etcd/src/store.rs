use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use concord_store::{CommitStream, Committed, Error, Revision, Scan, ScanPage, Store, Txn};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    call::Client,
    compactor,
    config::Config,
    follow::follow,
    group::{self, Groups},
    lease::{self, Leases},
    scan,
    scan::EntrySize,
    txn,
};

/// The log on an etcd cluster.
///
/// Reads are tried again on other members until the request timeout; so are writes, as long as it is
/// certain that they did not happen. A time to live counts from the call.
///
/// Dropping the store ends what it does in the background and the streams it gave out.
#[derive(Debug)]
pub struct EtcdStore {
    client: Arc<Client>,
    leases: Leases,
    sizes: EntrySize,
    shutdown: CancellationToken,
    groups: Groups,
    /// What it does besides answering: compaction, and transactions that are committed together.
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl EtcdStore {
    /// Prepares a store without waiting for etcd: an etcd that is not up yet shows in
    /// [`Store::health`] and in each request.
    ///
    /// Must be called within a tokio runtime, which the connections then belong to.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for an endpoint that is no URL, or TLS files that cannot be read or used.
    pub async fn open(config: Config) -> Result<Self, Error> {
        let client = Arc::new(Client::new(&config).await?);
        let shutdown = CancellationToken::new();
        let (groups, grouping) = Groups::new(Arc::clone(&client));
        let ends = shutdown.clone();
        let mut tasks =
            vec![tokio::spawn(async move { ends.run_until_cancelled(grouping).await.unwrap_or_default() })];
        if !config.compaction_interval.is_zero() {
            let compaction =
                compactor::run(Arc::clone(&client), config.compaction_interval, shutdown.clone());
            tasks.push(tokio::spawn(compaction));
        }
        Ok(Self {
            client,
            leases: Leases::default(),
            sizes: EntrySize::default(),
            groups,
            shutdown,
            tasks: Mutex::new(tasks),
        })
    }

    /// How large the file of the member is that is asked now, in bytes. For metrics.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if it does not say.
    pub async fn size(&self) -> Result<u64, Error> {
        self.client.size().await
    }

    /// Ends the streams given out and what runs in the background, and waits for the latter.
    pub async fn shutdown(&self) {
        self.shutdown.cancel();
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            // It only ends early by panicking, which the runtime has reported.
            task.await.ok();
        }
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

#[async_trait]
impl Store for EtcdStore {
    async fn transact(&self, txn: Txn) -> Result<Committed, Error> {
        txn::check(&self.client, &txn)?;
        match group::takes(&txn) {
            true => self.groups.transact(txn).await,
            false => txn::transact(&self.client, &self.leases, &txn).await,
        }
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Error> {
        scan::scan(&self.client, &self.sizes, scan).await
    }

    fn follow(&self, after: Revision) -> CommitStream {
        follow(Arc::clone(&self.client), after, self.shutdown.clone())
    }

    async fn current_revision(&self) -> Result<Revision, Error> {
        self.client.current_revision().await
    }

    async fn compact(&self, revision: Revision) -> Result<(), Error> {
        compactor::compact(&self.client, revision).await
    }

    async fn refresh(&self, key: &Bytes, revision: Revision, ttl: Duration) -> Result<bool, Error> {
        lease::refresh(&self.client, key, revision, ttl).await
    }

    async fn health(&self) -> Result<(), Error> {
        self.client.health().await
    }
}
