use std::{sync::Arc, time::Duration};

use concord_store::{Revision, Store};
use tokio::sync::{mpsc, oneshot};

use crate::{Error, shared::Shared};

/// So many callers may wait for the next question to the store; further ones wait for their turn.
const WAITING: usize = 1024;

type Caller = oneshot::Sender<Result<Revision, Error>>;

/// Asks for the store's revision on behalf of many.
#[derive(Debug, Clone)]
pub(crate) struct Asker(mpsc::Sender<Caller>);

/// Puts the question to the store, one at a time. All callers that wait when a question begins share
/// its answer. Who comes later waits for the next one: the one under way may have been answered as of
/// a moment before they came.
pub(crate) struct Answerer {
    callers: mpsc::Receiver<Caller>,
    store: Arc<dyn Store>,
    shared: Arc<Shared>,
    timeout: Duration,
}

pub(crate) fn channel(store: Arc<dyn Store>, shared: Arc<Shared>, timeout: Duration) -> (Asker, Answerer) {
    let (asker, callers) = mpsc::channel(WAITING);
    (Asker(asker), Answerer { callers, store, shared, timeout })
}

impl Asker {
    /// A revision that is at least that of every commit answered before this call.
    pub(crate) async fn revision(&self) -> Result<Revision, Error> {
        let (caller, answer) = oneshot::channel();
        self.0.send(caller).await.map_err(|_| Error::Shutdown)?;
        answer.await.map_err(|_| Error::Shutdown)?
    }
}

impl Answerer {
    pub(crate) async fn run(mut self) {
        let mut callers = Vec::new();
        while self.callers.recv_many(&mut callers, WAITING).await > 0 {
            let answer = self.ask().await;
            for caller in callers.drain(..) {
                // Who no longer waits needs no answer.
                caller.send(answer.clone()).ok();
            }
        }
    }

    async fn ask(&self) -> Result<Revision, Error> {
        let seen = self.shared.newest().map_or(0, |snapshot| snapshot.revision());
        let Ok(answer) = tokio::time::timeout(self.timeout, self.store.current_revision()).await else {
            let reason = format!("no answer within {:?}", self.timeout);
            return Err(concord_store::Error::unavailable(reason).into());
        };
        let current = answer?;
        if current < seen {
            self.shared.went_back.notify_one();
            return Err(Error::StoreWentBack { seen, current });
        }
        Ok(current)
    }
}
