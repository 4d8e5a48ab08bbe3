use std::{sync::Arc, time::Duration};

use concord_store::{Revision, Store};
use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::sync::{mpsc, oneshot};

use crate::{Error, shared::Shared};

/// So many callers may wait for the next question to the store; further ones wait for their turn.
const WAITING: usize = 1024;

/// While answers are due to so many callers, those who come wait for one of these answers, and then share a question. With
/// fewer it costs little to ask at once, and nobody waits twice because somebody else asked a moment before.
const MANY: usize = 4;

type Caller = oneshot::Sender<Result<Revision, Error>>;

/// Asks for the store's revision on behalf of many.
#[derive(Debug, Clone)]
pub(crate) struct Asker(mpsc::Sender<Caller>);

/// Puts the question to the store. All callers that wait when a question begins share its answer. Who comes later waits for
/// another one: that under way may have been answered as of a moment before they came.
pub(crate) struct Answerer {
    callers: mpsc::Receiver<Caller>,
    question: Question,
}

/// How new the store is.
struct Question {
    store: Arc<dyn Store>,
    shared: Arc<Shared>,
    timeout: Duration,
}

pub(crate) fn channel(store: Arc<dyn Store>, shared: Arc<Shared>, timeout: Duration) -> (Asker, Answerer) {
    let (asker, callers) = mpsc::channel(WAITING);
    (Asker(asker), Answerer { callers, question: Question { store, shared, timeout } })
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
        let mut under_way = FuturesUnordered::new();
        let mut due = 0;
        loop {
            let mut callers = Vec::new();
            tokio::select! {
                Some(answered) = under_way.next() => due -= answered,
                received = self.callers.recv_many(&mut callers, WAITING), if due < MANY => {
                    if received == 0 {
                        return;
                    }
                    due += received;
                    under_way.push(self.question.put(callers));
                }
            }
        }
    }
}

impl Question {
    /// Asks, and tells the callers. How many these are.
    async fn put(&self, callers: Vec<Caller>) -> usize {
        let (answer, count) = (self.ask().await, callers.len());
        for caller in callers {
            // Who no longer waits needs no answer.
            caller.send(answer.clone()).ok();
        }
        count
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
