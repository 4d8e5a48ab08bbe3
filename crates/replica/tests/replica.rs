//! What a replica answers and survives, one behaviour per test.

mod support;

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use bytes::Bytes;
use concord_replica::{Closed, Config, Error, Phase, Replica, Scope, Snapshot};
use concord_store::{KeyRange, Revision, Store};

use support::{MemoryStore, PATIENCE, caught_up, config, contents, delete, put, started};

fn value(snapshot: &Snapshot, key: &str) -> Option<String> {
    snapshot.get(key.as_bytes()).map(|entry| String::from_utf8_lossy(&entry.value).into_owned())
}

#[tokio::test(start_paused = true)]
async fn an_unloaded_replica_does_not_pretend_to_be_empty() {
    let store = MemoryStore::default();
    store.put("a", "1");
    store.set_available(false);
    let replica = Replica::start(store.shared(), config(), Vec::new());
    assert_eq!(replica.newest().err(), Some(Error::NotLoaded));
    assert_eq!(replica.subscribe(Scope::prefix(""), 1).err(), Some(Error::NotLoaded));
    let waited = replica.not_older_than(0, Duration::from_millis(100)).await;
    assert_eq!(waited.err(), Some(Error::NotLoaded));
    let status = replica.status();
    assert!(!status.is_ready() && status.last_error.is_some_and(|error| error.contains("unavailable")));
    store.set_available(true);
    let snapshot = caught_up(&store, &replica).await;
    assert_eq!(value(&snapshot, "a").as_deref(), Some("1"));
    assert!(replica.status().is_ready());
}

#[tokio::test]
async fn a_held_snapshot_never_changes() {
    let store = MemoryStore::default();
    let first = store.commit(vec![put("a", "1"), put("b", "1")]);
    let replica = started(&store, config()).await;
    let held = replica.newest().expect("loaded");
    store.commit(vec![put("a", "2"), delete("b"), put("c", "1")]);
    let newest = caught_up(&store, &replica).await;
    assert_eq!(contents(&held), store.state_at(first));
    assert_eq!(contents(&newest), store.state_at(first + 1));
    assert_eq!((held.len(), newest.len()), (2, 2));
}

#[tokio::test]
async fn every_revision_of_the_window_can_be_read() {
    let store = MemoryStore::default();
    let loaded = store.put("a", "1");
    let replica = started(&store, config()).await;
    for write in [put("b", "1"), put("a", "2"), delete("b"), put("b", "2"), delete("a"), put("a", "3")] {
        store.commit(vec![write]);
    }
    let newest = caught_up(&store, &replica).await;
    for revision in loaded..=newest.revision() {
        let past = replica.at(revision).expect("in the window");
        assert_eq!(contents(&past), store.state_at(revision), "at {revision}");
        assert_eq!(past.len(), store.state_at(revision).len());
        for key in ["a", "b", "c"] {
            let expected = store.state_at(revision).get(key.as_bytes()).cloned();
            assert_eq!(past.get(key.as_bytes()).map(|entry| (**entry).clone()), expected);
        }
    }
    let oldest = replica.newest().expect("loaded").oldest();
    assert_eq!(replica.at(oldest - 1).err(), Some(Error::Expired { requested: oldest - 1, oldest }));
    let (requested, current) = (newest.revision() + 1, newest.revision());
    assert_eq!(replica.at(requested).err(), Some(Error::TooNew { requested, current }));
    assert!(matches!(replica.at(0), Err(Error::Expired { .. })));
    assert!(matches!(replica.subscribe(Scope::prefix(""), Revision::MAX), Err(Error::TooNew { .. })));
}

#[tokio::test]
async fn empty_ranges_and_odd_prefixes_are_no_trouble() {
    let store = MemoryStore::default();
    store.put("a", "1");
    let key = Bytes::from_static(&[0xff, 0xff, 1]);
    store.commit(vec![concord_store::Write::Put { key: key.clone(), value: "x".into(), ttl: None }]);
    let replica = started(&store, config()).await;
    let snapshot = replica.newest().expect("loaded");
    let ranges = [(&b"\xff"[..], 1), (b"\xff\xff", 1), (b"\xff\xff\xff", 0), (b"", 2), (b"b", 0)];
    for (prefix, count) in ranges {
        let range = KeyRange::prefix(Bytes::from_static(prefix));
        assert_eq!(snapshot.scan(&range).count(), count, "{prefix:?}");
    }
    let backwards = KeyRange { start: "z".into(), end: Some("a".into()) };
    assert_eq!(snapshot.scan(&backwards).count(), 0);
    assert_eq!(snapshot.at(snapshot.oldest()).expect("oldest").scan(&backwards).count(), 0);
    let mut subscription =
        replica.subscribe(Scope::prefix(&b"\xff\xff"[..]), snapshot.revision()).expect("now");
    store.commit(vec![put("b", "1"), concord_store::Write::Delete { key: key.clone() }]);
    let batch = subscription.next().await.expect("open");
    assert_eq!((batch.len(), batch[0].key()), (1, &key));
}

#[tokio::test(start_paused = true)]
async fn old_revisions_leave_by_age_although_nothing_happens() {
    let store = MemoryStore::default();
    let replica = started(&store, Config { window_age: Duration::from_secs(60), ..config() }).await;
    store.put("a", "1");
    let last = store.put("a", "2");
    caught_up(&store, &replica).await;
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert!(replica.at(1).is_ok(), "younger than the window");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(replica.at(last - 1).err(), Some(Error::Expired { requested: last - 1, oldest: last }));
    assert_eq!(replica.status().window_bytes, 0);
    assert_eq!(value(&replica.at(last).expect("newest"), "a").as_deref(), Some("2"));
}

#[tokio::test]
async fn old_revisions_leave_by_bytes() {
    let store = MemoryStore::default();
    let replica = started(&store, Config { window_bytes: 10_000, ..config() }).await;
    for round in 0..100 {
        store.put("a", &format!("{round}").repeat(100));
        caught_up(&store, &replica).await;
    }
    let newest = replica.newest().expect("loaded");
    assert!(newest.oldest() > 50 && newest.oldest() < newest.revision(), "oldest {}", newest.oldest());
    assert!(replica.status().window_bytes <= 10_000);
    for revision in newest.oldest()..=newest.revision() {
        assert_eq!(contents(&newest.at(revision).expect("in the window")), store.state_at(revision));
    }
}

#[tokio::test]
async fn an_outage_loses_and_repeats_nothing() {
    let store = MemoryStore::default();
    let replica = started(&store, config()).await;
    let (before, mut subscription) = replica.snapshot_and_subscribe(Scope::prefix("")).expect("loaded");
    store.set_available(false);
    store.put("a", "1");
    store.put("a", "2");
    let failed = replica.consistent(PATIENCE).await;
    assert!(matches!(failed, Err(Error::Store(concord_store::Error::Unavailable { .. }))));
    assert_eq!(replica.newest().expect("still answers").revision(), before.revision());
    store.set_available(true);
    for expected in [2, 3] {
        assert_eq!(subscription.next().await.expect("open")[0].revision, expected);
    }
    assert_eq!(contents(&caught_up(&store, &replica).await), store.state_at(3));
}

#[tokio::test]
async fn compaction_during_an_outage_closes_subscriptions_and_loads_again() {
    let store = MemoryStore::default();
    store.put("a", "1");
    let replica = started(&store, config()).await;
    let (snapshot, mut subscription) = replica.snapshot_and_subscribe(Scope::prefix("")).expect("loaded");
    store.set_available(false);
    store.put("a", "2");
    store.put("b", "1");
    store.compact_all();
    store.set_available(true);
    assert_eq!(subscription.next().await, Err(Closed::Compacted));
    assert_eq!(subscription.next().await, Err(Closed::Compacted), "and stays closed");
    assert_eq!(subscription.bookmark(), snapshot.revision(), "what came after was not delivered");
    let newest = caught_up(&store, &replica).await;
    assert_eq!(contents(&newest), store.state_at(4));
    assert_eq!(newest.oldest(), 4);
    let (_, mut fresh) = replica.snapshot_and_subscribe(Scope::prefix("")).expect("loaded");
    drop(subscription);
    store.put("c", "1");
    assert_eq!(fresh.next().await.expect("open")[0].revision, 5);
}

#[tokio::test]
async fn a_load_that_is_compacted_midway_starts_over() {
    let store = MemoryStore::default();
    for key in ["a", "b", "c", "d", "e"] {
        store.put(key, "1");
    }
    store.compact_during_scan();
    let replica = started(&store, config()).await;
    let newest = caught_up(&store, &replica).await;
    assert_eq!(newest.revision(), 7);
    assert_eq!(contents(&newest), store.state_at(7));
    assert!(replica.status().last_error.is_some_and(|error| error.contains("compacted")));
}

#[tokio::test]
async fn a_store_that_went_back_is_loaded_again() {
    let store = MemoryStore::default();
    let backup = store.put("a", "1");
    let replica = started(&store, config()).await;
    store.put("a", "2");
    caught_up(&store, &replica).await;
    let (_, mut subscription) = replica.snapshot_and_subscribe(Scope::prefix("")).expect("loaded");
    store.rollback(backup);
    assert_eq!(subscription.next().await, Err(Closed::Compacted));
    store.put("a", "other");
    let snapshot = replica.consistent(PATIENCE).await.expect("loaded again");
    assert_eq!(contents(&snapshot), store.state_at(backup + 1));
}

#[tokio::test]
async fn a_consistent_read_notices_a_store_that_went_back_though_the_stream_is_quiet() {
    /// Streams that wait for the future instead of refusing it, as etcd's watch does.
    struct Patient(MemoryStore);

    #[async_trait::async_trait]
    impl Store for Patient {
        async fn transact(
            &self,
            txn: concord_store::Txn,
        ) -> Result<concord_store::Committed, concord_store::Error> {
            self.0.transact(txn).await
        }
        async fn scan(
            &self,
            scan: concord_store::Scan,
        ) -> Result<concord_store::ScanPage, concord_store::Error> {
            self.0.scan(scan).await
        }
        fn follow(&self, _: Revision) -> concord_store::CommitStream {
            Box::pin(futures_util::stream::pending())
        }
        async fn current_revision(&self) -> Result<Revision, concord_store::Error> {
            self.0.current_revision().await
        }
        async fn compact(&self, revision: Revision) -> Result<(), concord_store::Error> {
            self.0.compact(revision).await
        }
        async fn health(&self) -> Result<(), concord_store::Error> {
            self.0.health().await
        }
    }

    let store = MemoryStore::default();
    store.put("a", "1");
    let last = store.put("a", "2");
    let replica = Replica::start(Arc::new(Patient(store.clone())), config(), Vec::new());
    replica.not_older_than(last, PATIENCE).await.expect("loaded");
    store.rollback(last - 1);
    let went_back = Error::StoreWentBack { seen: last, current: last - 1 };
    assert_eq!(replica.consistent(PATIENCE).await.err(), Some(went_back));
    let mut publications = 0;
    let snapshot = loop {
        match replica.consistent(PATIENCE).await {
            Ok(snapshot) => break snapshot,
            Err(Error::StoreWentBack { .. }) if publications < 10_000 => publications += 1,
            Err(error) => panic!("{error}"),
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(contents(&snapshot), store.state_at(last - 1));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_revision_ends_with_it_or_with_the_timeout() {
    let store = MemoryStore::default();
    let replica = started(&store, config()).await;
    let late = replica.not_older_than(2, Duration::from_secs(3)).await;
    assert_eq!(late.err(), Some(Error::TooNew { requested: 2, current: 1 }));
    let (waited, ()) = tokio::join!(replica.not_older_than(3, PATIENCE), async {
        store.put("a", "1");
        store.commit_nothing();
    });
    assert_eq!(waited.expect("in time").revision(), 3);
}

#[tokio::test]
async fn concurrent_consistent_reads_share_a_question_but_never_one_already_asked() {
    let store = MemoryStore::default();
    let replica = Arc::new(started(&store, config()).await);
    let ask = || {
        let replica = Arc::clone(&replica);
        tokio::spawn(async move { replica.consistent(PATIENCE).await })
    };
    store.set_silent(true);
    let mut first = Vec::new();
    for asked in 1..=4 {
        first.push(ask());
        while store.asked() < asked {
            tokio::task::yield_now().await;
        }
    }
    let later: Vec<_> = (0..50).map(|_| ask()).collect();
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.asked(), 4, "few ask at once, later callers wait");
    let revision = store.put("a", "1");
    store.set_silent(false);
    for caller in first {
        caller.await.expect("no panic").expect("consistent");
    }
    for caller in later {
        assert!(caller.await.expect("no panic").expect("consistent").revision() >= revision);
    }
    assert_eq!(store.asked(), 5, "and share the next question");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_fails_consistent_reads_in_time() {
    let store = MemoryStore::default();
    let replica = started(&store, config()).await;
    store.set_silent(true);
    for _ in 0..2 {
        let silent = replica.consistent(Duration::from_secs(1)).await;
        assert!(matches!(silent, Err(Error::Store(concord_store::Error::Unavailable { .. }))));
    }
    store.set_silent(false);
    replica.consistent(PATIENCE).await.expect("answers again");
}

#[tokio::test]
async fn shutdown_ends_everything_but_what_is_there() {
    let store = MemoryStore::default();
    store.put("a", "1");
    let replica = started(&store, config()).await;
    let (_, mut subscription) = replica.snapshot_and_subscribe(Scope::prefix("")).expect("loaded");
    replica.shutdown().await;
    replica.shutdown().await;
    assert_eq!(subscription.next().await, Err(Closed::Shutdown));
    assert_eq!(replica.consistent(PATIENCE).await.err(), Some(Error::Shutdown));
    assert!(matches!(replica.not_older_than(99, PATIENCE).await, Err(Error::TooNew { .. })));
    assert_eq!(replica.subscribe(Scope::prefix(""), 2).err(), Some(Error::Shutdown));
    assert_eq!(value(&replica.newest().expect("readable"), "a").as_deref(), Some("1"));
    assert_eq!(replica.status().phase, Phase::Stopped);
    assert!(!replica.status().is_ready());
}

#[tokio::test]
async fn dropping_a_replica_closes_its_subscriptions() {
    let store = MemoryStore::default();
    let replica = started(&store, config()).await;
    let (_, mut subscription) = replica.snapshot_and_subscribe(Scope::prefix("")).expect("loaded");
    drop(replica);
    assert_eq!(subscription.next().await, Err(Closed::Shutdown));
}

#[tokio::test]
async fn pages_of_one_revision_join_up_whatever_is_written_in_between() {
    let store = MemoryStore::default();
    for key in ["p/a", "p/b", "p/c", "p/d", "p/e"] {
        store.put(key, "1");
    }
    let replica = started(&store, config()).await;
    let range = KeyRange::prefix("p/");
    let limit = NonZeroUsize::new(2).expect("not zero");
    let first = replica.newest().expect("loaded");
    let page = first.page(&range, limit);
    store.commit(vec![delete("p/c"), put("p/bb", "new"), put("p/d", "2")]);
    caught_up(&store, &replica).await;
    let resume = page.resume.expect("more");
    let rest = replica
        .at(first.revision())
        .expect("in the window")
        .page(&range.starting_at(resume), NonZeroUsize::MAX);
    let keys: Vec<_> = page.entries.iter().chain(&rest.entries).map(|entry| entry.key.clone()).collect();
    assert_eq!(keys, ["p/a", "p/b", "p/c", "p/d", "p/e"]);
    assert!(rest.entries.iter().all(|entry| entry.value == "1") && rest.resume.is_none());
}
