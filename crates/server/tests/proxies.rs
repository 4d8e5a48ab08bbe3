//! Proxies that say who their clients are, and those who pretend to be one, over real TLS.

mod support;

use std::{sync::Arc, time::SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use concord_pki::AdminPki;
use concord_server::{
    ClientAuthorities, Config, Handler, Request, RequestContext as _, RequestHeader, RequestHeaderNames,
    Response,
    test_client::{Protocol, TestClient},
    text,
};
use http::{Method, StatusCode};
use support::Running;
use tempfile::TempDir;

const BOTH: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];

/// What a proxy says about its client, and what anybody could.
const SAID: [(&str, &str); 5] = [
    ("x-remote-user", "root"),
    ("x-remote-uid", "0"),
    ("x-remote-group", "system:masters"),
    ("x-remote-extra-a", "b"),
    ("x-own-user", "root"),
];

/// Answers with who asks, if nothing is left of what it was said to be.
struct WhoAmI;

#[async_trait]
impl Handler for WhoAmI {
    async fn handle(&self, request: Request) -> Response {
        let user = request.user();
        for (name, _) in SAID {
            assert!(!request.headers().contains_key(name), "{name} must not get here");
        }
        let extra: Vec<_> = user.extra.iter().map(|(key, values)| format!("{key}={values:?}")).collect();
        let answer = format!("{} {} {} {}", user.name, user.uid, user.groups.join(","), extra.join(","));
        text(StatusCode::OK, answer)
    }
}

/// The certificates of a proxy, whose common name is `kubernetes-admin`.
struct Front {
    pki: AdminPki,
    _directory: TempDir,
}

impl Front {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let pki = AdminPki::open_or_create(directory.path(), SystemTime::now()).expect("a PKI");
        Self { pki, _directory: directory }
    }

    async fn connect(&self, server: &Running, protocol: Protocol) -> TestClient {
        let target = server.target(protocol).with_identity(&self.pki.certificate, &self.pki.key);
        target.connect().await.expect("the handshake goes well")
    }
}

/// Believes proxies of `front` that have one of these names.
fn believe(config: &mut Config, front: &Front, allowed: &[&str]) {
    let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
    let authorities = Arc::new(ClientAuthorities::from_pem(front.pki.ca.as_bytes()).expect("an authority"));
    let names = RequestHeaderNames {
        username: list(&["X-Own-User", "X-Remote-User"]),
        uid: list(&["X-Remote-Uid"]),
        group: list(&["X-Remote-Group"]),
        extra_prefix: list(&["X-Remote-Extra-"]),
    };
    let proxies = RequestHeader::new(authorities, list(allowed), &names).expect("good names");
    config.authentication.request_header = Some(Arc::new(proxies));
    config.apis = Arc::new(WhoAmI);
}

async fn who(client: &mut TestClient) -> (u16, String) {
    let answer = client.exchange(Method::GET, "/api", &SAID, Bytes::new()).await.expect("an answer");
    (answer.status, answer.body)
}

async fn status(client: &mut TestClient) -> u16 {
    client.get("/api").await.expect("an answer").status
}

#[tokio::test]
async fn a_proxy_is_believed() {
    let front = Front::new();
    let server = Running::start(|config| believe(config, &front, &["kubernetes-admin"])).await;
    for protocol in BOTH {
        let expected = "root 0 system:masters,system:authenticated a=[\"b\"]".to_owned();
        let mut proxy = front.connect(&server, protocol).await;
        assert_eq!(who(&mut proxy).await, (200, expected), "{protocol:?}");
    }
}

#[tokio::test]
async fn headers_of_anybody_else_are_nothing() {
    let front = Front::new();
    let server = Running::start(|config| believe(config, &front, &["kubernetes-admin"])).await;
    for protocol in BOTH {
        let (status, answer) = who(&mut server.client(protocol).await).await;
        let nobody = "system:anonymous  system:unauthenticated ";
        assert_eq!((status, answer.as_str()), (200, nobody), "{protocol:?}");
        // One whom the server knows by a certificate of its own is who the certificate says.
        let (status, answer) = who(&mut server.admin(protocol).await).await;
        assert_eq!(status, 200);
        assert!(answer.starts_with("kubernetes-admin  system:masters,system:authenticated "), "{answer}");
    }
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused() {
    let (front, stranger) = (Front::new(), Front::new());
    let server = Running::start(|config| believe(config, &front, &["kubernetes-admin"])).await;
    for protocol in BOTH {
        let (status, answer) = who(&mut stranger.connect(&server, protocol).await).await;
        assert_eq!(status, 401, "{protocol:?}");
        assert!(answer.contains(r#""reason":"Unauthorized""#), "{answer}");
    }
}

#[tokio::test]
async fn a_proxy_of_another_name_is_refused() {
    let front = Front::new();
    let server = Running::start(|config| believe(config, &front, &["front-proxy-client"])).await;
    for protocol in BOTH {
        assert_eq!(who(&mut front.connect(&server, protocol).await).await.0, 401, "{protocol:?}");
    }
}

#[tokio::test]
async fn certificates_are_replaced_while_the_server_runs() {
    let (old, new) = (Front::new(), Front::new());
    let authorities = Arc::new(ClientAuthorities::from_pem(old.pki.ca.as_bytes()).expect("an authority"));
    let mut identity = None;
    let same = authorities.clone();
    let server = Running::start(|config| {
        config.apis = Arc::new(WhoAmI);
        config.authentication.client_ca = Some(same);
        identity = Some(config.identity.clone());
    })
    .await;
    let mut before = new.connect(&server, Protocol::Http1).await;
    assert_eq!(status(&mut before).await, 401);
    authorities.replace(new.pki.ca.as_bytes()).expect("usable");
    assert_eq!(status(&mut before).await, 200, "also over the connection that was open");
    assert_eq!(status(&mut old.connect(&server, Protocol::Http2).await).await, 401);

    // A serving certificate of an authority that its clients do not know.
    let directory = tempfile::tempdir().expect("a directory");
    let names = concord_pki::ServingNames::loopback();
    let other = concord_pki::ServingPki::open_or_create(directory.path(), &names, SystemTime::now());
    identity.expect("configured").replace(other.expect("a PKI").identity);
    let refused = server.target(Protocol::Http1).connect_tls().await.expect_err("it is served with now");
    assert!(refused.to_string().contains("certificate"), "{refused}");
    assert_eq!(status(&mut before).await, 200, "who is connected stays connected");
}
