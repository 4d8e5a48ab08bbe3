//! What a store is after it was closed and opened again, and what operators do with closed stores.

use std::{path::Path, sync::Arc, time::Duration};

use concord_store::{Change, Error, KeyRange, Scan, Store, Txn};
use concord_store_embedded::{BackupError, EmbeddedStore, OpenError, Options, backup, check, restore};
use futures_util::StreamExt;

fn open(path: &Path) -> EmbeddedStore {
    EmbeddedStore::open(&Options::new(path)).expect("the store opens")
}

#[tokio::test]
async fn revisions_go_on_even_when_the_last_commits_are_compacted_away() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path);
    store.transact(Txn::new().put("k", "v")).await.expect("a write");
    let last = store.transact(Txn::new().delete("k")).await.expect("a write").revision;
    store.compact(last).await.expect("a compaction");
    store.transact(Txn::new()).await.expect("a round for the deletion of rows");
    store.close().await;

    let store = open(&path);
    assert_eq!(store.current_revision().await, Ok(last));
    assert_eq!(store.scan(Scan::key("k").at(last - 1)).await, Err(Error::Compacted { oldest: last }));
    assert_eq!(store.transact(Txn::new().put("k", "w")).await.expect("a write").revision, last + 1);
}

#[tokio::test]
async fn history_survives_and_can_be_followed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path);
    for n in 0..50 {
        store.transact(Txn::new().put("k", format!("{n}"))).await.expect("a write");
    }
    store.close().await;
    let store = open(&path);
    for (revision, value) in [(2, "0"), (30, "28"), (51, "49")] {
        let page = store.scan(Scan::key("k").at(revision)).await.expect("readable");
        assert_eq!(page.entries[0].value, value);
    }
    let mut stream = store.follow(1);
    let mut revisions = Vec::new();
    while revisions.len() < 50 {
        let run = stream.next().await.expect("goes on").expect("readable");
        revisions.extend(run.iter().map(|commit| commit.revision));
    }
    assert!(revisions.iter().copied().eq(2..=51));
}

#[tokio::test]
async fn what_expires_while_the_store_is_closed_is_deleted_after() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path);
    let ttl = Duration::from_millis(300);
    let put =
        store.transact(Txn::new().put_with_ttl("k", "v", ttl).put("stays", "v")).await.expect("a write");
    store.close().await;
    tokio::time::sleep(ttl).await;
    let store = open(&path);
    let run = store.follow(put.revision).next().await.expect("goes on").expect("readable");
    assert_eq!(run[0].revision, put.revision + 1);
    assert_eq!(run[0].changes, [Change::Delete { key: "k".into() }]);
}

#[tokio::test]
async fn a_closed_store_answers_nothing_and_is_free_for_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = Arc::new(open(&path));
    let Err(OpenError::Locked { holder, .. }) = EmbeddedStore::open(&Options::new(&path)) else {
        panic!("the store is in use")
    };
    assert_eq!(holder, std::process::id().to_string());
    let mut stream = store.follow(1);
    let waiting = tokio::spawn(async move { stream.next().await });
    store.close().await;
    assert!(matches!(waiting.await.expect("no panic"), Some(Err(Error::Unavailable { .. }))));
    let answer = store.transact(Txn::new().put("k", "v")).await;
    assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");
    assert!(matches!(store.current_revision().await, Err(Error::Unavailable { .. })));
    assert!(matches!(store.health().await, Err(Error::Unavailable { .. })));
    open(&path);
}

#[tokio::test]
async fn a_closed_store_is_one_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db"));
    store.transact(Txn::new().put("k", "v")).await.expect("a write");
    store.close().await;
    drop(store);
    let mut names: Vec<_> = std::fs::read_dir(directory.path())
        .expect("readable")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("plain"))
        .collect();
    names.sort();
    assert_eq!(names, ["store.db", "store.db.lock"]);
}

#[tokio::test]
async fn old_revisions_are_compacted_in_the_background_and_the_file_shrinks() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let options = Options { retention: Some(Duration::from_millis(500)), ..Options::new(&path) };
    let store = Arc::new(EmbeddedStore::open(&options).expect("opens"));
    let churn = |round: u32| {
        let store = store.clone();
        async move {
            let puts = (0..200)
                .map(|n| store.transact(Txn::new().put(format!("{}", n % 20), vec![round as u8; 4096])));
            for put in futures_util::future::join_all(puts).await {
                put.expect("a write");
            }
        }
    };
    for round in 0..60 {
        churn(round).await;
    }
    // 12,000 rows of 4 KiB were written and 20 are needed.
    let full = 12_000 * 4096;
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    loop {
        churn(0).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        let size = std::fs::metadata(&path).expect("there").len();
        let compacted = matches!(store.scan(Scan::key("1").at(2)).await, Err(Error::Compacted { .. }));
        if compacted && size < full / 2 {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "the file still has {size} bytes");
    }
    let page = store.scan(Scan::new(KeyRange::all(), 100)).await.expect("readable");
    assert_eq!(page.entries.len(), 20);
    store.close().await;
    check(&path, |_| {}).expect("the file is whole");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_store_in_use_is_a_whole_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, copy, restored) = (
        directory.path().join("store.db"),
        directory.path().join("copy.db"),
        directory.path().join("new.db"),
    );
    let store = Arc::new(open(&path));
    for n in 0..5000 {
        store.transact(Txn::new().put(format!("/registry/{n}"), vec![1; 200])).await.expect("a write");
    }
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            for n in 0..2000 {
                store.transact(Txn::new().put("/registry/busy", format!("{n}"))).await.expect("a write");
            }
        }
    });
    let mut steps = 0;
    let report = backup(&path, &copy, |progress| {
        steps += 1;
        assert!(progress.done <= progress.total);
    })
    .expect("a backup beside the writer");
    writer.await.expect("the writer was not disturbed");
    assert!(steps >= 2 && report.keys >= 5000 && report.revision >= 5001, "{report:?}");
    assert!(matches!(backup(&path, &copy, |_| {}), Err(BackupError::Exists(_))));
    assert!(matches!(restore(&copy, &path, |_| {}), Err(BackupError::Open(OpenError::Locked { .. }))));
    assert_eq!(restore(&copy, &restored, |_| {}).expect("a restore"), report);
    assert_eq!(check(&restored, |_| {}).expect("whole"), report);
    let store = open(&restored);
    assert_eq!(store.current_revision().await, Ok(report.revision));
    let page = store.scan(Scan::new(KeyRange::all(), 10_000)).await.expect("readable");
    assert_eq!(page.entries.len() as u64, report.keys);
}
