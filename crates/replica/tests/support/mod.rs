//! A store in memory whose troubles a test decides: outages, compaction, rollback, slow streams.

#![allow(dead_code, reason = "each test file uses its part")]

use std::{collections::BTreeMap, num::NonZeroUsize, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use concord_replica::{Config, Replica, Snapshot};
use concord_store::{
    Change, Commit, CommitStream, Committed, Error, KeyRange, KeyValue, Revision, Scan, ScanPage, Store, Txn,
    Write,
};
use futures_util::stream;
use parking_lot::Mutex;
use tokio::sync::watch;

/// All keys at one revision.
pub(crate) type Model = BTreeMap<Bytes, KeyValue>;

/// What a test waits for at most. Generous: it is only reached when something is wrong.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A handle; all clones are the same store.
#[derive(Debug, Clone)]
pub(crate) struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
    /// Counts what streams should look at.
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct Inner {
    /// All commits, the first with revision 2; [`MemoryStore::rollback`] cuts the end off.
    log: Vec<Commit>,
    oldest: Revision,
    available: bool,
    /// Streams show no revision after this one.
    shown: Option<Revision>,
    /// How many commits a stream yields at once.
    run: usize,
    /// How often the current revision was asked.
    asked: usize,
    /// The current revision is not answered while this is set.
    silent: bool,
    /// Streams opened before this many cuts end.
    cuts: u64,
    /// Compacts everything before the next but one page of a scan.
    compact_during_scan: bool,
}

impl Default for MemoryStore {
    fn default() -> Self {
        let inner = Inner {
            log: Vec::new(),
            oldest: 1,
            available: true,
            shown: None,
            run: usize::MAX,
            asked: 0,
            silent: false,
            cuts: 0,
            compact_during_scan: false,
        };
        Self { inner: Arc::new(Mutex::new(inner)), changed: watch::Sender::new(0) }
    }
}

impl Inner {
    fn revision(&self) -> Revision {
        self.log.last().map_or(1, |commit| commit.revision)
    }

    fn state_at(&self, revision: Revision) -> Model {
        let mut state = Model::new();
        for commit in self.log.iter().take_while(|commit| commit.revision <= revision) {
            for change in &commit.changes {
                match change {
                    Change::Put(kv) => drop(state.insert(kv.key.clone(), kv.clone())),
                    Change::Delete { key } => drop(state.remove(key)),
                }
            }
        }
        state
    }

    fn check(&self, revision: Revision) -> Result<(), Error> {
        if !self.available {
            return Err(Error::unavailable("the test says so"));
        }
        if revision < self.oldest {
            return Err(Error::Compacted { oldest: self.oldest });
        }
        if revision > self.revision() {
            return Err(Error::FutureRevision { requested: revision, current: self.revision() });
        }
        Ok(())
    }

    fn commit(&mut self, writes: Vec<Write>, may_be_empty: bool) -> Revision {
        let revision = self.revision() + 1;
        let state = self.state_at(revision);
        let changes: Vec<Change> =
            writes.into_iter().filter_map(|write| change(&state, revision, write)).collect();
        if changes.is_empty() && !may_be_empty {
            return self.revision();
        }
        self.log.push(Commit { revision, changes });
        revision
    }
}

fn change(state: &Model, revision: Revision, write: Write) -> Option<Change> {
    match write {
        Write::Put { key, value, .. } => {
            let create_revision = state.get(&key).map_or(revision, |kv| kv.create_revision);
            Some(Change::Put(KeyValue { key, value, create_revision, mod_revision: revision }))
        }
        Write::Delete { key } => state.contains_key(&key).then_some(Change::Delete { key }),
    }
}

impl MemoryStore {
    /// The store as a replica takes it.
    pub(crate) fn shared(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        let result = act(&mut self.inner.lock());
        self.changed.send_modify(|count| *count += 1);
        result
    }

    pub(crate) fn revision(&self) -> Revision {
        self.inner.lock().revision()
    }

    pub(crate) fn state_at(&self, revision: Revision) -> Model {
        self.inner.lock().state_at(revision)
    }

    /// Commits, also during an outage: other servers may still reach the store.
    pub(crate) fn commit(&self, writes: Vec<Write>) -> Revision {
        self.with(|inner| inner.commit(writes, false))
    }

    /// Commits something outside of what the store shows.
    pub(crate) fn commit_nothing(&self) -> Revision {
        self.with(|inner| inner.commit(Vec::new(), true))
    }

    pub(crate) fn put(&self, key: &str, value: &str) -> Revision {
        self.commit(vec![put(key, value)])
    }

    pub(crate) fn delete(&self, key: &str) -> Revision {
        self.commit(vec![delete(key)])
    }

    pub(crate) fn set_available(&self, available: bool) {
        self.with(|inner| inner.available = available);
    }

    pub(crate) fn set_silent(&self, silent: bool) {
        self.with(|inner| inner.silent = silent);
    }

    /// Lets streams show nothing after `revision`.
    pub(crate) fn show_up_to(&self, revision: Option<Revision>) {
        self.with(|inner| inner.shown = revision);
    }

    pub(crate) fn set_run(&self, run: usize) {
        self.with(|inner| inner.run = run);
    }

    /// Ends all streams; new ones work.
    pub(crate) fn cut_streams(&self) {
        self.with(|inner| inner.cuts += 1);
    }

    pub(crate) fn compact_all(&self) {
        self.with(|inner| inner.oldest = inner.revision());
    }

    pub(crate) fn compact_during_scan(&self) {
        self.with(|inner| inner.compact_during_scan = true);
    }

    /// Goes back to `revision`, as if restored from a backup.
    pub(crate) fn rollback(&self, revision: Revision) {
        self.with(|inner| {
            inner.log.retain(|commit| commit.revision <= revision);
            inner.oldest = inner.oldest.min(revision);
        });
    }

    pub(crate) fn asked(&self) -> usize {
        self.inner.lock().asked
    }

    fn next_run(&self, after: Revision, cuts: u64) -> Result<Vec<Commit>, Error> {
        let inner = self.inner.lock();
        if inner.cuts != cuts {
            return Err(Error::unavailable("the test cut the stream"));
        }
        inner.check(after)?;
        let shown = inner.shown.unwrap_or(Revision::MAX);
        let new = inner.log.iter().filter(|commit| commit.revision > after && commit.revision <= shown);
        Ok(new.take(inner.run).cloned().collect())
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn transact(&self, txn: Txn) -> Result<Committed, Error> {
        txn.validate()?;
        assert!(txn.compares.is_empty(), "this store compares nothing");
        self.health().await?;
        Ok(Committed { revision: self.commit(txn.writes) })
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Error> {
        scan.validate()?;
        let mut inner = self.inner.lock();
        let revision = scan.revision.unwrap_or_else(|| inner.revision());
        inner.check(revision)?;
        let state = inner.state_at(revision);
        let mut rest = state.into_values().filter(|kv| scan.range.contains(&kv.key));
        let entries = rest.by_ref().take(scan.limit).collect();
        let resume = rest.next().map(|kv| kv.key);
        if resume.is_some() && std::mem::take(&mut inner.compact_during_scan) {
            inner.commit(Vec::new(), true);
            inner.oldest = inner.revision();
        }
        Ok(ScanPage { revision, entries, resume })
    }

    fn follow(&self, after: Revision) -> CommitStream {
        let (changed, cuts) = (self.changed.subscribe(), self.inner.lock().cuts);
        // No position means that the stream has ended with an error.
        let start = (self.clone(), changed, cuts, Some(after));
        Box::pin(stream::unfold(start, async |(store, mut changed, cuts, after)| {
            let mut position = after?;
            loop {
                changed.mark_unchanged();
                match store.next_run(position, cuts) {
                    Ok(commits) if commits.is_empty() => changed.changed().await.ok()?,
                    Ok(commits) => {
                        position += commits.len() as u64;
                        return Some((Ok(commits), (store, changed, cuts, Some(position))));
                    }
                    Err(error) => return Some((Err(error), (store, changed, cuts, None))),
                }
            }
        }))
    }

    async fn current_revision(&self) -> Result<Revision, Error> {
        let mut changed = self.changed.subscribe();
        self.inner.lock().asked += 1;
        loop {
            let silent = {
                let inner = self.inner.lock();
                inner.check(inner.revision())?;
                inner.silent
            };
            if !silent {
                return Ok(self.revision());
            }
            changed.changed().await.map_err(Error::unavailable)?;
        }
    }

    async fn compact(&self, revision: Revision) -> Result<(), Error> {
        self.with(|inner| inner.oldest = inner.oldest.max(revision));
        Ok(())
    }

    async fn health(&self) -> Result<(), Error> {
        let inner = self.inner.lock();
        inner.check(inner.revision())
    }
}

pub(crate) fn put(key: &str, value: &str) -> Write {
    Write::Put {
        key: Bytes::copy_from_slice(key.as_bytes()),
        value: Bytes::copy_from_slice(value.as_bytes()),
        ttl: None,
    }
}

pub(crate) fn delete(key: &str) -> Write {
    Write::Delete { key: Bytes::copy_from_slice(key.as_bytes()) }
}

/// A configuration that retries at once and pages in small steps.
pub(crate) fn config() -> Config {
    Config {
        load_page: NonZeroUsize::new(3).expect("not zero"),
        backoff_min: Duration::from_millis(1),
        backoff_max: Duration::from_millis(5),
        ..Config::default()
    }
}

/// A replica that has loaded.
pub(crate) async fn started(store: &MemoryStore, config: Config) -> Replica {
    let replica = Replica::start(store.shared(), config, Vec::new());
    caught_up(store, &replica).await;
    replica
}

/// Waits until the replica has everything the store has.
pub(crate) async fn caught_up(store: &MemoryStore, replica: &Replica) -> Snapshot {
    let revision = store.revision();
    replica.not_older_than(revision, PATIENCE).await.expect("the replica catches up")
}

/// All keys of a snapshot.
pub(crate) fn contents(snapshot: &Snapshot) -> Model {
    snapshot.scan(&KeyRange::all()).map(|entry| (entry.key.clone(), KeyValue::clone(entry))).collect()
}
