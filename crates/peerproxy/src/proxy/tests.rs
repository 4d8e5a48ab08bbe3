use std::{collections::BTreeMap, net::SocketAddr};

use bytes::Bytes;
use concord_server::{Metrics, UserInfo, full, text};
use http::{HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt as _;

use super::*;
use crate::{
    PeerView,
    document::{Document, parse_groups},
    fake::Fake,
};

/// Answers that it was here, with the headers it saw.
struct Here;

#[async_trait]
impl Handler for Here {
    async fn handle(&self, request: Request) -> Response {
        let names: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
        text(StatusCode::OK, format!("here {}", names.join(",")))
    }
}

/// Serves pods, without `resize`.
struct Pods;

impl Local for Pods {
    fn has(&self, wanted: &Wanted<'_>) -> Has {
        match (wanted.group, wanted.resource, wanted.subresource) {
            ("", "pods", "resize") => Has::Resource,
            ("", "pods", _) => Has::Everything,
            _ => Has::Nothing,
        }
    }

    fn has_version(&self, version: &GroupVersion) -> bool {
        version.group.is_empty()
    }
}

fn peer(port: u16) -> RoutedPeer {
    let body = r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"batch"},
        "versions":[{"version":"v1","resources":[{"resource":"jobs","verbs":["get","list","create","watch"]}]}]}]}"#;
    let groups = parse_groups(body.as_bytes()).expect("readable");
    let address = "/openapi/v3/apis/batch/v1?hash=1".to_owned();
    RoutedPeer {
        id: format!("apiserver-{port}"),
        address: (port != 0).then(|| SocketAddr::from(([127, 0, 0, 1], port))),
        document: Some(Arc::new(Document::new(Vec::new(), groups))),
        is_known: true,
        is_reachable: true,
        openapi: Arc::new(BTreeMap::from([("apis/batch/v1".to_owned(), address)])),
    }
}

/// What the peer at a port does with a request.
pub(super) fn behave(port: u16, request: Request) -> Result<Response, SendError> {
    let status = |code: u16, body: &'static str| {
        let mut response = text(StatusCode::from_u16(code).expect("a code"), body);
        response.headers_mut().insert("retry-after", HeaderValue::from_static("7"));
        if code == 302 {
            response.headers_mut().insert("location", HeaderValue::from_static("https://example.com/"));
        }
        Ok(response)
    };
    match port {
        1 => Err(SendError::NotSent { request: Box::new(request), reason: "127.0.0.1:1 refused".to_owned() }),
        2 => Err(SendError::Broken("127.0.0.1:2 reset".to_owned())),
        3 => status(404, "404 page not found\n"),
        4 => status(
            404,
            r#"{"kind":"Status","message":"the server could not find the requested resource","details":{}}"#,
        ),
        5 => status(404, r#"{"kind":"Status","message":"jobs.batch \"x\" not found"}"#),
        6 => status(401, ""),
        7 => status(302, ""),
        8 => status(429, "later"),
        10 => Err(SendError::Unnameable("a line break at 127.0.0.1:10".to_owned())),
        _ => status(200, "there"),
    }
}

struct World {
    proxy: PeerProxy,
    peers: Arc<Peers>,
    sent: Arc<dyn Fn() -> Vec<(u16, String)> + Send + Sync>,
}

fn world(ports: &[u16]) -> World {
    let transport = Arc::new(Fake::new(|port, request| Box::pin(async move { behave(port, request) })));
    let proxy = world_with(ports, transport.clone());
    World { peers: proxy.peers.clone(), proxy, sent: Arc::new(move || transport.sent.lock().clone()) }
}

/// Peers at some ports that are reached in some way.
pub(super) fn world_with(ports: &[u16], transport: Arc<dyn crate::Transport>) -> PeerProxy {
    let peers =
        Peers::new("apiserver-own", PeerView::new("/registry/").state(), transport, Arc::new(Metrics::new()));
    let routed = ports.iter().map(|port| peer(*port)).collect();
    peers.set_routing(Routing { generation: 1, peers: routed, is_synced: true, ..Routing::default() });
    PeerProxy::new(Arc::new(Here), Arc::new(Pods), peers)
}

fn request(path: &str, headers: &[(&'static str, &'static str)]) -> Request {
    let mut request = Request::new(full(Bytes::from_static(b"{}")));
    *request.uri_mut() = path.parse().expect("a path");
    for (name, value) in headers {
        request.headers_mut().append(*name, HeaderValue::from_static(value));
    }
    let alice = UserInfo { name: "alice".to_owned(), ..UserInfo::default() };
    request.extensions_mut().insert(Arc::new(alice));
    request
}

pub(super) async fn read(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (status, String::from_utf8(body.into()).expect("text"))
}

const JOBS: &str = "/apis/batch/v1/namespaces/a/jobs/x";

#[tokio::test]
async fn requests_go_to_whoever_serves_them() {
    for (path, expected) in [
        ("/api/v1/namespaces/a/pods/x", "here "),
        ("/healthz", "here "),
        ("/apis", "here "),
        ("/apis/batch/v1", "there"),
        ("/apis/batch/v2", "here "),
        ("/apis/batch", "here "),
        ("/api/v1", "here "),
        (JOBS, "there"),
        // Nobody has it: here it is not found.
        ("/apis/batch/v1/namespaces/a/cronjobs/x", "here "),
        ("/openapi/v3/apis/batch/v1?hash=1", "there"),
        ("/openapi/v3/apis/apps/v1", "here "),
        ("/openapi/v3/api/v1", "here "),
    ] {
        let world = world(&[9]);
        let answer = read(world.proxy.handle(request(path, &[])).await).await;
        assert_eq!(answer, (200, expected.to_owned()), "{path}");
        let forwarded = if expected == "there" { vec![(9, "alice".to_owned())] } else { vec![] };
        assert_eq!((world.sent)(), forwarded, "{path}");
    }
}

#[tokio::test]
async fn answers_are_passed_on_unless_they_would_say_something_wrong() {
    let failed = "Error while proxying request to destination apiserver";
    for (port, status, body, retry) in [
        (1, 503, failed, Some("1")),
        // It may have been done: whoever is told to try again does so unasked.
        (2, 503, failed, None),
        (3, 503, failed, Some("1")),
        (4, 503, failed, Some("1")),
        (5, 404, r#"jobs.batch \"x\" not found"#, Some("7")),
        (6, 503, failed, Some("1")),
        (7, 502, "attempted to redirect", None),
        (8, 429, "later", Some("7")),
        // D8a: trying again would help nobody.
        (10, 500, "cannot be told to another apiserver", None),
        (0, 503, "Error getting ip and port info of the remote server while proxying", Some("1")),
    ] {
        let response = world(&[port]).proxy.handle(request(JOBS, &[])).await;
        let again =
            response.headers().get("retry-after").map(|value| value.to_str().expect("text").to_owned());
        assert_eq!(again.as_deref(), retry, "{port}");
        let (code, text) = read(response).await;
        assert_eq!(code, status, "{port}: {text}");
        assert!(text.contains(body), "{port}: {text}");
        assert!(!text.contains("127.0.0.1"), "nobody is told where servers are: {text}");
        if matches!(code, 500 | 502 | 503) {
            assert!(text.starts_with(r#"{"kind":"Status","apiVersion":"v1","#), "{text}");
        }
    }
}

/// What cannot be answered by anybody now is answered with the same form whatever the reason, which it says.
#[tokio::test]
async fn whoever_cannot_be_answered_now_is_told_to_try_again_and_why() {
    let unknown = RoutedPeer { document: None, is_known: false, ..peer(9) };
    let routing =
        |peers: Vec<RoutedPeer>, is_synced| Routing { generation: 2, peers, is_synced, ..Routing::default() };
    let nobody = "/apis/nobody/v1/things";
    for (row, path, routing, is_proxied, text, counted) in [
        (
            "D3",
            JOBS,
            routing(vec![peer(9)], true),
            true,
            "the resource is not served by the apiserver that the request was proxied to",
            None,
        ),
        (
            "D4",
            JOBS,
            routing(vec![peer(9)], false),
            false,
            "the apiserver has not asked its peers yet which resources they serve",
            None,
        ),
        (
            "D6",
            nobody,
            routing(vec![unknown], true),
            false,
            "an apiserver that may serve the resource has not said yet which resources it serves",
            None,
        ),
        (
            "D7",
            JOBS,
            routing(vec![peer(0)], true),
            false,
            "Error getting ip and port info of the remote server while proxying",
            Some("endpoint_resolution"),
        ),
        (
            "D8b",
            JOBS,
            routing(vec![peer(1)], true),
            false,
            "Error while proxying request to destination apiserver",
            Some("proxy_transport"),
        ),
    ] {
        let world = world(&[]);
        world.peers.set_routing(routing);
        let mut asked = request(path, &[]);
        if is_proxied {
            asked.headers_mut().insert(PROXIED, HeaderValue::from_static("true"));
            asked.extensions_mut().insert(FrontProxied);
        }
        let response = world.proxy.handle(asked).await;
        let header = |name: &str| response.headers()[name].to_str().expect("text").to_owned();
        assert_eq!(
            (header("content-type"), header("retry-after")),
            ("application/json".into(), "1".into()),
            "{row}"
        );
        let body = format!(
            r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{text}","reason":"ServiceUnavailable","details":{{"retryAfterSeconds":1}},"code":503}}"#
        );
        assert_eq!(read(response).await, (503, format!("{body}\n")), "{row}");
        for kind in ["endpoint_resolution", "proxy_transport"] {
            let errors = world.peers.metrics().peers().proxy_errors(kind, ["batch", "v1", "jobs"]);
            assert_eq!(errors, u64::from(counted == Some(kind)), "{row} {kind}");
        }
    }
}

#[tokio::test]
async fn a_user_who_cannot_be_named_is_no_fault_of_the_peer() {
    let world = world(&[10, 10]);
    assert_eq!(read(world.proxy.handle(request(JOBS, &[])).await).await.0, 500);
    assert_eq!(((world.sent)().len(), world.peers.suspects()), (1, vec![]));
}

#[tokio::test]
async fn another_peer_is_tried_only_while_nothing_was_sent() {
    for _ in 0..20 {
        let one_dead = world(&[1, 9]);
        assert_eq!(read(one_dead.proxy.handle(request(JOBS, &[])).await).await, (200, "there".to_owned()));
        let one_breaks = world(&[2, 9]);
        let (status, _) = read(one_breaks.proxy.handle(request(JOBS, &[])).await).await;
        let sent = (one_breaks.sent)();
        assert_eq!(sent.len(), 1, "a request is never sent twice");
        assert_eq!(status, if sent[0].0 == 2 { 503 } else { 200 });
        let all_dead = world(&[1, 1, 1]);
        assert_eq!(read(all_dead.proxy.handle(request(JOBS, &[])).await).await.0, 503);
        assert_eq!(((all_dead.sent)().len(), all_dead.peers.suspects()), (3, vec!["apiserver-1".to_owned()]));
    }
}

#[tokio::test]
async fn only_a_proxy_says_that_a_request_was_sent_on() {
    let mark = "x-kubernetes-peer-proxied";
    for (headers, is_front, forwarded) in [
        // X1, X2: what a client says counts for nothing.
        (&[(mark, "true")][..], false, true),
        (&[(mark, "false")], false, true),
        (&[(mark, "false"), (mark, "true")], false, true),
        (&[("connection", mark), (mark, "true")], false, true),
        // Of a server that was authenticated any value counts.
        (&[(mark, "true")], true, false),
        (&[(mark, "false"), (mark, "true")], true, false),
        (&[(mark, "")], true, false),
        (&[], true, true),
    ] {
        let world = world(&[9]);
        let mut asked = request(JOBS, headers);
        if is_front {
            asked.extensions_mut().insert(FrontProxied);
        }
        let (status, body) = read(world.proxy.handle(asked).await).await;
        assert_eq!((world.sent)().len(), usize::from(forwarded), "{headers:?} {is_front}");
        assert_eq!(status, if forwarded { 200 } else { 503 }, "{body}");
    }
    // And nobody further in sees it.
    let mut asked = request("/api/v1/pods", &[(mark, "true"), ("accept", "*/*")]);
    asked.extensions_mut().insert(FrontProxied);
    assert_eq!(read(world(&[9]).proxy.handle(asked).await).await, (200, "here accept".to_owned()));
}
