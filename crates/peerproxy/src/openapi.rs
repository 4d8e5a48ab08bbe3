//! Schemas of what only other servers serve: OpenAPI v3 through any server.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};
use concord_codec::{Limits, decode};
use concord_meta::GroupVersion;
use concord_server::{Handler, Request, Response, full};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use crate::{
    body,
    document::MAX_DOCUMENT_BYTES,
    routing::{RoutedPeer, Routing},
};

/// Where the index is.
pub(crate) const INDEX: &str = "/openapi/v3";

/// The group-version that a document is about: `apis/batch/v1` or `api/v1`.
pub(crate) fn version_of(path: &str) -> Option<GroupVersion> {
    let mut parts = path.trim_matches('/').split('/');
    let version = match (parts.next()?, parts.next()?, parts.next()) {
        ("api", version, None) => GroupVersion::new("", version),
        ("apis", group, Some(version)) => GroupVersion::new(group, version),
        _ => return None,
    };
    parts.next().is_none().then_some(version)
}

/// The documents that only other servers have: their names and addresses. Where several have one, the first counts, as in
/// [`holders`]: addresses carry a hash of the very document.
pub(crate) fn missing(
    routing: &Routing,
    is_elsewhere: impl Fn(&GroupVersion) -> bool,
) -> BTreeMap<&str, &str> {
    let mut missing = BTreeMap::new();
    for (path, address) in
        routing.peers.iter().filter(|peer| peer.is_reachable).flat_map(|peer| &*peer.openapi)
    {
        if version_of(path).is_some_and(|version| is_elsewhere(&version)) {
            missing.entry(path.as_str()).or_insert(address.as_str());
        }
    }
    missing
}

/// The servers that have a document which this one does not have: first those whose document the index tells of, then the
/// others, which send whoever asks for another hash to their own.
pub(crate) fn holders(
    routing: &Routing,
    path: &str,
    is_elsewhere: impl Fn(&GroupVersion) -> bool,
) -> Vec<usize> {
    let name = path.strip_prefix(INDEX).unwrap_or_default().trim_matches('/');
    if !version_of(name).is_some_and(|version| is_elsewhere(&version)) {
        return Vec::new();
    }
    let address = |at: &usize| Some(&routing.peers[*at]).filter(|peer| peer.is_reachable)?.openapi.get(name);
    let mut holders: Vec<usize> = (0..routing.peers.len()).filter(|at| address(at).is_some()).collect();
    let told = holders.first().and_then(address);
    holders.sort_by_key(|at| address(at) != told);
    holders
}

/// The servers whose very document a request asks for by its hash. This one may have another, as one of another release has:
/// whoever is sent from each of the two to the hash of the other would never arrive.
pub(crate) fn advertised(routing: &Routing, path: &str, query: Option<&str>) -> Vec<usize> {
    let is_hash = |pair: &&str| pair.len() > "hash=".len() && pair.starts_with("hash=");
    let Some(hash) = query.and_then(|query| query.split('&').find(is_hash)) else { return Vec::new() };
    let (name, address) =
        (path.strip_prefix(INDEX).unwrap_or_default().trim_matches('/'), format!("{path}?{hash}"));
    let has = |peer: &RoutedPeer| peer.is_reachable && peer.openapi.get(name) == Some(&address);
    (0..routing.peers.len()).filter(|at| has(&routing.peers[*at])).collect()
}

/// The same request again. One for a document has no body.
pub(crate) fn copy(request: &Request) -> Request {
    let mut copy = Request::new(full(""));
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    copy
}

/// The index of this server with what others have. Without any it is answered as it is.
pub(crate) async fn index(
    inner: &dyn Handler,
    missing: &BTreeMap<&str, &str>,
    mut request: Request,
) -> Response {
    let known = request.headers().get(header::IF_NONE_MATCH).cloned();
    if !missing.is_empty() {
        // It is put together anew, so neither what a client knows nor how it may be packed counts.
        request.headers_mut().remove(header::IF_NONE_MATCH);
        request.headers_mut().remove(header::ACCEPT_ENCODING);
    }
    let response = inner.handle(request).await;
    if missing.is_empty() || response.status() != StatusCode::OK {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(body) = body::read(body, MAX_DOCUMENT_BYTES).await else {
        parts.status = StatusCode::INTERNAL_SERVER_ERROR;
        return Response::from_parts(parts, full(""));
    };
    let Some(with) = added(&body, missing) else { return Response::from_parts(parts, full(body)) };
    parts.headers.remove(header::CONTENT_LENGTH);
    let tag = parts.headers.remove(header::ETAG).and_then(|tag| joint_tag(&tag, missing));
    if let Some(tag) = tag {
        let is_known = known.and_then(|known| Some(known.to_str().ok()?.contains(tag.to_str().ok()?)));
        parts.headers.insert(header::ETAG, tag);
        if is_known == Some(true) {
            parts.status = StatusCode::NOT_MODIFIED;
            return Response::from_parts(parts, full(""));
        }
    }
    Response::from_parts(parts, full(with))
}

/// What tells this index from all others: that of this server's own index, and the addresses of what others have, which
/// carry hashes themselves.
fn joint_tag(own: &HeaderValue, missing: &BTreeMap<&str, &str>) -> Option<HeaderValue> {
    let own = own.to_str().ok()?.trim_matches('"');
    let addresses: Vec<&[u8]> = missing.values().map(|address| address.as_bytes()).collect();
    let digest = digest(&SHA256, &addresses.join(&b'\n'));
    let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    HeaderValue::from_str(&format!("\"{own}-{digest}\"")).ok()
}

fn added(body: &[u8], missing: &BTreeMap<&str, &str>) -> Option<Vec<u8>> {
    let limits = Limits { max_bytes: MAX_DOCUMENT_BYTES, ..Limits::default() };
    let mut index =
        decode(body, &concord_codec::Options { limits, ..concord_codec::Options::default() }).ok()?.object;
    let paths = index.get_mut("paths").and_then(Value::as_object_mut)?;
    for (path, address) in missing {
        paths.entry(*path).or_insert_with(|| json!({"serverRelativeURL": address}));
    }
    serde_json::to_vec(&index).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use http_body_util::BodyExt as _;

    use super::*;

    #[test]
    fn names_of_documents() {
        for (path, version) in [
            ("api/v1", Some("v1")),
            ("apis/batch/v1", Some("batch/v1")),
            ("/apis/batch/v1/", Some("batch/v1")),
            ("apis/batch", None),
            ("apis", None),
            ("version", None),
            ("apis/batch/v1/jobs", None),
            ("", None),
        ] {
            assert_eq!(version_of(path).map(|found| found.to_string()).as_deref(), version, "{path}");
        }
    }

    #[test]
    fn documents_are_those_of_the_first_server_that_can_be_asked() {
        let peer = |id: &str, is_reachable, address: &str| RoutedPeer {
            id: id.to_owned(),
            address: None,
            document: None,
            is_known: true,
            is_reachable,
            openapi: Arc::new([("apis/batch/v1".to_owned(), address.to_owned())].into()),
        };
        let peers =
            vec![peer("a", false, "/a"), peer("b", true, "/b"), peer("c", true, "/b"), peer("d", true, "/d")];
        let routing = Routing { generation: 1, peers, is_synced: true, ..Routing::default() };
        assert_eq!(missing(&routing, |_| true), [("apis/batch/v1", "/b")].into());
        assert!(missing(&routing, |_| false).is_empty());
        assert_eq!(holders(&routing, "/openapi/v3/apis/batch/v1", |_| true), [1, 2, 3]);
        assert!(holders(&routing, "/openapi/v3/apis/batch/v1", |_| false).is_empty());
        assert!(holders(&routing, "/openapi/v3/apis/apps/v1", |_| true).is_empty());
        let own = [("apis/batch/v1".to_owned(), "/openapi/v3/apis/batch/v1?hash=B".to_owned())];
        let mut hashed = routing.clone();
        hashed.peers[2].openapi = Arc::new(own.into());
        let of = |query: &str| advertised(&hashed, "/openapi/v3/apis/batch/v1", Some(query));
        assert_eq!(of("timeout=32s&hash=B"), [2]);
        assert!(of("hash=").is_empty() && of("hash=C").is_empty() && of("timeout=32s").is_empty());
        let body = br#"{"paths":{"api/v1":{"serverRelativeURL":"/x"}}}"#;
        let with = added(body, &missing(&routing, |_| true)).expect("an index");
        let expected =
            r#"{"paths":{"api/v1":{"serverRelativeURL":"/x"},"apis/batch/v1":{"serverRelativeURL":"/b"}}}"#;
        assert_eq!(String::from_utf8(with).expect("text"), expected);
        assert_eq!(added(b"[]", &missing(&routing, |_| true)), None);
    }

    struct Own;

    #[async_trait]
    impl Handler for Own {
        async fn handle(&self, _: Request) -> Response {
            let mut response = Response::new(full(r#"{"paths":{}}"#));
            response.headers_mut().insert(header::ETAG, HeaderValue::from_static("\"OWN\""));
            response
        }
    }

    #[tokio::test]
    async fn an_index_with_what_others_have_is_sent_once() {
        let ask = async |missing: &[(&'static str, &'static str)], known: &str| {
            let request = http::Request::get(INDEX).header(header::IF_NONE_MATCH, known);
            let missing = missing.iter().copied().collect();
            let response = index(&Own, &missing, request.body(full("")).expect("a request")).await;
            let tag = response.headers()[header::ETAG].to_str().expect("text").to_owned();
            let status = response.status().as_u16();
            (status, tag, response.into_body().collect().await.expect("a body").to_bytes().len())
        };
        let (status, tag, _) = ask(&[("apis/batch/v1", "/b?hash=1")], "\"OWN\"").await;
        assert_eq!(status, 200);
        assert_eq!(ask(&[("apis/batch/v1", "/b?hash=1")], &tag).await, (304, tag.clone(), 0));
        let (status, other, _) = ask(&[("apis/batch/v1", "/b?hash=2")], &tag).await;
        assert!(status == 200 && other != tag, "{other}");
    }
}
