//! What is said about documents to those who do not want them.

use bytes::Bytes;
use concord_server::test_client::{Protocol, TestClient};
use http::{HeaderMap, Method};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tempfile::tempdir;

use crate::support::Program;

/// The headers that describe a document.
fn told(headers: &HeaderMap) -> Vec<(String, String)> {
    let names =
        ["cache-control", "content-encoding", "content-length", "content-type", "etag", "location", "vary"];
    let values = names.iter().flat_map(|name| headers.get_all(*name).iter().map(move |value| (*name, value)));
    let told = values.map(|(name, value)| (name.to_owned(), value.to_str().expect("text").to_owned()));
    told.filter(|(name, value)| name != "content-length" || value != "0").collect()
}

/// The status, the headers and how long the body is.
async fn ask(
    client: &mut TestClient,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, HeaderMap, usize) {
    let (parts, body) =
        client.send(method, path, headers, Bytes::new()).await.expect("an answer").into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    (parts.status.as_u16(), parts.headers, body.len())
}

#[tokio::test]
async fn head_tells_what_get_would() {
    let data = tempdir().expect("a directory");
    let server = Program::start(data.path()).await;
    server.ready(200).await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut admin = server.admin(protocol).await;
        let index = admin.get("/openapi/v3").await.expect("an answer").body;
        let index: Value = serde_json::from_str(&index).expect("JSON");
        let leaf = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().expect("a URL");
        for (path, status) in [
            ("/openapi/v3", 200),
            ("/openapi/v3/apis/apps/v1", 200),
            (leaf, 200),
            ("/openapi/v2", 200),
            ("/openapi/v3/apis/apps/v1?hash=OLD", 301),
            ("/openapi/v3/apis/nobody/v1", 404),
        ] {
            for more in [("accept", "application/json"), ("accept-encoding", "gzip")] {
                let get = ask(&mut admin, Method::GET, path, &[more]).await;
                let head = ask(&mut admin, Method::HEAD, path, &[more]).await;
                assert_eq!((get.0, head.0, head.2), (status, status, 0), "{path}");
                assert_eq!(told(&head.1), told(&get.1), "{path}");
                let tag = get.1.get("etag").map_or("", |tag| tag.to_str().expect("text"));
                let again = ask(&mut admin, Method::HEAD, path, &[more, ("if-none-match", tag)]).await;
                assert_eq!(again.0, if status == 200 { 304 } else { status }, "{path}");
            }
        }
    }
}
