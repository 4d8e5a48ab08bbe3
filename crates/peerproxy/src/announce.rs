//! Says where this server is.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use concord_fleet::Fleet;
use concord_server::HealthChecks;
use concord_store::{Compare, Revision, Store, Txn};
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::record::{self, RECORDS};

/// How often the record is refreshed. kube-apiserver writes its own anew every 10 seconds; but whoever crashes should be
/// noticed sooner, and whoever has nothing new to say should write nothing.
const INTERVAL: Duration = Duration::from_secs(2);

/// How long a record lives that is not refreshed. Three in a row may be late.
const TTL: Duration = Duration::from_secs(8);

/// How often to look whether the server is ready; kube-apiserver's time.
const LOOK: Duration = Duration::from_millis(100);

/// How long a write may take.
const PATIENCE: Duration = Duration::from_secs(5);
const LATE: &str = "the store did not answer in time";

/// Keeps the endpoint record of this server: nobody is sent here before the server is ready, and nobody once it ends.
pub struct Announcer {
    fleet: Arc<Fleet>,
    store: Arc<dyn Store>,
    key: Bytes,
    /// `None` once the server ends.
    address: Mutex<Option<SocketAddr>>,
    generation: Mutex<u64>,
    /// The revision of the record that this process wrote last.
    said: Mutex<Option<Revision>>,
}

impl Announcer {
    /// Will say that the server is at `address`, in the store under `prefix`, such as `/registry/`.
    pub fn new(fleet: Arc<Fleet>, store: Arc<dyn Store>, prefix: &str, address: SocketAddr) -> Arc<Self> {
        let key = format!("{prefix}{RECORDS}{}", fleet.id()).into();
        let address = Mutex::new(Some(address));
        Arc::new(Self { fleet, store, key, address, generation: Mutex::new(0), said: Mutex::new(None) })
    }

    /// Says it from the moment the server is ready until this is cancelled.
    pub async fn run(self: Arc<Self>, checks: HealthChecks, cancel: CancellationToken) {
        let announce = async {
            while !checks.is_ready().await {
                sleep(LOOK).await;
            }
            loop {
                if let Err(error) = self.keep().await {
                    tracing::warn!(error, "This server could not say where it is.");
                }
                sleep(INTERVAL).await;
            }
        };
        cancel.run_until_cancelled(announce).await;
    }

    /// Refreshes what was said; says it again if it is gone.
    async fn keep(&self) -> Result<(), String> {
        let said = *self.said.lock();
        match said.filter(|_| self.fleet.held().is_some()) {
            Some(said) if self.refresh(said).await? => Ok(()),
            _ => self.write().await,
        }
    }

    async fn refresh(&self, said: Revision) -> Result<bool, String> {
        match timeout(PATIENCE, self.store.refresh(&self.key, said, TTL)).await {
            Ok(refreshed) => refreshed.map_err(|error| error.to_string()),
            Err(_) => Err(LATE.to_owned()),
        }
    }

    async fn write(&self) -> Result<(), String> {
        // Who does not hold the lease of its ID does not speak for it.
        let Some(held) = self.fleet.held() else { return Ok(()) };
        let generation = {
            let mut generation = self.generation.lock();
            *generation += 1;
            *generation
        };
        let record = record::encode(self.fleet.id(), *self.address.lock(), generation);
        let txn = Txn::new().refreshable().compare(held).put_with_ttl(self.key.clone(), record, TTL);
        let said = self.transact(txn).await;
        *self.said.lock() = said.as_ref().ok().copied();
        said.map(drop)
    }

    async fn transact(&self, txn: Txn) -> Result<Revision, String> {
        match timeout(PATIENCE, self.store.transact(txn)).await {
            Ok(Ok(committed)) => Ok(committed.revision),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(LATE.to_owned()),
        }
    }

    /// Says that nothing is to be sent here any more.
    pub async fn retire(&self) {
        if self.address.lock().take().is_none() || *self.generation.lock() == 0 {
            return;
        }
        if let Err(error) = self.write().await {
            tracing::warn!(error, "This server could not say that it ends.");
        }
    }

    /// Removes the record. To be done before the lease is given back.
    pub async fn leave(&self) {
        let Some(held) = self.fleet.held() else { return };
        if let Err(error) = self.transact(self.removal(held)).await {
            tracing::warn!(error, "The endpoint record could not be removed; it ends by itself.");
        }
    }

    fn removal(&self, held: Compare) -> Txn {
        Txn::new().compare(held).delete(self.key.clone())
    }
}
