//! Transactions that may take one revision together, as one request.
//!
//! Whoever writes many objects in the background would have many writes under way, and what everybody else asks of etcd
//! waits behind them. Here they are one request at a time, with a pause after each, and with as many of them in it as gathered
//! meanwhile. Each is a transaction inside the request, with comparisons and an outcome of its own.

use std::{collections::HashSet, sync::Arc, time::Duration};

use bytes::Bytes;
use concord_store::{Committed, Error, Txn, Write};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep},
};

use crate::{
    call::Client,
    lease,
    pb::etcdserverpb::{
        RequestOp, TxnRequest, TxnResponse, request_op::Request, response_op::Response as Answered,
    },
    status::Answer,
    txn,
};

/// How many transactions one request has at most, and how many bytes about. etcd does nothing else while it applies one.
const MOST: usize = 32;
const MOST_BYTES: usize = 128 * 1024;

/// A transaction with more comparisons or reads is sent alone: together with [`MOST`] they have to stay below the 128
/// operations that etcd takes by default.
const MOST_OPERATIONS: usize = 32;

/// After each request etcd is left alone for twice as long as it took, so that others find it free two thirds of the time: they
/// are not to notice what is done in the background. What is to be written gathers meanwhile. But not for longer than this.
const LONGEST_REST: Duration = Duration::from_millis(20);

/// How many may wait. Whoever brings more waits before.
const WAITING: usize = 4 * MOST;

/// Whether a transaction can share a request. What expires needs leases, which may be gone when they are used.
pub(crate) fn takes(txn: &Txn) -> bool {
    let is_plain = |write: &Write| matches!(write, Write::Put { ttl: None, .. });
    let operations = txn.compares.len().max(txn.writes.len()).max(txn.reads_on_failure.len());
    txn.together
        && !txn.writes.is_empty()
        && txn.writes.iter().all(is_plain)
        && operations <= MOST_OPERATIONS
        && txn.size() <= MOST_BYTES
}

/// A transaction, and who waits for it.
struct Waiting {
    txn: Txn,
    answer: oneshot::Sender<Result<Committed, Error>>,
}

/// Where transactions wait for the next request.
#[derive(Debug)]
pub(crate) struct Groups(mpsc::Sender<Waiting>);

impl Groups {
    /// With what sends the requests, and never ends by itself.
    pub(crate) fn new(client: Arc<Client>) -> (Self, impl Future<Output = ()> + Send) {
        let (sender, waiting) = mpsc::channel(WAITING);
        (Self(sender), run(client, waiting))
    }

    /// Commits a transaction that was checked, and that a request [`takes`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown.
    pub(crate) async fn transact(&self, txn: Txn) -> Result<Committed, Error> {
        let (answer, answered) = oneshot::channel();
        let ended = "the store was shut down";
        self.0.send(Waiting { txn, answer }).await.map_err(|_| Error::unavailable(ended))?;
        answered.await.unwrap_or_else(|_| Err(Error::outcome_unknown(ended)))
    }
}

async fn run(client: Arc<Client>, mut waiting: mpsc::Receiver<Waiting>) {
    let mut held = None;
    loop {
        let first = match held.take() {
            Some(first) => Some(first),
            None => waiting.recv().await,
        };
        let Some(first) = first else { return };
        let mut group = Group::default();
        held = group.add(first);
        while held.is_none()
            && let Ok(next) = waiting.try_recv()
        {
            held = group.add(next);
        }
        let asked = Instant::now();
        group.commit(&client).await;
        sleep((2 * asked.elapsed()).min(LONGEST_REST)).await;
    }
}

/// Transactions that do not concern each other.
///
/// etcd evaluates all comparisons of a request before it carries out any of it. That is as if the transactions came one
/// after the other only if none of them writes what another one looks at.
#[derive(Default)]
struct Group {
    members: Vec<Waiting>,
    bytes: usize,
    written: HashSet<Bytes>,
    looked_at: HashSet<Bytes>,
}

impl Group {
    /// Takes one more, or gives it back if it has to come later.
    fn add(&mut self, next: Waiting) -> Option<Waiting> {
        let is_full = self.members.len() >= MOST || self.bytes + next.txn.size() > MOST_BYTES;
        if !self.members.is_empty() && (is_full || self.concerns(&next.txn)) {
            return Some(next);
        }
        self.bytes += next.txn.size();
        self.written.extend(written(&next.txn).cloned());
        self.looked_at.extend(looked_at(&next.txn).cloned());
        self.members.push(next);
        None
    }

    fn concerns(&self, txn: &Txn) -> bool {
        written(txn).any(|key| self.written.contains(key) || self.looked_at.contains(key))
            || looked_at(txn).any(|key| self.written.contains(key))
    }

    async fn commit(self, client: &Client) {
        if self.members.len() == 1 {
            return alone(client, self.members).await;
        }
        let success = self.members.iter().map(|member| part(&member.txn)).collect();
        match txn::send(client, &TxnRequest { success, ..TxnRequest::default() }).await {
            Ok(response) => tell(self.members, &response),
            Err(Answer::Error(error @ (Error::Unavailable { .. } | Error::OutcomeUnknown { .. }))) => {
                self.members.into_iter().for_each(|member| member.tell(Err(error.clone())));
            }
            // Too much for this etcd, of which nothing happened.
            Err(_) => alone(client, self.members).await,
        }
    }
}

impl Waiting {
    fn tell(self, outcome: Result<Committed, Error>) {
        // Nobody may be waiting any more.
        self.answer.send(outcome).ok();
    }
}

fn written(txn: &Txn) -> impl Iterator<Item = &Bytes> {
    txn.writes.iter().map(Write::key)
}

fn looked_at(txn: &Txn) -> impl Iterator<Item = &Bytes> {
    txn.compares.iter().map(|compare| &compare.key).chain(&txn.reads_on_failure)
}

fn request(txn: &Txn) -> TxnRequest {
    txn::request(txn, &vec![lease::NONE; txn.writes.len()])
}

fn part(txn: &Txn) -> RequestOp {
    txn::op(Request::RequestTxn(request(txn)))
}

/// Tells each what became of it.
fn tell(members: Vec<Waiting>, response: &TxnResponse) {
    let mut parts = response.responses.iter();
    for member in members {
        let outcome = match parts.next().and_then(|part| part.response.as_ref()) {
            Some(Answered::ResponseTxn(part)) => txn::outcome(&member.txn, part, response.header.as_ref()),
            _ => Err(Error::outcome_unknown("etcd left out what became of a part of a transaction")),
        };
        member.tell(outcome);
    }
}

/// One request for each, one after the other.
async fn alone(client: &Client, members: Vec<Waiting>) {
    for member in members {
        let outcome = match txn::send(client, &request(&member.txn)).await {
            Ok(response) => txn::outcome(&member.txn, &response, response.header.as_ref()),
            Err(answer) => Err(txn::failure(&member.txn, answer)),
        };
        member.tell(outcome);
    }
}

#[cfg(test)]
mod tests {
    use concord_store::Compare;

    use super::*;

    fn waiting(txn: Txn) -> Waiting {
        Waiting { txn, answer: oneshot::channel().0 }
    }

    fn fits(group: &mut Group, txn: Txn) -> bool {
        group.add(waiting(txn)).is_none()
    }

    #[test]
    fn transactions_that_concern_each_other_are_not_sent_together() {
        let fence = || Txn::new().compare(Compare::create_revision("lease", 7));
        let mut group = Group::default();
        assert!(fits(&mut group, fence().compare(Compare::mod_revision("a", 3)).put("a", "1")));
        assert!(
            fits(&mut group, fence().compare(Compare::mod_revision("b", 4)).put("b", "1")),
            "one fence for both"
        );
        assert!(!fits(&mut group, fence().put("a", "2")), "written twice");
        assert!(
            !fits(&mut group, Txn::new().compare(Compare::absent("a")).put("c", "1")),
            "looks at what is written"
        );
        assert!(!fits(&mut group, Txn::new().read_on_failure("b").put("c", "1")), "reads what is written");
        assert!(!fits(&mut group, Txn::new().put("lease", "1")), "writes what is looked at");
        assert!(fits(&mut group, fence().put("c", "1")));
    }

    #[test]
    fn a_group_is_bounded() {
        let mut group = Group::default();
        let taken = (0..100).take_while(|n| fits(&mut group, Txn::new().put(n.to_string(), "v"))).count();
        assert_eq!(taken, MOST);
        let mut group = Group::default();
        let half = vec![0; MOST_BYTES / 2];
        let taken =
            (0..100).take_while(|n| fits(&mut group, Txn::new().put(n.to_string(), half.clone()))).count();
        assert_eq!(taken, 1, "keys count as well");
    }

    #[test]
    fn what_does_not_ask_for_it_or_is_not_plain_is_sent_alone() {
        let put = || Txn::new().put("a", "1");
        assert!(takes(&put().together()));
        for txn in [
            put(),
            Txn::new().together(),
            put().delete("b").together(),
            put().put_with_ttl("b", "1", Duration::from_secs(1)).together(),
            Txn::new().put("a", vec![0; MOST_BYTES]).together(),
            (0..40).fold(put().together(), |txn, n| txn.compare(Compare::absent(format!("{n}")))),
        ] {
            assert!(!takes(&txn), "{txn:?}");
        }
    }
}
