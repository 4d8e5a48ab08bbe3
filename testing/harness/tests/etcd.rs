//! Clusters start, survive what is done to their members, and leave nothing behind.

use concord_testing::etcd::{Cluster, Options};

#[tokio::test]
async fn a_killed_leader_is_replaced_and_may_come_back() {
    let mut cluster = Cluster::start(Options { members: 3, ..Options::default() }).await.expect("a cluster");
    let first = cluster.leader().await.expect("a leader");
    cluster.kill(first).expect("a kill");
    let second = cluster.leader().await.expect("another leader");
    assert_ne!(first, second);
    cluster.restart(first).expect("a restart");
    cluster.ready().await.expect("three members");
}

#[tokio::test]
async fn an_etcd_that_does_not_start_shows_its_log() {
    // Shorter than the heartbeats.
    let args = vec!["--election-timeout=1".to_owned()];
    let error = Cluster::start(Options { args, ..Options::default() }).await.expect_err("a wrong value");
    assert!(format!("{error:#}").contains("election-timeout"), "{error:#}");
}
