//! Background compaction, taken in turn.

use std::time::Duration;

use concord_store::{Error, Revision, Scan, Store};
use concord_store_etcd::EtcdStore;
use concord_testing::etcd::Cluster;

mod common;
use common::{config, open, put, within};

const KEY: &str = "compact_rev_key";

async fn compacting(cluster: &Cluster) -> EtcdStore {
    let mut config = config(cluster.endpoints());
    config.compaction_interval = Duration::from_millis(300);
    // Whoever it stands beside: the key is outside of it.
    config.prefix = "/registry/".into();
    EtcdStore::open(config).await.expect("a store")
}

/// The revision last announced.
async fn announced(store: &EtcdStore) -> Revision {
    let page = within(store.scan(Scan::key(KEY))).await.expect("a read");
    page.entries.first().map_or(0, |kv| {
        String::from_utf8(kv.value.to_vec()).expect("text").parse().expect("a decimal revision")
    })
}

/// Writes until a compaction beyond `revision` was announced and done.
async fn compacted_beyond(store: &EtcdStore, revision: Revision) -> Revision {
    within(async {
        loop {
            put(store, "/registry/k", "v").await;
            let target = announced(store).await;
            if target > revision
                && let Err(Error::Compacted { oldest }) = store.scan(Scan::key("k").at(revision)).await
            {
                assert!(oldest >= revision, "it only moves forward");
                return target;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_compact_in_turn_and_one_goes_on_alone() {
    let cluster = Cluster::single().await.expect("an etcd");
    let watcher = open(&cluster).await;
    let start = put(&watcher, "/registry/k", "v").await;
    let (first, second) = (compacting(&cluster).await, compacting(&cluster).await);
    let mut reached = compacted_beyond(&watcher, start).await;
    reached = compacted_beyond(&watcher, reached).await;
    within(first.shutdown()).await;
    reached = compacted_beyond(&watcher, reached).await;
    within(second.shutdown()).await;

    // Nobody is left.
    put(&watcher, "/registry/k", "v").await;
    let last = announced(&watcher).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(announced(&watcher).await, last);
    assert!(last >= reached);
}
