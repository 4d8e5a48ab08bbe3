//! Changes of what is not registered yet, over real TLS and through the whole chain.

mod support;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use bytes::Bytes;
use concord_audit::{Event, Policy};
use concord_meta::GroupResource;
use concord_server::{
    Auditing, Config, Handler, PrivilegedGroups, Request, Response, Served, StorageVersions, TokenFile,
    Union,
    test_client::{Answer, Protocol, TestClient},
    text,
};
use http::{HeaderValue, Method, StatusCode};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use support::Running;

/// The token of who; all but the stranger may do everything.
const TOKENS: &str =
    "admin,admin,1,system:masters\nserver,system:apiserver,2,system:masters\nnobody,nobody,3,x\n";

/// Registered one after the other.
#[derive(Default)]
struct Registering {
    done: Mutex<Vec<&'static str>>,
    failed: Mutex<Option<String>>,
    completed: Mutex<bool>,
}

impl StorageVersions for Registering {
    fn is_completed(&self) -> bool {
        *self.completed.lock()
    }

    fn pending(&self, resource: &GroupResource) -> Option<Option<String>> {
        let is_built_in =
            ["pods", "configmaps", "namespaces", "leases"].contains(&resource.resource.as_str());
        let is_done = self.done.lock().contains(&resource.resource.as_str());
        (is_built_in && !is_done).then(|| self.failed.lock().clone())
    }
}

/// Everything that comes after the filter: admission, webhooks and the store.
#[derive(Default)]
struct Behind(AtomicUsize);

#[async_trait]
impl Handler for Behind {
    async fn handle(&self, _: Request) -> Response {
        self.0.fetch_add(1, Ordering::Relaxed);
        let mut response = text(StatusCode::OK, "through");
        response.extensions_mut().insert(Served);
        response
    }
}

struct Held {
    server: Running,
    versions: Arc<Registering>,
    behind: Arc<Behind>,
    events: Arc<Mutex<Vec<Value>>>,
}

impl Held {
    async fn start() -> Self {
        let (versions, behind): (Arc<Registering>, Arc<Behind>) = (Arc::default(), Arc::default());
        let events: Arc<Mutex<Vec<Value>>> = Arc::default();
        let kept = events.clone();
        let policy = br#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}], "omitStages": ["RequestReceived"]}"#;
        let auditing = Auditing {
            policy: Policy::parse(policy, |_| {}).expect("a policy"),
            sink: Arc::new(move |event: &Event| {
                kept.lock().push(serde_json::from_slice(&event.to_json()).expect("JSON"));
            }),
        };
        let (same, handler) = (versions.clone(), behind.clone());
        let configure = |config: &mut Config| {
            let tokens = TokenFile::parse(TOKENS, "tokens.csv").expect("valid");
            config.authentication.tokens = vec![Arc::new(tokens)];
            config.authorizer = Arc::new(Union(vec![Arc::new(PrivilegedGroups::default())]));
            config.auditing = Some(Arc::new(auditing));
            config.storage_versions = Some(same);
            config.apis = handler;
        };
        let server = Running::start(configure).await;
        Self { server, versions, behind, events }
    }

    async fn client(&self) -> TestClient {
        self.server.client(Protocol::Http2).await
    }

    fn went_through(&self) -> usize {
        self.behind.0.swap(0, Ordering::Relaxed)
    }
}

async fn ask(
    client: &mut TestClient,
    method: Method,
    path: &str,
    token: &str,
    more: &[(&str, &str)],
) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [&[("authorization", bearer.as_str())], more].concat();
    client.exchange(method, path, &headers, Bytes::new()).await.expect("an answer")
}

const PODS: &str = "/api/v1/namespaces/a/pods";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/a/leases";
const NAMESPACES: &str = "/api/v1/namespaces";

#[tokio::test]
async fn who_may_not_learns_nothing_about_registration() {
    let held = Held::start().await;
    let mut client = held.client().await;
    for (token, status) in [("unknown", 401), ("nobody", 403), ("admin", 503)] {
        assert_eq!(ask(&mut client, Method::POST, PODS, token, &[]).await.status, status, "{token}");
    }
    assert_eq!(held.went_through(), 0, "nobody is asked, and nothing is stored");
}

#[tokio::test]
async fn every_verb_is_refused_in_the_form_that_is_accepted_and_written_down() {
    let held = Held::start().await;
    let mut client = held.client().await;
    let message =
        "wait for storage version registration to complete for resource: pods, last seen error: <nil>";
    let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": "ServiceUnavailable", "code": 503});
    let one = format!("{PODS}/x");
    let (status, dry) = (format!("{one}/status"), format!("{PODS}?dryRun=All"));
    let refused = [
        (Method::POST, PODS, "create"),
        (Method::POST, dry.as_str(), "create"),
        (Method::PUT, &one, "update"),
        (Method::PATCH, &status, "patch"),
        (Method::DELETE, &one, "delete"),
        (Method::DELETE, PODS, "deletecollection"),
    ];
    for (method, path, verb) in refused {
        let answer = ask(&mut client, method, path, "admin", &[]).await;
        assert_eq!(answer.status, 503, "{verb} {path}");
        assert_eq!(serde_json::from_str::<Value>(&answer.body).expect("JSON"), body);
        assert!(!answer.headers.contains_key("retry-after"));
        assert_eq!(answer.headers["cache-control"], "no-cache, private");
        let event = held.events.lock().pop().expect("an event");
        assert_eq!((&event["verb"], &event["responseStatus"]["code"]), (&json!(verb), &json!(503)));
        assert_eq!(event["responseStatus"]["message"], message);
        assert_eq!(event["auditID"], answer.headers["audit-id"].to_str().expect("text"));
    }
    let yaml = ask(&mut client, Method::POST, PODS, "admin", &[("accept", "application/yaml")]).await;
    assert_eq!(yaml.headers["content-type"], "application/yaml");
    let begins = "apiVersion: v1\ncode: 503\nkind: Status\nmessage: 'wait for storage version registration";
    assert!(yaml.body.starts_with(begins), "{}", yaml.body);
    let binary = refused_in_protobuf(&mut client).await;
    let contains = |text: &str| binary.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(binary.starts_with(b"k8s\0") && contains(message) && contains("ServiceUnavailable"));
    for (method, path) in [(Method::GET, PODS), (Method::HEAD, &one), (Method::GET, &format!("{one}/exec"))] {
        assert_eq!(ask(&mut client, method, path, "admin", &[]).await.status, 200, "reads are served");
    }
    assert_eq!(held.went_through(), 3);
}

/// The answer to a client that asks for protobuf alone.
async fn refused_in_protobuf(client: &mut TestClient) -> Bytes {
    let protobuf = "application/vnd.kubernetes.protobuf";
    let headers = [("authorization", "Bearer admin"), ("accept", protobuf)];
    let answer = client.send(Method::POST, PODS, &headers, Bytes::new()).await.expect("an answer");
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["content-type"]),
        (503, &HeaderValue::from_static(protobuf))
    );
    answer.into_body().collect().await.expect("a body").to_bytes()
}

#[tokio::test]
async fn only_the_server_itself_makes_namespaces_whoever_claims_to_be_it() {
    let held = Held::start().await;
    let mut client = held.client().await;
    let as_server = [("impersonate-user", "system:apiserver")];
    let as_privileged = [as_server[0], ("impersonate-group", "system:masters")];
    for (token, headers, status) in [
        ("server", &[][..], 200),
        ("admin", &[], 503),
        ("admin", &as_server, 403),
        ("admin", &as_privileged, 200),
    ] {
        let answer = ask(&mut client, Method::POST, NAMESPACES, token, headers).await;
        assert_eq!(answer.status, status, "{token} {headers:?}: {}", answer.body);
    }
    let of_the_system = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    for (path, status) in [(of_the_system, 200), (LEASES, 503)] {
        assert_eq!(ask(&mut client, Method::POST, path, "server", &[]).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn each_resource_opens_by_itself_and_errors_are_told() {
    let held = Held::start().await;
    let mut client = held.client().await;
    *held.versions.failed.lock() = Some("etcdserver: request timed out".to_owned());
    let refused = ask(&mut client, Method::POST, LEASES, "admin", &[]).await;
    let told = "resource: leases.coordination.k8s.io, last seen error: etcdserver: request timed out";
    assert!(refused.status == 503 && refused.body.contains(told), "{}", refused.body);
    held.versions.done.lock().push("pods");
    for (path, status) in [(PODS, 200), ("/api/v1/namespaces/a/configmaps", 503), (LEASES, 503)] {
        assert_eq!(ask(&mut client, Method::POST, path, "admin", &[]).await.status, status, "{path}");
    }
    let custom = "/apis/example.com/v1/foos";
    assert_eq!(ask(&mut client, Method::POST, custom, "admin", &[]).await.status, 200, "not built in");
    *held.versions.completed.lock() = true;
    assert_eq!(ask(&mut client, Method::POST, LEASES, "admin", &[]).await.status, 200);
    assert_eq!(held.went_through(), 3);
}
