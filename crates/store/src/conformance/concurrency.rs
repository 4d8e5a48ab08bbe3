use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures_util::future::join_all;

use super::{Subject, take_until};
use crate::{Change, Commit, Compare, Error, Txn};

/// Sixteen clients increment four counters by compare-and-set.
pub(super) async fn counters_lose_no_increment(s: Subject) {
    const CLIENTS: usize = 16;
    const INCREMENTS: usize = 25;
    let clients = (0..CLIENTS).map(|client| {
        let s = s.clone();
        tokio::spawn(async move {
            let mut revisions = Vec::new();
            for n in 0..INCREMENTS {
                revisions.push(increment(&s, &format!("{}", (client + n) % 4)).await);
            }
            revisions
        })
    });
    let mut revisions = Vec::new();
    for client in join_all(clients).await {
        revisions.extend(client.expect("no client panics"));
    }
    revisions.sort_unstable();
    revisions.dedup();
    assert_eq!(revisions.len(), CLIENTS * INCREMENTS, "every commit has a revision of its own");
    let mut total = 0;
    for n in 0..4 {
        total += number(&s.get(&format!("{n}")).await.expect("written").value);
    }
    assert_eq!(total, (CLIENTS * INCREMENTS) as u64);
}

async fn increment(s: &Subject, name: &str) -> u64 {
    loop {
        let (compare, next) = match s.get(name).await {
            Some(kv) => (Compare::mod_revision(s.key(name), kv.mod_revision), number(&kv.value) + 1),
            None => (Compare::absent(s.key(name)), 1),
        };
        match s.store.transact(Txn::new().compare(compare).put(s.key(name), next.to_string())).await {
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
