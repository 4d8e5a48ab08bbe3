//! A store whose values in another form are shown in the one that everybody here reads.
//!
//! A kube-apiserver on the same etcd stores built-in objects in protobuf, this server stores JSON, and each reads both.
//! [`TranslatedStore`] does that for everything above it: views, replica and registry see one form. What is written is passed
//! on as it is, so an object becomes JSON when it is next changed here.
//!
//! It never changes what is stored, and shows what it cannot translate as it is.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use concord_store::{
    Change, Commit, CommitStream, Committed, Error, KeyValue, Revision, Scan, ScanPage, Store, Txn,
};
use futures_util::StreamExt as _;

/// The form that a stored value is shown in; `None` if that is the one it is stored in.
pub type Translate = fn(&[u8]) -> Option<Bytes>;

/// A store that shows the values of another one in another form.
pub struct TranslatedStore {
    inner: Arc<dyn Store>,
    translate: Translate,
}

impl TranslatedStore {
    /// Shows the values of `inner` as `translate` gives them. It is asked about every value that is read and has to be quick
    /// about those that it leaves alone.
    pub fn new(inner: Arc<dyn Store>, translate: Translate) -> Self {
        Self { inner, translate }
    }
}

fn translated(translate: Translate, entry: &mut KeyValue) {
    if let Some(value) = translate(&entry.value) {
        entry.value = value;
    }
}

fn translated_commits(translate: Translate, mut commits: Vec<Commit>) -> Vec<Commit> {
    for change in commits.iter_mut().flat_map(|commit| &mut commit.changes) {
        if let Change::Put(entry) = change {
            translated(translate, entry);
        }
    }
    commits
}

#[async_trait]
impl Store for TranslatedStore {
    async fn transact(&self, txn: Txn) -> Result<Committed, Error> {
        match self.inner.transact(txn).await {
            Err(Error::CompareFailed(mut failed)) => {
                failed.current.iter_mut().flatten().for_each(|entry| translated(self.translate, entry));
                Err(Error::CompareFailed(failed))
            }
            answer => answer,
        }
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Error> {
        let mut page = self.inner.scan(scan).await?;
        page.entries.iter_mut().for_each(|entry| translated(self.translate, entry));
        Ok(page)
    }

    fn follow(&self, after: Revision) -> CommitStream {
        let translate = self.translate;
        let commits = self.inner.follow(after);
        commits.map(move |commits| commits.map(|commits| translated_commits(translate, commits))).boxed()
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

    async fn refresh(&self, key: &Bytes, revision: Revision, ttl: Duration) -> Result<bool, Error> {
        self.inner.refresh(key, revision, ttl).await
    }

    async fn scan_kept(&self, scan: Scan) -> Result<ScanPage, Error> {
        self.inner.scan_kept(scan).await
    }

    async fn is_stale(&self, key: &Bytes, revision: Revision) -> Result<bool, Error> {
        self.inner.is_stale(key, revision).await
    }
}
