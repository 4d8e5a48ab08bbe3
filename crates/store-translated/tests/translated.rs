//! A translated store on a real one.

use std::sync::Arc;

use bytes::Bytes;
use concord_store::{Change, Compare, Error, KeyRange, Scan, Store, Txn, conformance};
use concord_store_embedded::{EmbeddedStore, Options};
use concord_store_translated::TranslatedStore;
use futures_util::StreamExt as _;

/// What begins with a question mark is foreign.
fn translate(value: &[u8]) -> Option<Bytes> {
    value.strip_prefix(b"?").map(|rest| [b"translated ", rest].concat().into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_conforms() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut count = 0;
    conformance::run_all(|| {
        count += 1;
        let options = Options::new(directory.path().join(format!("{count}.db")));
        async move {
            let inner = Arc::new(EmbeddedStore::open(&options).expect("a new store opens"));
            Arc::new(TranslatedStore::new(inner, translate)) as Arc<dyn Store>
        }
    })
    .await;
}

#[tokio::test]
async fn foreign_values_are_shown_translated_wherever_they_are_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let inner = EmbeddedStore::open(&Options::new(directory.path().join("db"))).expect("a store");
    let store = TranslatedStore::new(Arc::new(inner), translate);
    let before = store.current_revision().await.expect("a revision");
    store.transact(Txn::new().put("/a", "?foreign").put("/b", "own")).await.expect("written");

    let page = store.scan(Scan::new(KeyRange::all(), 9)).await.expect("a page");
    let shown: Vec<&[u8]> = page.entries.iter().map(|entry| &entry.value[..]).collect();
    assert_eq!(shown, [&b"translated foreign"[..], b"own"]);
    let kept = store.scan_kept(Scan::key("/a")).await.expect("a page");
    assert_eq!(kept.entries[0].value, "?foreign");

    let commits = store.follow(before).next().await.expect("commits").expect("readable");
    let put = |change: &Change| match change {
        Change::Put(entry) => entry.value.clone(),
        Change::Delete { .. } => panic!("nothing was deleted"),
    };
    let followed: Vec<Bytes> = commits.iter().flat_map(|commit| &commit.changes).map(put).collect();
    assert_eq!(followed, ["translated foreign", "own"]);

    let stale = Txn::new().compare(Compare::absent("/a")).put("/a", "x").read_on_failure("/a");
    let Err(Error::CompareFailed(failed)) = store.transact(stale).await else {
        panic!("it must not be written")
    };
    assert_eq!(failed.current[0].as_ref().expect("the entry").value, "translated foreign");
}
