//! Asks a server what it serves.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use concord_server::{Metrics, Request, Response, UserInfo, full};
use http::{HeaderValue, Method, StatusCode, header};
use serde::Deserialize;

use crate::{
    body,
    document::{Document, DocumentError, Group, MAX_DOCUMENT_BYTES, parse_groups},
    tracker::{Question, Told},
    transport::Transport,
};

/// How long a server may take to say everything.
pub(crate) const DEADLINE: Duration = Duration::from_secs(5);

/// What kube-apiserver sends its peers: what the server itself serves, in the newest form. A server that does not know the
/// profile sends its local document anyway.
const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,\
                      application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// Who asks: kube-apiserver's name for itself, which may read discovery like everybody.
const SERVER: &str = "system:apiserver";

/// Why a server did not say what it serves.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error("it did not answer within {} seconds", DEADLINE.as_secs())]
    TooLate,
    #[error("{path}: {reason}")]
    Transport { path: &'static str, reason: String },
    #[error("{path}: the answer is {status}")]
    Status { path: &'static str, status: StatusCode },
    #[error("{path}: {source}")]
    Document { path: &'static str, source: DocumentError },
}

/// What is new about a document.
enum News {
    Same,
    New { body: Bytes, tag: String },
}

/// Asks a server for everything it has to say. It is all or nothing: half of what a server serves would make the other half
/// seem to be gone. Only OpenAPI, which routes nothing, may be missing.
///
/// # Errors
///
/// [`AskError`].
pub(crate) async fn ask(
    transport: &dyn Transport,
    metrics: &Metrics,
    question: &Question,
) -> Result<Arc<Told>, AskError> {
    let before = question.before.as_deref();
    let tag = |at: usize| before.map_or("", |before| before.tags[at].as_str());
    let get = |path, tag| get(transport, metrics, question.address, path, tag);
    let all = async { tokio::join!(get("/api", tag(0)), get("/apis", tag(1)), get("/openapi/v3", tag(2))) };
    let (core, groups, openapi) = tokio::time::timeout(DEADLINE, all).await.map_err(|_| AskError::TooLate)?;
    let mut told = before.cloned().unwrap_or_default();
    let core = new_groups("/api", core?, &mut told.tags[0])?;
    let groups = new_groups("/apis", groups?, &mut told.tags[1])?;
    if core.is_some() || groups.is_some() {
        let known = &told.document;
        let core = core.unwrap_or_else(|| known.core().to_vec());
        let groups = groups.unwrap_or_else(|| known.groups().to_vec());
        told.document = Arc::new(Document::new(core, groups));
    }
    match openapi {
        Ok(News::New { body, tag }) => (told.openapi, told.tags[2]) = (Arc::new(addresses(&body)), tag),
        Ok(News::Same) => {}
        Err(error) => {
            tracing::debug!(id = question.id, %error, "A server does not say where its schemas are.")
        }
    }
    Ok(Arc::new(told))
}

fn new_groups(path: &'static str, news: News, tag: &mut String) -> Result<Option<Vec<Group>>, AskError> {
    let News::New { body, tag: new } = news else { return Ok(None) };
    let groups = parse_groups(&body).map_err(|source| AskError::Document { path, source })?;
    *tag = new;
    Ok(Some(groups))
}

#[derive(Deserialize)]
struct Index {
    paths: BTreeMap<String, IndexEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IndexEntry {
    #[serde(rename = "serverRelativeURL")]
    url: String,
}

/// Where the documents are that the index of OpenAPI v3 names; nowhere if it cannot be read.
fn addresses(body: &[u8]) -> BTreeMap<String, String> {
    let limits = concord_codec::Limits { max_bytes: MAX_DOCUMENT_BYTES, ..concord_codec::Limits::default() };
    let index = concord_codec::decode_value(body, limits).ok();
    let index: Option<Index> = index.and_then(|index| serde_json::from_value(index).ok());
    let paths = index.into_iter().flat_map(|index| index.paths);
    paths
        .filter(|(_, entry)| entry.url.starts_with("/openapi/v3/"))
        .map(|(path, entry)| (path, entry.url))
        .collect()
}

async fn get(
    transport: &dyn Transport,
    metrics: &Metrics,
    address: SocketAddr,
    path: &'static str,
    tag: &str,
) -> Result<News, AskError> {
    let mut request = Request::new(full(Bytes::new()));
    *request.method_mut() = Method::GET;
    *request.uri_mut() = http::Uri::from_static(path);
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(ACCEPT));
    // Who ends must still answer those who ask on behalf of others.
    request.headers_mut().insert(header::USER_AGENT, HeaderValue::from_static("kube-apiserver/concord"));
    if let (false, Ok(tag)) = (tag.is_empty(), HeaderValue::from_str(tag)) {
        request.headers_mut().insert(header::IF_NONE_MATCH, tag);
    }
    let answer = transport.send(address, &server(), request).await;
    let response = answer.map_err(|error| AskError::Transport { path, reason: error.to_string() })?;
    metrics.peers().rerouted(response.status().as_u16(), ["", "", ""]);
    read(path, response).await
}

fn server() -> UserInfo {
    UserInfo {
        name: SERVER.to_owned(),
        uid: SERVER.to_owned(),
        groups: vec![UserInfo::AUTHENTICATED.to_owned()],
        ..UserInfo::default()
    }
}

async fn read(path: &'static str, response: Response) -> Result<News, AskError> {
    let status = response.status();
    match status {
        StatusCode::NOT_MODIFIED => return Ok(News::Same),
        StatusCode::OK => {}
        _ => return Err(AskError::Status { path, status }),
    }
    let tag = response.headers().get(header::ETAG).and_then(|tag| tag.to_str().ok());
    let tag = tag.unwrap_or_default().to_owned();
    let body = body::read(response.into_body(), MAX_DOCUMENT_BYTES).await;
    let body = body.map_err(|reason| AskError::Transport { path, reason })?;
    Ok(News::New { body, tag })
}

#[cfg(test)]
mod tests;
