//! Nothing that is secret is in any output: logs at their most talkative, errors, metrics, the audit log.

use std::fs;

use bytes::Bytes;
use concord_server::test_client::{Protocol, TestClient};
use http::Method;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{Program, key_material};

const JSON: (&str, &str) = ("content-type", "application/json");
const MERGE: (&str, &str) = ("content-type", "application/merge-patch+json");
/// What nobody but its owner may read, as it is and as it is sent and stored.
const TOKEN: &str = "static-token-7f3a";
const WRONG: &str = "wrong-token-91cd";
const PASSWORD: &str = "correct-horse-battery";
const ENCODED: &str = "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5";

const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: Metadata, resources: [{group: "", resources: [secrets, "serviceaccounts/token"]}, {group: authentication.k8s.io}]}
- {level: RequestResponse}
"#;

/// Sends requests and keeps the errors that it is answered with.
struct Asker {
    client: TestClient,
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
}

fn in_namespace(resource: &str) -> String {
    format!("/api/v1/namespaces/default/{resource}")
}

/// Good and bad requests about everything that is secret. Gives what must not be told, and all errors.
async fn use_secrets(program: &Program) -> (Vec<String>, String) {
    let client = program.admin(Protocol::Http1).await;
    let mut asker = Asker { client, errors: String::new() };
    let (post, secrets, secret) = (Method::POST, in_namespace("secrets"), in_namespace("secrets/s"));
    let data = json!({"metadata": {"name": "s"}, "stringData": {"password": PASSWORD}}).to_string();
    asker.send(post.clone(), &secrets, &[JSON], &data).await;
    // Whatever is wrong with an object, what is in it is not part of the answer.
    asker.send(post.clone(), &secrets, &[JSON], &data).await;
    let bad_key = json!({"metadata": {"name": "t"}, "data": {"a b": ENCODED}}).to_string();
    asker.send(post.clone(), &secrets, &[JSON], &bad_key).await;
    let stale =
        json!({"metadata": {"name": "s", "resourceVersion": "1"}, "data": {"p": ENCODED}}).to_string();
    asker.send(Method::PUT, &secret, &[JSON], &stale).await;
    asker.send(Method::PATCH, &secret, &[MERGE], &json!({"data": {"q": ENCODED}}).to_string()).await;
    asker.send(Method::GET, &format!("{secret}?pretty=true"), &[], "").await;
    asker.send(Method::GET, &secrets, &[("authorization", &format!("Bearer {TOKEN}"))], "").await;
    asker.send(Method::GET, &secrets, &[("authorization", &format!("Bearer {WRONG}"))], "").await;
    let account = json!({"metadata": {"name": "robot"}}).to_string();
    asker.send(post.clone(), &in_namespace("serviceaccounts"), &[JSON], &account).await;
    let request = json!({"spec": {"expirationSeconds": 3600}}).to_string();
    let path = in_namespace("serviceaccounts/robot/token");
    let issued = asker.send(post.clone(), &path, &[JSON], &request).await;
    let issued = issued["status"]["token"].as_str().expect("a token").to_owned();
    let truncated = &issued[..issued.len() - 9];
    for token in [issued.as_str(), truncated] {
        asker.send(Method::GET, "/api", &[("authorization", &format!("Bearer {token}"))], "").await;
        let review = json!({"spec": {"token": token}}).to_string();
        asker.send(post.clone(), "/apis/authentication.k8s.io/v1/tokenreviews", &[JSON], &review).await;
    }
    let metrics = asker.client.get("/metrics").await.expect("metrics").body;
    let signature = issued.rsplit('.').next().expect("a signature").to_owned();
    let hidden = [TOKEN, WRONG, PASSWORD, ENCODED].map(str::to_owned);
    (hidden.into_iter().chain([truncated.to_owned(), signature]).collect(), asker.errors + &metrics)
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
