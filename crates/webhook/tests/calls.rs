//! Calls over real connections: what comes back, and what is refused.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use concord_testing::webhook::{Certificate, Reply, WebhookServer};
use concord_webhook::{
    Address, CallError, Client, ClientConfig, Overrides, ResolveError, Resolver, ServiceReference, Target,
};

const LONG: Duration = Duration::from_secs(20);

/// No Service is there.
struct Nothing;

impl Resolver for Nothing {
    fn resolve(&self, service: &ServiceReference) -> Result<Address, ResolveError> {
        Err(ResolveError::Unavailable(format!("service \"{}\" not found", service.name)))
    }
}

async fn start(certificate: Certificate<'_>, reply: Reply) -> WebhookServer {
    WebhookServer::start(certificate, move |_| reply.clone()).await.expect("a server")
}

fn lines(server: &WebhookServer) -> Vec<String> {
    server.asked().into_iter().map(|asked| asked.line).collect()
}

fn client() -> Client {
    Client::new(Arc::new(Nothing))
}

fn url(server: &WebhookServer, path: &str) -> ClientConfig {
    let target = Target::Url(format!("https://127.0.0.1:{}{path}", server.port));
    ClientConfig { target, ca_bundle: server.authority.clone().into() }
}

fn service(server: &WebhookServer, name: &str) -> ClientConfig {
    let target = Target::Service(ServiceReference {
        namespace: "ns".into(),
        name: name.into(),
        path: "/hook".into(),
        port: 443,
    });
    ClientConfig { target, ca_bundle: server.authority.clone().into() }
}

async fn call(config: &ClientConfig) -> Result<Bytes, CallError> {
    client().call(config, Bytes::from_static(b"{}"), LONG).await
}

async fn refusal(config: &ClientConfig) -> String {
    call(config).await.expect_err("it is refused").to_string()
}

#[tokio::test]
async fn connections_are_used_again() {
    let server = start(Certificate::For("127.0.0.1"), Reply::ok("{\"a\":1}")).await;
    let client = client();
    for _ in 0..3 {
        let answer = client.call(&url(&server, "/x/"), Bytes::from_static(b"{}"), LONG).await;
        assert_eq!(answer.expect("an answer"), "{\"a\":1}");
    }
    let config = url(&server, "/x/");
    let short = LONG - Duration::from_millis(1);
    let answer = client.call_telling_timeout(&config, Bytes::new(), short);
    answer.await.expect("an answer");
    assert_eq!(server.connections(), 1);
    assert_eq!(lines(&server), ["POST /x", "POST /x", "POST /x", "POST /x?timeout=20s"]);
}

/// Work that can wait has threads of its own. What it opens is there for all others, and outlives them.
#[tokio::test]
async fn connections_do_not_belong_to_whoever_calls_first() {
    let server = start(Certificate::For("127.0.0.1"), Reply::ok("{}")).await;
    let (client, config) = (Arc::new(client()), url(&server, "/x"));
    let (same, config_there) = (client.clone(), config.clone());
    let elsewhere = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(same.call(&config_there, Bytes::new(), LONG)).expect("an answer");
    });
    while !elsewhere.is_finished() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    elsewhere.join().expect("no panic");
    client.call(&config, Bytes::new(), LONG).await.expect("an answer");
    assert_eq!((server.connections(), lines(&server).len()), (1, 2));
}

#[tokio::test]
async fn a_service_is_where_the_resolver_says_and_its_certificate_is_for_its_name() {
    let server = start(Certificate::For("hook.ns.svc"), Reply::ok("{}")).await;
    let address = Address { host: "127.0.0.1".into(), port: server.port };
    let addresses = ["hook", "other"].map(|name| (("ns".to_owned(), name.to_owned()), address.clone()));
    let client = Client::new(Arc::new(Overrides::new(HashMap::from(addresses), Arc::new(Nothing))));
    let call = async |name: &str| client.call(&service(&server, name), Bytes::new(), LONG).await;
    assert_eq!(call("hook").await.expect("an answer"), "{}");
    assert_eq!(
        call("other").await.expect_err("another name").to_string(),
        "Post \"https://other.ns.svc:443/hook\": tls: failed to verify certificate: x509: certificate is valid for \
         hook.ns.svc, not other.ns.svc"
    );
    assert_eq!(
        call("gone").await.expect_err("not there").to_string(),
        "Post \"https://gone.ns.svc:443/hook\": service \"gone\" not found"
    );
}

#[tokio::test]
async fn only_whom_the_bundle_vouches_for_is_believed() {
    let server = start(Certificate::For("127.0.0.1"), Reply::ok("{}")).await;
    let other = start(Certificate::For("127.0.0.1"), Reply::ok("{}")).await;
    let config = ClientConfig { ca_bundle: other.authority.clone().into(), ..url(&server, "") };
    assert_eq!(
        refusal(&config).await,
        format!(
            "Post \"https://127.0.0.1:{}/\": tls: failed to verify certificate: x509: certificate signed by unknown \
             authority",
            server.port
        )
    );
    assert!(lines(&server).is_empty());
    let garbage = ClientConfig { ca_bundle: "garbage".into(), ..url(&server, "") };
    assert_eq!(
        refusal(&garbage).await,
        "unable to load root certificates: unable to parse bytes as PEM block"
    );
}

#[tokio::test]
async fn a_certificate_of_the_bundle_is_believed_itself() {
    let server = start(Certificate::OwnAuthority("127.0.0.1"), Reply::ok("{}")).await;
    assert_eq!(call(&url(&server, "")).await.expect("an answer"), "{}");
    let elsewhere = start(Certificate::OwnAuthority("hook.ns.svc"), Reply::ok("{}")).await;
    assert!(
        refusal(&url(&elsewhere, "")).await.ends_with(
            "x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"
        )
    );
}

#[tokio::test]
async fn what_is_no_success_is_an_error() {
    let status = r#"{"kind":"Status","status":"Failure","message":"not today","code":418}"#;
    for (answer, text) in [
        (
            Reply::new("500 Internal Server Error", "boom"),
            "an error on the server (\"boom\") has prevented the request from succeeding",
        ),
        (Reply::new("404 Not Found", "x"), "the server could not find the requested resource"),
        (Reply::new("418 Teapot", status), "not today"),
        (
            Reply::new("302 Found\r\nlocation: https://127.0.0.1:1/", "x"),
            "the server responded with the status code 302 but did not return more information",
        ),
        (Reply::new("200 OK", ""), "0-length response with status code: 200 and content type: "),
    ] {
        let server = start(Certificate::For("127.0.0.1"), answer).await;
        assert_eq!(refusal(&url(&server, "")).await, text);
        assert_eq!(lines(&server).len(), 1);
    }
}

#[tokio::test]
async fn every_call_is_heard_of() {
    let (heard, calls) = std::sync::mpsc::channel();
    let client = client().with_observer(move |called| {
        heard.send((called.host.to_owned(), called.code, called.sent, called.received)).expect("heard");
    });
    let (ok, bad) = (Reply::ok("answer"), Reply::new("500 Internal Server Error", "boom"));
    let hung_up = Reply::hang_up();
    for (reply, code, received) in [(ok, Some(200), Some(6)), (bad, Some(500), None), (hung_up, None, None)] {
        let server = start(Certificate::For("127.0.0.1"), reply).await;
        drop(client.call(&url(&server, ""), Bytes::from_static(b"{}"), LONG).await);
        let host = format!("127.0.0.1:{}", server.port);
        assert_eq!(calls.try_recv(), Ok((host, code, 2, received)));
    }
}

#[tokio::test]
async fn an_answer_may_be_as_long_as_the_limit() {
    let server = start(Certificate::For("127.0.0.1"), Reply::ok(&"a".repeat(1000))).await;
    let call =
        async |limit| client().with_answer_limit(limit).call(&url(&server, ""), Bytes::new(), LONG).await;
    assert_eq!(call(1000).await.expect("just short enough").len(), 1000);
    assert!(matches!(call(999).await, Err(CallError::TooLarge { limit: 999, .. })));
}

#[tokio::test]
async fn nobody_waits_longer_than_told() {
    let server = start(Certificate::For("127.0.0.1"), Reply::never()).await;
    let short = Duration::from_millis(50);
    let error = client().call(&url(&server, "/x"), Bytes::new(), short).await.expect_err("no answer");
    let text = format!("Post \"https://127.0.0.1:{}/x\": context deadline exceeded", server.port);
    assert_eq!(error.to_string(), text);
    let endless = start(Certificate::For("127.0.0.1"), Reply::endless()).await;
    let error = client().call(&url(&endless, "/x"), Bytes::new(), short).await.expect_err("no end");
    assert!(error.to_string().ends_with("context deadline exceeded"), "{error}");
}

#[tokio::test]
async fn connections_that_break_are_told_as_go_does() {
    // Bound, so that nobody else gets the port, and without anybody who listens.
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let port = socket.local_addr().expect("an address").port();
    let server = start(Certificate::For("127.0.0.1"), Reply::hang_up()).await;
    let at = format!("https://127.0.0.1:{}/", server.port);
    assert_eq!(refusal(&url(&server, "")).await, format!("Post \"{at}\": EOF"));
    let target = Target::Url(format!("https://127.0.0.1:{port}/"));
    let refused = refusal(&ClientConfig { target, ca_bundle: server.authority.clone().into() }).await;
    let text =
        format!("Post \"https://127.0.0.1:{port}/\": dial tcp 127.0.0.1:{port}: connect: connection refused");
    assert_eq!(refused, text);
}
