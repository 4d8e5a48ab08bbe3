use futures_util::future::join_all;

use super::{Subject, take, take_until};
use crate::{Change, Commit, KeyValue, Txn};

pub(super) async fn a_follower_sees_every_commit_once(s: Subject) {
    let start = s.revision().await;
    let mut early = s.store.follow(start);
    let first = s.put("a", "1").await;
    let second = s.commit(Txn::new().put(s.key("b"), "2").put(s.key("a"), "3")).await;
    let third = s.commit(Txn::new().delete(s.key("a"))).await;
    let put = |name: &str, value: &'static str, create_revision, mod_revision| {
        Change::Put(KeyValue { key: s.key(name), value: value.into(), create_revision, mod_revision })
    };
    let expected = [
        Commit { revision: first, changes: vec![put("a", "1", first, first)] },
        Commit {
            revision: second,
            changes: vec![put("b", "2", second, second), put("a", "3", first, second)],
        },
        Commit { revision: third, changes: vec![Change::Delete { key: s.key("a") }] },
    ];
    assert_eq!(by_key(take(&mut early, 3).await), by_key(expected.to_vec()), "followed live");
    let mut late = s.store.follow(start);
    assert_eq!(by_key(take(&mut late, 3).await), by_key(expected.to_vec()), "followed from history");
}

pub(super) async fn following_from_any_revision_gives_the_rest(s: Subject) {
    let start = s.revision().await;
    for n in 0..20 {
        s.put(&format!("{}", n % 3), format!("{n}")).await;
    }
    let end = s.revision().await;
    let all = take_until(&mut s.store.follow(start), start, end).await;
    for (skip, after) in (start..end).enumerate() {
        let rest = take_until(&mut s.store.follow(after), after, end).await;
        assert_eq!(rest, all[skip..], "after revision {after}");
    }
}

pub(super) async fn a_follower_waits_for_what_comes(s: Subject) {
    let start = s.revision().await;
    let mut streams: Vec<_> = (0..4).map(|_| s.store.follow(start)).collect();
    for n in 0..10 {
        let revision = s.put("k", format!("{n}")).await;
        for commits in join_all(streams.iter_mut().map(|stream| take(stream, 1))).await {
            assert_eq!(commits.len(), 1, "nothing else was written");
            assert_eq!(commits[0].revision, revision);
        }
    }
}

pub(super) async fn a_long_backlog_arrives_whole(s: Subject) {
    let start = s.revision().await;
    let mut slow = s.store.follow(start);
    for _ in 0..50 {
        let txns = (0..40).map(|n| s.put_owned(format!("{}", n % 7), vec![b'x'; 500]));
        join_all(txns).await;
    }
    let end = s.revision().await;
    assert_eq!(end, start + 2000);
    let commits = take_until(&mut slow, start, end).await;
    assert!(commits.iter().all(|commit| commit.changes.len() == 1));
    assert_eq!(take_until(&mut s.store.follow(start), start, end).await, commits);
}

/// etcd gives the changes of a commit in key order when they come from history.
fn by_key(mut commits: Vec<Commit>) -> Vec<Commit> {
    for commit in &mut commits {
        commit.changes.sort_by(|a, b| a.key().cmp(b.key()));
    }
    commits
}

impl Subject {
    async fn put_owned(&self, name: String, value: Vec<u8>) -> u64 {
        self.put(&name, value).await
    }
}
