//! A network that swallows, refuses and cuts.

use std::time::Duration;

use concord_store::{Error, Scan, Store, Txn};
use concord_store_etcd::EtcdStore;
use concord_testing::{
    etcd::Cluster,
    proxy::{Fault, Proxy},
};
use futures_util::StreamExt;
use tokio::net::TcpStream;

mod common;
use common::{config, follow_until, open, put, within};

/// An etcd, a store that reaches it directly and one that does so through the proxy.
struct Setup {
    _cluster: Cluster,
    direct: EtcdStore,
    proxy: Proxy,
    store: EtcdStore,
}

async fn setup(seed: u64) -> Setup {
    let cluster = Cluster::single().await.expect("an etcd");
    let proxy = Proxy::start(cluster.client_address(0), seed).await.expect("a proxy");
    let mut config = config(vec![proxy.url()]);
    config.request_timeout = Duration::from_secs(2);
    let store = EtcdStore::open(config).await.expect("a store");
    Setup { direct: open(&cluster).await, _cluster: cluster, proxy, store }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_swallowed_has_an_unknown_outcome() {
    let s = setup(1).await;
    let start = put(&s.store, "k", "0").await;
    s.proxy.set(Fault::BlackHole);
    let write = within(s.store.transact(Txn::new().put("k", "1"))).await;
    assert!(matches!(write, Err(Error::OutcomeUnknown { .. })), "{write:?}");
    let read = within(s.store.scan(Scan::key("k"))).await;
    assert!(matches!(read, Err(Error::Unavailable { .. })), "{read:?}");
    let compaction = within(s.store.compact(start)).await;
    assert!(matches!(compaction, Err(Error::OutcomeUnknown { .. })), "{compaction:?}");
    let health = within(s.store.health()).await;
    assert!(matches!(health, Err(Error::Unavailable { .. })), "{health:?}");
    s.proxy.set(Fault::None);
    within(s.store.scan(Scan::key("k"))).await.expect("reads work again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_did_not_happen() {
    let s = setup(1).await;
    let before = put(&s.store, "k", "0").await;
    s.proxy.set(Fault::Refuse);
    s.proxy.cut();
    nobody_listens(&s.proxy).await;
    // The connection that was cut may or may not be known to be dead yet.
    let first = within(s.store.transact(Txn::new().put("k", "1"))).await;
    assert!(matches!(first, Err(Error::Unavailable { .. } | Error::OutcomeUnknown { .. })), "{first:?}");
    let write = within(s.store.transact(Txn::new().put("k", "1"))).await;
    assert!(matches!(write, Err(Error::Unavailable { .. })), "{write:?}");
    assert_eq!(within(s.direct.current_revision()).await, Ok(before), "nothing got through");
    s.proxy.set(Fault::None);
    assert_eq!(within(s.store.current_revision()).await, Ok(before));
}

/// Waits until the proxy refuses connections.
async fn nobody_listens(proxy: &Proxy) {
    within(async { while TcpStream::connect(proxy.address()).await.is_ok() {} }).await;
}

/// A write sent into a connection that is cut at a random moment is never called undone when it was done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_write_is_lost_or_repeated_when_connections_are_cut() {
    let s = setup(7).await;
    let start = put(&s.store, "n", "start").await;
    s.proxy.set(Fault::Delay(Duration::from_millis(3)));
    let (mut done, mut unknown) = (0, 0);
    for n in 0..150_u64 {
        if n % 3 == 0 {
            let wait = Duration::from_micros(n * 37 % 4000);
            let (write, ()) = tokio::join!(s.store.transact(Txn::new().put("n", n.to_string())), async {
                tokio::time::sleep(wait).await;
                s.proxy.cut();
            });
            count(write.map(|_| ()), &mut done, &mut unknown);
        } else {
            count(
                s.store.transact(Txn::new().put("n", n.to_string())).await.map(|_| ()),
                &mut done,
                &mut unknown,
            );
        }
    }
    let end = within(s.direct.current_revision()).await.expect("a revision");
    assert!(done > 0 && end - start >= done, "{done} writes done, {} revisions", end - start);
    assert!(end - start <= done + unknown, "a write happened twice: {done} + {unknown} < {}", end - start);
}

fn count(write: Result<(), Error>, done: &mut u64, unknown: &mut u64) {
    match write {
        Ok(()) => *done += 1,
        Err(Error::OutcomeUnknown { .. }) => *unknown += 1,
        Err(Error::Unavailable { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_is_cut_goes_on_where_it_was() {
    let s = setup(1).await;
    let start = put(&s.direct, "k", "start").await;
    let mut stream = s.store.follow(start);
    let mut seen = start;
    for round in 0..5 {
        let mut last = seen;
        for n in 0..50 {
            last = put(&s.direct, "k", &format!("{round} {n}")).await;
            if n == 25 {
                s.proxy.cut();
            }
        }
        follow_until(&mut stream, seen, last).await;
        seen = last;
        s.proxy.cut();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_compacted_while_nobody_could_watch_is_told() {
    let s = setup(1).await;
    let start = put(&s.direct, "k", "0").await;
    let mut stream = s.store.follow(start);
    let second = put(&s.direct, "k", "1").await;
    follow_until(&mut stream, start, second).await;
    s.proxy.set(Fault::Refuse);
    s.proxy.cut();
    put(&s.direct, "k", "2").await;
    let oldest = put(&s.direct, "k", "3").await;
    put(&s.direct, "k", "4").await;
    within(s.direct.compact(oldest)).await.expect("a compaction");
    s.proxy.set(Fault::None);
    assert_eq!(within(stream.next()).await, Some(Err(Error::Compacted { oldest })));
    assert_eq!(within(stream.next()).await, None);
}

/// A compaction up to exactly the position reached loses nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_up_to_the_position_reached_does_not_matter() {
    let s = setup(1).await;
    let start = put(&s.direct, "k", "0").await;
    let mut stream = s.store.follow(start);
    let second = within(s.direct.transact(Txn::new().delete("k"))).await.expect("a delete").revision;
    follow_until(&mut stream, start, second).await;
    s.proxy.set(Fault::Refuse);
    s.proxy.cut();
    within(s.direct.compact(second)).await.expect("a compaction");
    let last = put(&s.direct, "k", "2").await;
    s.proxy.set(Fault::None);
    follow_until(&mut stream, second, last).await;
}
