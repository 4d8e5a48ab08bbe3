use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use super::{Subject, take};
use crate::{Change, Txn};

/// Longer than the shortest lease an etcd with default timings grants.
const SHORT: Duration = Duration::from_secs(2);

pub(super) async fn an_expired_key_is_deleted_by_a_commit_of_its_own(s: Subject) {
    let start = Instant::now();
    let put = s.commit(Txn::new().put_with_ttl(s.key("k"), "v", SHORT).put(s.key("stays"), "v")).await;
    assert!(s.get("k").await.is_some());
    let mut stream = s.store.follow(put);
    let commit = take(&mut stream, 1).await.remove(0);
    assert!(start.elapsed() >= SHORT, "a key never expires early");
    assert_eq!(commit.revision, put + 1);
    assert_eq!(commit.changes, [Change::Delete { key: s.key("k") }]);
    assert_eq!(s.get("k").await, None);
    assert!(s.get("stays").await.is_some());
    assert_eq!(s.state_at(put).await.len(), 2, "history still has it");
}

pub(super) async fn a_new_put_replaces_the_time_to_live(s: Subject) {
    let start = Instant::now();
    let short = |name: &str| Txn::new().put_with_ttl(s.key(name), "short", SHORT);
    s.commit(short("forever")).await;
    s.commit(short("longer")).await;
    s.commit(short("deleted")).await;
    s.commit(short("witness")).await;
    s.put("forever", "now").await;
    s.commit(Txn::new().put_with_ttl(s.key("longer"), "long", SHORT * 100)).await;
    s.delete("deleted").await;
    let recreated = s.put("deleted", "again").await;

    let mut stream = s.store.follow(recreated);
    let commit = take(&mut stream, 1).await.remove(0);
    assert!(start.elapsed() >= SHORT);
    assert_eq!(
        commit.changes,
        [Change::Delete { key: s.key("witness") }],
        "only this one was left to expire"
    );
    for name in ["forever", "longer", "deleted"] {
        assert!(s.get(name).await.is_some(), "{name} must not expire");
    }
    // Or it would expire in the middle of a later case.
    s.delete("longer").await;
}

pub(super) async fn many_keys_expire(s: Subject) {
    const KEYS: usize = 300;
    let start = s.revision().await;
    let mut stream = s.store.follow(start);
    let puts = (0..KEYS).map(|n| s.commit(Txn::new().put_with_ttl(s.key(format!("{n}")), "v", SHORT)));
    futures_util::future::join_all(puts).await;
    let mut expired = BTreeSet::new();
    while expired.len() < KEYS {
        for change in take(&mut stream, 1).await.into_iter().flat_map(|commit| commit.changes) {
            if let Change::Delete { key } = change {
                assert!(expired.insert(key), "a key expires once");
            }
        }
    }
    assert_eq!(s.state_at(s.revision().await).await, []);
}

pub(super) async fn a_refreshed_key_lives_on_without_a_revision(s: Subject) {
    let put = |name: &str| Txn::new().refreshable().put_with_ttl(s.key(name), "v", SHORT);
    let kept = s.commit(put("kept")).await;
    let left = s.commit(put("left")).await;
    let replaced = s.commit(put("replaced")).await;
    let last = s.put("replaced", "by another").await;
    let refresh = async |name: &str, revision| {
        s.store.refresh(&s.key(name), revision, SHORT).await.expect("the store can refresh")
    };
    let start = Instant::now();
    // Longer than any engine keeps what nobody refreshes.
    while s.get("left").await.is_some() || start.elapsed() < SHORT * 3 {
        assert!(refresh("kept", kept).await, "it is refreshed all the time");
        tokio::time::sleep(SHORT / 10).await;
    }
    assert!(!refresh("left", left).await, "it expired");
    assert!(!refresh("replaced", replaced).await, "it is another one now");
    assert!(!refresh("never", last).await, "there never was one");
    assert_eq!(s.revision().await, last + 1, "nothing was written but the end of the one that expired");
    let alone = Instant::now();
    let mut stream = s.store.follow(last + 1);
    let commit = take(&mut stream, 1).await.remove(0);
    assert_eq!(commit.changes, [Change::Delete { key: s.key("kept") }]);
    assert!(alone.elapsed() >= SHORT / 2, "it had its whole time again");
}
