//! Who gets in, over real TLS.

mod support;

use std::{sync::Arc, time::SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use concord_pki::AdminPki;
use concord_server::{
    Basics, Config, Handler, PrivilegedGroups, Request, RequestContext as _, Response, Served, TokenFile,
    Union,
    test_client::{Protocol, TestClient},
    text,
};
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use support::Running;

const BOTH: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];

/// Answers with who asks for what.
struct WhoAmI;

#[async_trait]
impl Handler for WhoAmI {
    async fn handle(&self, request: Request) -> Response {
        let (user, info) = (request.user(), request.info());
        assert!(!request.headers().contains_key("authorization"));
        let answer = format!("{} {} {} {}", user.name, user.groups.join(","), info.verb, info.resource);
        let mut response = text(StatusCode::OK, answer);
        response.extensions_mut().insert(Served);
        response
    }
}

fn configure(config: &mut Config) {
    let tokens = "good,alice,1,devs\n";
    config.authentication.tokens = vec![Arc::new(TokenFile::parse(tokens, "tokens.csv").expect("valid"))];
    config.authorizer = Arc::new(Union(vec![Arc::new(PrivilegedGroups::default()), Arc::new(Basics)]));
    config.apis = Arc::new(WhoAmI);
    config.paths = Arc::new(|| vec!["/api".to_owned()]);
}

async fn get(client: &mut TestClient, path: &str, token: &str) -> (u16, String) {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let headers = if token.is_empty() { &[][..] } else { &headers[..] };
    let response = client.send(Method::GET, path, headers, Bytes::new()).await.expect("an answer");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (status, String::from_utf8(body.into()).expect("text"))
}

#[tokio::test]
async fn the_admin_certificate_opens_everything() {
    let server = Running::start(configure).await;
    for protocol in BOTH {
        let mut admin = server.admin(protocol).await;
        for _ in 0..2 {
            let expected = "kubernetes-admin system:masters,system:authenticated list pods".to_owned();
            assert_eq!(get(&mut admin, "/api/v1/pods", "").await, (200, expected), "{protocol:?}");
        }
        let metrics = get(&mut admin, "/metrics", "").await.1;
        assert!(
            metrics.contains(r#"resource="pods",scope="cluster",subresource="",verb="LIST""#),
            "{metrics}"
        );
        assert!(get(&mut admin, "/", "").await.1.contains("\"/api\""));
    }
}

#[tokio::test]
async fn a_certificate_of_a_stranger_is_refused_with_an_answer() {
    let server = Running::start(configure).await;
    let elsewhere = tempfile::tempdir().expect("a directory");
    let stranger = AdminPki::open_or_create(elsewhere.path(), SystemTime::now()).expect("a PKI");
    for protocol in BOTH {
        let target = server.target(protocol).with_identity(&stranger.certificate, &stranger.key);
        let mut client = target.connect().await.expect("the handshake goes well");
        let (status, body) = get(&mut client, "/livez", "").await;
        assert_eq!(status, 401, "{protocol:?}");
        assert!(body.contains(r#""reason":"Unauthorized","code":401"#), "{body}");
        // Other credentials may still say who it is.
        assert_eq!(get(&mut client, "/livez", "good").await.0, 200);
    }
}

#[tokio::test]
async fn tokens_and_anonymous_clients_get_what_they_may() {
    let server = Running::start(configure).await;
    for protocol in BOTH {
        let mut client = server.client(protocol).await;
        for (path, token, status) in [
            ("/livez", "", 200),
            ("/readyz?verbose", "", 200),
            ("/version", "", 200),
            ("/api", "", 403),
            ("/metrics", "", 403),
            ("/", "", 403),
            ("/livez", "bad", 401),
            ("/api", "good", 200),
            ("/api/v1/pods", "good", 403),
            ("/metrics", "good", 403),
        ] {
            assert_eq!(get(&mut client, path, token).await.0, status, "{protocol:?} {path} {token}");
        }
        let (_, body) = get(&mut client, "/api/v1/namespaces/a/pods/b", "good").await;
        let expected = r#"pods \"b\" is forbidden: User \"alice\" cannot get resource \"pods\" in API group \"\" in the namespace \"a\""#;
        assert!(body.contains(expected), "{body}");
    }
}
