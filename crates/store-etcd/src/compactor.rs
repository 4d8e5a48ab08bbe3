//! Forgetting old history, in turn with every kube-apiserver on the same etcd.
//!
//! All take part in one protocol: once per interval each tries to write, under one key, the revision it
//! saw an interval ago, comparing with the key's version it saw then. Who succeeds compacts to that
//! revision; the others learn that somebody did. So history is kept for one to two intervals however many
//! servers there are.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use concord_store::{Error, Revision};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{
    call::{Client, Effect, with_leader},
    convert,
    pb::etcdserverpb::{
        CompactionRequest, Compare, PutRequest, RangeRequest, RequestOp, TxnRequest, TxnResponse,
        compare::{CompareTarget, TargetUnion},
        request_op::Request,
        response_op::Response,
    },
    scan,
    status::Answer,
};

/// The key shared with kube-apiserver. It is outside of every prefix.
const KEY: &str = "compact_rev_key";

/// What a tick leaves for the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Position {
    /// The version of the key.
    version: i64,
    /// The newest revision. 0 before the first tick.
    revision: Revision,
}

/// How the write of a tick went.
#[derive(Debug, Clone, Copy)]
enum Tick {
    Won { revision: Revision },
    Lost { version: i64, revision: Revision },
}

/// The next position and the revision to compact to, if it is for us to do.
fn decide(position: Position, tick: Tick) -> (Position, Option<Revision>) {
    match tick {
        Tick::Won { revision } => {
            let next = Position { version: position.version + 1, revision };
            // Nothing is known of how old the history is on the first tick.
            (next, Some(position.revision).filter(|revision| *revision > 0))
        }
        Tick::Lost { version, revision } => (Position { version, revision }, None),
    }
}

/// Compacts every `interval` until `shutdown`.
pub(crate) async fn run(client: Arc<Client>, interval: Duration, shutdown: CancellationToken) {
    let mut position = Position::default();
    while shutdown.run_until_cancelled(sleep(interval)).await.is_some() {
        let Some(result) = shutdown.run_until_cancelled(tick(&client, position)).await else { return };
        match result {
            Ok(next) => position = next,
            // The position stays: should the write have happened after all, the next one loses to it.
            Err(error) => warn!(%error, "old history of etcd was not compacted, trying again later"),
        }
    }
}

async fn tick(client: &Client, position: Position) -> Result<Position, Error> {
    let request = request(position);
    let answer = client.call(Effect::Write, |member| {
        let (mut kv, request) = (member.kv.clone(), with_leader(request.clone()));
        async move { kv.txn(request).await }
    });
    let response = answer.await.map_err(Answer::into_error)?;
    let (next, target) = decide(position, outcome(&response)?);
    if let Some(revision) = target {
        compact(client, revision).await?;
        debug!(revision, "compacted etcd");
    }
    Ok(next)
}

fn request(position: Position) -> TxnRequest {
    let key = Bytes::from_static(KEY.as_bytes());
    let op = |request| vec![RequestOp { request: Some(request) }];
    TxnRequest {
        compare: vec![Compare {
            target: CompareTarget::Version.into(),
            key: key.clone(),
            target_union: Some(TargetUnion::Version(position.version)),
            ..Default::default()
        }],
        success: op(Request::RequestPut(PutRequest {
            key: key.clone(),
            value: position.revision.to_string().into(),
            ..Default::default()
        })),
        failure: op(Request::RequestRange(RangeRequest { key, ..Default::default() })),
    }
}

fn outcome(response: &TxnResponse) -> Result<Tick, Error> {
    let revision = convert::revision(response.header.as_ref())?;
    if response.succeeded {
        return Ok(Tick::Won { revision });
    }
    let version = match response.responses.first().and_then(|op| op.response.as_ref()) {
        // Absent when somebody deleted the key: the next write creates it.
        Some(Response::ResponseRange(range)) => range.kvs.first().map(|kv| kv.version).unwrap_or_default(),
        _ => return Err(Error::unavailable("etcd left out the value asked for")),
    };
    Ok(Tick::Lost { version, revision })
}

/// Carries out [`concord_store::Store::compact`].
pub(crate) async fn compact(client: &Client, revision: Revision) -> Result<(), Error> {
    let request = CompactionRequest { revision: convert::wire_revision(revision) };
    loop {
        let answer = client
            .call(Effect::Idempotent, |member| {
                let mut kv = member.kv.clone();
                async move { kv.compact(with_leader(request)).await }
            })
            .await;
        match answer {
            Ok(_) | Err(Answer::Compacted) => return Ok(()),
            Err(Answer::FutureRevision) => scan::future_revision(client, revision).await?,
            Err(answer) => return Err(answer.into_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(version: i64, revision: Revision) -> Position {
        Position { version, revision }
    }

    #[test]
    fn who_wins_compacts_to_what_it_saw_before() {
        let table = [
            ("the first tick ever", at(0, 0), Tick::Won { revision: 10 }, at(1, 10), None),
            ("the next", at(1, 10), Tick::Won { revision: 20 }, at(2, 20), Some(10)),
            ("a new server", at(0, 0), Tick::Lost { version: 7, revision: 20 }, at(7, 20), None),
            ("its next tick", at(7, 20), Tick::Won { revision: 30 }, at(8, 30), Some(20)),
            ("somebody was faster", at(7, 20), Tick::Lost { version: 8, revision: 30 }, at(8, 30), None),
            ("the key was deleted", at(7, 20), Tick::Lost { version: 0, revision: 30 }, at(0, 30), None),
        ];
        for (name, position, tick, next, target) in table {
            assert_eq!(decide(position, tick), (next, target), "{name}");
        }
    }

    #[test]
    fn the_request_is_the_one_kube_apiserver_sends() {
        let request = request(at(3, 42));
        assert_eq!(request.compare[0].target_union, Some(TargetUnion::Version(3)));
        let Some(Request::RequestPut(put)) = &request.success[0].request else { panic!("a put") };
        assert_eq!((put.key.as_ref(), put.value.as_ref()), (&b"compact_rev_key"[..], &b"42"[..]));
    }
}
