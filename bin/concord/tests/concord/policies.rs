//! Admission policies, as the program applies them. Texts and codes are what kube-apiserver answered to the same.

use std::{pin::pin, time::Instant};

use concord_server::test_client::{Protocol, TestClient};
use http::Method;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::support::{Program, SOON, send};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

struct World {
    admin: TestClient,
    program: Program,
    _data: TempDir,
}

impl World {
    async fn start() -> Self {
        let data = tempdir().expect("a directory");
        let program = Program::start(data.path()).await;
        program.ready(200).await;
        let admin = program.admin(Protocol::Http2).await;
        Self { admin, program, _data: data }
    }

    async fn send(&mut self, method: Method, path: &str, body: &Value) -> (u16, Value, Vec<String>) {
        send(&mut self.admin, method, path, body).await
    }

    /// A policy for config maps with this spec, and a binding of the same name.
    async fn bind(&mut self, spec: &Value, binding: &Value) {
        let mut policy = json!({"matchConstraints": {"resourceRules": [
            {"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}});
        for (field, value) in spec.as_object().expect("an object") {
            policy[field] = value.clone();
        }
        let mut bound = json!({"policyName": "p", "validationActions": ["Deny"]});
        for (field, value) in binding.as_object().expect("an object") {
            bound[field] = value.clone();
        }
        for (path, spec) in [(POLICIES, policy), (BINDINGS, bound)] {
            let body = json!({"metadata": {"name": "p"}, "spec": spec});
            let (status, answer, _) = self.send(Method::POST, path, &body).await;
            assert_eq!(status, 201, "{answer}");
        }
    }

    async fn unbind(&mut self) {
        for path in [POLICIES, BINDINGS] {
            assert_eq!(self.send(Method::DELETE, &format!("{path}/p"), &Value::Null).await.0, 200);
        }
    }

    /// Tries to create a config map; nothing is stored.
    async fn attempt(&mut self, data: &Value) -> (u16, Value, Vec<String>) {
        let map = json!({"metadata": {"name": "a"}, "data": data});
        self.send(Method::POST, &format!("{CONFIG_MAPS}?dryRun=All"), &map).await
    }
}

fn validation(expression: &str) -> Value {
    json!({"validations": [{"expression": expression}]})
}

#[tokio::test]
async fn what_a_policy_refuses_is_told_as_by_kube_apiserver() {
    let mut world = World::start().await;
    world.bind(&validation("object.data.k == 'v'"), &json!({})).await;
    assert_eq!(world.attempt(&json!({"k": "v"})).await.0, 201);
    let (status, answer, _) = world.attempt(&json!({"k": "w"})).await;
    let why = "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed expression: object.data.k == 'v'";
    assert_eq!(status, 422);
    assert_eq!(
        answer,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Invalid", "code": 422,
            "message": format!("configmaps \"a\" is forbidden: {why}"),
            "details": {"name": "a", "kind": "configmaps", "causes": [{"message": why}]},
        })
    );
    let map = json!({"metadata": {"name": "a"}, "data": {"k": "w"}});
    assert_eq!(world.send(Method::POST, CONFIG_MAPS, &map).await.0, 422);
    assert_eq!(world.send(Method::GET, &format!("{CONFIG_MAPS}/a"), &Value::Null).await.0, 404);
}

#[tokio::test]
async fn expressions_say_what_is_allowed_and_what_to_say() {
    let mut world = World::start().await;
    let message = |more: Value| {
        let mut validation = json!({"expression": "object.data.k == 'v'"});
        for (field, value) in more.as_object().expect("an object") {
            validation[field] = value.clone();
        }
        json!({"validations": [validation]})
    };
    let failing = json!({"validations": [{"expression": "object.data.nope == 'v'"}]});
    let mut lenient = failing.clone();
    lenient["failurePolicy"] = "Ignore".into();
    let variables = json!({
        "variables": [
            {"name": "k", "expression": "object.data.k"},
            {"name": "isFine", "expression": "variables.k == 'fine'"},
        ],
        "validations": [{"expression": "variables.isFine", "messageExpression": "'k is ' + variables.k"}],
    });
    let condition = json!({
        "matchConditions": [{"name": "only", "expression": "has(object.data.checked)"}],
        "validations": [{"expression": "false"}],
    });
    let costly = {
        let list = "[0,1,2,3,4,5,6,7,8,9]";
        let loops = format!(
            "{list}.all(a, {list}.all(b, {list}.all(c, {list}.all(d, {list}.all(e, {list}.all(f, true))))))"
        );
        json!({"validations": [{"expression": loops}]})
    };
    let table: Vec<(Value, Value, u16, &str)> = vec![
        (message(json!({"message": " say "})), json!({"k": "w"}), 422, "say"),
        (message(json!({"messageExpression": "'k is ' + object.data.k"})), json!({"k": "w"}), 422, "k is w"),
        (
            message(json!({"messageExpression": "string(object.data.nope)", "message": "say"})),
            json!({"k": "w"}),
            422,
            "say",
        ),
        (
            message(json!({"reason": "Forbidden"})),
            json!({"k": "w"}),
            403,
            "failed expression: object.data.k == 'v'",
        ),
        (
            failing,
            json!({"k": "w"}),
            422,
            "expression 'object.data.nope == 'v'' resulted in error: no such key: nope",
        ),
        (lenient, json!({"k": "w"}), 201, ""),
        (variables.clone(), json!({"k": "w"}), 422, "k is w"),
        (variables, json!({"k": "fine"}), 201, ""),
        (condition.clone(), json!({"k": "w"}), 201, ""),
        (condition, json!({"checked": "w"}), 422, "failed expression: false"),
        (validation("namespaceObject.metadata.name == 'default'"), json!({}), 201, ""),
        (validation("request.operation == 'CREATE' && request.dryRun"), json!({}), 201, ""),
        (validation("authorizer.group('').resource('secrets').check('get').allowed()"), json!({}), 201, ""),
        (costly, json!({}), 422, "operation cancelled: actual cost limit exceeded"),
    ];
    for (spec, data, expect, told) in table {
        world.bind(&spec, &json!({})).await;
        let (status, answer, _) = world.attempt(&data).await;
        assert_eq!(status, expect, "{spec}: {answer}");
        if expect != 201 {
            let message = answer["message"].as_str().expect("a message");
            assert!(message.ends_with(told), "{spec}: {message}");
        }
        world.unbind().await;
    }
}

#[tokio::test]
async fn loops_over_the_largest_object_end_soon_and_keep_nobody_waiting() {
    let mut world = World::start().await;
    let expression = "object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != 'no')))";
    world.bind(&validation(expression), &json!({})).await;
    let data: serde_json::Map<String, Value> =
        (0..40_000).map(|at| (format!("key-{at}"), "value".into())).collect();
    let map = json!({"metadata": {"name": "large"}, "data": data});
    let (begun, mut other) = (Instant::now(), world.program.admin(Protocol::Http2).await);
    let mut refused = pin!(world.send(Method::POST, CONFIG_MAPS, &map));
    let (status, answer, _) = loop {
        let asked = Instant::now();
        tokio::select! {
            refused = &mut refused => break refused,
            answer = other.get("/api/v1/namespaces/default") => assert_eq!(answer.expect("an answer").status, 200),
        }
        assert!(asked.elapsed() < SOON / 4, "others wait");
    };
    assert!(begun.elapsed() < SOON, "it ends");
    let message = answer["message"].as_str().expect("a message");
    assert_eq!(status, 422);
    assert!(message.ends_with("operation cancelled: actual cost limit exceeded"), "{message}");
    let path = format!("{CONFIG_MAPS}/large");
    assert_eq!(other.get(&path).await.expect("an answer").status, 404, "nothing is stored");
}

#[tokio::test]
async fn bindings_say_where_a_policy_applies_and_what_follows() {
    let mut world = World::start().await;
    let never = json!({"validations": [{"expression": "false", "message": "never"}]});
    let elsewhere = json!({"matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}});
    world.bind(&never, &elsewhere).await;
    assert_eq!(world.attempt(&json!({})).await.0, 201);
    world.unbind().await;
    world.bind(&never, &json!({"validationActions": ["Warn", "Audit"]})).await;
    let (status, _, warnings) = world.attempt(&json!({})).await;
    let warning = "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': never\"";
    assert_eq!((status, warnings.as_slice()), (201, &[warning.to_owned()][..]));
    // A policy that nobody bound decides nothing.
    assert_eq!(world.send(Method::DELETE, &format!("{BINDINGS}/p"), &Value::Null).await.0, 200);
    assert_eq!(world.attempt(&json!({})).await.2, Vec::<String>::new());
}

#[tokio::test]
async fn policies_have_parameters() {
    let mut world = World::start().await;
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "params == null || object.data.k == params.data.k"}],
    });
    let by_name = |action: &str| json!({"paramRef": {"name": "wanted", "namespace": "default", "parameterNotFoundAction": action}});
    world.bind(&spec, &by_name("Deny")).await;
    let (status, answer, _) = world.attempt(&json!({"k": "v"})).await;
    let why = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed to \
               configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    assert_eq!((status, &answer["message"]), (422, &json!(why)));
    world.unbind().await;
    world.bind(&spec, &by_name("Allow")).await;
    assert_eq!(world.attempt(&json!({"k": "w"})).await.0, 201);
    world.unbind().await;
    for (name, value) in [("wanted", "v"), ("other", "w")] {
        let map = json!({"metadata": {"name": name, "labels": {"param": "yes"}}, "data": {"k": value}});
        assert_eq!(world.send(Method::POST, CONFIG_MAPS, &map).await.0, 201);
    }
    world.bind(&spec, &by_name("Allow")).await;
    assert_eq!(world.attempt(&json!({"k": "w"})).await.0, 422);
    assert_eq!(world.attempt(&json!({"k": "v"})).await.0, 201);
    world.unbind().await;
    // With several, all must hold.
    let selector = json!({"paramRef": {"selector": {"matchLabels": {"param": "yes"}}, "parameterNotFoundAction": "Deny"}});
    world.bind(&spec, &selector).await;
    assert_eq!(world.attempt(&json!({"k": "v"})).await.0, 422);
    world.unbind().await;
    let unknown = json!({
        "paramKind": {"apiVersion": "example.org/v1", "kind": "Nothing"}, "validations": [{"expression": "true"}],
    });
    world.bind(&unknown, &by_name("Allow")).await;
    let (_, answer, _) = world.attempt(&json!({})).await;
    let why = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: \
               failed to find resource referenced by paramKind: 'example.org/v1, Kind=Nothing'";
    assert_eq!(answer["message"], why);
}
