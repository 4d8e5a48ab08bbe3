//! What the handler chain costs a request, without a network: everything between the connection and the
//! handler of an API, and back.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use concord_server::{
    AlwaysAllow, Authentication, Config, Handler, Request, RequestInfo, Response, Served, TokenFile, Version,
    full, with_body,
};
use divan::{Bencher, counter::ItemsCount};
use http::{Method, StatusCode};

fn main() {
    divan::main();
}

/// Answers as a get of a small object does.
struct Api(Bytes);

#[async_trait]
impl Handler for Api {
    async fn handle(&self, _: Request) -> Response {
        let mut response = with_body(StatusCode::OK, "application/json", self.0.clone());
        response.extensions_mut().insert(Served);
        response
    }
}

fn chain() -> Arc<dyn Handler> {
    let directory = tempfile::tempdir().expect("a directory");
    let (names, now) = (concord_pki::ServingNames::loopback(), std::time::SystemTime::now());
    let pki = concord_pki::ServingPki::open_or_create(directory.path(), &names, now).expect("a PKI");
    let mut config = Config::new(pki.identity, Version::default());
    let tokens = TokenFile::parse("secret,alice,1,devs", "tokens.csv").expect("valid");
    config.authentication = Authentication { tokens: vec![Arc::new(tokens)], ..Authentication::default() };
    config.authorizer = Arc::new(AlwaysAllow);
    config.apis = Arc::new(Api(vec![b'x'; 1024].into()));
    config.complete().expect("valid").into_handler()
}

fn request() -> Request {
    http::Request::builder()
        .uri("/api/v1/namespaces/default/configmaps/cm-1234")
        .header("accept", "application/json")
        .header("authorization", "Bearer secret")
        .header("user-agent", "bench")
        .body(full(""))
        .expect("valid")
}

/// A get through all filters.
#[divan::bench]
fn get(bencher: Bencher<'_, '_>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let chain = chain();
    bencher.counter(ItemsCount::new(1_usize)).with_inputs(request).bench_local_values(|request| {
        let response = runtime.block_on(chain.handle(request));
        assert_eq!(response.status(), 200);
        response
    });
}

/// Reading what a request asks for.
#[divan::bench(args = [
    "/api/v1/namespaces/default/configmaps/cm-1234",
    "/apis/apps/v1/deployments?limit=500&resourceVersion=0",
    "/api/v1/pods?watch=1&fieldSelector=metadata.name%3Dx&resourceVersion=7",
])]
fn request_info(bencher: Bencher<'_, '_>, uri: &str) {
    let uri = uri.parse().expect("a URI");
    bencher.bench_local(|| RequestInfo::new(&Method::GET, &uri));
}
