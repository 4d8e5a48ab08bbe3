//! MutatingAdmissionPolicies, as the program applies them. Texts and codes are what kube-apiserver answered to the same.

use concord_server::test_client::{Protocol, TestClient};
use http::Method;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::support::{Program, send};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";

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

    async fn send(&mut self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let (status, answer, _) = send(&mut self.admin, method, path, body).await;
        (status, answer)
    }

    /// A policy for config maps, and a binding of the same name.
    async fn bind(&mut self, name: &str, mutations: &[Value], more: &Value) {
        let mut spec = json!({"reinvocationPolicy": "Never", "mutations": mutations, "matchConstraints": {"resourceRules": [
            {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}});
        for (field, value) in more.as_object().expect("an object") {
            spec[field] = value.clone();
        }
        let mut binding = json!({"policyName": name});
        if spec.get("paramKind").is_some() {
            binding["paramRef"] =
                json!({"name": "params", "namespace": "default", "parameterNotFoundAction": "Deny"});
        }
        for (path, spec) in [(POLICIES, spec), (BINDINGS, binding)] {
            let body = json!({"metadata": {"name": name}, "spec": spec});
            let (status, answer) = self.send(Method::POST, path, &body).await;
            assert_eq!(status, 201, "{answer}");
        }
    }

    async fn unbind(&mut self, name: &str) {
        for path in [BINDINGS, POLICIES] {
            assert_eq!(self.send(Method::DELETE, &format!("{path}/{name}"), &Value::Null).await.0, 200);
        }
    }

    /// What becomes of a config map. Nothing is stored.
    async fn attempt(&mut self) -> (u16, Value) {
        let map = json!({"metadata": {"name": "cm"}, "data": {"old": "1"}});
        self.send(Method::POST, &format!("{CONFIG_MAPS}?dryRun=All"), &map).await
    }
}

fn apply(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patch(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

#[tokio::test]
async fn objects_become_what_policies_make_of_them() {
    let mut world = World::start().await;
    let params = json!({"metadata": {"name": "params"}, "data": {"v": "param"}});
    assert_eq!(world.send(Method::POST, CONFIG_MAPS, &params).await.0, 201);
    let labelled = apply("Object{metadata: Object.metadata{labels: {'a': 'b'}}, data: Object.data{x: 'y'}}");
    let failing = apply("Object{data: Object.data{x: object.data.nope}}");
    let with_params = "Object{data: Object.data{x: params.data.v + variables.v}}";
    let cases = [
        (labelled, json!({}), json!({"old": "1", "x": "y"}), json!({"a": "b"})),
        (
            patch("[JSONPatch{op: 'add', path: '/data', value: {'k': 'v'}}]"),
            json!({}),
            json!({"k": "v"}),
            Value::Null,
        ),
        (
            patch("[JSONPatch{op: 'add', path: '/metadata/labels', value: Object.metadata.labels{a: '1'}}]"),
            json!({}),
            json!({"old": "1"}),
            json!({"a": "1"}),
        ),
        (
            patch(
                "[JSONPatch{op: 'test', path: '/data/old', value: '2'}, JSONPatch{op: 'remove', path: '/data/old'}]",
            ),
            json!({}),
            json!({"old": "1"}),
            Value::Null,
        ),
        (failing, json!({"failurePolicy": "Ignore"}), json!({"old": "1"}), Value::Null),
        (
            apply("Object{data: Object.data{x: 'y'}}"),
            json!({"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'other'"}]}),
            json!({"old": "1"}),
            Value::Null,
        ),
        (
            apply(with_params),
            json!({
                "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                "variables": [{"name": "v", "expression": "'-' + request.name"}],
            }),
            json!({"old": "1", "x": "param-cm"}),
            Value::Null,
        ),
    ];
    for (mutation, more, data, labels) in cases {
        world.bind("p", std::slice::from_ref(&mutation), &more).await;
        let (status, map) = world.attempt().await;
        assert_eq!(
            (status, &map["data"], &map["metadata"]["labels"]),
            (201, &data, &labels),
            "{mutation} {map}"
        );
        world.unbind("p").await;
    }
    assert_eq!(world.attempt().await.1["data"], json!({"old": "1"}), "without a policy nothing happens");
    let metrics = world.admin.get("/metrics").await.expect("metrics").body;
    for counted in [
        "apiserver_mutating_admission_policy_check_total{error_type=\"no_error\",policy=\"p\",policy_binding=\"p\"} 5\n",
        "apiserver_mutating_admission_policy_check_total{error_type=\"invalid_error\",policy=\"p\",policy_binding=\"p\"} 1\n",
        "apiserver_admission_match_condition_exclusions_total{kind=\"policy\",name=\"p\",operation=\"CREATE\",type=\"validate\"} 1\n",
        "apiserver_admission_step_admission_duration_seconds_count{operation=\"CREATE\",rejected=\"false\",type=\"admit\"}",
        "apiserver_admission_controller_admission_duration_seconds_count{name=\"NamespaceLifecycle\",operation=\"CREATE\",\
         rejected=\"false\",type=\"admit\"}",
    ] {
        assert!(metrics.contains(counted), "{counted} is missing");
    }
}

#[tokio::test]
async fn what_policies_fail_at_is_told_as_by_kube_apiserver() {
    let mut world = World::start().await;
    let nope = "Object{data: Object.data{x: object.data.nope}}";
    let denied = "policy 'p' with binding 'p' denied request: ";
    let invalid = (403, "Invalid");
    let internal = (500, "InternalError");
    let cases = [
        (apply(nope), invalid, format!("{denied}expression '{nope}' resulted in error: no such key: nope")),
        (
            patch("[JSONPatch{op: 'add', path: '/data/a/b/c', value: 'x'}]"),
            invalid,
            format!("{denied}JSON Patch: add operation does not apply: doc is missing path: \"/data/a/b/c\": missing value"),
        ),
        (patch("[JSONPatch{op: 'foo', path: '/data/a'}]"), invalid, format!("{denied}JSON Patch: Unexpected kind: foo")),
        (
            apply("Object{foo: 'x'}"),
            invalid,
            format!(
                "{denied}error applying patch: failed to convert patch object to typed object: .foo: field not declared in \
                 schema"
            ),
        ),
        (
            apply("Object{metadata: Object.spec{labels: {'a': 'b'}}}"),
            invalid,
            format!(
                "{denied}type mismatch: unexpected type name \"Object.spec\", expected \"Object.metadata\", which matches \
                 field name path from root Object type"
            ),
        ),
        (
            apply("Object{metadata: Object.metadata{ownerReferences: [Object.metadata.ownerReferences{uid: 'u', name: 'n', kind: 'Pod', apiVersion: 'v1'}]}}"),
            invalid,
            format!(
                "{denied}error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: \
                 .metadata.ownerReferences[0]"
            ),
        ),
        (
            apply("Object{data: Object.data{x: 1}}"),
            invalid,
            format!(
                "{denied}error applying patch: failed to convert patch object to typed object: .data.x: expected string, \
                 got &value.valueUnstructured{{Value:1}}"
            ),
        ),
        (
            patch("[JSONPatch{op: 'add', path: '/foo', value: 'x'}]"),
            internal,
            "Internal error occurred: strict decoding error: unknown field \"foo\"".to_owned(),
        ),
        (
            patch("[JSONPatch{op: 'add', path: '/data', value: 'x'}]"),
            internal,
            "Internal error occurred: json: cannot unmarshal string into Go struct field ConfigMap.data of type \
             map[string]string"
                .to_owned(),
        ),
    ];
    for (mutation, (code, reason), message) in cases {
        world.bind("p", std::slice::from_ref(&mutation), &json!({})).await;
        let (status, answer) = world.attempt().await;
        let told = (status, answer["reason"].as_str(), answer["message"].as_str());
        assert_eq!(told, (code, Some(reason), Some(message.as_str())));
        assert_eq!(answer["details"]["causes"].as_array().map(Vec::len), Some(1));
        world.unbind("p").await;
    }
    let unknown = json!({"paramKind": {"apiVersion": "v1", "kind": "Nope"}});
    world.bind("p", &[apply("Object{}")], &unknown).await;
    let (status, answer) = world.attempt().await;
    let why = "policy \"p\" denied request: failed to configure policy: failed to find resource referenced by paramKind: \
               '/v1, Kind=Nope'";
    assert_eq!((status, &answer["reason"], &answer["message"]), (403, &json!("Forbidden"), &json!(why)));
}

#[tokio::test]
async fn expressions_of_mutations_are_checked_when_a_policy_is_written() {
    let mut world = World::start().await;
    for (mutation, why) in [
        (
            apply("{}"),
            "applyConfiguration.expression: Invalid value: \"{}\": must evaluate to Object but got map(dyn, dyn)",
        ),
        (
            patch("[Object{}]"),
            "jsonPatch.expression: Invalid value: \"[Object{}]\": must evaluate to list(JSONPatch) but got list(Object)",
        ),
        (
            patch("[JSONPatch{foo: 1}]"),
            "jsonPatch.expression: Invalid value: \"[JSONPatch{foo: 1}]\": compilation failed: ERROR: <input>:1:15: expected \
             type of field 'foo' is '' but provided type is 'int'\n | [JSONPatch{foo: 1}]\n | ..............^",
        ),
    ] {
        let rules = json!([{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]);
        let spec = json!({"reinvocationPolicy": "Never", "mutations": [mutation], "matchConstraints": {"resourceRules": rules}});
        let body = json!({"metadata": {"name": "p"}, "spec": spec});
        let (status, answer) = world.send(Method::POST, POLICIES, &body).await;
        let expect = format!(
            "MutatingAdmissionPolicy.admissionregistration.k8s.io \"p\" is invalid: spec.mutations[0].{why}"
        );
        assert_eq!((status, answer["message"].as_str()), (422, Some(expect.as_str())));
    }
}

#[tokio::test]
async fn policies_are_applied_in_turn_and_those_before_may_look_again() {
    let mut world = World::start().await;
    let count =
        "Object{data: Object.data{sizes: object.?data.sizes.orValue('') + string(size(object.data))}}";
    world.bind("a", &[apply(count)], &json!({"reinvocationPolicy": "IfNeeded"})).await;
    world.bind("b", &[apply("Object{data: Object.data{b: 'b'}}")], &json!({})).await;
    // The first counts one entry, the second adds one; then the first counts its own and that of the second, too.
    assert_eq!(world.attempt().await.1["data"], json!({"old": "1", "b": "b", "sizes": "13"}));
    world.unbind("a").await;
    world.bind("a", &[apply(count)], &json!({})).await;
    assert_eq!(world.attempt().await.1["data"], json!({"old": "1", "b": "b", "sizes": "1"}));
    // Policies about policies are nobody's business, those about the configurations of webhooks are.
    let rules = json!({"resourceRules": [{
        "operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"],
    }]});
    let broken = "Object{metadata: Object.metadata{labels: {'a': object.nope}}}";
    world.bind("c", &[apply(broken)], &json!({"matchConstraints": rules})).await;
    world.bind("d", &[apply("Object{}")], &json!({})).await;
    let webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let (status, answer) = world.send(Method::POST, webhooks, &json!({"metadata": {"name": "w"}})).await;
    assert_eq!(status, 403, "{answer}");
    let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    assert_eq!(world.send(Method::POST, review, &json!({})).await.0, 201);
    drop(world.program);
}
