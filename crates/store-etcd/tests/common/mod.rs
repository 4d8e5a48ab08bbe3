#![allow(dead_code, reason = "each test file uses some of it")]

use std::time::Duration;

use concord_store::{Commit, CommitStream, Error, Revision, Store, Txn};
use concord_store_etcd::{Config, EtcdStore};
use concord_testing::etcd::Cluster;
use futures_util::StreamExt;

/// Far more than anything here needs; it only ends hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The defaults, but nobody else writes: no compactor.
pub(crate) fn config(endpoints: Vec<String>) -> Config {
    let mut config = Config::new(endpoints);
    config.compaction_interval = Duration::ZERO;
    config
}

/// A store on all members.
pub(crate) async fn open(cluster: &Cluster) -> EtcdStore {
    EtcdStore::open(config(cluster.endpoints())).await.expect("a store")
}

/// Fails instead of hanging.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it hangs")
}

/// Puts a key and gives the revision.
pub(crate) async fn put(store: &EtcdStore, key: &str, value: &str) -> Revision {
    let txn = Txn::new().put(key.to_owned(), value.to_owned());
    within(store.transact(txn)).await.expect("a write").revision
}

/// Puts a key, again and again until it is certain that it happened.
pub(crate) async fn put_through(store: &EtcdStore, key: &str, value: &str) -> Revision {
    within(async {
        loop {
            match store.transact(Txn::new().put(key.to_owned(), value.to_owned())).await {
                Ok(committed) => return committed.revision,
                Err(Error::Unavailable { .. } | Error::OutcomeUnknown { .. }) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    })
    .await
}

/// Commits up to a revision, checked to begin after `after` and to have no gap.
pub(crate) async fn follow_until(
    stream: &mut CommitStream,
    mut after: Revision,
    until: Revision,
) -> Vec<Commit> {
    let mut commits = Vec::new();
    while after < until {
        for commit in within(stream.next()).await.expect("it goes on").expect("commits") {
            assert_eq!(commit.revision, after + 1, "no gap and no duplicate");
            after = commit.revision;
            commits.push(commit);
        }
    }
    commits
}
