//! The rules on a real store: what is acknowledged is in force, default roles are put in place once, aggregated roles have
//! what they select, and nobody gives more than they have.

mod support;

use std::collections::BTreeSet;

use concord_codec::PatchType;
use concord_meta::{Status, UserInfo};
use serde_json::{Value, json};

use self::support::{Server, masters, user};

fn role(name: &str, rules: &Value) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

fn binding(name: &str, kind: &str, role: &str, user: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

fn pods(verbs: &[&str]) -> Value {
    json!([{"verbs": verbs, "apiGroups": [""], "resources": ["pods"]}])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_acknowledged_is_in_force() {
    let server = Server::start().await;
    let (admin, alice) = (masters(), user("alice"));
    server.create(&admin, "clusterroles", "", role("reader", &pods(&["get"]))).await.expect("created");
    for round in 0..100 {
        server
            .create(&admin, "clusterrolebindings", "", binding("b", "ClusterRole", "reader", "alice"))
            .await
            .expect("created");
        assert!(server.allows(&alice, "get", "pods").await, "granted in round {round}");
        server.delete(&admin, "clusterrolebindings", "", "b").await.expect("deleted");
        assert!(!server.allows(&alice, "get", "pods").await, "revoked in round {round}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_put_in_force_is_not_acknowledged() {
    let server = Server::start().await;
    server.stop_replica().await;
    let refused = server.create(&masters(), "clusterroles", "", role("r", &pods(&["get"]))).await;
    let status = refused.expect_err("nobody decides by it");
    assert_eq!(status.code, 500, "{}", status.message);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn default_roles_are_put_in_place_and_kept() {
    let server = Server::start().await;
    let (admin, known) = (masters(), user("alice").authenticated());
    server.bootstrap().await;
    assert!(
        server.allows_path(&known, "/apis").await
            && server.allows_path(&UserInfo::anonymous(), "/healthz").await
    );
    assert!(!server.allows_path(&UserInfo::anonymous(), "/apis").await);
    let revision = server.revision().await;
    server.bootstrap().await;
    assert_eq!(server.revision().await, revision, "nothing is missing, so nothing is written");

    // A rule that is gone comes back, one that was added stays.
    let mut discovery = server.get("clusterroles", "", "system:discovery").await.expect("there");
    discovery["rules"] = json!([{"verbs": ["get"], "nonResourceURLs": ["/extra"]}]);
    server.update(&admin, "clusterroles", "", discovery).await.expect("updated");
    assert!(!server.allows_path(&known, "/apis").await);
    // A binding to another role is made again.
    server.delete(&admin, "clusterrolebindings", "", "system:basic-user").await.expect("deleted");
    let other = binding("system:basic-user", "ClusterRole", "view", "nobody");
    server.create(&admin, "clusterrolebindings", "", other).await.expect("created");
    // Who says so is left alone.
    let mut protected = server.get("clusterroles", "", "system:node").await.expect("there");
    protected["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = "false".into();
    protected["rules"] = json!([]);
    server.update(&admin, "clusterroles", "", protected).await.expect("updated");
    server.bootstrap().await;
    assert!(server.allows_path(&known, "/apis").await && server.allows_path(&known, "/extra").await);
    let again = server.get("clusterrolebindings", "", "system:basic-user").await.expect("there");
    assert_eq!(again["roleRef"]["name"], "system:basic-user");
    assert_eq!(server.get("clusterroles", "", "system:node").await.expect("there")["rules"], Value::Null);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aggregated_roles_follow_those_they_select() {
    let mut server = Server::start().await;
    let admin = masters();
    server.bootstrap().await;
    server.aggregate();
    // edit has what view has, and admin what edit has.
    server
        .until(async |server| {
            Some(resources(&server.get("clusterroles", "", "admin").await?).contains("pods/log"))
        })
        .await;
    let widgets = json!([{"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["widgets"]}]);
    let mut extra = role("widgets", &widgets);
    extra["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    server.create(&admin, "clusterroles", "", extra).await.expect("created");
    server
        .until(async |server| {
            Some(resources(&server.get("clusterroles", "", "admin").await?).contains("widgets"))
        })
        .await;
    let made = server.get("clusterroles", "", "admin").await.expect("there");
    let owners = made["metadata"]["managedFields"].to_string();
    assert!(owners.contains("clusterrole-aggregation-controller"), "{owners}");
    server.delete(&admin, "clusterroles", "", "widgets").await.expect("deleted");
    server
        .until(async |server| {
            Some(!resources(&server.get("clusterroles", "", "admin").await?).contains("widgets"))
        })
        .await;
    server.stop().await;
}

/// All resources that a role is about.
fn resources(role: &Value) -> BTreeSet<String> {
    let rules = role["rules"].as_array().into_iter().flatten();
    let all = rules.filter_map(|rule| rule["resources"].as_array()).flatten();
    all.filter_map(|resource| resource.as_str().map(ToOwned::to_owned)).collect()
}

fn forbidden(outcome: Result<Value, Status>) -> String {
    let status = outcome.expect_err("refused");
    assert_eq!(status.code, 403, "{}", status.message);
    status.message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_gives_more_than_they_have() {
    let server = Server::start().await;
    let (admin, alice) = (masters(), user("alice"));
    let held = "is attempting to grant RBAC permissions not currently held:\n";
    let lacks = |resource: &str, name: &str, rest: &str| {
        format!(
            "{resource}.rbac.authorization.k8s.io \"{name}\" is forbidden: user \"alice\" (groups=[]) {held}{rest}"
        )
    };
    let missing = r#"{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}"#;
    let write_rbac = json!([{"verbs": ["*"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"]}]);
    server.create(&admin, "roles", "default", role("rights", &write_rbac)).await.expect("created");
    server
        .create(&admin, "roles", "default", role("reader", &pods(&["get", "list"])))
        .await
        .expect("created");
    server.create(&admin, "clusterroles", "", role("strong", &pods(&["delete"]))).await.expect("created");
    for (name, of) in [("a", "rights"), ("b", "reader")] {
        server
            .create(&admin, "rolebindings", "default", binding(name, "Role", of, "alice"))
            .await
            .expect("created");
    }

    // `*` on roles covers escalate, and `*` on role bindings is not bind.
    server
        .create(&alice, "roles", "default", role("any", &pods(&["delete"])))
        .await
        .expect("escalate is part of *");
    let verbs = json!(["create", "update", "patch"]);
    let weaker = json!([{"verbs": verbs, "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"]}]);
    let mut rights = server.get("roles", "default", "rights").await.expect("there");
    rights["rules"] = weaker;
    server.update(&admin, "roles", "default", rights).await.expect("updated");
    server.create(&alice, "roles", "default", role("same", &pods(&["get"]))).await.expect("it is hers");
    let refused = server.create(&alice, "roles", "default", role("more", &pods(&["get", "delete"]))).await;
    assert_eq!(forbidden(refused), lacks("roles", "more", missing));
    // By an update, and by patches of every kind.
    let mut same = server.get("roles", "default", "same").await.expect("there");
    same["rules"] = pods(&["delete"]);
    assert_eq!(
        forbidden(server.update(&alice, "roles", "default", same).await),
        lacks("roles", "same", missing)
    );
    let patch = json!({"rules": pods(&["delete"])});
    let operations = json!([{"op": "replace", "path": "/rules", "value": pods(&["delete"])}]);
    for (kind, patch) in
        [(PatchType::Merge, &patch), (PatchType::StrategicMerge, &patch), (PatchType::Json, &operations)]
    {
        let refused = server.patch(&alice, "roles", "default", "same", kind, patch).await;
        assert_eq!(forbidden(refused), lacks("roles", "same", missing));
    }
    let apply = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "new"}, "rules": pods(&["delete"])});
    let refused = server.patch(&alice, "roles", "default", "new", PatchType::Apply, &apply).await;
    assert_eq!(forbidden(refused), lacks("roles", "new", missing));
    assert!(server.get("roles", "default", "new").await.is_none(), "nothing is persisted");
    // Who may escalate one role may apply it where there is none; the path of a create has no name to go by.
    let one = json!([{"verbs": ["escalate"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "resourceNames": ["new"]}]);
    server.create(&admin, "roles", "default", role("escalator", &one)).await.expect("created");
    let bound = binding("e", "Role", "escalator", "alice");
    server.create(&admin, "rolebindings", "default", bound).await.expect("created");
    let refused = server.create(&alice, "roles", "default", role("new", &pods(&["delete"]))).await;
    assert_eq!(forbidden(refused), lacks("roles", "new", missing));
    server.patch(&alice, "roles", "default", "new", PatchType::Apply, &apply).await.expect("may escalate it");
    // Housekeeping of a stronger role is not granting; touching it otherwise is.
    let finalizers = json!({"metadata": {"finalizers": ["example.com/x"]}});
    server
        .patch(&alice, "roles", "default", "any", PatchType::Merge, &finalizers)
        .await
        .expect("only finalizers");
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    let refused = server.patch(&alice, "roles", "default", "any", PatchType::Merge, &label).await;
    assert_eq!(forbidden(refused), lacks("roles", "any", missing));

    // Bindings.
    server
        .create(&alice, "rolebindings", "default", binding("own", "Role", "reader", "bob"))
        .await
        .expect("it is hers");
    let refused = server
        .create(&alice, "rolebindings", "default", binding("up", "ClusterRole", "strong", "alice"))
        .await;
    assert_eq!(forbidden(refused), lacks("rolebindings", "up", missing));
    let gone =
        server.create(&alice, "rolebindings", "default", binding("up", "ClusterRole", "gone", "alice")).await;
    let gone = gone.expect_err("no such role");
    assert_eq!(
        (gone.code, &*gone.message),
        (404, r#"rolebindings.rbac.authorization.k8s.io "gone" not found"#)
    );
    let bind = json!([{"verbs": ["bind"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "resourceNames": ["strong"]}]);
    server.create(&admin, "roles", "default", role("binder", &bind)).await.expect("created");
    server
        .create(&admin, "rolebindings", "default", binding("c", "Role", "binder", "alice"))
        .await
        .expect("created");
    server
        .create(&alice, "rolebindings", "default", binding("up", "ClusterRole", "strong", "alice"))
        .await
        .expect("may bind it");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aggregation_needs_everything() {
    let server = Server::start().await;
    let (admin, alice, root) = (masters(), user("alice"), user("root"));
    let all = json!([
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
        {"verbs": ["*"], "nonResourceURLs": ["*"]},
    ]);
    let verbs = json!(["create", "update", "patch"]);
    let rights =
        json!([{"verbs": verbs, "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"]}]);
    for (name, rules, user) in [("rights", rights, "alice"), ("everything", all, "root")] {
        server.create(&admin, "clusterroles", "", role(name, &rules)).await.expect("created");
        server
            .create(&admin, "clusterrolebindings", "", binding(name, "ClusterRole", name, user))
            .await
            .expect("created");
    }
    let mut sum = role("sum", &json!([]));
    sum["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let why = "must have cluster-admin privileges to use the aggregationRule";
    let message = forbidden(server.create(&alice, "clusterroles", "", sum.clone()).await);
    assert_eq!(message, format!(r#"clusterroles.rbac.authorization.k8s.io "sum" is forbidden: {why}"#));
    server.create(&root, "clusterroles", "", sum).await.expect("has everything");
    // Neither can the rule be taken away.
    let patch = json!({"aggregationRule": null});
    let refused = server.patch(&alice, "clusterroles", "", "sum", PatchType::Merge, &patch).await;
    assert!(forbidden(refused).ends_with(why));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_adds_others_to_what_they_do_not_have() {
    let server = Server::start().await;
    let (admin, alice) = (masters(), user("alice"));
    let kinds = ["clusterroles", "clusterrolebindings", "rolebindings"];
    let verbs = ["create", "update", "patch"];
    let rights = json!([{"verbs": verbs, "apiGroups": ["rbac.authorization.k8s.io"], "resources": kinds}]);
    for (name, rules, user) in [("rights", rights, "alice"), ("strong", pods(&["delete"]), "bob")] {
        server.create(&admin, "clusterroles", "", role(name, &rules)).await.expect("created");
        let bound = binding(name, "ClusterRole", name, user);
        server.create(&admin, "clusterrolebindings", "", bound).await.expect("created");
    }
    let bound = binding("strong", "ClusterRole", "strong", "bob");
    server.create(&admin, "rolebindings", "default", bound).await.expect("created");

    let refused = |outcome| assert!(forbidden(outcome).contains("permissions not currently held"));
    for (plural, namespace) in [("clusterrolebindings", ""), ("rolebindings", "default")] {
        let before = server.get(plural, namespace, "strong").await.expect("there");
        let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"});
        let subjects = json!([before["subjects"][0], subject]);
        let mut more = before.clone();
        more["subjects"] = subjects.clone();
        refused(server.update(&alice, plural, namespace, more).await);
        for (kind, patch) in [
            (PatchType::Merge, json!({"subjects": subjects})),
            (PatchType::StrategicMerge, json!({"subjects": subjects})),
            (PatchType::Json, json!([{"op": "add", "path": "/subjects/-", "value": subject}])),
        ] {
            refused(server.patch(&alice, plural, namespace, "strong", kind, &patch).await);
        }
        assert_eq!(server.get(plural, namespace, "strong").await, Some(before), "nothing is persisted");
        let new = binding("new", "ClusterRole", "strong", "alice");
        refused(server.create(&alice, plural, namespace, new).await);
        assert_eq!(server.get(plural, namespace, "new").await, None);
    }
    // What would become part of a default role by its label.
    let mut part = role("part", &pods(&["delete"]));
    part["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    refused(server.create(&alice, "clusterroles", "", part).await);
    assert_eq!(server.get("clusterroles", "", "part").await, None);
    // Nor by a label on a role that is stronger than its author.
    let label = json!({"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}});
    refused(server.patch(&alice, "clusterroles", "", "strong", PatchType::Merge, &label).await);
    server.stop().await;
}
