//! Asking the server about others, and who may ask nothing at all.

use std::time::Instant;

use concord_server::test_client::Protocol;
use http::Method;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{Program, SOON, send};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const LOCAL_REVIEWS: &str = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
const CLUSTER_BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

fn binding(name: &str, role: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    })
}

/// What alice may do with nodes anywhere, and here.
fn about(verb: &str, namespace: &str) -> Value {
    let resource = json!({"verb": verb, "resource": "nodes", "namespace": namespace});
    json!({"spec": {"user": "alice", "resourceAttributes": resource}})
}

#[tokio::test]
async fn what_others_may_do_can_be_asked_everywhere_and_in_one_namespace() {
    let data = tempdir().expect("a directory");
    let program = Program::start(data.path()).await;
    program.ready(200).await;
    let mut admin = program.admin(Protocol::Http2).await;
    let allowed = |reason: &str| json!({"allowed": true, "reason": reason});
    let here = r#"RBAC: allowed by RoleBinding "alice/default" of ClusterRole "system:node-problem-detector" to User "alice""#;
    let anywhere = r#"RBAC: allowed by ClusterRoleBinding "alice" of ClusterRole "system:node-problem-detector" to User "alice""#;
    let steps = [
        (None, [json!({"allowed": false}), json!({"allowed": false})]),
        (Some(BINDINGS), [allowed(here), allowed(here)]),
        (Some(CLUSTER_BINDINGS), [allowed(anywhere), allowed(anywhere)]),
    ];
    for (bound, expected) in steps {
        if let Some(path) = bound {
            let body = binding("alice", "system:node-problem-detector");
            assert_eq!(send(&mut admin, Method::POST, path, &body).await.0, 201);
        }
        for (path, expected) in [REVIEWS, LOCAL_REVIEWS].into_iter().zip(expected) {
            let (status, review, _) = send(&mut admin, Method::POST, path, &about("get", "default")).await;
            assert_eq!((status, &review["status"]), (201, &expected), "{path}");
            let (_, review, _) = send(&mut admin, Method::POST, path, &about("delete", "default")).await;
            assert_eq!(review["status"], json!({"allowed": false}), "{path}");
        }
    }
    let (status, refused, _) = send(&mut admin, Method::POST, LOCAL_REVIEWS, &about("get", "other")).await;
    let message = refused["message"].as_str().expect("a message");
    let why = "spec.resourceAttributes.namespace: Invalid value: \"other\": must match metadata.namespace";
    assert!(status == 422 && message.ends_with(why), "{message}");
    // Who may not ask about others is told nothing of them.
    let mut nobody = program.stranger(Protocol::Http2).await;
    let (status, refused, _) = send(&mut nobody, Method::POST, REVIEWS, &about("get", "default")).await;
    let why = r#"User "system:anonymous" cannot create resource "subjectaccessreviews" in API group "authorization.k8s.io" at the cluster scope"#;
    assert_eq!(status, 403);
    assert!(refused["message"].as_str().is_some_and(|message| message.ends_with(why)), "{refused}");
}

#[tokio::test]
async fn who_presents_nothing_is_sent_away_where_nobody_may_be_anonymous() {
    let data = tempdir().expect("a directory");
    let program = Program::start_with(data.path(), &["--anonymous-auth=false"]).await;
    let mut admin = program.admin(Protocol::Http2).await;
    let begin = Instant::now();
    while admin.get("/readyz").await.expect("an answer").status != 200 {
        assert!(begin.elapsed() < SOON, "not in time");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    for protocol in [Protocol::Http1, Protocol::Http2] {
        for path in ["/livez", "/version", "/api", "/no/such/path"] {
            let answer = program.get(protocol, path).await;
            let body: Value = serde_json::from_str(&answer.body).expect("JSON");
            assert_eq!((answer.status, &body["message"]), (401, &json!("Unauthorized")), "{path}");
        }
    }
}

/// What others need in order to believe the tokens of this server's accounts.
#[tokio::test]
async fn the_keys_of_tokens_are_there_for_who_may_read_them() {
    let data = tempdir().expect("a directory");
    let program = Program::start(data.path()).await;
    program.ready(200).await;
    let mut admin = program.admin(Protocol::Http2).await;
    let (status, configuration, _) =
        send(&mut admin, Method::GET, "/.well-known/openid-configuration", &Value::Null).await;
    assert_eq!(status, 200, "{configuration}");
    assert_eq!(configuration["response_types_supported"], json!(["id_token"]));
    let address = configuration["jwks_uri"].as_str().expect("an address");
    assert!(address.ends_with("/openid/v1/jwks"), "{address}");
    let (status, keys, _) = send(&mut admin, Method::GET, "/openid/v1/jwks", &Value::Null).await;
    assert_eq!(status, 200, "{keys}");
    let token = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let begin = Instant::now();
    let token = loop {
        let (status, made, _) = send(&mut admin, Method::POST, token, &json!({})).await;
        if status == 201 {
            break made["status"]["token"].as_str().expect("a token").to_owned();
        }
        assert!(begin.elapsed() < SOON, "not in time: {made}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    let header = token.split('.').next().expect("a header");
    let header = base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, header);
    let header: Value = serde_json::from_slice(&header.expect("base64")).expect("JSON");
    let named = |key: &Value| (key["kid"].clone(), key["alg"].clone(), key["use"].clone());
    let published: Vec<_> = keys["keys"].as_array().into_iter().flatten().map(named).collect();
    assert_eq!(published, [(header["kid"].clone(), header["alg"].clone(), json!("sig"))]);
    assert_eq!(program.get(Protocol::Http2, "/openid/v1/jwks").await.status, 403, "not for everybody");
}
