//! The suite every engine passes, on a real etcd and on a real cluster.

use std::sync::Arc;

use concord_store::{Store, conformance};
use concord_store_etcd::EtcdStore;
use concord_testing::etcd::{Cluster, Options};

mod common;

async fn conforms(options: Options) {
    let cluster = Cluster::start(options).await.expect("a cluster");
    let store: Arc<dyn Store> = Arc::new(common::open(&cluster).await);
    conformance::run_all(|| async { Arc::clone(&store) }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_etcd_conforms() {
    conforms(Options::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_three_conforms() {
    conforms(Options { members: 3, ..Options::default() }).await;
}

/// Keys outside the prefix take revisions and are not shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_beside_others_on_the_same_etcd_conforms() {
    let cluster = Cluster::single().await.expect("an etcd");
    let other = common::open(&cluster).await;
    other.transact(concord_store::Txn::new().put("/other", "x").put("a", "x")).await.expect("a write");
    let mut config = common::config(cluster.endpoints());
    config.prefix = conformance::PREFIX.into();
    let store: Arc<dyn Store> = Arc::new(EtcdStore::open(config).await.expect("a store"));
    conformance::run_all(|| async { Arc::clone(&store) }).await;
}
