//! Who is let in, what is written down about it, and who waits: as an operator sets it up.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Instant, SystemTime},
};

use bytes::Bytes;
use concord_pki::AdminPki;
use concord_server::test_client::{Answer, Protocol, Target, TestClient};
use http::Method;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::support::{CANARY, Ended, Program, SOON};

const JSON: (&str, &str) = ("content-type", "application/json");
const PATCH: (&str, &str) = ("content-type", "application/merge-patch+json");

/// A directory for a server, with what an operator puts beside it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Replaces a file at once, as a careful operator does.
    fn write(&self, name: &str, text: &str) -> String {
        let (path, new) = (self.path(name), self.path("new"));
        fs::write(&new, text).expect("written");
        fs::rename(new, &path).expect("renamed");
        path.display().to_string()
    }

    /// An authority with a client's certificate, whose common name is `kubernetes-admin`.
    fn pki(&self, name: &str) -> AdminPki {
        AdminPki::open_or_create(&self.path(name), SystemTime::now()).expect("a PKI")
    }

    async fn start(&self, arguments: &[String]) -> Program {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let program = Program::start_with(&self.path("data"), &arguments).await;
        program.ready(200).await;
        program
    }

    fn target(&self, program: &Program) -> Target {
        Target::new(program.address, &self.path("data/pki/ca.crt"), Protocol::Http1)
    }

    async fn client(&self, program: &Program) -> TestClient {
        self.target(program).connect().await.expect("a connection")
    }

    async fn with_certificate(&self, program: &Program, pki: &AdminPki) -> TestClient {
        let target = self.target(program).with_identity(&pki.certificate, &pki.key);
        target.connect().await.expect("a connection")
    }
}

async fn send(
    client: &mut TestClient,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Answer {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    client.exchange(method, path, headers, body).await.expect("an answer")
}

async fn get(client: &mut TestClient, path: &str, headers: &[(&str, &str)]) -> Answer {
    send(client, Method::GET, path, headers, &Value::Null).await
}

fn object(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).expect("JSON")
}

/// Asks again and again until the answer is as it should be.
async fn until(
    what: &str,
    client: &mut TestClient,
    path: &str,
    headers: &[(&str, &str)],
    good: impl Fn(&Answer) -> bool,
) -> Answer {
    let begin = Instant::now();
    loop {
        let answer = get(client, path, headers).await;
        if good(&answer) {
            return answer;
        }
        assert!(begin.elapsed() < SOON, "not in time: {what}: {}", answer.body);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

async fn who(client: &mut TestClient, headers: &[(&str, &str)]) -> (u16, Value) {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let headers = [headers, &[JSON]].concat();
    let answer = send(client, Method::POST, path, &headers, &review).await;
    (answer.status, object(&answer)["status"]["userInfo"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn proxies_say_who_their_clients_are_and_others_learn_whom_to_believe() {
    let place = Place::new();
    let (front, users) = (place.pki("front"), place.pki("users"));
    let front_ca = place.write("front.pem", &front.ca);
    let users_ca = place.write("users.pem", &users.ca);
    let program = place
        .start(&[
            format!("--client-ca-file={users_ca}"),
            format!("--requestheader-client-ca-file={front_ca}"),
            "--requestheader-allowed-names=kubernetes-admin,aggregator".to_owned(),
            "--requestheader-username-headers=X-Remote-User".to_owned(),
            "--requestheader-group-headers=X-Remote-Group".to_owned(),
            "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        ])
        .await;
    let said = [("x-remote-user", "alice"), ("x-remote-group", "devs"), ("x-remote-extra-scope", "a")];
    let (status, user) = who(&mut place.with_certificate(&program, &front).await, &said).await;
    let expected =
        json!({"username": "alice", "groups": ["devs", "system:authenticated"], "extra": {"scope": ["a"]}});
    assert_eq!((status, user), (201, expected));
    let (_, user) = who(&mut place.with_certificate(&program, &users).await, &said).await;
    assert_eq!(user["username"], "kubernetes-admin", "the certificate of a user is no proxy's");
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let mut admin = program.admin(Protocol::Http1).await;
    let answer = until("the ConfigMap is there", &mut admin, path, &[], |answer| answer.status == 200).await;
    let data = object(&answer)["data"].clone();
    for (key, expected) in [
        ("requestheader-allowed-names", r#"["kubernetes-admin","aggregator"]"#),
        ("requestheader-username-headers", r#"["X-Remote-User"]"#),
        ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
        ("requestheader-extra-headers-prefix", r#"["X-Remote-Extra-"]"#),
        ("requestheader-client-ca-file", &*front.ca),
    ] {
        assert_eq!(data[key], expected, "{key}");
    }
    let client_ca = data["client-ca-file"].as_str().expect("a bundle").to_owned();
    assert!(client_ca.contains(users.ca.trim()), "{client_ca}");
    assert_eq!(client_ca.matches("BEGIN").count(), 2, "the server's own, and the operator's");
    assert_eq!(data.get("requestheader-uid-headers"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_again_when_they_change() {
    let place = Place::new();
    let (first, second, front) = (place.pki("first"), place.pki("second"), place.pki("front"));
    let tokens = place.write("tokens.csv", "one,alice,1\n");
    let users = place.write("users.pem", &first.ca);
    let proxies = place.write("front.pem", &first.ca);
    let program = place
        .start(&[
            format!("--token-auth-file={tokens}"),
            format!("--client-ca-file={users}"),
            format!("--requestheader-client-ca-file={proxies}"),
            "--requestheader-username-headers=X-Remote-User".to_owned(),
        ])
        .await;
    let mut client = place.client(&program).await;
    let (alice, bob) = ([("authorization", "Bearer one")], [("authorization", "Bearer two")]);
    assert_eq!(get(&mut client, "/api", &alice).await.status, 200);
    assert_eq!(get(&mut client, "/api", &bob).await.status, 401);
    place.write("tokens.csv", "two,bob,2\n");
    until("bob is known", &mut client, "/api", &bob, |answer| answer.status == 200).await;
    assert_eq!(get(&mut client, "/api", &alice).await.status, 401, "who is no longer there");

    let mut connected = place.with_certificate(&program, &second).await;
    assert_eq!(get(&mut connected, "/api", &[]).await.status, 401);
    place.write("users.pem", &second.ca);
    until("the authority is known", &mut connected, "/api", &[], |answer| answer.status == 200).await;

    let mut proxy = place.with_certificate(&program, &front).await;
    let said = [("x-remote-user", "carol")];
    assert_eq!(get(&mut proxy, "/api", &said).await.status, 401);
    place.write("front.pem", &front.ca);
    until("the proxy is known", &mut proxy, "/api", &said, |answer| answer.status == 200).await;

    // What cannot be used changes nothing. All files are looked at in one round, round after round: once two rounds have
    // been seen, one of them has looked at all.
    place.write("tokens.csv", "broken\n");
    place.write("users.pem", "broken\n");
    for (ca, status) in [(&first.ca, 401), (&front.ca, 200)] {
        place.write("front.pem", ca);
        until("the files were read", &mut proxy, "/api", &said, |answer| answer.status == status).await;
    }
    assert_eq!(get(&mut client, "/api", &bob).await.status, 200);
    assert_eq!(get(&mut connected, "/api", &[]).await.status, 200);
    let log = stop(program).await.stderr;
    assert!(log.contains("cannot be used; what it held before stays in force"), "{log}");
    assert!(log.contains("must have at least 3 columns"), "{log}");
}

async fn stop(program: Program) -> Ended {
    program.signal("TERM");
    program.ended().await
}

const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: RequestResponse, resources: [{group: "", resources: [configmaps]}], omitManagedFields: true}
- {level: Metadata, resources: [{group: "", resources: [secrets]}]}
- {level: Metadata, nonResourceURLs: [/api]}
- {level: None}
"#;

fn events(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("an audit log");
    text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
}

/// The event about a request that ended so.
fn about<'a>(events: &'a [Value], verb: &str, user: &str, code: u16) -> &'a Value {
    let found = events.iter().find(|event| {
        event["verb"] == verb && event["user"]["username"] == user && event["responseStatus"]["code"] == code
    });
    found.unwrap_or_else(|| panic!("{verb} by {user} with {code} is missing in {events:#?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_policy_wants_is_written_down() {
    let place = Place::new();
    let tokens = place.write("tokens.csv", "one,alice,1\n");
    let policy = place.write("policy.yaml", POLICY);
    let log = place.path("logs/audit.log");
    let program = place
        .start(&[
            format!("--token-auth-file={tokens}"),
            format!("--audit-policy-file={policy}"),
            format!("--audit-log-path={}", log.display()),
        ])
        .await;
    let mut admin = program.admin(Protocol::Http2).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"metadata": {"name": "a"}, "data": {"x": "<y>"}});
    assert_eq!(send(&mut admin, Method::POST, maps, &[JSON], &map).await.status, 201);
    let one = format!("{maps}/a");
    let patch = json!({"data": {"x": "z"}});
    assert_eq!(send(&mut admin, Method::PATCH, &one, &[PATCH], &patch).await.status, 200);
    assert_eq!(send(&mut admin, Method::DELETE, &one, &[], &Value::Null).await.status, 200);
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": CANARY}});
    let secrets = "/api/v1/namespaces/default/secrets";
    assert_eq!(send(&mut admin, Method::POST, secrets, &[JSON], &secret).await.status, 201);
    let impersonate = [("impersonate-user", "bob"), ("impersonate-group", "devs")];
    assert_eq!(get(&mut admin, secrets, &impersonate).await.status, 403);
    let mut client = place.client(&program).await;
    assert_eq!(get(&mut client, secrets, &[("authorization", "Bearer one")]).await.status, 403);
    assert_eq!(get(&mut client, "/api", &[("authorization", "Bearer wrong")]).await.status, 401);
    let metrics = get(&mut admin, "/metrics", &[]).await.body;
    assert!(metrics.contains("apiserver_audit_event_total "), "{metrics}");
    assert!(metrics.contains("apiserver_audit_error_total{plugin=\"log\"} 0\n"), "{metrics}");
    drop((admin, client));
    stop(program).await;

    let events = events(&log);
    let admin = "kubernetes-admin";
    let created = about(&events, "create", admin, 201);
    let reference =
        json!({"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"});
    assert_eq!(created["objectRef"], reference);
    assert_eq!(created["requestObject"]["data"], json!({"x": "<y>"}));
    assert_eq!(created["responseObject"]["metadata"].get("managedFields"), None);
    assert_eq!(created["responseObject"]["metadata"]["name"], "a");
    assert_eq!(created["annotations"]["authorization.k8s.io/decision"], "allow");
    assert_eq!(created["sourceIPs"], json!(["127.0.0.1"]));
    assert_eq!(about(&events, "patch", admin, 200)["requestObject"], patch);
    let deleted = about(&events, "delete", admin, 200);
    assert_eq!(deleted["responseStatus"]["status"], "Success");
    assert_eq!(deleted["responseStatus"]["details"]["name"], "a");
    let impersonated = about(&events, "list", admin, 403);
    assert_eq!(impersonated["impersonatedUser"]["username"], "bob");
    let constraint = &impersonated["authenticationMetadata"]["impersonationConstraint"];
    assert_eq!(constraint, "impersonate:user-info");
    let forbidden = about(&events, "list", "alice", 403);
    assert_eq!(forbidden["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(forbidden["responseStatus"]["reason"], "Forbidden");
    let unknown =
        events.iter().find(|event| event["responseStatus"]["code"] == 401).expect("the wrong token");
    assert_eq!((&unknown["user"], &unknown["stage"]), (&json!({}), &json!("ResponseStarted")));
    let secret = events.iter().find(|event| event["objectRef"]["name"] == "s").expect("the secret");
    assert_eq!((secret.get("requestObject"), secret.get("responseObject")), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_tell_the_flow_they_belong_to() {
    let place = Place::new();
    let tokens = place.write("tokens.csv", "one,alice,1\n");
    let program = place.start(&[format!("--token-auth-file={tokens}")]).await;
    let mut admin = program.admin(Protocol::Http2).await;
    let group = "/apis/flowcontrol.apiserver.k8s.io/v1";
    let mut client = place.client(&program).await;
    let alice = [("authorization", "Bearer one")];
    let header = |answer: &Answer| {
        let uid = answer.headers.get("x-kubernetes-pf-flowschema-uid");
        uid.and_then(|uid| uid.to_str().ok()).unwrap_or_default().to_owned()
    };
    for (schema, who) in [("exempt", &mut admin), ("global-default", &mut client)] {
        let headers = if schema == "exempt" { &[][..] } else { &alice };
        let mut asker = program.admin(Protocol::Http2).await;
        let path = format!("{group}/flowschemas/{schema}");
        let found = until("the schema is there", &mut asker, &path, &[], |answer| answer.status == 200).await;
        let uid = object(&found)["metadata"]["uid"].as_str().expect("a uid").to_owned();
        let answer = until("it counts", who, "/api", headers, |answer| header(answer) == uid).await;
        assert!(answer.headers.contains_key("x-kubernetes-pf-prioritylevel-uid"));
    }
    let rule = json!({
        "subjects": [{"kind": "User", "user": {"name": "alice"}}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    });
    let own = json!({"metadata": {"name": "alice"}, "spec": {
        "priorityLevelConfiguration": {"name": "workload-low"}, "matchingPrecedence": 700, "rules": [rule],
    }});
    let path = format!("{group}/flowschemas");
    let created = send(&mut admin, Method::POST, &path, &[JSON], &own).await;
    assert_eq!(created.status, 201, "{}", created.body);
    let uid = object(&created)["metadata"]["uid"].as_str().expect("a uid").to_owned();
    until("her own counts", &mut client, "/api", &alice, |answer| header(answer) == uid).await;
    let metrics = get(&mut admin, "/metrics", &[]).await.body;
    for expected in [
        "apiserver_flowcontrol_nominal_limit_seats{priority_level=\"global-default\"} 49\n",
        "apiserver_flowcontrol_dispatched_requests_total{flow_schema=\"alice\",priority_level=\"workload-low\"}",
    ] {
        assert!(metrics.contains(expected), "{expected} is missing in {metrics}");
    }
}
