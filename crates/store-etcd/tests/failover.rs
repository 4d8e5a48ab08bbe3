//! Members die, hang and come back; the store goes on and the log has no gap.

use std::time::Duration;

use concord_store::{Error, Scan, Store, Txn};
use concord_store_etcd::EtcdStore;
use concord_testing::etcd::{Cluster, Options};
use futures_util::StreamExt;

mod common;
use common::{config, follow_until, open, put, put_through, within};

async fn three() -> Cluster {
    Cluster::start(Options { members: 3, ..Options::default() }).await.expect("a cluster")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_member_we_talk_to_dies() {
    let mut cluster = three().await;
    let store = open(&cluster).await;
    let start = put(&store, "k", "0").await;
    let mut stream = store.follow(start);
    let second = put(&store, "k", "1").await;
    follow_until(&mut stream, start, second).await;

    // The first endpoint is the one in use.
    cluster.kill(0).expect("a kill");
    let read = within(store.scan(Scan::key("k"))).await.expect("reads fail over");
    assert_eq!(read.entries[0].value, "1");
    let last = put_through(&store, "k", "2").await;
    let commits = follow_until(&mut stream, second, last).await;
    assert_eq!(commits.last().map(|commit| commit.changes.len()), Some(1));
    within(store.health()).await.expect("two of three are enough");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaders_are_killed_one_after_another_under_writes() {
    let mut cluster = three().await;
    let store = open(&cluster).await;
    let start = put(&store, "k", "start").await;
    let mut stream = store.follow(start);
    let mut last = start;
    for round in 0..3 {
        let leader = cluster.leader().await.expect("a leader");
        cluster.kill(leader).expect("a kill");
        for n in 0..20 {
            last = put_through(&store, &format!("k{n}"), &round.to_string()).await;
        }
        cluster.restart(leader).expect("a restart");
        cluster.ready().await.expect("all members");
    }
    follow_until(&mut stream, start, last).await;
    let mut again = store.follow(start);
    assert_eq!(follow_until(&mut again, start, last).await.len() as u64, last - start);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_members_die_and_come_back() {
    let mut cluster = three().await;
    let mut config = config(cluster.endpoints());
    config.request_timeout = Duration::from_secs(2);
    let store = EtcdStore::open(config).await.expect("a store");
    let start = put(&store, "k", "0").await;
    let mut stream = store.follow(start);
    let second = put(&store, "k", "1").await;
    follow_until(&mut stream, start, second).await;
    for n in 0..3 {
        cluster.kill(n).expect("a kill");
    }

    let write = within(store.transact(Txn::new().put("k", "never"))).await;
    // A write that finds only closed ports certainly did not happen; one that finds a dying connection may
    // have. The next one cannot find one any more.
    assert!(matches!(write, Err(Error::Unavailable { .. } | Error::OutcomeUnknown { .. })), "{write:?}");
    let write = within(store.transact(Txn::new().put("k", "never"))).await;
    assert!(matches!(write, Err(Error::Unavailable { .. })), "{write:?}");
    let read = within(store.scan(Scan::key("k"))).await;
    assert!(matches!(read, Err(Error::Unavailable { .. })), "{read:?}");
    let Err(Error::Unavailable { reason }) = within(store.health()).await else {
        panic!("it is not healthy")
    };
    for endpoint in cluster.endpoints() {
        assert!(reason.contains(&endpoint), "{reason} should name {endpoint}");
    }

    for n in 0..3 {
        cluster.restart(n).expect("a restart");
    }
    cluster.ready().await.expect("all members");
    let last = put_through(&store, "k", "2").await;
    follow_until(&mut stream, second, last).await;
    let read = within(store.scan(Scan::key("k"))).await.expect("a read");
    assert_eq!(read.entries[0].value, "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_member_we_talk_to_hangs() {
    let mut cluster = three().await;
    let mut config = config(cluster.endpoints());
    config.request_timeout = Duration::from_secs(6);
    config.keepalive = Duration::from_secs(6);
    let store = EtcdStore::open(config).await.expect("a store");
    let start = put(&store, "k", "0").await;
    let mut stream = store.follow(start);
    let second = put(&store, "k", "1").await;
    follow_until(&mut stream, start, second).await;

    cluster.pause(0).expect("a stop");
    let read = within(store.scan(Scan::key("k"))).await.expect("reads fail over");
    assert_eq!(read.entries[0].value, "1");
    let last = put_through(&store, "k", "2").await;
    // The watch gives up on the member when its pings are not answered.
    follow_until(&mut stream, second, last).await;
    cluster.resume(0).expect("it goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_shut_down_ends_its_streams() {
    let cluster = Cluster::single().await.expect("an etcd");
    let store = open(&cluster).await;
    let start = put(&store, "k", "0").await;
    let mut stream = store.follow(start);
    let mut dropped = store.follow(start);
    let last = put(&store, "k", "1").await;
    follow_until(&mut stream, start, last).await;
    within(store.shutdown()).await;
    let end = within(stream.next()).await;
    assert!(matches!(end, Some(Err(Error::Unavailable { .. }))), "{end:?}");
    assert_eq!(within(stream.next()).await, None, "nothing comes after the error");
    drop(store);
    let end = within(dropped.next()).await;
    assert!(matches!(end, Some(Err(Error::Unavailable { .. }))), "{end:?}");
}
