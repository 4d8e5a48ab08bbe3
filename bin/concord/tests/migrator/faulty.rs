//! A store that a test tells what to do.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use async_trait::async_trait;
use bytes::Bytes;
use concord_store::{CommitStream, Committed, Error, Revision, Scan, ScanPage, Store, Txn};
use concord_store_embedded::EmbeddedStore;
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use tokio::sync::watch;

/// What becomes of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// What should.
    Good,
    /// Nothing, and the store says so.
    Refused,
    /// It is committed, and nobody is told.
    Unanswered,
    /// There is never an answer, and nothing happens.
    Stuck,
    /// There is never an answer, and it is committed.
    CommittedAndStuck,
    /// It waits until the test lets it go on.
    Held,
}

type Judge<Q, A> = Mutex<Arc<dyn Fn(&Q) -> A + Send + Sync>>;

/// How many of the values that were read are in memory, how many were at most, and how many were read.
#[derive(Default)]
pub(crate) struct InMemory {
    now: AtomicUsize,
    pub(crate) most: AtomicUsize,
    pub(crate) read: AtomicUsize,
}

/// A value that tells when nobody has it any more.
struct Counted(Bytes, Arc<InMemory>);

impl Counted {
    fn bytes(value: Bytes, counts: &Arc<InMemory>) -> Bytes {
        counts.read.fetch_add(1, Ordering::Relaxed);
        let now = counts.now.fetch_add(1, Ordering::Relaxed) + 1;
        counts.most.fetch_max(now, Ordering::Relaxed);
        Bytes::from_owner(Self(value, counts.clone()))
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.now.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) struct Faulty {
    inner: Arc<EmbeddedStore>,
    transactions: Judge<Txn, Verdict>,
    scans: Judge<Scan, Option<Error>>,
    /// Whether whoever follows is told what is committed.
    is_open: watch::Sender<bool>,
    /// Whether transactions that are held may go on, and how many wait for that.
    is_released: watch::Sender<bool>,
    held: watch::Sender<usize>,
    /// The keys that were written, in their order, and when.
    written: Arc<Mutex<Vec<(Bytes, Instant)>>>,
    /// Where values that are read are counted, if anybody wants to know.
    in_memory: OnceLock<Arc<InMemory>>,
}

impl Faulty {
    pub(crate) fn new(inner: Arc<EmbeddedStore>) -> Self {
        Self {
            inner,
            transactions: Mutex::new(Arc::new(|_| Verdict::Good)),
            scans: Mutex::new(Arc::new(|_| None)),
            is_open: watch::Sender::new(true),
            is_released: watch::Sender::new(false),
            held: watch::Sender::new(0),
            written: Arc::default(),
            in_memory: OnceLock::new(),
        }
    }

    pub(crate) fn judge(&self, judge: impl Fn(&Txn) -> Verdict + Send + Sync + 'static) {
        *self.transactions.lock() = Arc::new(judge);
    }

    pub(crate) fn judge_scans(&self, judge: impl Fn(&Scan) -> Option<Error> + Send + Sync + 'static) {
        *self.scans.lock() = Arc::new(judge);
    }

    /// Counts the values that are read from now on.
    pub(crate) fn in_memory(&self) -> &InMemory {
        self.in_memory.get_or_init(Arc::default)
    }

    /// From now on nobody is told anything, or everybody everything.
    pub(crate) fn show(&self, is_open: bool) {
        self.is_open.send_replace(is_open);
    }

    /// How often a key was written that begins like this.
    pub(crate) fn written(&self, prefix: &str) -> usize {
        self.times(prefix).len()
    }

    /// When keys were written that begin like this.
    pub(crate) fn times(&self, prefix: &str) -> Vec<Instant> {
        let written = self.written.lock();
        written.iter().filter(|(key, _)| key.starts_with(prefix.as_bytes())).map(|(_, at)| *at).collect()
    }

    /// Waits until a transaction is held, lets something happen before it, and lets it go on.
    pub(crate) async fn overtake(&self, happens: impl Future<Output = ()>) {
        self.held.subscribe().wait_for(|held| *held > 0).await.expect("it is there");
        happens.await;
        self.is_released.send_replace(true);
    }
}

#[async_trait]
impl Store for Faulty {
    async fn transact(&self, txn: Txn) -> Result<Committed, Error> {
        let judge = self.transactions.lock().clone();
        let verdict = judge(&txn);
        let keys: Vec<Bytes> = txn.writes.iter().map(|write| write.key().clone()).collect();
        match verdict {
            Verdict::Refused => return Err(Error::unavailable("etcdserver: mvcc: database space exceeded")),
            Verdict::Stuck => return std::future::pending().await,
            Verdict::Held => {
                self.held.send_modify(|held| *held += 1);
                self.is_released.subscribe().wait_for(|is_released| *is_released).await.ok();
            }
            Verdict::Good | Verdict::Unanswered | Verdict::CommittedAndStuck => {}
        }
        // A process that dies meanwhile takes nothing back, and what it wrote last is counted like everything else.
        let (inner, written) = (self.inner.clone(), self.written.clone());
        let commit = tokio::spawn(async move {
            let committed = inner.transact(txn).await?;
            let now = Instant::now();
            written.lock().extend(keys.into_iter().map(|key| (key, now)));
            Ok::<_, Error>(committed)
        });
        let committed = commit.await.expect("a store does not panic")?;
        match verdict {
            Verdict::Unanswered => Err(Error::outcome_unknown("the answer is lost")),
            Verdict::CommittedAndStuck => std::future::pending().await,
            _ => Ok(committed),
        }
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Error> {
        let judge = self.scans.lock().clone();
        if let Some(error) = judge(&scan) {
            return Err(error);
        }
        let mut page = self.inner.scan(scan).await?;
        if let Some(counts) = self.in_memory.get() {
            page.entries
                .iter_mut()
                .for_each(|entry| entry.value = Counted::bytes(entry.value.clone(), counts));
        }
        Ok(page)
    }

    fn follow(&self, after: Revision) -> CommitStream {
        let is_open = self.is_open.subscribe();
        let commits = self.inner.follow(after).then(move |batch| {
            let mut is_open = is_open.clone();
            async move {
                // A test that is over shows nothing any more.
                is_open.wait_for(|is_open| *is_open).await.ok();
                batch
            }
        });
        commits.boxed()
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
