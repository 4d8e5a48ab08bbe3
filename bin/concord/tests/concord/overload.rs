//! What happens to requests that are too many, and what is told about the flows they belong to.

use std::{fs, time::Instant};

use bytes::Bytes;
use concord_server::test_client::{Answer, Protocol, Target, TestClient};
use concord_testing::webhook::{Certificate, Reply, WebhookServer};
use http::Method;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{Program, SOON, send};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const FLOW_CONTROL: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";

const POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata}
";

async fn create_map(client: &mut TestClient, name: &str) -> Answer {
    let headers = [("content-type", "application/json"), ("authorization", "Bearer one")];
    let body = Bytes::from(json!({"metadata": {"name": name}}).to_string());
    client.exchange(Method::POST, CONFIG_MAPS, &headers, body).await.expect("an answer")
}

/// A webhook that never answers, for config maps whose names say so.
async fn hang(admin: &mut TestClient) -> WebhookServer {
    let hook =
        WebhookServer::start(Certificate::For("127.0.0.1"), |_| Reply::never()).await.expect("a webhook");
    let authority = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &hook.authority);
    let webhook = json!({
        "name": "hook.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 30,
        "clientConfig": {"url": format!("https://127.0.0.1:{}/", hook.port), "caBundle": authority},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "matchConditions": [{"name": "slow", "expression": "object.metadata.name == 'slow'"}],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let body = json!({"metadata": {"name": "hang"}, "webhooks": [webhook]});
    let (status, answer, _) = send(admin, Method::POST, path, &body).await;
    assert_eq!(status, 201, "{answer}");
    hook
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_sent_away_is_told_when_to_come_back_and_written_down() {
    let place = tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let log = place.path().join("audit.log");
    let arguments = [
        format!("--token-auth-file={}", file("tokens.csv", "one,alice,1\n")),
        format!("--audit-policy-file={}", file("policy.yaml", POLICY)),
        format!("--audit-log-path={}", log.display()),
        "--enable-priority-and-fairness=false".to_owned(),
        "--max-mutating-requests-inflight=1".to_owned(),
    ];
    let data = place.path().join("data");
    let program = Program::start_with(&data, &arguments.each_ref().map(String::as_str)).await;
    program.ready(200).await;
    let mut admin = program.admin(Protocol::Http2).await;
    let hook = hang(&mut admin).await;
    let role =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"});
    let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"});
    let binding = json!({"metadata": {"name": "alice"}, "roleRef": role, "subjects": [subject]});
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    assert_eq!(send(&mut admin, Method::POST, bindings, &binding).await.0, 201);

    let target = || Target::new(program.address, &data.join("pki/ca.crt"), Protocol::Http1);
    let mut slow = target().connect().await.expect("a connection");
    let under_way = tokio::spawn(async move { create_map(&mut slow, "slow").await.status });
    let begin = Instant::now();
    while hook.take_asked().is_empty() {
        assert!(begin.elapsed() < SOON && !under_way.is_finished(), "the webhook is not asked");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let mut client = target().connect().await.expect("a connection");
    let refused = create_map(&mut client, "refused").await;
    assert_eq!((refused.status, &*refused.body), (429, "Too many requests, please try again later.\n"));
    assert_eq!(refused.headers.get("retry-after").map(http::HeaderValue::as_bytes), Some(&b"1"[..]));
    under_way.abort();
    assert_eq!(send(&mut admin, Method::GET, &format!("{CONFIG_MAPS}/refused"), &Value::Null).await.0, 404);

    program.signal("TERM");
    program.ended().await;
    let audited = fs::read_to_string(&log).expect("an audit log");
    let mut events = audited.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let event =
        events.find(|event| event["responseStatus"]["code"] == 429).expect("the refusal is written down");
    assert_eq!((&event["verb"], &event["user"]["username"]), (&json!("create"), &json!("alice")));
    assert_eq!(event["objectRef"]["resource"], "configmaps");
}

#[tokio::test(flavor = "multi_thread")]
async fn flow_schemas_say_whether_their_priority_level_exists() {
    let data = tempdir().expect("a directory");
    let program = Program::start(data.path()).await;
    program.ready(200).await;
    let mut admin = program.admin(Protocol::Http2).await;
    let schema = json!({"metadata": {"name": "mine"}, "spec": {
        "priorityLevelConfiguration": {"name": "level"}, "matchingPrecedence": 700,
        "rules": [{
            "subjects": [{"kind": "User", "user": {"name": "alice"}}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        }],
    }});
    let told = "This FlowSchema references the PriorityLevelConfiguration object named \"level\"";
    let missing = ("True", "NotFound", format!("{told} but there is no such object"));
    let found = ("False", "Found", format!("{told} and it exists"));
    let level = json!({"metadata": {"name": "level"}, "spec": {
        "type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}},
    }});
    let levels = format!("{FLOW_CONTROL}/prioritylevelconfigurations");
    let steps = [
        (Method::POST, format!("{FLOW_CONTROL}/flowschemas"), schema, &missing),
        (Method::POST, levels.clone(), level, &found),
        (Method::DELETE, format!("{levels}/level"), Value::Null, &missing),
    ];
    for (method, path, body, (status, reason, message)) in steps {
        let (code, answer, _) = send(&mut admin, method, &path, &body).await;
        assert!(code < 300, "{answer}");
        let begin = Instant::now();
        loop {
            let path = format!("{FLOW_CONTROL}/flowschemas/mine");
            let (_, schema, _) = send(&mut admin, Method::GET, &path, &Value::Null).await;
            let condition = &schema["status"]["conditions"][0];
            if [&condition["type"], &condition["status"], &condition["reason"], &condition["message"]]
                == ["Dangling", *status, *reason, message.as_str()]
            {
                break;
            }
            assert!(begin.elapsed() < SOON, "not told: {reason} in {schema}");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}
