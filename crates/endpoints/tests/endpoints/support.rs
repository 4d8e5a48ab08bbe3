//! A registry on a real store, and requests to it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use concord_endpoints::{Apis, Settings};
use concord_registry::Registry;
use concord_replica::{Config, Replica};
use concord_server::{Handler as _, Response, full};
use concord_store_embedded::{EmbeddedStore, Options};
use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::resources;

pub(crate) const WIDGETS: &str = "/apis/example.com/v1/namespaces/ns/widgets";

pub(crate) struct Server {
    pub(crate) apis: Arc<Apis>,
    _directory: tempfile::TempDir,
}

/// An answer that is all there.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    pub(crate) fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or_default().to_owned()
    }
}

impl Server {
    pub(crate) async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = EmbeddedStore::open(&Options::new(directory.path().join("db")));
        let store = Arc::new(store.expect("a store"));
        let replica = Arc::new(Replica::start(store.clone(), Config::default(), Vec::new()));
        replica.consistent(Duration::from_secs(30)).await.expect("loads");
        let registry = Arc::new(Registry::new(store, replica, Vec::new()));
        let settings = Settings { server_address: "192.0.2.1:6443".to_owned(), ..settings };
        let apis = Arc::new(Apis::new(registry, resources::set(), settings));
        Self { apis, _directory: directory }
    }

    /// An answer that may still be coming.
    pub(crate) async fn send(
        &self,
        method: &str,
        uri: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(full(body.to_vec())).expect("a valid request");
        self.apis.handle(request).await
    }

    pub(crate) async fn ask(&self, method: &str, uri: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let (parts, body) = self.send(method, uri, headers, body).await.into_parts();
        let body = body.collect().await.expect("a complete body").to_bytes();
        Answer { code: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub(crate) async fn get(&self, uri: &str) -> Answer {
        self.ask("GET", uri, &[], b"").await
    }

    pub(crate) async fn accept(&self, uri: &str, accept: &str) -> Answer {
        self.ask("GET", uri, &[("accept", accept)], b"").await
    }

    /// A request with a body of JSON.
    pub(crate) async fn json(&self, method: &str, uri: &str, body: &Value) -> Answer {
        let headers = [("content-type", "application/json"), ("user-agent", "tester/1.0")];
        self.ask(method, uri, &headers, body.to_string().as_bytes()).await
    }

    /// Creates a widget and answers with it.
    pub(crate) async fn create(&self, name: &str, text: &str) -> Value {
        let answer = self.json("POST", WIDGETS, &widget(name, text)).await;
        assert_eq!(answer.code, 201, "{}", answer.text());
        answer.json()
    }
}

pub(crate) fn widget(name: &str, text: &str) -> Value {
    json!({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": name}, "spec": {"text": text}})
}
