//! Nothing that is secret is in any output: logs at their most talkative, errors, metrics, the audit log.

use std::fs;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use concord_server::test_client::{Protocol, TestClient};
use concord_testing::webhook::{Asked, Certificate, Reply, WebhookServer};
use http::Method;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{CANARY, CANARY_ENCODED, Program, key_material};

const JSON: (&str, &str) = ("content-type", "application/json");
const MERGE: (&str, &str) = ("content-type", "application/merge-patch+json");
/// What nobody but its owner may read, as it is and as it is sent and stored.
const TOKEN: &str = "static-token-7f3a";
const WRONG: &str = "wrong-token-91cd";
/// The most that can be asked for: what is secret is left out nevertheless.
const POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: RequestResponse}
";

/// Sends requests and keeps the errors that it is answered with.
struct Asker {
    client: TestClient,
    /// Without a certificate, which would go before any token.
    stranger: TestClient,
    errors: String,
}

impl Asker {
    async fn send(&mut self, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Value {
        let body = Bytes::from(body.to_owned());
        let answer = self.client.exchange(method, path, headers, body).await.expect("an answer");
        if answer.status >= 400 {
            self.errors.push_str(&answer.body);
        }
        serde_json::from_str(&answer.body).unwrap_or_default()
    }

    /// Asks who somebody with this token is, and for what it may not read.
    async fn send_token(&mut self, token: &str) -> (u16, Value) {
        let bearer = format!("Bearer {token}");
        let headers = [JSON, ("authorization", bearer.as_str())];
        let mut ask = async |method, path: &str, body: &'static str| {
            let answer = self.stranger.exchange(method, path, &headers, body.into()).await;
            let answer = answer.expect("an answer");
            self.errors.push_str(&answer.body);
            answer
        };
        ask(Method::GET, &in_namespace("secrets"), "").await;
        let who = ask(Method::POST, "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}").await;
        let review: Value = serde_json::from_str(&who.body).expect("JSON");
        (who.status, review["status"]["userInfo"]["username"].clone())
    }
}

fn in_namespace(resource: &str) -> String {
    format!("/api/v1/namespaces/default/{resource}")
}

/// Patches and bodies that are refused for what is in them, with the type they are sent as.
fn refused() -> Vec<(Method, &'static str, String)> {
    let kind = r#""apiVersion":"v1","kind":"Secret""#;
    let patch = |kind: &'static str, body: String| (Method::PATCH, kind, body);
    vec![
        patch("merge-patch+json", format!(r#"{{"kind":"Pod","stringData":{{"a":"{CANARY}"}}}}"#)),
        patch("merge-patch+json", format!(r#"{{"stringData":["{CANARY}"]}}"#)),
        patch("merge-patch+json", format!(r#"{{"datum":1,"stringData":{{"a":"{CANARY}"}}}}"#)),
        patch("json-patch+json", format!(r#"[{{"op":"add","path":"/data","value":"{CANARY}"}}]"#)),
        patch("json-patch+json", format!(r#"[{{"op":"test","path":"/data/password","value":"{CANARY}"}}]"#)),
        patch("strategic-merge-patch+json", format!(r#"{{"data":"{CANARY}"}}"#)),
        patch("strategic-merge-patch+json", format!(r#"{{"data":{{"$patch":"no","a":"{CANARY}"}}}}"#)),
        patch("apply-patch+yaml", format!(r#"{{{kind},"stringData":{{"a":{{"b":"{CANARY}"}}}}}}"#)),
        patch("apply-patch+yaml", format!(r#"{{{kind},"data":"{CANARY}"}}"#)),
        patch("apply-patch+yaml", format!("data: {{a: {CANARY}")),
        (Method::PUT, "json", format!(r#"{{"d":"{CANARY}"#)),
        (Method::PUT, "json", format!(r#"{{{kind},"stringData":"{CANARY}"}}"#)),
        (Method::PUT, "json", format!(r#"{{{kind},"data":{{"a":"{CANARY}"}}}}"#)),
        (Method::PUT, "yaml", format!("data: {{a: {CANARY}")),
    ]
}

/// Something that writes into every Secret.
async fn webhook() -> WebhookServer {
    let answer = |asked: &Asked| {
        let review: Value = serde_json::from_slice(&asked.body).expect("a review");
        let patch = json!([{"op": "add", "path": "/data/seen", "value": CANARY_ENCODED}]).to_string();
        let response = json!({
            "uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch),
        });
        let answer =
            json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
        Reply::ok(&answer.to_string())
    };
    WebhookServer::start(Certificate::For("127.0.0.1"), answer).await.expect("a webhook")
}

fn configuration(hook: &WebhookServer) -> Value {
    let config = json!({
        "url": format!("https://127.0.0.1:{}/", hook.port), "caBundle": STANDARD.encode(&hook.authority),
    });
    json!({"metadata": {"name": "all"}, "webhooks": [{
        "name": "all.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": config,
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]}],
    }]})
}

async fn send_refused(asker: &mut Asker, secret: &str) {
    for (method, kind, body) in refused() {
        let kind = format!("application/{kind}");
        let path = format!("{secret}?fieldManager=me&fieldValidation=Strict");
        let answer = asker.send(method, &path, &[("content-type", &kind)], &body).await;
        assert_eq!(answer["status"], "Failure", "{body}");
    }
}

/// Has a token issued and uses it, and what is not quite it.
async fn use_tokens(asker: &mut Asker) -> String {
    let account = json!({"metadata": {"name": "robot"}}).to_string();
    asker.send(Method::POST, &in_namespace("serviceaccounts"), &[JSON], &account).await;
    let request = json!({"spec": {"expirationSeconds": 3600}}).to_string();
    let path = in_namespace("serviceaccounts/robot/token");
    let issued = asker.send(Method::POST, &path, &[JSON], &request).await;
    let issued = issued["status"]["token"].as_str().expect("a token").to_owned();
    for token in [issued.as_str(), unsigned(&issued)] {
        let known = token == issued;
        let name = if known { json!("system:serviceaccount:default:robot") } else { Value::Null };
        assert_eq!(asker.send_token(token).await, (if known { 201 } else { 401 }, name));
        let review = json!({"spec": {"token": token}}).to_string();
        asker.send(Method::POST, "/apis/authentication.k8s.io/v1/tokenreviews", &[JSON], &review).await;
    }
    issued
}

/// A token without the end of its signature.
fn unsigned(token: &str) -> &str {
    &token[..token.len() - 9]
}

/// Good and bad requests about everything that is secret. Gives what must not be told, and all errors.
async fn use_secrets(program: &Program) -> (Vec<String>, String) {
    let client = program.admin(Protocol::Http1).await;
    let stranger = program.stranger(Protocol::Http1).await;
    let mut asker = Asker { client, stranger, errors: String::new() };
    let hook = webhook().await;
    let hooks = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    asker.send(Method::POST, hooks, &[JSON], &configuration(&hook).to_string()).await;
    let (post, secrets, secret) = (Method::POST, in_namespace("secrets"), in_namespace("secrets/s"));
    let data = json!({"metadata": {"name": "s"}, "stringData": {"password": CANARY}}).to_string();
    asker.send(post.clone(), &secrets, &[JSON], &data).await;
    // Whatever is wrong with an object, what is in it is not part of the answer.
    asker.send(post.clone(), &secrets, &[JSON], &data).await;
    let bad_key = json!({"metadata": {"name": "t"}, "data": {"a b": CANARY_ENCODED}}).to_string();
    asker.send(post.clone(), &secrets, &[JSON], &bad_key).await;
    let stale =
        json!({"metadata": {"name": "s", "resourceVersion": "1"}, "data": {"p": CANARY_ENCODED}}).to_string();
    asker.send(Method::PUT, &secret, &[JSON], &stale).await;
    asker.send(Method::PATCH, &secret, &[MERGE], &json!({"data": {"q": CANARY_ENCODED}}).to_string()).await;
    let read = asker.send(Method::GET, &format!("{secret}?pretty=true"), &[], "").await;
    assert_eq!(read["data"]["seen"], CANARY_ENCODED, "the webhook was asked");
    send_refused(&mut asker, &secret).await;
    assert_eq!(asker.send_token(TOKEN).await, (201, json!("alice")));
    assert_eq!(asker.send_token(WRONG).await.0, 401);
    let issued = use_tokens(&mut asker).await;
    let metrics = asker.client.get("/metrics").await.expect("metrics").body;
    let signature = issued.rsplit('.').next().expect("a signature").to_owned();
    let hidden = [TOKEN, WRONG, CANARY, CANARY_ENCODED].map(str::to_owned);
    (hidden.into_iter().chain([unsigned(&issued).to_owned(), signature]).collect(), asker.errors + &metrics)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_secret_is_told() {
    let place = tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let tokens = file("tokens.csv", &format!("{TOKEN},alice,1\n"));
    let policy = file("policy.yaml", POLICY);
    let log = place.path().join("audit.log");
    let arguments = [
        format!("--token-auth-file={tokens}"),
        format!("--audit-policy-file={policy}"),
        format!("--audit-log-path={}", log.display()),
        "--v=9".to_owned(),
    ];
    let data = place.path().join("data");
    let program = Program::start_with(&data, &arguments.each_ref().map(String::as_str)).await;
    program.ready(200).await;
    let (mut hidden, answered) = use_secrets(&program).await;
    let keys = key_material(&data.join("pki"));
    assert!(keys.len() > 4, "there are keys");
    hidden.extend(keys);
    // A bad file of secrets is not quoted either.
    fs::write(&tokens, format!("{WRONG},\"bob,2\n")).expect("written");
    program.signal("TERM");
    let ended = program.ended().await;
    let audited = fs::read_to_string(&log).expect("an audit log");
    assert!(ended.stderr.contains("DEBUG") && audited.lines().count() > 20, "there is something to look at");
    let issued = r#""authentication.kubernetes.io/issued-credential-id":"JTI="#;
    assert!(audited.contains(issued), "which token it was can be told without the token");
    for (output, text) in [
        ("log", &ended.stderr),
        ("standard output", &ended.stdout),
        ("audit log", &audited),
        ("answers", &answered),
    ] {
        for secret in &hidden {
            let found = text.find(secret.as_str());
            let around = found.map(|at| text[..at + secret.len()].lines().last().unwrap_or_default());
            assert_eq!(around, None, "{secret} is in the {output}");
        }
    }
}
