//! Objects that are not like others, and creates that race with the change of a definition.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use concord_store::{Store as _, Txn};
use concord_testing::{
    etcd::Cluster,
    webhook::{Asked, Certificate, Reply, WebhookServer},
};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{ask, create_foo, define, foos, kept, kind, progress, stored_versions, succeeds};
use crate::{
    encryption::etcd_store,
    support::{Program, client},
};

/// Labels whatever it is asked about, unless it has that label.
fn label(asked: &Asked) -> Reply {
    let review: Value = serde_json::from_slice(&asked.body).expect("a review");
    let patch = json!([{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]).to_string();
    let response = json!({"uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch",
        "patch": BASE64_STANDARD.encode(patch)});
    let answer =
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
    Reply::ok(&answer.to_string())
}

async fn ask_webhook(client: &Client, hook: &WebhookServer) {
    let hook = json!({
        "name": "label.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": format!("https://127.0.0.1:{}/", hook.port),
            "caBundle": BASE64_STANDARD.encode(&hook.authority)},
        "rules": [{"apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["UPDATE"],
            "resources": ["foos"]}],
        "matchConditions": [{"name": "edited", "expression": "object.metadata.name == 'edited'"}],
    });
    let object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "label"}, "webhooks": [hook],
    });
    let kind = kind("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let object = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &object).await.expect("created");
}

/// What nobody may change: all but how it is stored.
fn essence(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).expect("JSON");
    value["metadata"]["resourceVersion"].take();
    value
}

async fn patch(foos: &Api<DynamicObject>, name: &str, patch: Value) {
    foos.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_are_not_like_others_are_migrated_as_well() {
    let data = tempdir().expect("a directory");
    let hook = WebhookServer::start(Certificate::For("127.0.0.1"), label).await.expect("a webhook");
    let server = Program::start_with(data.path(), &["--storage-migration-delay=0s"]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    define(&client, &["v1", "v2"], "v1").await;
    let objects = foos(&client, "v1");
    for name in ["bare", "edited", "ends", "large"] {
        create_foo(&client, "v1", name).await;
    }
    patch(&objects, "bare", json!({"metadata": {"managedFields": [{}]}})).await;
    patch(&objects, "large", json!({"spec": {"padding": "x".repeat(1_200_000)}})).await;
    patch(&objects, "ends", json!({"metadata": {"finalizers": ["example.com/wait"]}})).await;
    objects.delete("ends", &DeleteParams::default()).await.expect("asked for");
    ask_webhook(&client, &hook).await;
    let names = ["bare", "ends", "large"];
    let mut before = Vec::new();
    for name in names {
        before.push(objects.get(name).await.expect("there"));
    }
    assert!(before[0].metadata.managed_fields.is_none() && before[1].metadata.deletion_timestamp.is_some());
    define(&client, &["v1", "v2"], "v2").await;
    // As soon as one is stored in the new version, the new definition is in force.
    create_foo(&client, "v2", "new").await;
    ask(&client, "odd", "example.com", "foos").await;
    let ended = succeeds(&client, "odd").await;
    assert_eq!((&progress(&ended)["migrated"], &progress(&ended)["current"]), (&json!(4), &json!(1)));
    for (name, before) in names.iter().zip(&before) {
        let after = objects.get(name).await.expect("there");
        assert_eq!(essence(before), essence(&after), "{name}");
        assert_ne!(before.metadata.resource_version, after.metadata.resource_version, "{name}");
    }
    let edited = objects.get("edited").await.expect("there");
    assert_eq!(edited.metadata.labels.expect("labels")["seen"], "yes", "the webhook has the last word");
    assert_eq!(stored_versions(&client).await, json!(["v2"]));
    patch(&objects, "ends", json!({"metadata": {"finalizers": null}})).await;
    assert!(objects.get("ends").await.is_err(), "it ends as ever");
}

/// Upstream stores a third of them in the old version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_created_right_after_the_change_of_a_definition_is_accounted_for() {
    let etcd = Cluster::single().await.expect("an etcd");
    let data = [(); 2].map(|()| tempdir().expect("a directory"));
    let mut servers = Vec::new();
    for (at, data) in data.iter().enumerate() {
        let flags = [
            format!("--etcd-servers={}", etcd.endpoints()[0]),
            format!("--server-id=s{at}"),
            "--storage-migration-delay=0s".to_owned(),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let server = Program::start_with(data.path(), &flags).await;
        server.ready(200).await;
        servers.push(server);
    }
    let clients = [client(data[0].path()).await, client(data[1].path()).await];
    define(&clients[0], &["v1", "v2"], "v1").await;
    for (at, client) in clients.iter().enumerate() {
        create_foo(client, "v1", &format!("first-{at}")).await;
    }
    let create = |client: Client, of: usize| async move {
        for count in 0..100 {
            create_foo(&client, "v1", &format!("s{of}-{count:03}")).await;
        }
    };
    define(&clients[0], &["v1", "v2"], "v2").await;
    ask(&clients[1], "race", "example.com", "foos").await;
    tokio::join!(create(clients[0].clone(), 0), create(clients[1].clone(), 1));
    succeeds(&clients[0], "race").await;
    let store = etcd_store(&etcd).await;
    let all = kept(&store, "/registry/example.com/foos/").await;
    assert_eq!(all.len(), 202);
    for (name, value) in all {
        let text = String::from_utf8_lossy(&value);
        assert!(text.starts_with(r#"{"kind":"Foo","apiVersion":"example.com/v2""#), "{name}: {text}");
    }
    assert_eq!(stored_versions(&clients[1]).await, json!(["v2"]));
    store.shutdown().await;
}

/// Whoever binds a policy needs the right to read its parameters. The migrator has no such right, and binds nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bindings_of_policies_are_migrated_without_the_right_to_read_parameters() {
    const PLACE: &str = "/registry/validatingadmissionpolicybindings/";
    let etcd = Cluster::single().await.expect("an etcd");
    let data = tempdir().expect("a directory");
    let flags =
        [format!("--etcd-servers={}", etcd.endpoints()[0]), "--storage-migration-delay=0s".to_owned()];
    let server = Program::start_with(data.path(), &flags.each_ref().map(String::as_str)).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    let bindings: Api<DynamicObject> = Api::all_with(
        client.clone(),
        &kind("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding"),
    );
    let binding = json!({"metadata": {"name": "a"}, "spec": {"policyName": "p", "validationActions": ["Deny"],
        "paramRef": {"name": "x", "namespace": "default", "parameterNotFoundAction": "Deny"}}});
    let binding = serde_json::from_value(binding).expect("an object");
    bindings.create(&PostParams::default(), &binding).await.expect("created");
    let store = etcd_store(&etcd).await;
    let (_, value) = kept(&store, PLACE).await.swap_remove(0);
    let old = String::from_utf8_lossy(&value).replacen("k8s.io/v1\"", "k8s.io/v1beta1\"", 1);
    store.transact(Txn::new().put(format!("{PLACE}a"), old)).await.expect("written");
    ask(&client, "bindings", "admissionregistration.k8s.io", "validatingadmissionpolicybindings").await;
    let ended = succeeds(&client, "bindings").await;
    assert_eq!(progress(&ended)["migrated"], 1, "{ended:?}");
    assert_eq!(kept(&store, PLACE).await, [("a".to_owned(), value)]);
    store.shutdown().await;
}
