//! Reading what is kept, a part at a time.

use concord_replica::Replica;
use concord_store::{Error, Scan, ScanPage, Store};

/// The first entries of a range, as they are kept, and where to go on.
///
/// etcd goes through all keys of a range, however few of them are asked for, and nobody writes meanwhile: of 100,000 objects
/// that takes 20 ms for every page. So a part is read that ends where as many keys end as are wanted and the replica knows of.
/// Whatever else is in it is read with them.
pub(crate) async fn read_kept(
    store: &dyn Store,
    replica: &Replica,
    mut scan: Scan,
) -> Result<ScanPage, Error> {
    let known = replica.newest().ok();
    let next = known.and_then(|known| Some(known.scan(&scan.range).nth(scan.limit)?.key.clone()));
    scan.range.end = next.clone().or(scan.range.end);
    let mut page = store.scan_kept(scan).await?;
    page.resume = page.resume.or(next);
    Ok(page)
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use bytes::Bytes;
    use concord_replica::Config;
    use concord_store::{CommitStream, Committed, KeyRange, Revision, Txn};
    use concord_store_embedded::{EmbeddedStore, Options};
    use parking_lot::Mutex;

    use super::*;

    /// A store that remembers what was read.
    struct Remembering {
        inner: EmbeddedStore,
        read: Mutex<Vec<KeyRange>>,
    }

    #[async_trait::async_trait]
    impl Store for Remembering {
        async fn transact(&self, txn: Txn) -> Result<Committed, Error> {
            self.inner.transact(txn).await
        }

        async fn scan(&self, scan: Scan) -> Result<ScanPage, Error> {
            self.read.lock().push(scan.range.clone());
            self.inner.scan(scan).await
        }

        fn follow(&self, after: Revision) -> CommitStream {
            self.inner.follow(after)
        }

        async fn current_revision(&self) -> Result<Revision, Error> {
            self.inner.current_revision().await
        }

        async fn compact(&self, revision: Revision) -> Result<(), Error> {
            self.inner.compact(revision).await
        }

        async fn health(&self) -> Result<(), Error> {
            self.inner.health().await
        }
    }

    async fn put(store: &dyn Store, names: impl IntoIterator<Item = String>) -> Revision {
        let mut revision = 0;
        for name in names {
            revision = store.transact(Txn::new().put(name, "v")).await.expect("written").revision;
        }
        revision
    }

    /// All keys under `/a/`, read ten at a time.
    async fn read_all(store: &dyn Store, replica: &Replica) -> Vec<Bytes> {
        let (mut range, mut keys) = (KeyRange::prefix("/a/"), Vec::new());
        loop {
            let page = read_kept(store, replica, Scan::new(range.clone(), 10)).await.expect("read");
            keys.extend(page.entries.into_iter().map(|entry| entry.key));
            match page.resume {
                Some(resume) => range = range.starting_at(resume),
                None => return keys,
            }
        }
    }

    #[tokio::test]
    async fn everything_is_read_once_and_no_part_has_more_than_a_page() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = Options::new(directory.path().join("store"));
        let inner = EmbeddedStore::open(&options).expect("a store");
        let store = Arc::new(Remembering { inner, read: Mutex::default() });
        let known: Vec<String> = (0..25).map(|n| format!("/a/{n:02}")).collect();
        let revision = put(&*store, known.iter().cloned().chain(["/b/1".to_owned()])).await;
        let replica = Replica::start(store.clone(), Config::default(), Vec::new());
        replica.not_older_than(revision, Duration::from_secs(60)).await.expect("followed");
        // What is stored now the replica does not know of.
        replica.shutdown().await;
        let unknown: Vec<String> = (0..15).map(|n| format!("/a/05-{n:02}")).collect();
        put(&*store, unknown.iter().cloned()).await;
        store.read.lock().clear();
        let read = read_all(&*store, &replica).await;
        let mut expected: Vec<Bytes> = known.iter().chain(&unknown).cloned().map(Bytes::from).collect();
        expected.sort_unstable();
        assert_eq!(read, expected);
        let parts = std::mem::take(&mut *store.read.lock());
        let most = |range: &KeyRange| known.iter().filter(|key| range.contains(key.as_bytes())).count();
        assert!(parts.iter().all(|range| most(range) <= 10), "{parts:?}");
    }
}
