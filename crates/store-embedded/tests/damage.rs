//! A damaged, foreign or unusable file is told, never repaired, never changed, never a panic.

use std::{fs, path::Path};

use concord_store::{KeyRange, KeyValue, Revision, Scan, Store, Txn};
use concord_store_embedded::{EmbeddedStore, OpenError, Options};

/// A store with live keys, history, tombstones and a compaction, closed again.
async fn sample(path: &Path) -> Contents {
    let store = EmbeddedStore::open(&Options::new(path)).expect("a new store opens");
    for n in 0..400_u32 {
        let txn = Txn::new().put(format!("/registry/a/{}", n % 90), vec![(n % 251) as u8; 300]);
        let txn = if n % 9 == 0 { txn.delete(format!("/registry/a/{}", (n + 40) % 90)) } else { txn };
        store.transact(txn).await.expect("a write");
    }
    store.compact(200).await.expect("a compaction");
    store.transact(Txn::new().put("/registry/b", vec![7; 9000])).await.expect("a write");
    let contents = contents(&store).await;
    store.close().await;
    contents
}

/// Everything that can be read: the latest state and a few older ones.
type Contents = Vec<(Revision, Vec<KeyValue>)>;

async fn contents(store: &EmbeddedStore) -> Contents {
    let newest = store.current_revision().await.expect("open");
    let mut contents = Vec::new();
    for revision in [newest, newest - 50, 300, 200] {
        let page = store.scan(Scan::new(KeyRange::all(), 1000).at(revision)).await.expect("readable");
        contents.push((revision, page.entries));
    }
    contents
}

/// Opens the altered file: it must be refused and left alone, or hold exactly what it held.
async fn judge(path: &Path, original: &Contents) -> bool {
    let before = fs::read(path).expect("the file");
    match EmbeddedStore::open(&Options::new(path)) {
        Ok(store) => {
            assert_eq!(contents(&store).await, *original, "damage was read as data");
            store.close().await;
            false
        }
        Err(OpenError::Damaged { .. } | OpenError::NotAStore { .. } | OpenError::Format { .. }) => {
            assert_eq!(fs::read(path).expect("the file"), before, "a damaged file was changed");
            true
        }
        Err(other) => panic!("damage was taken for {other}"),
    }
}

#[tokio::test]
async fn flipped_bytes_are_noticed_or_harmless() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let original = sample(&path).await;
    let clean = fs::read(&path).expect("the file");
    let (mut noticed, mut tried) = (0, 0);
    // Everything in the first page, then spread over the whole file.
    let places = (0..200).chain((200..clean.len()).step_by(clean.len() / 500));
    for place in places {
        let mut bytes = clean.clone();
        bytes[place] ^= 0x41;
        fs::write(&path, &bytes).expect("the file can be written");
        tried += 1;
        noticed += usize::from(judge(&path, &original).await);
    }
    assert!(noticed * 2 > tried, "only {noticed} of {tried} flips were noticed: most bytes are data");
}

#[tokio::test]
async fn a_file_cut_short_is_noticed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let original = sample(&path).await;
    let clean = fs::read(&path).expect("the file");
    for keep in [1, 15, 99, 100, 4095, 4096, 8192, clean.len() / 2, clean.len() - 4096, clean.len() - 1] {
        fs::write(&path, &clean[..keep]).expect("the file can be written");
        assert!(judge(&path, &original).await, "{keep} of {} bytes passed for a store", clean.len());
    }
}

#[tokio::test]
async fn a_page_from_an_older_state_is_noticed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let original = sample(&path).await;
    let clean = fs::read(&path).expect("the file");
    let pages = clean.len() / 4096;
    for (from, to) in [(pages / 2, pages / 2 + 1), (pages / 3, pages - 2), (2, pages / 2)] {
        let mut bytes = clean.clone();
        bytes.copy_within(from * 4096..(from + 1) * 4096, to * 4096);
        if bytes != clean {
            fs::write(&path, &bytes).expect("the file can be written");
            assert!(judge(&path, &original).await, "page {to} replaced by page {from} was not noticed");
        }
    }
}

fn refused(path: &Path, complaint: &str) {
    let Err(error) = EmbeddedStore::open(&Options::new(path)) else { panic!("{} opened", path.display()) };
    assert!(error.to_string().contains(complaint), "{error} should mention {complaint:?}");
}

#[tokio::test]
async fn what_is_no_store_is_refused_with_a_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);

    fs::write(file("text"), "this is a shopping list, long enough to be looked at\n".repeat(100))
        .expect("written");
    refused(&file("text"), "not a Concord store");

    let foreign = rusqlite::Connection::open(file("foreign.db")).expect("SQLite");
    foreign.execute_batch("CREATE TABLE songs (title TEXT)").expect("SQLite");
    drop(foreign);
    refused(&file("foreign.db"), "not a Concord store");

    sample(&file("newer.db")).await;
    let newer = rusqlite::Connection::open(file("newer.db")).expect("SQLite");
    newer.execute_batch("PRAGMA user_version = 99").expect("SQLite");
    drop(newer);
    refused(&file("newer.db"), "format 99");

    refused(&file("no/such/directory/store.db"), "cannot open");
    fs::create_dir(file("directory")).expect("created");
    refused(&file("directory"), "cannot open");

    fs::write(file("empty.db"), "").expect("written");
    EmbeddedStore::open(&Options::new(file("empty.db"))).expect("an empty file becomes a store");
}

#[tokio::test]
async fn a_damaged_store_with_a_log_left_by_a_crash_is_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    sample(&path).await;
    // What a crash leaves: the file and the write-ahead log of a store in use.
    let store = EmbeddedStore::open(&Options::new(&path)).expect("opens");
    store.transact(Txn::new().put("/registry/late", "in the log only")).await.expect("a write");
    let (crashed, log) = (directory.path().join("crashed.db"), directory.path().join("crashed.db-wal"));
    fs::copy(&path, &crashed).expect("copied");
    fs::copy(directory.path().join("store.db-wal"), &log).expect("copied");
    drop(store);
    let whole = fs::read(&crashed).expect("the file");
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 64].fill(0xa5);
    fs::write(&crashed, &damaged).expect("written");
    let log_before = fs::read(&log).expect("the log");
    assert!(matches!(EmbeddedStore::open(&Options::new(&crashed)), Err(OpenError::Damaged { .. })));
    assert_eq!(fs::read(&crashed).expect("the file"), damaged);
    assert_eq!(fs::read(&log).expect("the log"), log_before);

    // The same without damage is recovered from the log.
    fs::write(&crashed, &whole).expect("written");
    let store = EmbeddedStore::open(&Options::new(&crashed)).expect("recovers");
    let page = store.scan(Scan::key("/registry/late")).await.expect("readable");
    assert_eq!(page.entries[0].value, "in the log only");
}
