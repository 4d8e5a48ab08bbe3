//! Many readers and subscribers on real threads while a writer commits.

mod support;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use concord_replica::{Config, Replica, Scope};
use concord_store::{KeyRange, Revision};

use support::{MemoryStore, PATIENCE, caught_up, config, put};

const COMMITS: u64 = 600;
const PAIRS: u64 = 8;

/// Each commit writes the same number under two keys far apart, so that a torn state shows. The history
/// packs some of the values.
fn commit(store: &MemoryStore, n: u64) -> Revision {
    let pair = n % PAIRS;
    let width = if pair == 0 { 10_000 } else { 1 };
    let value = format!("{n:>width$}");
    store.commit(vec![put(&format!("a/{pair}"), &value), put(&format!("z/{pair}"), &value)])
}

fn check_whole(replica: &Replica) {
    let snapshot = replica.newest().expect("loaded");
    let values = |prefix: &'static str| {
        snapshot.scan(&KeyRange::prefix(prefix)).map(|entry| entry.value.clone()).collect::<Vec<_>>()
    };
    assert_eq!(values("a/"), values("z/"), "at {}", snapshot.revision());
    let past = snapshot.at(snapshot.oldest()).expect("in the window");
    let values = |prefix: &'static str| {
        past.scan(&KeyRange::prefix(prefix)).map(|entry| entry.value.clone()).collect::<Vec<_>>()
    };
    assert_eq!(values("a/"), values("z/"), "at {}", past.revision());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_reader_sees_a_torn_or_stale_state_and_no_subscriber_misses_a_change() {
    let store = MemoryStore::default();
    let replica = Arc::new(started(&store).await);
    let acknowledged = Arc::new(AtomicU64::new(store.revision()));
    let done = Arc::new(AtomicBool::new(false));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (replica, acknowledged, done) =
            (Arc::clone(&replica), Arc::clone(&acknowledged), Arc::clone(&done));
        tasks.spawn(async move {
            while !done.load(Ordering::Relaxed) {
                let acknowledged = acknowledged.load(Ordering::SeqCst);
                let snapshot = replica.consistent(PATIENCE).await.expect("consistent");
                assert!(snapshot.revision() >= acknowledged);
                check_whole(&replica);
            }
        });
    }
    for (subscriber, prefix) in ["a/", "z/", "a/3", ""].into_iter().cycle().take(16).enumerate() {
        tasks.spawn(subscribe(Arc::clone(&replica), subscriber as u64, prefix));
    }
    for n in 0..COMMITS {
        acknowledged.store(commit(&store, n), Ordering::SeqCst);
        if n % 100 == 99 {
            // The stream must be resumed without anyone noticing.
            store.cut_streams();
        }
        tokio::task::yield_now().await;
    }
    caught_up(&store, &replica).await;
    done.store(true, Ordering::Relaxed);
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no reader or subscriber failed");
    }
    replica.shutdown().await;
}

async fn started(store: &MemoryStore) -> Replica {
    support::started(store, Config { subscription_buffer: std::num::NonZeroUsize::MAX, ..config() }).await
}

/// Reads up to the last commit, at changing starts, and checks that each event follows its previous
/// one and that bookmarks keep their promise.
async fn subscribe(replica: Arc<Replica>, subscriber: u64, prefix: &'static str) {
    replica.not_older_than(1 + subscriber * 20, PATIENCE).await.expect("comes");
    let (snapshot, mut subscription) = replica.snapshot_and_subscribe(Scope::prefix(prefix)).expect("loaded");
    let mut state = support::contents(&snapshot);
    state.retain(|key, _| key.starts_with(prefix.as_bytes()));
    let last = COMMITS + 1;
    while subscription.bookmark() < last {
        let bookmark = subscription.bookmark();
        let batch = tokio::select! {
            batch = subscription.next() => batch.expect("open"),
            _ = replica.not_older_than(last, PATIENCE) => match subscription.try_next().expect("open") {
                Some(batch) => batch,
                None => continue,
            },
        };
        assert!(batch[0].revision > bookmark, "the bookmark {bookmark} ran ahead");
        for event in batch.iter() {
            let current = event.current().expect("nothing is deleted");
            let previous = state.insert(event.key().clone(), (**current).clone());
            assert_eq!(previous.as_ref(), event.previous().map(|entry| &**entry));
        }
    }
    let mut expected = support::contents(&replica.at(last).expect("in the window"));
    expected.retain(|key, _| key.starts_with(prefix.as_bytes()));
    assert_eq!(state, expected);
}

/// A subscriber that never sleeps may look into its buffer in the middle of a run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_given_an_event_finds_it_in_the_newest_snapshot() {
    let store = MemoryStore::default();
    let replica = Arc::new(started(&store).await);
    let mut subscription = replica.subscribe(Scope::prefix("a/"), store.revision()).expect("subscribed");
    let last = store.revision() + COMMITS;
    let reader = Arc::clone(&replica);
    let reading = tokio::task::spawn_blocking(move || {
        let mut given = 0;
        while given < last {
            let Some(batch) = subscription.try_next().expect("no end") else { continue };
            given = batch[0].revision;
            let newest = reader.newest().expect("loaded").revision();
            assert!(newest >= given, "given {given}, but the newest is {newest}");
        }
    });
    // Runs are long, so that there is much to see before one is published.
    store.show_up_to(Some(store.revision()));
    for n in 0..COMMITS {
        commit(&store, n);
    }
    store.show_up_to(None);
    tokio::time::timeout(PATIENCE, reading).await.expect("in time").expect("every event was there");
    replica.shutdown().await;
}
