use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use concord_store::{
    Change, Commit, CommitStream, Committed, Error, KeyValue, Revision, Scan, ScanPage, Store, Txn, Write,
};
use futures_util::{StreamExt as _, stream};
use tokio::sync::watch;

use crate::Keyring;

/// A store that seals values before another one keeps them.
pub struct SealedStore {
    inner: Arc<dyn Store>,
    keyring: Arc<Keyring>,
}

impl SealedStore {
    /// Keeps everything in `inner`, sealed as the keyring says.
    pub fn new(inner: Arc<dyn Store>, keyring: Arc<Keyring>) -> Self {
        Self { inner, keyring }
    }

    async fn open(&self, entry: &mut KeyValue) {
        self.keyring.unlock(&entry.key, &entry.value).await;
        entry.value = self.keyring.open(&entry.key, std::mem::take(&mut entry.value));
    }
}

#[async_trait]
impl Store for SealedStore {
    async fn transact(&self, mut txn: Txn) -> Result<Committed, Error> {
        for write in &mut txn.writes {
            if let Write::Put { key, value, .. } = write
                && let Some(sealed) = self.keyring.seal(key, value).map_err(Error::unavailable)?
            {
                *value = sealed.into();
            }
        }
        match self.inner.transact(txn).await {
            Err(Error::CompareFailed(mut failed)) => {
                for entry in failed.current.iter_mut().flatten() {
                    self.open(entry).await;
                }
                Err(Error::CompareFailed(failed))
            }
            answer => answer,
        }
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Error> {
        let mut page = self.inner.scan(scan).await?;
        for entry in &mut page.entries {
            self.open(entry).await;
        }
        Ok(page)
    }

    fn follow(&self, after: Revision) -> CommitStream {
        let following = Following {
            commits: self.inner.follow(after),
            replaced: self.keyring.changes(),
            keyring: self.keyring.clone(),
            after,
            has_ended: false,
        };
        stream::unfold(following, Following::next).boxed()
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
        let page = self.inner.scan_kept(scan).await?;
        // Whoever looks at it will want to open it.
        for entry in &page.entries {
            self.keyring.unlock(&entry.key, &entry.value).await;
        }
        Ok(page)
    }

    async fn is_stale(&self, key: &Bytes, revision: Revision) -> Result<bool, Error> {
        if !self.keyring.has_forms(key) {
            return Ok(false);
        }
        let page = self.scan_kept(Scan::key(key.clone())).await?;
        let same = page.entries.first().filter(|entry| entry.mod_revision == revision);
        Ok(same.is_none_or(|entry| self.keyring.inspect(key, &entry.value).is_stale))
    }
}

/// A stream of commits whose values are opened on the way.
struct Following {
    commits: CommitStream,
    replaced: watch::Receiver<u64>,
    keyring: Arc<Keyring>,
    after: Revision,
    has_ended: bool,
}

impl Following {
    async fn next(mut self) -> Option<(Result<Vec<Commit>, Error>, Self)> {
        while !self.has_ended {
            let received = tokio::select! {
                received = self.commits.next() => received?,
                Ok(()) = self.replaced.changed() => {
                    if !self.keyring.take_missed() {
                        continue;
                    }
                    // What could not be opened was given out already. It may be readable now: whoever follows has to
                    // load everything again, as if what he has were too old.
                    Err(Error::Compacted { oldest: self.after })
                }
            };
            self.has_ended = received.is_err();
            let opened = match received {
                Ok(commits) => Ok(self.opened(commits).await),
                Err(error) => Err(error),
            };
            return Some((opened, self));
        }
        None
    }

    async fn opened(&mut self, mut commits: Vec<Commit>) -> Vec<Commit> {
        for commit in &mut commits {
            self.after = commit.revision;
            for change in &mut commit.changes {
                if let Change::Put(entry) = change {
                    self.keyring.unlock(&entry.key, &entry.value).await;
                    entry.value = self.keyring.open(&entry.key, std::mem::take(&mut entry.value));
                }
            }
        }
        commits
    }
}
