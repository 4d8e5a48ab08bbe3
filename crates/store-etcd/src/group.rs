//! Transactions that may take one revision together, as one request.
//!
//! Whoever writes many objects in the background would have many writes under way, and what everybody else asks of etcd
//! waits behind them. Here they are one request at a time, with a pause after each, and with as many of them in it as gathered
//! meanwhile: all that they compare, and all that they put. If something of it does not hold, etcd is asked which of them that
//! concerns, and the others are sent again.
//!
//! Each could be a transaction inside the request instead, which etcd decides by itself. But up to 3.6 etcd does not count what
//! these put: they would be carried out by a database that is full, and never be what fills it.

use std::{collections::HashSet, sync::Arc, time::Duration};

use bytes::Bytes;
use concord_store::{Committed, Error, Txn, Write};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep},
};

use crate::{
    call::Client,
    convert, lease,
    pb::etcdserverpb::{RequestOp, TxnRequest, request_op::Request, response_op::Response as Answered},
    status::Answer,
    txn::{self, DEFAULT_MAX_TXN_OPS},
};

/// How many transactions one request has at most, and how many bytes about. etcd does nothing else while it applies one: beside
/// requests of 32, reads took a third longer at the 99th percentile (docs/benchmarks.md).
const MOST: usize = 16;
const MOST_BYTES: usize = 128 * 1024;

/// A transaction with more comparisons, writes or reads is sent alone: a request has those of all its transactions.
const MOST_OPERATIONS: usize = DEFAULT_MAX_TXN_OPS / MOST;

/// How often a request is sent, each time without those that could not happen. After that somebody else writes the same keys
/// right now, and they are sent one by one.
const ATTEMPTS: usize = 2;

/// After each request etcd is left alone for longer than it took, by this factor, so that others find it free most of the time:
/// they are not to notice what is done in the background. What is to be written gathers meanwhile.
const REST: f64 = 1.25;

/// The longest such pause.
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
        sleep(asked.elapsed().mul_f64(REST).min(LONGEST_REST)).await;
    }
}

/// Transactions that do not concern each other.
///
/// All comparisons of a request are evaluated before any of it is carried out. That is as if the transactions came one
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
        let mut members = self.members;
        for _ in 0..ATTEMPTS {
            if members.len() < 2 {
                break;
            }
            match send_all(client, &members).await {
                Ok(Some(committed)) => return tell_all(members, &Ok(committed)),
                Ok(None) => members = tell_those_that_cannot_happen(client, members).await,
                Err(Answer::Error(error @ (Error::Unavailable { .. } | Error::OutcomeUnknown { .. }))) => {
                    return tell_all(members, &Err(error));
                }
                // Too much for this etcd, of which nothing happened.
                Err(_) => break,
            }
        }
        alone(client, members).await;
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

/// Commits all of them, or none if something does not hold.
async fn send_all(client: &Client, members: &[Waiting]) -> Result<Option<Committed>, Answer> {
    let mut all = TxnRequest::default();
    for own in members.iter().map(|member| request(&member.txn)) {
        all.success.extend(own.success);
        for compare in own.compare {
            // They share what says that this server may write.
            if !all.compare.contains(&compare) {
                all.compare.push(compare);
            }
        }
    }
    let response = txn::send(client, &all).await?;
    if !response.succeeded {
        return Ok(None);
    }
    // It was applied, whatever else the answer lacks.
    let revision = convert::revision(response.header.as_ref()).map_err(Error::outcome_unknown)?;
    Ok(Some(Committed { revision }))
}

fn tell_all(members: Vec<Waiting>, outcome: &Result<Committed, Error>) {
    members.into_iter().for_each(|member| member.tell(outcome.clone()));
}

/// Tells those whose own comparisons do not hold, and gives back the others. With all of them etcd is not asked each time: these
/// comparisons would be half of what it is sent beside the values.
async fn tell_those_that_cannot_happen(client: &Client, members: Vec<Waiting>) -> Vec<Waiting> {
    let success = members.iter().map(|member| without_writes(&member.txn)).collect();
    let Ok(response) = txn::send(client, &TxnRequest { success, ..TxnRequest::default() }).await else {
        // They are told when they are sent alone, at the latest.
        return members;
    };
    let mut parts = response.responses.iter();
    let mut others = Vec::new();
    for member in members {
        match parts.next().and_then(|part| part.response.as_ref()) {
            Some(Answered::ResponseTxn(part)) if !part.succeeded => {
                let outcome = txn::outcome(&member.txn, part, response.header.as_ref());
                member.tell(outcome);
            }
            _ => others.push(member),
        }
    }
    others
}

fn without_writes(txn: &Txn) -> RequestOp {
    txn::op(Request::RequestTxn(request(&Txn { writes: Vec::new(), ..txn.clone() })))
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
