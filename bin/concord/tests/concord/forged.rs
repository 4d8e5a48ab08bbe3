//! Tokens that are no good, on the wire: whoever sends one is nobody, and nothing that comes with it is stored.

use std::time::{Duration, Instant};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use concord_server::test_client::{Answer, Protocol, TestClient};
use http::Method;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{Program, SOON, send};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const PODS: &str = "/api/v1/namespaces/default/pods";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

async fn create(admin: &mut TestClient, path: &str, object: &Value) -> Value {
    let (status, answer, _) = send(admin, Method::POST, path, object).await;
    assert_eq!(status, 201, "{answer}");
    answer
}

async fn delete(admin: &mut TestClient, path: &str) {
    let (status, answer, _) = send(admin, Method::DELETE, path, &Value::Null).await;
    assert_eq!(status, 200, "{answer}");
}

/// A token of an account, with what the spec of the request says.
async fn token(admin: &mut TestClient, account: &str, spec: Value) -> String {
    let made = create(admin, &format!("{ACCOUNTS}/{account}/token"), &json!({ "spec": spec })).await;
    made["status"]["token"].as_str().expect("a token").to_owned()
}

/// A token that ends with an object of the same name as the kind in lower case.
async fn bound(admin: &mut TestClient, kind: &str) -> String {
    let reference = json!({"kind": kind, "apiVersion": "v1", "name": kind.to_lowercase()});
    token(admin, "strong", json!({ "boundObjectRef": reference })).await
}

/// Creates a map of this name with a token.
async fn attempt(client: &mut TestClient, token: &str, name: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let map = json!({"metadata": {"name": name}}).to_string();
    client.exchange(Method::POST, CONFIG_MAPS, &headers, map.into()).await.expect("an answer")
}

/// The same token under another algorithm, with a signature or without.
fn with_algorithm(good: &str, algorithm: &str, signature: &str) -> String {
    let (header, rest) = good.split_once('.').expect("three parts");
    let (payload, _) = rest.split_once('.').expect("three parts");
    let header = URL_SAFE_NO_PAD.decode(header).expect("base64");
    let mut header: Value = serde_json::from_slice(&header).expect("JSON");
    header["alg"] = algorithm.into();
    format!("{}.{payload}.{signature}", URL_SAFE_NO_PAD.encode(header.to_string()))
}

/// Accounts that may do everything, and what their tokens are bound to.
async fn prepare(admin: &mut TestClient) {
    let role =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"});
    let mut subjects = Vec::new();
    for name in ["strong", "gone"] {
        create(admin, ACCOUNTS, &json!({"metadata": {"name": name}})).await;
        subjects.push(json!({"kind": "ServiceAccount", "namespace": "default", "name": name}));
    }
    let binding = json!({"metadata": {"name": "strong"}, "roleRef": role, "subjects": subjects});
    create(admin, BINDINGS, &binding).await;
    create(admin, SECRETS, &json!({"metadata": {"name": "secret"}})).await;
    let spec = json!({"serviceAccountName": "strong", "containers": [{"name": "c", "image": "i"}]});
    create(admin, PODS, &json!({"metadata": {"name": "pod"}, "spec": spec})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_a_bad_token_is_nobody_and_stores_nothing() {
    let data = tempdir().expect("a directory");
    let program = Program::start(data.path()).await;
    program.ready(200).await;
    let mut admin = program.admin(Protocol::Http2).await;
    prepare(&mut admin).await;
    let good = token(&mut admin, "strong", json!({})).await;
    let other_audience = token(&mut admin, "strong", json!({"audiences": ["vault"]})).await;
    let [of_pod, of_secret] = [bound(&mut admin, "Pod").await, bound(&mut admin, "Secret").await];
    let of_account = token(&mut admin, "gone", json!({})).await;
    for (name, token) in
        [("good", &good), ("good-pod", &of_pod), ("good-secret", &of_secret), ("good-account", &of_account)]
    {
        let mut client = program.stranger(Protocol::Http2).await;
        assert_eq!(attempt(&mut client, token, name).await.status, 201, "{name}");
    }
    delete(&mut admin, &format!("{PODS}/pod?gracePeriodSeconds=0")).await;
    delete(&mut admin, &format!("{SECRETS}/secret")).await;
    delete(&mut admin, &format!("{ACCOUNTS}/gone")).await;

    let signature = good.rsplit('.').next().expect("a signature").to_owned();
    let bad = [
        ("audience", other_audience),
        ("none", with_algorithm(&good, "none", "")),
        ("none-signed", with_algorithm(&good, "none", &signature)),
        ("hmac", with_algorithm(&good, "HS256", &signature)),
        ("unsigned", good[..good.len() - signature.len()].to_owned()),
        ("truncated", good[..good.len() - 8].to_owned()),
        ("half", good[..good.len() / 2].to_owned()),
        ("pod", of_pod),
        ("secret", of_secret),
        ("account", of_account),
    ];
    let unauthorized = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "Unauthorized",
        "reason": "Unauthorized", "code": 401,
    });
    for (name, token) in bad {
        for protocol in [Protocol::Http1, Protocol::Http2] {
            let begin = Instant::now();
            // That an object is gone is known a moment later.
            let answer = loop {
                let answer = attempt(&mut program.stranger(protocol).await, &token, name).await;
                if answer.status == 401 || begin.elapsed() > SOON {
                    break answer;
                }
                delete(&mut admin, &format!("{CONFIG_MAPS}/{name}")).await;
                tokio::time::sleep(Duration::from_millis(10)).await;
            };
            let body: Value = serde_json::from_str(&answer.body).expect("JSON");
            assert_eq!((answer.status, &body), (401, &unauthorized), "{name}");
        }
        let path = format!("{CONFIG_MAPS}/{name}");
        assert_eq!(send(&mut admin, Method::GET, &path, &Value::Null).await.0, 404, "{name}");
    }
    let mut client = program.stranger(Protocol::Http2).await;
    assert_eq!(attempt(&mut client, &good, "still-good").await.status, 201);
}
