//! The APIs of a release on a real store, and requests to them.

use std::{sync::Arc, time::Duration};

use concord_apis::{Release, RuntimeConfig, Settings, api_set};
use concord_endpoints::Apis;
use concord_registry::Registry;
use concord_replica::{Config, Replica};
use concord_server::{Handler as _, full};
use concord_store_embedded::{EmbeddedStore, Options};
use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use serde_json::Value;

pub(crate) struct Server {
    apis: Apis,
    _directory: tempfile::TempDir,
}

/// An answer that is all there.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Server {
    /// A server of a release with these switches of `--runtime-config`.
    pub(crate) async fn new(release: Release, switches: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = EmbeddedStore::open(&Options::new(directory.path().join("db")));
        let store = Arc::new(store.expect("a store"));
        let replica = Arc::new(Replica::start(store.clone(), Config::default(), Vec::new()));
        replica.consistent(Duration::from_secs(30)).await.expect("loads");
        let registry = Arc::new(Registry::new(store, replica, Vec::new()));
        let runtime_config = RuntimeConfig::parse(switches).expect("valid");
        let set = api_set(&Settings { release, runtime_config, ..Settings::default() });
        // Also in the form that is off by default, since what is published is to be found in both.
        let settings = concord_endpoints::Settings { beta_discovery: true, ..Default::default() };
        let apis = Apis::new(registry, set, settings);
        Self { apis, _directory: directory }
    }

    pub(crate) async fn ask(
        &self,
        method: &str,
        uri: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(full(body)).expect("a valid request");
        let (parts, body) = self.apis.handle(request).await.into_parts();
        let body = body.collect().await.expect("a complete body").to_bytes();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        Answer { code: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub(crate) async fn get(&self, uri: &str) -> Value {
        self.ask("GET", uri, &[], None).await.body
    }
}
