//! Policies say in their status which of their expressions do not fit the kinds that they are about.

mod support;

use std::sync::Arc;

use concord_apis::{Settings, api_set};
use concord_controllers::PolicyStatus;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{Cluster, Server};

const GROUP: &str = "admissionregistration.k8s.io";

/// What is said about a policy, as `fieldRef: warning`.
async fn told(server: &Server, name: &str, spec: Value) -> Vec<String> {
    let path = format!("{GROUP}/validatingadmissionpolicies//{name}");
    server.create(&path, json!({"spec": spec})).await.expect("a policy");
    let is_checked = |policy: Option<&Value>| {
        policy
            .is_some_and(|policy| policy["status"]["observedGeneration"] == policy["metadata"]["generation"])
    };
    let policy = server.until(&path, is_checked).await.expect("a policy");
    let warnings = policy["status"]["typeChecking"]["expressionWarnings"].as_array();
    let text = |warning: &Value, field: &str| warning[field].as_str().unwrap_or_default().to_owned();
    let line = |warning: &Value| format!("{}: {}", text(warning, "fieldRef"), text(warning, "warning"));
    warnings.into_iter().flatten().map(line).collect()
}

fn about(group: &str, plurals: &[&str], validations: &Value) -> Value {
    let rule = json!({
        "apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": plurals,
    });
    json!({"matchConstraints": {"resourceRules": [rule]}, "validations": validations})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expressions_are_checked_against_the_kinds_they_are_about() {
    let cluster = Cluster::new();
    let server = cluster.server_of(Arc::new(api_set(&Settings::default()))).await;
    let controller = PolicyStatus::new(server.registry.clone(), &server.resources).expect("policies");
    let cancel = CancellationToken::new();
    let running = tokio::spawn(Arc::new(controller).run(cancel.clone()));

    let fits = json!([{"expression": "object.spec.replicas <= 5 && object.spec.template.spec.containers.all(c, c.image != '')"}]);
    assert_eq!(told(&server, "fits", about("apps", &["deployments"], &fits)).await, Vec::<String>::new());

    let two = json!([
        {"expression": "object.spec.replicas <= 5", "messageExpression": "'at most ' + object.spec.most"},
        {"expression": "object.data.size() > 0"},
    ]);
    let two = about("apps", &["deployments", "daemonsets"], &two);
    assert_eq!(
        told(&server, "two", two).await,
        [
            "spec.validations[0].expression: apps/v1, Kind=DaemonSet: ERROR: <input>:1:12: undefined field 'replicas'\n | \
             object.spec.replicas <= 5\n | ...........^\n",
            "spec.validations[0].messageExpression: apps/v1, Kind=DaemonSet: ERROR: <input>:1:25: undefined field 'most'\n | \
             'at most ' + object.spec.most\n | ........................^\n\napps/v1, Kind=Deployment: ERROR: <input>:1:25: \
             undefined field 'most'\n | 'at most ' + object.spec.most\n | ........................^\n",
            "spec.validations[1].expression: apps/v1, Kind=DaemonSet: ERROR: <input>:1:7: undefined field 'data'\n | \
             object.data.size() > 0\n | ......^\n\napps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'data'\n | \
             object.data.size() > 0\n | ......^\n",
        ]
    );

    let bad = || json!([{"expression": "object.nonsense == 1"}]);
    assert_eq!(told(&server, "open", about("*", &["deployments"], &bad())).await, Vec::<String>::new());
    assert_eq!(
        told(&server, "sub", about("apps", &["deployments/scale"], &bad())).await,
        Vec::<String>::new()
    );

    let mut typed = about(
        "",
        &["configmaps"],
        &json!([{"expression": "variables.n > params.spec.replicas && variables.n > params.data"}]),
    );
    typed["paramKind"] = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet"});
    typed["variables"] = json!([{"name": "n", "expression": "object.data.size()"}]);
    assert_eq!(
        told(&server, "typed", typed).await,
        [
            "spec.validations[0].expression: /v1, Kind=ConfigMap: ERROR: <input>:1:59: undefined field 'data'\n | variables.n > \
          params.spec.replicas && variables.n > params.data\n | ..........................................................^\n"
        ]
    );
    cancel.cancel();
    running.await.expect("it ends");
}
