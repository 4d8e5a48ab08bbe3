//! A store between a server and the log, in which transactions fail, or wait for the test.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use concord_store::{CommitStream, Committed, CompareFailed, Error, Revision, Scan, ScanPage, Store, Txn};
use concord_store_embedded::EmbeddedStore;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// What becomes of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The store takes nothing.
    Refused,
    /// It is lost on its way, and nobody knows.
    Lost,
    /// It is committed, and the answer is lost.
    Unanswered,
    /// Something has changed, as far as the server is told.
    Conflict,
    /// There is never an answer, and nothing happens.
    Stuck,
    /// There is never an answer, and it is committed.
    CommittedAndStuck,
}

type Matches = Box<dyn Fn(&Txn) -> bool + Send + Sync>;

struct Waiting {
    matches: Matches,
    arrived: oneshot::Sender<()>,
    released: oneshot::Receiver<()>,
}

/// A transaction that waits for the test.
pub(crate) struct Held {
    arrived: oneshot::Receiver<()>,
    release: oneshot::Sender<()>,
}

impl Held {
    /// Waits until it is there.
    pub(crate) async fn arrived(&mut self) {
        (&mut self.arrived).await.expect("somebody waits");
    }

    pub(crate) fn release(self) {
        self.release.send(()).expect("somebody waits");
    }
}

pub(crate) struct Faulty {
    log: Arc<EmbeddedStore>,
    /// What happens to the n-th transaction.
    plan: Option<(usize, Fault)>,
    count: AtomicUsize,
    reached: Mutex<Option<oneshot::Sender<()>>>,
    waiting: Mutex<Option<Waiting>>,
    refused: Mutex<Option<Matches>>,
}

impl Faulty {
    pub(crate) fn new(
        log: &Arc<EmbeddedStore>,
        plan: Option<(usize, Fault)>,
    ) -> (Arc<Self>, oneshot::Receiver<()>) {
        let (reached, there) = oneshot::channel();
        let faulty = Self {
            log: log.clone(),
            plan,
            count: AtomicUsize::new(0),
            reached: Mutex::new(Some(reached)),
            waiting: Mutex::new(None),
            refused: Mutex::new(None),
        };
        (Arc::new(faulty), there)
    }

    /// How many transactions there were.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Has the next transaction of a kind wait.
    pub(crate) fn hold(&self, matches: impl Fn(&Txn) -> bool + Send + Sync + 'static) -> Held {
        let ((arrived, there), (release, released)) = (oneshot::channel(), oneshot::channel());
        *self.waiting.lock() = Some(Waiting { matches: Box::new(matches), arrived, released });
        Held { arrived: there, release }
    }

    /// Refuses every transaction of a kind.
    pub(crate) fn refuse(&self, matches: impl Fn(&Txn) -> bool + Send + Sync + 'static) {
        *self.refused.lock() = Some(Box::new(matches));
    }

    fn waits(&self, txn: &Txn) -> Option<Waiting> {
        let mut waiting = self.waiting.lock();
        if waiting.as_ref().is_some_and(|waiting| (waiting.matches)(txn)) { waiting.take() } else { None }
    }

    async fn fail(&self, fault: Fault, txn: Txn) -> Result<Committed, Error> {
        if matches!(fault, Fault::Unanswered | Fault::CommittedAndStuck) {
            self.log.transact(txn).await?;
        }
        if let Some(reached) = self.reached.lock().take() {
            reached.send(()).ok();
        }
        match fault {
            Fault::Refused => Err(Error::unavailable("refused by the test")),
            Fault::Lost | Fault::Unanswered => Err(Error::outcome_unknown("lost by the test")),
            Fault::Conflict => {
                let revision = self.log.current_revision().await?;
                Err(Error::CompareFailed(Box::new(CompareFailed { revision, current: Vec::new() })))
            }
            Fault::Stuck | Fault::CommittedAndStuck => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Store for Faulty {
    async fn transact(&self, txn: Txn) -> Result<Committed, Error> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        if let Some((_, fault)) = self.plan.filter(|(at, _)| *at == number) {
            return self.fail(fault, txn).await;
        }
        if self.refused.lock().as_ref().is_some_and(|refused| refused(&txn)) {
            return Err(Error::unavailable("refused by the test"));
        }
        if let Some(Waiting { arrived, released, .. }) = self.waits(&txn) {
            arrived.send(()).ok();
            released.await.ok();
        }
        self.log.transact(txn).await
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Error> {
        self.log.scan(scan).await
    }

    fn follow(&self, after: Revision) -> CommitStream {
        self.log.follow(after)
    }

    async fn current_revision(&self) -> Result<Revision, Error> {
        self.log.current_revision().await
    }

    async fn compact(&self, revision: Revision) -> Result<(), Error> {
        self.log.compact(revision).await
    }

    async fn health(&self) -> Result<(), Error> {
        self.log.health().await
    }
}
