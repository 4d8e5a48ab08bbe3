//! Admission webhooks, as the program calls them. Texts and codes are what kube-apiserver answered to the same.

use std::time::{Duration, Instant};

use base64::{Engine, engine::general_purpose::STANDARD};
use concord_server::test_client::{Protocol, TestClient};
use concord_testing::webhook::{Asked, Certificate, Reply, WebhookServer};
use http::Method;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::support::{Program, SOON, send};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MUTATING: &str = "MutatingWebhookConfiguration";
const VALIDATING: &str = "ValidatingWebhookConfiguration";

/// A server, its administrator, and a webhook that does what its path says.
struct World {
    admin: TestClient,
    hook: WebhookServer,
    _program: Program,
    _data: TempDir,
}

fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

fn review(asked: &Asked) -> Value {
    serde_json::from_slice(&asked.body).expect("a review")
}

fn allowing(uid: &Value, more: &Value) -> Reply {
    let mut response = json!({"uid": uid, "allowed": true});
    for (field, value) in more.as_object().expect("an object") {
        response[field] = value.clone();
    }
    let answer =
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
    Reply::ok(&answer.to_string())
}

fn patching(uid: &Value, patch: &Value) -> Reply {
    allowing(uid, &json!({"patchType": "JSONPatch", "patch": base64(&patch.to_string())}))
}

/// What the webhook does, by the path it is called at.
fn answer(asked: &Asked) -> Reply {
    let review = review(asked);
    let uid = &review["request"]["uid"];
    let path = asked.line.trim_start_matches("POST ").split('?').next().unwrap_or_default();
    let add = |path: &str, value: &str| json!([{"op": "add", "path": path, "value": value}]);
    match path {
        "/deny" => allowing(uid, &json!({"allowed": false})),
        "/denymsg" => {
            let status = json!({"message": "no way", "code": 418, "reason": "Teapot"});
            allowing(uid, &json!({"allowed": false, "status": status}))
        }
        "/warn" => allowing(uid, &json!({"warnings": ["careful"], "auditAnnotations": {"a": "b"}})),
        "/uid" => allowing(uid, &json!({"uid": "wrong"})),
        "/patch" => patching(uid, &add("/data/x", "y")),
        "/patch-again" if review["request"]["object"]["data"]["second"].is_null() => {
            patching(uid, &add("/data/first", "once"))
        }
        "/patch-again" => patching(uid, &add("/data/first", "twice")),
        "/patch-second" => patching(uid, &add("/data/second", "yes")),
        "/patch-bad" => patching(uid, &json!([{"op": "replace", "path": "/nope/x", "value": "y"}])),
        "/patch-kind" => patching(uid, &json!([{"op": "replace", "path": "/data", "value": "y"}])),
        "/patch-garbage" => allowing(uid, &json!({"patchType": "JSONPatch", "patch": base64("zzz")})),
        "/garbage" => Reply::ok("this is not json"),
        "/big" => Reply::ok(&"x".repeat(2 << 20)),
        "/empty" => Reply::new("200 OK\r\ncontent-type: application/json", ""),
        "/500" => Reply::new("500 Internal Server Error\r\ncontent-type: text/plain", "boom"),
        "/redirect" => Reply::new("302 Found\r\nlocation: https://127.0.0.1:1/x", ""),
        "/hang" => Reply::never(),
        _ => allowing(uid, &json!({})),
    }
}

impl World {
    async fn start() -> Self {
        let data = tempdir().expect("a directory");
        let hook = WebhookServer::start(Certificate::For("127.0.0.1"), answer).await.expect("a webhook");
        let program = Program::start(data.path()).await;
        program.ready(200).await;
        let admin = program.admin(Protocol::Http2).await;
        let mut world = Self { admin, hook, _program: program, _data: data };
        world.settled("default").await;
        world
    }

    /// Waits for what every namespace gets by itself: webhooks are not to be asked about that.
    async fn settled(&mut self, namespace: &str) {
        for path in ["configmaps/kube-root-ca.crt", "serviceaccounts/default"] {
            let path = format!("/api/v1/namespaces/{namespace}/{path}");
            let begin = Instant::now();
            while self.send(Method::GET, &path, &Value::Null).await.0 != 200 {
                assert!(begin.elapsed() < SOON, "not in time: {path}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }

    async fn send(&mut self, method: Method, path: &str, body: &Value) -> (u16, Value, Vec<String>) {
        send(&mut self.admin, method, path, body).await
    }

    /// Configures a webhook for config maps of the default namespace, other than `more` says, under a name.
    async fn configure(&mut self, kind: &str, name: &str, path: &str, more: &Value) {
        let url = format!("https://127.0.0.1:{}{path}", self.hook.port);
        let mut webhook = json!({
            "name": "hook.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 20,
            "clientConfig": {"url": url, "caBundle": base64(&self.hook.authority)},
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        });
        for (field, value) in more.as_object().expect("an object") {
            webhook[field] = value.clone();
        }
        let body = json!({"metadata": {"name": name}, "webhooks": [webhook]});
        let (status, answer, _) = self.send(Method::POST, &configurations(kind), &body).await;
        assert_eq!(status, 201, "{answer}");
    }

    async fn forget(&mut self, kind: &str, name: &str) {
        let path = format!("{}/{name}", configurations(kind));
        assert_eq!(self.send(Method::DELETE, &path, &Value::Null).await.0, 200);
    }

    async fn create_map(&mut self, name: &str) -> (u16, Value, Vec<String>) {
        let body = json!({"metadata": {"name": name}, "data": {"k": "v"}});
        self.send(Method::POST, CONFIG_MAPS, &body).await
    }

    /// What the webhook was asked about since this was last looked at.
    fn requests(&self) -> Vec<Value> {
        self.hook.take_asked().iter().map(|asked| review(asked)["request"].clone()).collect()
    }
}

fn configurations(kind: &str) -> String {
    format!("/apis/admissionregistration.k8s.io/v1/{}s", kind.to_lowercase())
}

fn internal_error(message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
        "message": format!("Internal error occurred: {message}"), "details": {"causes": [{"message": message}]},
    })
}

#[tokio::test]
async fn whatever_a_webhook_does_wrong_is_told_as_by_kube_apiserver_and_nothing_is_stored() {
    let mut world = World::start().await;
    let called = |why: &str| internal_error(&format!("failed calling webhook \"hook.example.org\": {why}"));
    let base = format!("https://127.0.0.1:{}", world.hook.port);
    let refused = |code: u16, message: &str| json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "message": message});
    let denied = "admission webhook \"hook.example.org\" denied the request";
    let not_json = "failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal string \
                    into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                    \"json:\\\"kind,omitempty\\\"\" }";
    let mut teapot = refused(418, &format!("{denied}: no way"));
    teapot["reason"] = "Teapot".into();
    let table = [
        (VALIDATING, "/deny", refused(400, &format!("{denied} without explanation"))),
        (MUTATING, "/deny", refused(400, &format!("{denied} without explanation"))),
        (VALIDATING, "/denymsg", teapot),
        (VALIDATING, "/garbage", called(not_json)),
        (VALIDATING, "/big", called(not_json)),
        (
            VALIDATING,
            "/empty",
            called(
                "failed to call webhook: 0-length response with status code: 200 and content type: application/json",
            ),
        ),
        (
            VALIDATING,
            "/500",
            called(
                "failed to call webhook: an error on the server (\"boom\") has prevented the request from succeeding",
            ),
        ),
        (
            VALIDATING,
            "/patch",
            called("received invalid webhook response: validating webhook may not return response.patch"),
        ),
        (
            MUTATING,
            "/patch-kind",
            internal_error(
                "json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string",
            ),
        ),
        (
            MUTATING,
            "/patch-garbage",
            called(
                "received undecodable patch in webhook response: invalid character 'z' looking for beginning of value",
            ),
        ),
        // Kube-apiserver would follow, and say what is found there.
        (
            VALIDATING,
            "/redirect",
            called(
                "failed to call webhook: the server responded with the status code 302 but did not return more \
                 information",
            ),
        ),
        (
            MUTATING,
            "/hang",
            called(&format!(
                "failed to call webhook: Post \"{base}/hang?timeout=1s\": context deadline exceeded"
            )),
        ),
    ];
    for (kind, path, expect) in table {
        let more = if path == "/hang" { json!({"timeoutSeconds": 1}) } else { json!({}) };
        world.configure(kind, "bad", path, &more).await;
        let (status, answer, _) = world.create_map("refused").await;
        assert_eq!((status, &answer), (expect["code"].as_u64().expect("a code") as u16, &expect), "{path}");
        // Nobody is asked the same twice.
        assert_eq!(world.requests().len(), 1, "{path}");
        world.forget(kind, "bad").await;
        let stored = world.send(Method::GET, &format!("{CONFIG_MAPS}/refused"), &Value::Null).await;
        assert_eq!(stored.0, 404, "{path}");
    }
}

#[tokio::test]
async fn a_patch_that_does_not_apply_is_the_servers_failure() {
    let mut world = World::start().await;
    world.configure(MUTATING, "bad", "/patch-bad", &json!({"failurePolicy": "Ignore"})).await;
    let (status, answer, _) = world.create_map("refused").await;
    assert_eq!((status, &answer["reason"]), (500, &json!("InternalError")), "{answer}");
    let stored = world.send(Method::GET, &format!("{CONFIG_MAPS}/refused"), &Value::Null).await;
    assert_eq!(stored.0, 404);
}

#[tokio::test]
async fn a_webhook_that_cannot_be_reached_refuses_or_is_passed_over() {
    let mut world = World::start().await;
    let other = WebhookServer::start(Certificate::For("127.0.0.1"), answer).await.expect("a webhook");
    let url = format!("https://127.0.0.1:{}/x", world.hook.port);
    let stranger = json!({"clientConfig": {"url": url, "caBundle": base64(&other.authority)}});
    let missing =
        json!({"clientConfig": {"service": {"namespace": "default", "name": "nosuch", "path": "/p"}}});
    let unknown = format!(
        "Post \"{url}?timeout=20s\": tls: failed to verify certificate: x509: certificate signed by unknown authority"
    );
    let table = [
        (&stranger, unknown.as_str()),
        (&missing, "Post \"https://nosuch.default.svc:443/p?timeout=20s\": service \"nosuch\" not found"),
    ];
    for (more, why) in table {
        for kind in [MUTATING, VALIDATING] {
            world.configure(kind, "gone", "/x", more).await;
            let (_, answer, _) = world.create_map("refused").await;
            let why = format!("failed calling webhook \"hook.example.org\": failed to call webhook: {why}");
            assert_eq!(answer, internal_error(&why));
            world.forget(kind, "gone").await;
            let mut more = more.clone();
            more["failurePolicy"] = "Ignore".into();
            world.configure(kind, "gone", "/x", &more).await;
            assert_eq!(world.create_map("passed").await.0, 201);
            world.forget(kind, "gone").await;
            let path = format!("{CONFIG_MAPS}/passed");
            assert_eq!(world.send(Method::DELETE, &path, &Value::Null).await.0, 200);
        }
    }
    assert!(world.requests().is_empty());
}

#[tokio::test]
async fn objects_are_changed_in_turn_and_those_asked_before_may_look_again() {
    let mut world = World::start().await;
    world.configure(MUTATING, "a", "/patch-again", &json!({"reinvocationPolicy": "IfNeeded"})).await;
    world.configure(MUTATING, "b", "/patch-second", &json!({})).await;
    let (status, map, _) = world.create_map("changed").await;
    assert_eq!((status, &map["data"]), (201, &json!({"k": "v", "first": "twice", "second": "yes"})));
    let seen: Vec<Value> = world.requests().iter().map(|request| request["object"]["data"].clone()).collect();
    let first = json!({"k": "v"});
    let second = json!({"k": "v", "first": "once"});
    let third = json!({"k": "v", "first": "once", "second": "yes"});
    assert_eq!(seen, [first, second, third]);
    // One that is not asked again sees no change of its own.
    world.forget(MUTATING, "b").await;
    world.create_map("once").await;
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn webhooks_are_shown_what_kube_apiserver_shows() {
    let mut world = World::start().await;
    let rules = json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
        "resources": ["configmaps"]}]);
    world.configure(VALIDATING, "all", "/warn", &json!({"rules": rules})).await;
    let (_, map, warnings) = world.create_map("shown").await;
    assert_eq!(warnings, ["299 - \"careful\""]);
    let path = format!("{CONFIG_MAPS}/shown");
    world
        .send(Method::PATCH, &format!("{path}?dryRun=All&fieldManager=me"), &json!({"data": {"k": "w"}}))
        .await;
    world.send(Method::DELETE, &path, &json!({"propagationPolicy": "Background"})).await;
    let requests = world.requests();
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    let shown = |at: usize, operation: &str, object: &Value, old: &Value, dry_run: bool, options: Value| {
        let user = &requests[at]["userInfo"];
        assert!(
            user["groups"].as_array().is_some_and(|groups| groups.contains(&"system:masters".into())),
            "{user}"
        );
        let expect = json!({
            "uid": requests[at]["uid"], "kind": kind, "resource": resource, "requestKind": kind,
            "requestResource": resource, "name": "shown", "namespace": "default", "operation": operation,
            "userInfo": user, "object": object, "oldObject": old, "dryRun": dry_run, "options": options,
        });
        assert_eq!(requests[at], expect);
    };
    let options = |kind: &str| json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    let mut created = map.clone();
    created["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
    shown(0, "CREATE", &created, &Value::Null, false, options("CreateOptions"));
    let (mut update, mut delete) = (options("UpdateOptions"), options("DeleteOptions"));
    update["dryRun"] = json!(["All"]);
    update["fieldManager"] = "me".into();
    delete["propagationPolicy"] = "Background".into();
    shown(1, "UPDATE", &requests[1]["object"], &map, true, update);
    assert_eq!(requests[1]["object"]["data"], json!({"k": "w"}));
    shown(2, "DELETE", &Value::Null, &map, false, delete);

    let rules =
        json!([{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["namespaces"]}]);
    let about = json!({"rules": rules, "namespaceSelector": {"matchLabels": {"new": "yes"}}});
    world.configure(VALIDATING, "namespaces", "/warn", &about).await;
    let namespace = json!({"metadata": {"name": "shown", "labels": {"new": "yes"}}});
    world.send(Method::POST, "/api/v1/namespaces", &namespace).await;
    let namespace = &world.requests()[0];
    assert_eq!((&namespace["name"], &namespace["namespace"]), (&json!("shown"), &json!("shown")));
}

#[tokio::test]
async fn subresources_are_shown_as_what_they_are() {
    let mut world = World::start().await;
    let rules = json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
        "resources": ["deployments/*", "pods/*"]}]);
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    assert_eq!(world.send(Method::POST, deployments, &deployment).await.0, 201);
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(world.send(Method::POST, "/api/v1/namespaces/default/pods", &pod).await.0, 201);
    world.configure(VALIDATING, "all", "/deny", &json!({"rules": rules})).await;
    let status = json!({"status": {"replicas": 1}});
    let scale = json!({"spec": {"replicas": 2}});
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let pods = "/api/v1/namespaces/default/pods/p";
    for (method, path, body) in [
        (Method::PATCH, format!("{deployments}/d/status"), &status),
        (Method::PATCH, format!("{deployments}/d/scale"), &scale),
        (Method::POST, format!("{pods}/eviction"), &eviction),
        (Method::POST, format!("{pods}/exec?command=ls&stdout=true"), &Value::Null),
    ] {
        let (code, answer, _) = world.send(method, &path, body).await;
        assert_eq!(code, 400, "{path}: {answer}");
        assert!(
            answer["message"].as_str().is_some_and(|text| text.contains("denied the request")),
            "{answer}"
        );
    }
    let requests = world.requests();
    let seen: Vec<String> = requests
        .iter()
        .map(|request| {
            let text = |value: &Value| value.as_str().expect("text").to_owned();
            let kind = [&request["kind"]["group"], &request["kind"]["kind"]].map(text).join("/");
            format!("{} {} {kind}", text(&request["operation"]), text(&request["subResource"]))
        })
        .collect();
    assert_eq!(
        seen,
        [
            "UPDATE status apps/Deployment",
            "UPDATE scale autoscaling/Scale",
            "CREATE eviction policy/Eviction",
            "CONNECT exec /PodExecOptions",
        ]
    );
    assert_eq!(requests[1]["object"]["spec"], json!({"replicas": 2}));
    assert_eq!(requests[1]["oldObject"]["spec"], json!({"replicas": 1}));
    let exec = json!({"kind": "PodExecOptions", "apiVersion": "v1", "command": ["ls"], "stdout": true});
    assert_eq!(requests[3]["object"], exec);
    let (_, live, _) = world.send(Method::GET, &format!("{deployments}/d/scale"), &Value::Null).await;
    assert_eq!(live["spec"]["replicas"], 1);
}

#[tokio::test]
async fn only_who_is_concerned_is_asked() {
    let mut world = World::start().await;
    let labelled = json!({"metadata": {"name": "labelled", "labels": {"hooks": "yes"}}});
    assert_eq!(world.send(Method::POST, "/api/v1/namespaces", &labelled).await.0, 201);
    world.settled("labelled").await;
    let elsewhere = "/api/v1/namespaces/labelled/configmaps";
    let labels = json!({"matchLabels": {"hooks": "yes"}});
    let condition = |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    let may = "authorizer.group('').resource('configmaps').namespace('default').check('create').allowed()";
    let table = [
        (json!({"namespaceSelector": labels}), CONFIG_MAPS, 0),
        (json!({"namespaceSelector": labels}), elsewhere, 1),
        (json!({"objectSelector": labels}), CONFIG_MAPS, 0),
        (condition("object.data.k == 'v' && request.operation == 'CREATE'"), CONFIG_MAPS, 1),
        (condition("request.userInfo.username == 'nobody'"), CONFIG_MAPS, 0),
        (condition(may), CONFIG_MAPS, 1),
        (condition(&format!("!{may}")), CONFIG_MAPS, 0),
    ];
    for (more, path, expect) in table {
        world.configure(VALIDATING, "some", "/deny", &more).await;
        let map = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
        let (status, answer, _) = world.send(Method::POST, &format!("{path}?dryRun=All"), &map).await;
        assert_eq!(status, if expect == 0 { 201 } else { 400 }, "{more}: {answer}");
        assert_eq!(world.requests().len(), expect, "{more}");
        world.forget(VALIDATING, "some").await;
    }
    world.configure(VALIDATING, "some", "/deny", &condition("object.nope == 1")).await;
    let (status, answer, _) = world.create_map("a").await;
    let why =
        "configmaps \"a\" is forbidden: expression 'object.nope == 1' resulted in error: no such key: nope";
    assert_eq!((status, &answer["message"]), (403, &json!(why)));
    assert!(world.requests().is_empty());
}

#[tokio::test]
async fn a_webhook_for_one_version_is_asked_about_others() {
    let mut world = World::start().await;
    let rules = json!([{"operations": ["CREATE"], "apiGroups": ["autoscaling"], "apiVersions": ["v2"],
        "resources": ["horizontalpodautoscalers"]}]);
    let autoscaler = json!({"metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 70,
        "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}});
    let path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
    world.configure(VALIDATING, "v2", "/warn", &json!({"rules": rules, "matchPolicy": "Exact"})).await;
    assert_eq!(world.send(Method::POST, &format!("{path}?dryRun=All"), &autoscaler).await.0, 201);
    assert!(world.requests().is_empty());
    world.forget(VALIDATING, "v2").await;
    world.configure(VALIDATING, "v2", "/warn", &json!({"rules": rules})).await;
    assert_eq!(world.send(Method::POST, path, &autoscaler).await.0, 201);
    let request = &world.requests()[0];
    assert_eq!(
        (&request["kind"]["version"], &request["requestKind"]["version"]),
        (&json!("v2"), &json!("v1"))
    );
    assert_eq!(request["object"]["apiVersion"], "autoscaling/v2");
    assert_eq!(request["object"]["spec"]["metrics"][0]["resource"]["name"], "cpu");
}

#[tokio::test]
async fn the_configurations_themselves_are_nobodys_business() {
    let mut world = World::start().await;
    let rules =
        json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]);
    world.configure(VALIDATING, "all", "/deny", &json!({"rules": rules})).await;
    world.configure(MUTATING, "more", "/deny", &json!({})).await;
    world.forget(MUTATING, "more").await;
    assert_eq!(world.create_map("a").await.0, 400);
    world.forget(VALIDATING, "all").await;
    assert_eq!(world.create_map("a").await.0, 201);
}

#[tokio::test]
async fn a_webhook_behind_a_service_is_called_where_it_is() {
    let data = tempdir().expect("a directory");
    let hook = WebhookServer::start(Certificate::For("hook.default.svc"), answer).await.expect("a webhook");
    let address = format!("--service-address=default/hook=127.0.0.1:{}", hook.port);
    let program = Program::start_with(data.path(), &[&address]).await;
    program.ready(200).await;
    let admin = program.admin(Protocol::Http2).await;
    let mut world = World { admin, hook, _program: program, _data: data };
    world.settled("default").await;
    let service = json!({"namespace": "default", "name": "hook", "path": "/patch"});
    let client = json!({"service": service, "caBundle": base64(&world.hook.authority)});
    world.configure(MUTATING, "served", "", &json!({"clientConfig": client})).await;
    let (status, map, _) = world.create_map("changed").await;
    assert_eq!((status, &map["data"]), (201, &json!({"k": "v", "x": "y"})));
    assert_eq!(world.hook.asked()[0].line, "POST /patch?timeout=20s");
}

#[tokio::test]
async fn what_webhooks_do_is_counted() {
    let mut world = World::start().await;
    for (path, policy, code) in
        [("/deny", "Fail", 400), ("/denymsg", "Fail", 418), ("/500", "Fail", 500), ("/500", "Ignore", 201)]
    {
        world.configure(VALIDATING, "w", path, &json!({"failurePolicy": policy})).await;
        assert_eq!(world.create_map("a").await.0, code);
        world.forget(VALIDATING, "w").await;
    }
    for (kind, name) in [(MUTATING, "slow-a"), (VALIDATING, "slow-b")] {
        world.configure(kind, "w", "/hang", &json!({"failurePolicy": "Ignore", "timeoutSeconds": 1})).await;
        assert_eq!(world.create_map(name).await.0, 201);
        world.forget(kind, "w").await;
    }
    let metrics = world.admin.get("/metrics").await.expect("metrics").body;
    let seconds = |name: &str| -> f64 {
        let line = metrics.lines().find(|line| {
            line.starts_with(&format!("apiserver_request_{name}duration_seconds_sum{{"))
                && line.contains("resource=\"configmaps\"")
                && line.contains("verb=\"POST\"")
        });
        line.and_then(|line| line.rsplit_once(' ')?.1.parse().ok()).expect("a time")
    };
    let waited = seconds("") - seconds("sli_");
    assert!((2.0..2.9).contains(&waited), "service levels are without the waits for webhooks: {waited}");
    let hook = "name=\"hook.example.org\",operation=\"CREATE\"";
    for counted in [
        format!(
            "webhook_rejection_count{{error_type=\"no_error\",{hook},rejection_code=\"400\",type=\"validating\"}} 1\n"
        ),
        format!(
            "webhook_rejection_count{{error_type=\"no_error\",{hook},rejection_code=\"418\",type=\"validating\"}} 1\n"
        ),
        format!(
            "webhook_rejection_count{{error_type=\"calling_webhook_error\",{hook},rejection_code=\"500\",type=\"validating\"}} 1\n"
        ),
        "webhook_fail_open_count{name=\"hook.example.org\",type=\"validating\"} 2\n".to_owned(),
        format!("webhook_request_total{{code=\"500\",{hook},rejected=\"false\",type=\"validating\"}} 1\n"),
        format!(
            "webhook_admission_duration_seconds_count{{{hook},rejected=\"true\",type=\"validating\"}} 3\n"
        ),
    ] {
        assert!(
            metrics.contains(&format!("apiserver_admission_{counted}")),
            "{counted} is missing in {metrics}"
        );
    }
}
