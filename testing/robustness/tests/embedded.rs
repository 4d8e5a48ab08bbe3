//! The embedded engine under concurrent clients while it is closed and opened again and again, with a
//! replica and its subscribers on top.

mod support;

use std::{path::PathBuf, sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use concord_robustness::traffic::{self, Load};
use concord_store::{CommitStream, Committed, Error, Revision, Scan, ScanPage, Store, Txn};
use concord_store_embedded::{EmbeddedStore, Options};
use futures_util::{StreamExt, stream};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use support::Observers;

/// A store that can be taken away and brought back under its users.
struct Restartable {
    path: PathBuf,
    store: ArcSwapOption<EmbeddedStore>,
}

impl Restartable {
    fn open(path: PathBuf) -> Self {
        let restartable = Self { path, store: ArcSwapOption::empty() };
        restartable.start();
        restartable
    }

    fn start(&self) {
        let store = EmbeddedStore::open(&Options::new(&self.path)).expect("the store opens again");
        self.store.store(Some(Arc::new(store)));
    }

    async fn stop(&self) {
        if let Some(store) = self.store.swap(None) {
            store.close().await;
        }
    }

    fn current(&self) -> Result<Arc<EmbeddedStore>, Error> {
        self.store.load_full().ok_or_else(|| Error::unavailable("the store is being restarted"))
    }
}

#[async_trait]
impl Store for Restartable {
    async fn transact(&self, txn: Txn) -> Result<Committed, Error> {
        self.current()?.transact(txn).await
    }
    async fn scan(&self, scan: Scan) -> Result<ScanPage, Error> {
        self.current()?.scan(scan).await
    }
    fn follow(&self, after: Revision) -> CommitStream {
        match self.current() {
            Ok(store) => store.follow(after),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }
    async fn current_revision(&self) -> Result<Revision, Error> {
        self.current()?.current_revision().await
    }
    async fn compact(&self, revision: Revision) -> Result<(), Error> {
        self.current()?.compact(revision).await
    }
    async fn health(&self) -> Result<(), Error> {
        self.current()?.health().await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_through_restarts_are_linearizable() {
    let seed = concord_robustness::seed();
    let directory = tempfile::tempdir().expect("a directory");
    let store = Arc::new(Restartable::open(directory.path().join("store.db")));
    let start = store.current_revision().await.expect("the store is up");
    let observers = Observers::start(store.clone(), start).await;
    let load =
        Load { clients: 8, duration: Duration::from_secs(8), keys: 5, rest: Duration::from_millis(2), seed };
    let clients = tokio::spawn(traffic::run(store.clone(), load));

    let mut rng = StdRng::seed_from_u64(seed);
    while !clients.is_finished() {
        tokio::time::sleep(Duration::from_millis(rng.random_range(50..400))).await;
        store.stop().await;
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..50))).await;
        store.start();
    }
    let records = clients.await.expect("the clients end");
    observers.judge(start, records).await;
}
