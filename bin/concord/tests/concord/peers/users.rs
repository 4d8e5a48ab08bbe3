//! Who asks is who asks, also for the server that the request is sent on to.

use std::{fs, path::Path};

use bytes::Bytes;
use concord_server::test_client::{Protocol, TestClient};
use http::Method;
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{Fleet, Member, agreed, eventually, tunnel::ConnectProxy};
use crate::support::send;

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// Whom a server takes a client for.
async fn seen(client: &mut TestClient, headers: &[(&str, &str)]) -> Value {
    let headers = [&[("content-type", "application/json")], headers].concat();
    let answer = client.exchange(Method::POST, REVIEWS, &headers, Bytes::from_static(b"{}")).await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.status, 201, "{}", answer.body);
    let review: Value = serde_json::from_str(&answer.body).expect("JSON");
    review["status"]["userInfo"].clone()
}

async fn anonymous(fleet: &Fleet, member: &Member) -> TestClient {
    let ca = fleet.pki.path().join("ca.crt");
    TestClient::connect(member.program.address, &ca, Protocol::Http1).await.expect("a connection")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_is_the_same_user_on_the_other_server() {
    let fleet = Fleet::new().await;
    // By a way that leads through a proxy, which makes no difference.
    let proxy = ConnectProxy::start();
    let egress = format!("--egress-selector-config-file={}", proxy.configuration().display());
    let logs = tempdir().expect("a directory");
    let audit = |id: &str| audited(logs.path(), id);
    let far =
        [&["--runtime-config=authentication.k8s.io/v1=false".to_owned(), egress], &audit("a")[..]].concat();
    let far = fleet.start("apiserver-a", &texts(&far)).await;
    let near = fleet.start("apiserver-b", &texts(&audit("b"))).await;
    agreed(&[&far, &near]).await;
    let impersonated = [
        ("impersonate-user", "ann@example.com"),
        ("impersonate-uid", "u-1"),
        ("impersonate-group", "system:masters"),
        ("impersonate-group", "a group"),
        ("impersonate-group", "oidc:x/y"),
        ("impersonate-extra-example.com%2fscopes", "one"),
        ("impersonate-extra-example.com%2fscopes", "two, with a comma"),
        ("impersonate-extra-odd%25key", "100%"),
        ("impersonate-extra-empty", ""),
    ];
    for protocol in [Protocol::Http1, Protocol::Http2] {
        for headers in [&[][..], &impersonated] {
            let through = seen(&mut far.program.admin(protocol).await, headers).await;
            assert_eq!(through, seen(&mut near.program.admin(protocol).await, headers).await);
            if !headers.is_empty() {
                assert_eq!(through["username"], "ann@example.com");
                assert_eq!(through["uid"], "u-1");
                assert_eq!(through["extra"]["example.com/scopes"], json!(["one", "two, with a comma"]));
                assert_eq!(through["extra"]["odd%key"], json!(["100%"]));
            }
        }
    }
    // One with a token, of which the server knows more than the name.
    let path = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"metadata": {"name": "robot"}});
    assert_eq!(send(&mut far.admin().await, Method::POST, path, &account).await.0, 201);
    let request = json!({"spec": {"expirationSeconds": 600}});
    let path = format!("{path}/robot/token");
    let (status, issued, _) = send(&mut far.admin().await, Method::POST, &path, &request).await;
    assert_eq!(status, 201, "{issued}");
    let bearer = format!("Bearer {}", issued["status"]["token"].as_str().expect("a token"));
    let headers = [("authorization", bearer.as_str())];
    let through = seen(&mut anonymous(&fleet, &far).await, &headers).await;
    assert_eq!(through, seen(&mut anonymous(&fleet, &near).await, &headers).await);
    assert_eq!(through["username"], "system:serviceaccount:default:robot");
    assert!(through["extra"]["authentication.kubernetes.io/credential-id"].is_array(), "{through}");
    denied_where_it_arrives(&fleet, &far).await;
    both_logs_tell_of_one_request(&far, logs.path()).await;
    assert!(proxy.tunnels() > 0);
}

/// Who may not is told so by the first server, and the other one never hears of it.
async fn denied_where_it_arrives(fleet: &Fleet, far: &Member) {
    let before = far.metrics().await;
    let mut nobody = anonymous(fleet, far).await;
    let answer = nobody.exchange(Method::POST, REVIEWS, &[], Bytes::from_static(b"{}")).await;
    assert_eq!(answer.expect("an answer").status, 403);
    let sent = |metrics: &str| -> Vec<String> {
        let of = "apiserver_rerouted_request_total{code";
        let reviews = |line: &&str| line.starts_with(of) && line.contains("selfsubjectreviews");
        metrics.lines().filter(reviews).map(ToOwned::to_owned).collect()
    };
    assert_eq!(sent(&far.metrics().await), sent(&before));
}

/// The flags of a server that writes down who asked for what.
pub(super) fn audited(directory: &Path, id: &str) -> Vec<String> {
    let policy = directory.join("policy.yaml");
    let rules = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";
    fs::write(&policy, rules).expect("written");
    vec![
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", directory.join(id).display()),
    ]
}

pub(super) fn texts(flags: &[String]) -> Vec<&str> {
    flags.iter().map(String::as_str).collect()
}

/// The first server says to whom it sent a request, and both call it and its user by one name.
async fn both_logs_tell_of_one_request(far: &Member, logs: &Path) {
    let headers =
        [("audit-id", "of-the-client"), ("impersonate-user", "ann"), ("impersonate-group", "system:masters")];
    let headers = [&[("content-type", "application/json")], &headers[..]].concat();
    let mut admin = far.admin().await;
    let answer = admin.exchange(Method::POST, REVIEWS, &headers, Bytes::from_static(b"{}")).await;
    let answer = answer.expect("an answer");
    let ids: Vec<_> = answer.headers.get_all("audit-id").iter().collect();
    assert_eq!(ids, ["of-the-client"]);
    for (id, user) in [("a", "/impersonatedUser/username"), ("b", "/user/username")] {
        let event = eventually("it is written down", || async {
            let log = fs::read_to_string(logs.join(id)).expect("text");
            let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_default());
            let is_it =
                |event: &Value| event["auditID"] == "of-the-client" && event["stage"] == "ResponseComplete";
            events.into_iter().find(is_it)
        });
        let event = event.await;
        assert_eq!(event.pointer(user), Some(&json!("ann")), "{event}");
        let sent_to = &event["annotations"]["apiserver.kubernetes.io/peer-proxied-to"];
        assert_eq!(*sent_to, if id == "a" { json!("apiserver-b") } else { Value::Null }, "{event}");
    }
}
