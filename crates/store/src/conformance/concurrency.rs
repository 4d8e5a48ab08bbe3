use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures_util::future::join_all;

use super::{Subject, take_until};
use crate::{Change, Commit, Compare, Error, Txn};

const CLIENTS: usize = 16;
const INCREMENTS: usize = 25;
const COUNTERS: usize = 4;

pub(super) async fn counters_lose_no_increment(s: Subject) {
    let mut revisions: Vec<u64> = count(&s, false).await.into_iter().map(|(_, revision)| revision).collect();
    revisions.sort_unstable();
    revisions.dedup();
    assert_eq!(revisions.len(), CLIENTS * INCREMENTS, "every commit has a revision of its own");
}

/// The same with increments that may share a revision, though never with one of the same counter.
pub(super) async fn counters_lose_no_increment_together(s: Subject) {
    let start = s.revision().await;
    let answered: BTreeSet<_> = count(&s, true).await.into_iter().collect();
    assert_eq!(answered.len(), CLIENTS * INCREMENTS, "increments of one counter have revisions of their own");
    let commits = take_until(&mut s.store.follow(start), start, s.revision().await).await;
    let changes = commits.into_iter().flat_map(|commit| commit.changes);
    let followed: BTreeSet<_> = changes
        .map(|change| match change {
            Change::Put(kv) => (kv.key, kv.mod_revision),
            Change::Delete { key } => panic!("{key:?} was never deleted"),
        })
        .collect();
    assert_eq!(followed, answered, "the log has each of them at the revision that was answered");
}

/// Sixteen clients increment four counters by compare-and-set. Which counter, and at which revision, for each increment.
async fn count(s: &Subject, together: bool) -> Vec<(Bytes, u64)> {
    let clients = (0..CLIENTS).map(|client| {
        let s = s.clone();
        tokio::spawn(async move {
            let mut done = Vec::new();
            for n in 0..INCREMENTS {
                let name = format!("{}", (client + n) % COUNTERS);
                done.push((s.key(&name), increment(&s, &name, together).await));
            }
            done
        })
    });
    let mut done = Vec::new();
    for client in join_all(clients).await {
        done.extend(client.expect("no client panics"));
    }
    let mut total = 0;
    for n in 0..COUNTERS {
        total += number(&s.get(&format!("{n}")).await.expect("written").value);
    }
    assert_eq!(total, (CLIENTS * INCREMENTS) as u64);
    done
}

/// Of two transactions each of which writes what must be absent for the other, one happens, however they are sent.
pub(super) async fn what_comes_together_is_as_if_it_came_one_after_the_other(s: Subject) {
    const PAIRS: usize = 60;
    let take = |own: String, other: String| {
        let txn = Txn::new().together().compare(Compare::absent(s.key(&other)));
        let txn = txn.put(s.key(&own), "taken").read_on_failure(s.key(&other));
        let s = s.clone();
        tokio::spawn(async move { s.store.transact(txn).await })
    };
    let pairs = (0..PAIRS).map(|n| {
        let (left, right) = (take(format!("l{n}"), format!("r{n}")), take(format!("r{n}"), format!("l{n}")));
        async move { (left.await.expect("no panic"), right.await.expect("no panic")) }
    });
    for (n, pair) in join_all(pairs).await.into_iter().enumerate() {
        let (committed, failed) = match pair {
            (Ok(committed), Err(failed)) | (Err(failed), Ok(committed)) => (committed, failed),
            pair => panic!("exactly one of the pair {n} happens: {pair:?}"),
        };
        let Error::CompareFailed(failed) = failed else { panic!("{failed}") };
        let seen = failed.current[0].as_ref().expect("the other one was there");
        assert_eq!((seen.value.as_ref(), seen.mod_revision), (b"taken".as_ref(), committed.revision));
        assert!(failed.revision >= committed.revision);
    }
}

async fn increment(s: &Subject, name: &str, together: bool) -> u64 {
    loop {
        let (compare, next) = match s.get(name).await {
            Some(kv) => (Compare::mod_revision(s.key(name), kv.mod_revision), number(&kv.value) + 1),
            None => (Compare::absent(s.key(name)), 1),
        };
        let txn = Txn { together, ..Txn::new() }.compare(compare).put(s.key(name), next.to_string());
        match s.store.transact(txn).await {
            Ok(committed) => return committed.revision,
            Err(Error::CompareFailed(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

fn number(value: &Bytes) -> u64 {
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).expect("only numbers are written")
}

pub(super) async fn the_current_revision_is_never_behind_an_answer(s: Subject) {
    let acknowledged = Arc::new(AtomicU64::new(0));
    let writers = (0..4).map(|n| {
        let (s, acknowledged) = (s.clone(), acknowledged.clone());
        tokio::spawn(async move {
            for i in 0..50 {
                let revision = s.put(&format!("{n}"), format!("{i}")).await;
                acknowledged.fetch_max(revision, Ordering::SeqCst);
            }
        })
    });
    let readers = (0..4).map(|_| {
        let (s, acknowledged) = (s.clone(), acknowledged.clone());
        tokio::spawn(async move {
            for _ in 0..50 {
                let floor = acknowledged.load(Ordering::SeqCst);
                let revision = s.revision().await;
                assert!(revision >= floor, "revision {revision} is behind {floor}");
            }
        })
    });
    for task in join_all(writers.chain(readers)).await {
        task.expect("no task fails");
    }
}

/// What a scan shows at a revision is what the followed commits add up to.
pub(super) async fn scans_agree_with_the_log(s: Subject) {
    let start = s.revision().await;
    let writers = (0..8).map(|writer| {
        let s = s.clone();
        tokio::spawn(async move {
            for n in 0..40_u64 {
                let name = format!("{}", (writer * 7 + n * 5) % 13);
                if (writer + n) % 4 == 0 {
                    s.delete(&name).await;
                } else {
                    s.put(&name, format!("{writer}-{n}")).await;
                }
            }
        })
    });
    for writer in join_all(writers).await {
        writer.expect("no writer fails");
    }
    let end = s.revision().await;
    let mut state: BTreeMap<Bytes, Bytes> = BTreeMap::new();
    let skip = s.key("").len();
    for (n, commit) in take_until(&mut s.store.follow(start), start, end).await.into_iter().enumerate() {
        let revision = commit.revision;
        apply(&mut state, commit, skip);
        if n % 16 == 0 || revision == end {
            assert_eq!(s.state_at(revision).await, state.clone().into_iter().collect::<Vec<_>>());
        }
    }
}

fn apply(state: &mut BTreeMap<Bytes, Bytes>, commit: Commit, skip: usize) {
    for change in commit.changes {
        match change {
            Change::Put(kv) => state.insert(kv.key.slice(skip..), kv.value),
            Change::Delete { key } => state.remove(&key.slice(skip..)),
        };
    }
}
