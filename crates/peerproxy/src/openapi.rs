//! Schemas of what only other servers serve: OpenAPI v3 through any server.

use std::collections::BTreeMap;

use concord_codec::{Limits, decode};
use concord_meta::GroupVersion;
use concord_server::{Handler, Request, Response, full};
use http::{StatusCode, header};
use serde_json::{Value, json};

use crate::{body, document::MAX_DOCUMENT_BYTES, routing::Routing};

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
/// [`holder`]: addresses carry a hash of the very document.
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

/// The first server that has a document which this one does not have.
pub(crate) fn holder(
    routing: &Routing,
    path: &str,
    is_elsewhere: impl Fn(&GroupVersion) -> bool,
) -> Option<usize> {
    let name = path.strip_prefix(INDEX)?.trim_matches('/');
    version_of(name).filter(is_elsewhere)?;
    routing.peers.iter().position(|peer| peer.is_reachable && peer.openapi.contains_key(name))
}

/// The index of this server with what others have. Without any it is answered as it is.
pub(crate) async fn index(
    inner: &dyn Handler,
    missing: &BTreeMap<&str, &str>,
    mut request: Request,
) -> Response {
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
    parts.headers.remove(header::ETAG);
    Response::from_parts(parts, full(with))
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

    use super::*;
    use crate::routing::RoutedPeer;

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
        let peers = vec![peer("a", false, "/a"), peer("b", true, "/b"), peer("c", true, "/c")];
        let routing = Routing { generation: 1, peers, is_synced: true };
        assert_eq!(missing(&routing, |_| true), [("apis/batch/v1", "/b")].into());
        assert!(missing(&routing, |_| false).is_empty());
        assert_eq!(holder(&routing, "/openapi/v3/apis/batch/v1", |_| true), Some(1));
        assert_eq!(holder(&routing, "/openapi/v3/apis/batch/v1", |_| false), None);
        assert_eq!(holder(&routing, "/openapi/v3/apis/apps/v1", |_| true), None);
        let body = br#"{"paths":{"api/v1":{"serverRelativeURL":"/x"}}}"#;
        let with = added(body, &missing(&routing, |_| true)).expect("an index");
        let expected =
            r#"{"paths":{"api/v1":{"serverRelativeURL":"/x"},"apis/batch/v1":{"serverRelativeURL":"/b"}}}"#;
        assert_eq!(String::from_utf8(with).expect("text"), expected);
        assert_eq!(added(b"[]", &missing(&routing, |_| true)), None);
    }
}
