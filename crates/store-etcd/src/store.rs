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
/// Dropping the store ends its background compaction and the streams it gave out.
#[derive(Debug)]
pub struct EtcdStore {
    client: Arc<Client>,
    leases: Leases,
    sizes: EntrySize,
    shutdown: CancellationToken,
    compactor: Mutex<Option<JoinHandle<()>>>,
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
        let compactor = (!config.compaction_interval.is_zero()).then(|| {
            tokio::spawn(compactor::run(Arc::clone(&client), config.compaction_interval, shutdown.clone()))
        });
        Ok(Self {
            client,
            leases: Leases::default(),
            sizes: EntrySize::default(),
            shutdown,
            compactor: Mutex::new(compactor),
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

    /// Ends the streams given out and the background compaction, and waits for the latter.
    pub async fn shutdown(&self) {
        self.shutdown.cancel();
        let compactor = self.compactor.lock().take();
        if let Some(compactor) = compactor {
            // It only ends early by panicking, which the runtime has reported.
            compactor.await.ok();
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
        txn::transact(&self.client, &self.leases, &txn).await
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
