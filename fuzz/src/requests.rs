//! Random bytes as requests to the whole server: its chain of filters, all built-in APIs, a real store.
//!
//! The input is what a client would send over HTTP/1.1, without the version: a method and a path in the first line, headers,
//! an empty line, a body. Whatever it is, the server answers, does not answer that it failed itself, and says in the form of
//! a Status what is wrong.
#![no_main]

use std::{
    sync::{Arc, LazyLock},
    time::{Duration, SystemTime},
};

use async_server::Server;
use libfuzzer_sys::fuzz_target;

static SERVER: LazyLock<Server> = LazyLock::new(Server::start);

fuzz_target!(|input: &[u8]| {
    if let Some(request) = parse(input) {
        SERVER.ask(request);
    }
});

/// The request that the bytes are; `None` if no client could send them, or if it would go on without end.
fn parse(input: &[u8]) -> Option<http::Request<concord_server::Body>> {
    let (head, body) = match input.windows(2).position(|pair| pair == b"\n\n") {
        Some(at) => (&input[..at], &input[at + 2..]),
        None => (input, &b""[..]),
    };
    let mut lines = head.split(|byte| *byte == b'\n');
    let mut first = lines.next()?.splitn(2, |byte| *byte == b' ');
    let mut request = http::Request::builder().method(first.next()?).uri(first.next()?);
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        request = request.header(&line[..colon], line[colon + 1..].trim_ascii());
    }
    let request = request.body(concord_server::full(body.to_vec())).ok()?;
    (request.uri().path().starts_with('/') && !lasts(&request)).then_some(request)
}

/// Watches last for as long as the client likes.
fn lasts(request: &http::Request<concord_server::Body>) -> bool {
    let uri = request.uri();
    uri.path().contains("/watch/") || uri.query().is_some_and(|query| query.contains("watch"))
}

mod async_server {
    use super::*;
    use concord_apis::{Settings as ApiSettings, api_set};
    use concord_endpoints::{Apis, Settings};
    use concord_pki::{ServingNames, ServingPki};
    use concord_registry::Registry;
    use concord_replica::Replica;
    use concord_server::{AlwaysAllow, Config, Handler, Version};
    use concord_store_embedded::{EmbeddedStore, Options};
    use http_body_util::BodyExt as _;
    use tempfile::TempDir;
    use tokio::runtime::{Builder, Runtime};

    /// A server without connections.
    pub(crate) struct Server {
        runtime: Runtime,
        handler: Arc<dyn Handler>,
        _directory: TempDir,
    }

    impl Server {
        pub(crate) fn start() -> Self {
            let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
            let directory = tempfile::tempdir().expect("a directory");
            let handler = runtime.block_on(handler(&directory));
            Self { runtime, handler, _directory: directory }
        }

        pub(crate) fn ask(&self, request: http::Request<concord_server::Body>) {
            let asked = format!("{} {} {:?}", request.method(), request.uri(), request.headers());
            let (status, headers, body) = self.runtime.block_on(async {
                let (parts, body) = self.handler.handle(request).await.into_parts();
                let body = body.collect().await.expect("an answer is complete").to_bytes();
                (parts.status.as_u16(), parts.headers, body)
            });
            assert!(is_expected(status, &body), "{asked}: {status} {body:?}");
            let is_json = headers.get("content-type").is_some_and(|kind| kind == "application/json");
            if is_json && !body.is_empty() {
                let answer: serde_json::Value =
                    serde_json::from_slice(&body).expect("an answer in JSON is JSON");
                assert!(
                    status < 400 || answer["code"] == status || answer["kind"] != "Status",
                    "{asked}: {answer}"
                );
            }
        }
    }

    /// Whether the server did not fail. Some bad requests are errors of the server for upstream, and here as well, such as an
    /// applied object with fields that nobody knows; these give no reason.
    fn is_expected(status: u16, body: &[u8]) -> bool {
        let text = String::from_utf8_lossy(body);
        match status {
            500 => text.starts_with(r#"{"kind":"Status""#) && !text.contains(r#""reason":"InternalError""#),
            status => status < 500 || [501, 503, 504].contains(&status),
        }
    }

    async fn handler(directory: &TempDir) -> Arc<dyn Handler> {
        let store = EmbeddedStore::open(&Options::new(directory.path().join("db"))).expect("a store");
        let store = Arc::new(store);
        let replica = Replica::start(store.clone(), concord_replica::Config::default(), Vec::new());
        replica.consistent(Duration::from_secs(30)).await.expect("loads");
        let registry = Arc::new(Registry::new(store, Arc::new(replica), Vec::new()));
        let apis = Apis::new(registry, api_set(&ApiSettings::default()), Settings::default());
        let names = ServingNames::loopback();
        let pki = ServingPki::open_or_create(directory.path(), &names, SystemTime::now()).expect("a PKI");
        let mut config = Config::new(pki.identity, version());
        config.authorizer = Arc::new(AlwaysAllow);
        config.apis = Arc::new(apis);
        config.complete().expect("a configuration").into_handler()
    }

    fn version() -> Version {
        let text = String::new;
        Version {
            major: text(),
            minor: text(),
            emulation_major: text(),
            emulation_minor: text(),
            min_compatibility_major: text(),
            min_compatibility_minor: text(),
            git_version: text(),
            git_commit: text(),
            git_tree_state: text(),
            build_date: text(),
            go_version: text(),
            compiler: text(),
            platform: Version::platform(),
        }
    }
}
