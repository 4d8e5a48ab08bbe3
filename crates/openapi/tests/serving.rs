//! How documents are served: hashes, caching, negotiation, and what changes when the APIs do.

use std::sync::Arc;

use concord_apis::{Settings, api_set};
use concord_endpoints::{ApiGroup, ApiSet, ApiVersion, Origin};
use concord_meta::GroupVersion;
use concord_openapi::OpenApi;
use concord_server::{Handler as _, Response, full};
use http::HeaderMap;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde_json::Value;

/// What is served, which a test can change.
#[derive(Clone)]
struct Server {
    set: Arc<Mutex<Arc<ApiSet>>>,
    openapi: Arc<OpenApi>,
}

impl Server {
    fn new() -> Self {
        let set = Arc::new(Mutex::new(Arc::new(api_set(&Settings::default()))));
        let source = set.clone();
        Self { set, openapi: Arc::new(OpenApi::new(move || source.lock().clone(), "1.36")) }
    }

    fn change(&self, change: impl FnOnce(&ApiSet) -> ApiSet) {
        let mut set = self.set.lock();
        *set = Arc::new(change(&set));
    }

    async fn ask(&self, path: &str, headers: &[(&'static str, &str)]) -> Response {
        let mut request = http::Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.openapi.handle(request.body(full("")).expect("a request")).await
    }

    async fn answer(&self, path: &str, headers: &[(&'static str, &str)]) -> (u16, HeaderMap, Vec<u8>) {
        let (parts, body) = self.ask(path, headers).await.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        (parts.status.as_u16(), parts.headers, bytes.to_vec())
    }

    async fn urls(&self) -> Vec<(String, String)> {
        let (_, _, index) = self.answer("/openapi/v3", &[]).await;
        let index: Value = serde_json::from_slice(&index).expect("JSON");
        let paths = index["paths"].as_object().expect("paths").clone();
        let url = |entry: Value| entry["serverRelativeURL"].as_str().expect("an address").to_owned();
        paths.into_iter().map(|(key, entry)| (key, url(entry))).collect()
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().expect("text"))
}

#[tokio::test]
async fn the_index_leads_to_documents_that_can_be_kept() {
    let server = Server::new();
    let urls = server.urls().await;
    for key in ["api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "version"] {
        let (_, url) = urls.iter().find(|(known, _)| known == key).expect(key);
        let hash = url.strip_prefix(&format!("/openapi/v3/{key}?hash=")).expect("a hash");
        assert_eq!(hash.len(), 128, "{url}");
        let (status, headers, body) = server.answer(url, &[]).await;
        assert_eq!((status, header(&headers, "content-type")), (200, "application/json"));
        assert_eq!(header(&headers, "cache-control"), "public, immutable");
        assert!(header(&headers, "expires").ends_with(" GMT"), "{headers:?}");
        assert_eq!(header(&headers, "etag"), format!("\"{hash}\""));
        assert_eq!(header(&headers, "vary"), "Accept");
        let document: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!((&document["openapi"], &document["info"]["version"]), (&"3.0.0".into(), &"1.36".into()));
    }
}

#[tokio::test]
async fn without_its_hash_a_document_is_asked_for_again() {
    let server = Server::new();
    let path = "/openapi/v3/apis/apps/v1";
    for plain in [path, "/openapi/v3/apis/apps/v1?hash=", "/openapi/v3/apis%2Fapps/v1?timeout=32s"] {
        let (status, headers, _) = server.answer(plain, &[]).await;
        assert_eq!((status, header(&headers, "cache-control")), (200, ""), "{plain}");
        assert!(!headers.contains_key("expires"));
    }
}

#[tokio::test]
async fn who_has_an_old_hash_is_sent_to_the_new_one() {
    let server = Server::new();
    let (_, url) = server.urls().await.into_iter().find(|(key, _)| key == "apis/apps/v1").expect("apps");
    let (status, headers, body) = server.answer("/openapi/v3/apis/apps/v1?hash=OLD&timeout=32s", &[]).await;
    assert_eq!((status, header(&headers, "location"), body.len()), (301, url.as_str(), 0));
    assert_eq!(header(&headers, "cache-control"), "");
    let (status, ..) = server.answer(&url.to_lowercase(), &[]).await;
    assert_eq!(status, 301);
    // What the client knows does not matter: it asked for something else.
    let etag = header(&headers, "etag");
    let stale = server.answer("/openapi/v3/apis/apps/v1?hash=OLD", &[("if-none-match", etag)]).await;
    assert_eq!(stale.0, 301);
}

#[tokio::test]
async fn what_the_client_has_is_not_sent_again() {
    let server = Server::new();
    for path in ["/openapi/v3", "/openapi/v3/api/v1"] {
        let (_, headers, _) = server.answer(path, &[]).await;
        let etag = header(&headers, "etag");
        for (known, status) in [
            (etag.to_owned(), 304),
            (format!("\"other\", W/{etag}"), 304),
            ("*".to_owned(), 304),
            ("\"other\"".to_owned(), 200),
            (etag.to_lowercase(), 200),
        ] {
            let answer = server.answer(path, &[("if-none-match", &known)]).await;
            assert_eq!((answer.0, answer.2.is_empty()), (status, status == 304), "{path} {known}");
            assert_eq!(header(&answer.1, "etag"), etag);
        }
    }
}

#[tokio::test]
async fn json_is_the_only_form() {
    let server = Server::new();
    for (accept, status) in [
        ("", 200),
        ("*/*", 200),
        ("application/*;q=0.1", 200),
        ("application/json, */*", 200),
        ("application/com.github.proto-openapi.spec.v3@v1.0+protobuf, Application/JSON", 200),
        ("application/com.github.proto-openapi.spec.v3@v1.0+protobuf", 406),
        ("application/yaml", 406),
        ("application/jsonx", 406),
        (";;,", 406),
    ] {
        let (answered, headers, _) = server.answer("/openapi/v3/api/v1", &[("accept", accept)]).await;
        assert_eq!((answered, header(&headers, "vary")), (status, "Accept"), "{accept}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let server = Server::new();
    for path in [
        "/openapi",
        "/openapi/v2",
        "/openapi/v3/",
        "/openapi/v3x",
        "/openapi/v3/apis/apps/v1/",
        "/openapi/v3//api/v1",
        "/openapi/v3/apis/nobody/v1",
        "/openapi/v3/apis/apps/v1beta1?hash=1",
    ] {
        assert_eq!(server.answer(path, &[]).await.0, 404, "{path}");
    }
}

#[tokio::test]
async fn groups_come_and_go_and_the_others_stay() {
    let server = Server::new();
    let before = server.urls().await;
    let version = ApiVersion::new(GroupVersion::new("lab.example.com", "v1"), []);
    let group = Arc::new(ApiGroup::new("lab.example.com", 1, Origin::Custom, [version]));
    server.change(|set| set.with_group(group));
    let with = server.urls().await;
    let added: Vec<_> =
        with.iter().filter(|entry| !before.contains(entry)).map(|(key, _)| key.as_str()).collect();
    assert_eq!(added, ["apis/lab.example.com/v1"]);
    assert_eq!(server.answer("/openapi/v3/apis/lab.example.com/v1", &[]).await.0, 200);
    server.change(|set| set.without_group("lab.example.com"));
    assert_eq!(server.urls().await, before);
    assert_eq!(server.answer("/openapi/v3/apis/lab.example.com/v1", &[]).await.0, 404);
}
