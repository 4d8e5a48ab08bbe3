//! Transactions: ours as etcd's, and etcd's answer as ours.

use bytes::Bytes;
use concord_store::{Committed, Compare, CompareFailed, Condition, Error, Txn, Write};

use crate::{
    call::{Client, Effect, with_leader},
    convert,
    lease::{self, Leases},
    member::Member,
    pb::etcdserverpb::{
        self as pb, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, ResponseHeader, TxnRequest,
        TxnResponse,
        compare::{CompareTarget, TargetUnion},
        request_op::Request,
        response_op::Response,
    },
    status::Answer,
};

/// How many operations an etcd takes in one transaction unless it was started with another bound.
pub(crate) const DEFAULT_MAX_TXN_OPS: usize = 128;

/// How often a lease may turn out to be gone before the cluster is called unavailable.
const LEASE_ATTEMPTS: usize = 3;

/// Carries out [`concord_store::Store::transact`].
pub(crate) async fn transact(client: &Client, leases: &Leases, txn: &Txn) -> Result<Committed, Error> {
    for _ in 0..LEASE_ATTEMPTS {
        let granted = leases.for_writes(client, txn).await?;
        match send(client, &request(txn, &granted)).await {
            Ok(response) => return outcome(txn, &response, response.header.as_ref()),
            // The transaction did not happen.
            Err(Answer::LeaseNotFound) => leases.forget(&granted),
            Err(answer) => return Err(failure(txn, answer)),
        }
    }
    Err(Error::unavailable("leases expire as soon as they are granted"))
}

/// Sends a transaction, once.
pub(crate) async fn send(client: &Client, request: &TxnRequest) -> Result<TxnResponse, Answer> {
    let txn = |member: &Member| {
        let (mut kv, request) = (member.kv.clone(), with_leader(request.clone()));
        async move { kv.txn(request).await }
    };
    client.call(Effect::Write, txn).await
}

/// Checks what no etcd should be asked for.
pub(crate) fn check(client: &Client, txn: &Txn) -> Result<(), Error> {
    txn.validate()?;
    let compared = txn.compares.iter().map(|compare| &compare.key);
    let written = txn.writes.iter().map(Write::key);
    match compared.chain(written).chain(&txn.reads_on_failure).find(|key| !client.visible.contains(key)) {
        Some(key) => Err(Error::invalid(format!("the key {key:?} is outside the prefix of this store"))),
        None => Ok(()),
    }
}

/// A transaction as etcd has it, with a lease for each write.
pub(crate) fn request(txn: &Txn, leases: &[lease::Id]) -> TxnRequest {
    let mut success: Vec<RequestOp> =
        txn.writes.iter().zip(leases).map(|(write, lease)| write_op(write, *lease)).collect();
    if success.is_empty() {
        // Without this etcd takes the transaction for one that an outdated member may answer.
        success.push(op(Request::RequestRange(RangeRequest {
            key: Bytes::from_static(b"\0"),
            count_only: true,
            ..Default::default()
        })));
    }
    TxnRequest {
        compare: txn.compares.iter().map(compare).collect(),
        success,
        failure: txn.reads_on_failure.iter().map(read_op).collect(),
    }
}

fn compare(compare: &Compare) -> pb::Compare {
    let (target, value) = match compare.condition {
        Condition::ModRevision(revision) => {
            (CompareTarget::Mod, TargetUnion::ModRevision(convert::wire_revision(revision)))
        }
        Condition::CreateRevision(revision) => {
            (CompareTarget::Create, TargetUnion::CreateRevision(convert::wire_revision(revision)))
        }
        Condition::Absent => (CompareTarget::Mod, TargetUnion::ModRevision(0)),
    };
    pb::Compare {
        target: target.into(),
        key: compare.key.clone(),
        target_union: Some(value),
        ..Default::default()
    }
}

fn write_op(write: &Write, lease: lease::Id) -> RequestOp {
    op(match write {
        Write::Put { key, value, .. } => {
            Request::RequestPut(PutRequest { key: key.clone(), value: value.clone(), lease })
        }
        Write::Delete { key } => Request::RequestDeleteRange(DeleteRangeRequest { key: key.clone() }),
    })
}

fn read_op(key: &Bytes) -> RequestOp {
    op(Request::RequestRange(RangeRequest { key: key.clone(), ..Default::default() }))
}

pub(crate) fn op(request: Request) -> RequestOp {
    RequestOp { request: Some(request) }
}

/// What became of a transaction. The header is that of the whole answer, of which this may be a part.
pub(crate) fn outcome(
    txn: &Txn,
    response: &TxnResponse,
    header: Option<&ResponseHeader>,
) -> Result<Committed, Error> {
    let revision = convert::revision(header);
    if response.succeeded {
        // It was applied, whatever else the answer lacks.
        let revision = revision.map_err(Error::outcome_unknown)?;
        return Ok(Committed { revision });
    }
    if response.responses.len() != txn.reads_on_failure.len() {
        return Err(Error::unavailable("etcd left out some of the values asked for"));
    }
    let current = response.responses.iter().map(|op| match &op.response {
        Some(Response::ResponseRange(range)) => range.kvs.first().map(convert::key_value),
        _ => None,
    });
    Err(Error::CompareFailed(Box::new(CompareFailed { revision: revision?, current: current.collect() })))
}

pub(crate) fn failure(txn: &Txn, answer: Answer) -> Error {
    match answer {
        Answer::TooLarge => {
            let (size, limit) = (txn.size(), concord_store::MAX_REQUEST_BYTES);
            Error::TooLarge { what: "the request with etcd's framing (bytes)", size, limit }
        }
        Answer::TooManyOps => {
            let size = txn.writes.len().max(txn.compares.len()).max(txn.reads_on_failure.len());
            let limit = DEFAULT_MAX_TXN_OPS.min(size.saturating_sub(1));
            Error::TooLarge { what: "the transaction (operations)", size, limit }
        }
        answer => answer.into_error(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_that_only_compares_is_still_linearizable() {
        let request = request(&Txn::new().compare(Compare::absent("k")), &[]);
        let Some(Request::RequestRange(range)) = &request.success[0].request else { panic!("a read") };
        assert!(!range.serializable && range.count_only);
    }

    #[test]
    fn conditions_become_comparisons() {
        let table = [
            (Compare::absent("k"), CompareTarget::Mod, TargetUnion::ModRevision(0)),
            (Compare::mod_revision("k", 7), CompareTarget::Mod, TargetUnion::ModRevision(7)),
            (Compare::create_revision("k", 7), CompareTarget::Create, TargetUnion::CreateRevision(7)),
        ];
        for (ours, target, value) in table {
            let theirs = compare(&ours);
            assert_eq!((theirs.target, theirs.target_union), (i32::from(target), Some(value)), "{ours:?}");
        }
    }

    #[test]
    fn a_bound_below_the_default_is_not_called_the_default() {
        let many = |n: usize| (0..n).fold(Txn::new(), |txn, n| txn.delete(n.to_string()));
        let limit = |n| match failure(&many(n), Answer::TooManyOps) {
            Error::TooLarge { limit, .. } => limit,
            other => panic!("{other}"),
        };
        assert_eq!((limit(500), limit(100)), (128, 99));
    }
}
