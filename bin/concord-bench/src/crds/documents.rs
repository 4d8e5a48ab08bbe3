//! What becomes of the OpenAPI documents when definitions change, and what they cost whoever has them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use hdrhistogram::Histogram;
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::{Crds, DEFINITIONS, PAUSE, definition, group};
use crate::{
    client::{Call, Connection},
    scan,
    stats::{histogram, micros},
};

pub(super) const INDEX: &str = "/openapi/v3";
const EVERYTHING: &str = "/openapi/v2";
const MERGE_PATCH: HeaderValue = HeaderValue::from_static("application/merge-patch+json");
/// A small object that every server has.
const OBJECT: &str = "/api/v1/namespaces/default";
/// How often something is asked for that is not new.
const REPEATED: usize = 2000;

/// What was found out.
pub(super) struct Documents {
    /// From the acknowledgement of a change until the index has another address.
    pub(super) index: Histogram<u64>,
    /// From then until the document behind it was read.
    pub(super) document: Histogram<u64>,
    /// To be told that a document is not new, and to get an object; in turns.
    pub(super) unchanged: Histogram<u64>,
    pub(super) object: Histogram<u64>,
    /// From the acknowledgement of a change until the document of version 2 has it: to its first byte, and to its last.
    pub(super) begun: Histogram<u64>,
    pub(super) whole: Histogram<u64>,
}

/// How long it took to read a document.
#[derive(Default)]
pub(super) struct Took {
    pub(super) begun: Duration,
    pub(super) whole: Duration,
    pub(super) bytes: u64,
}

impl Default for Documents {
    fn default() -> Self {
        let [index, document, unchanged, object, begun, whole] = [(); 6].map(|()| histogram());
        Self { index, document, unchanged, object, begun, whole }
    }
}

/// Changes some of the definitions, one after the other.
pub(super) async fn measure(connection: &mut Connection, args: &Crds) -> Result<Documents> {
    let mut found = Documents::default();
    for change in 0..args.changes {
        let number = change * args.definitions / args.changes;
        let path = format!("apis/{}/v1", group(args, number));
        let before = address(connection, &path).await?;
        alter(connection, args, number, change).await?;
        let acknowledged = Instant::now();
        let after = loop {
            let now = address(connection, &path).await?;
            if now != before {
                break now;
            }
            ensure!(acknowledged.elapsed() < args.request_timeout, "the index does not show a change");
            tokio::time::sleep(PAUSE).await;
        };
        found.index.saturating_record(micros(acknowledged.elapsed()));
        let asked = Instant::now();
        scan::drain(connection.expect(Call::get(&after)).await?.into_body()).await?;
        found.document.saturating_record(micros(asked.elapsed()));
        if change + 1 == args.changes {
            repeat(connection, &after, &mut found).await?;
        }
    }
    follow(connection, args, &mut found).await?;
    Ok(found)
}

/// Reads the document of version 2, unless the client has it; also answers its tag.
async fn everything(
    connection: &mut Connection,
    known: Option<HeaderValue>,
) -> Result<Option<(Took, Option<HeaderValue>)>> {
    let asked = Instant::now();
    let answer = connection.send(Call { if_none_match: known, ..Call::get(EVERYTHING) }).await?;
    if answer.status() == StatusCode::NOT_MODIFIED {
        return scan::drain(answer.into_body()).await.map(|_| None);
    }
    ensure!(answer.status().is_success(), "{EVERYTHING} is answered with {}", answer.status());
    let tag = answer.headers().get(header::ETAG).cloned();
    let mut body = answer.into_body();
    let first = body.frame().await.transpose()?;
    let begun = asked.elapsed();
    let first = first.and_then(|frame| frame.into_data().ok()).map_or(0, |data| data.len() as u64);
    let bytes = first + scan::drain(body).await?.bytes;
    Ok(Some((Took { begun, whole: asked.elapsed(), bytes }, tag)))
}

/// Reads the document of version 2.
pub(super) async fn read_everything(connection: &mut Connection) -> Result<Took> {
    let read = everything(connection, None).await?;
    Ok(read.context("a client that has nothing is told that it has it")?.0)
}

/// Changes definitions once more, for whoever has the document of version 2.
async fn follow(connection: &mut Connection, args: &Crds, found: &mut Documents) -> Result<()> {
    let mut known = everything(connection, None).await?.and_then(|(_, tag)| tag);
    for change in 0..args.changes {
        // A server need not have tags.
        let Some(tag) = known.take() else { break };
        alter(connection, args, change * args.definitions / args.changes, args.changes + change).await?;
        let acknowledged = Instant::now();
        let (waited, took, tag) = loop {
            let asked = acknowledged.elapsed();
            if let Some((took, tag)) = everything(connection, Some(tag.clone())).await? {
                break (asked, took, tag);
            }
            ensure!(acknowledged.elapsed() < args.request_timeout, "version 2 does not show a change");
            tokio::time::sleep(PAUSE).await;
        };
        found.begun.saturating_record(micros(waited + took.begun));
        found.whole.saturating_record(micros(waited + took.whole));
        known = tag;
    }
    Ok(())
}

/// Where the index says that a document is.
async fn address(connection: &mut Connection, path: &str) -> Result<String> {
    let index = scan::whole(connection.expect(Call::get(INDEX)).await?.into_body()).await?;
    let index: Value = serde_json::from_slice(&index).context("the index is not JSON")?;
    let address = index["paths"][path]["serverRelativeURL"].as_str();
    Ok(address.with_context(|| format!("the index does not have {path}"))?.to_owned())
}

/// Gives a definition another description.
async fn alter(connection: &mut Connection, args: &Crds, number: usize, change: usize) -> Result<()> {
    let mut versions = definition(args, number)["spec"]["versions"].take();
    versions[0]["schema"]["openAPIV3Schema"]["description"] = format!("Change {change}.").into();
    let body = Bytes::from(json!({"spec": {"versions": versions}}).to_string());
    let path = format!("{DEFINITIONS}/things{number}.{}", group(args, number));
    let call = Call::with_body(Method::PATCH, &path, MERGE_PATCH, body);
    scan::drain(connection.expect(call).await?.into_body()).await.map(drop)
}

async fn repeat(connection: &mut Connection, document: &str, found: &mut Documents) -> Result<()> {
    let answer = connection.expect(Call::get(document)).await?;
    let tag = answer.headers().get(header::ETAG).cloned();
    scan::drain(answer.into_body()).await?;
    // A server need not have tags.
    let Some(tag) = tag else { return Ok(()) };
    for _ in 0..REPEATED {
        let call = Call { if_none_match: Some(tag.clone()), ..Call::get(document) };
        let (took, status) = timed(connection, call).await?;
        ensure!(status == StatusCode::NOT_MODIFIED, "a document that is not new is answered with {status}");
        found.unchanged.saturating_record(micros(took));
        let (took, status) = timed(connection, Call::get(OBJECT)).await?;
        ensure!(status.is_success(), "{OBJECT} is answered with {status}");
        found.object.saturating_record(micros(took));
    }
    Ok(())
}

async fn timed(connection: &mut Connection, call: Call<'_>) -> Result<(Duration, StatusCode)> {
    let begun = Instant::now();
    let answer = connection.send(call).await?;
    let status = answer.status();
    scan::drain(answer.into_body()).await?;
    Ok((begun.elapsed(), status))
}
