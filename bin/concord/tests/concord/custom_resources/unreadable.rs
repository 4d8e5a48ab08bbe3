//! Definitions that the server cannot understand, because something else wrote them: all others are served.

use concord_store::{Store as _, Txn};
use concord_testing::etcd::Cluster;
use kube::{
    Api, Client,
    api::{DynamicObject, PostParams},
};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{define, gadget, gadgets, kind, version};
use crate::{
    encryption::etcd_store,
    support::{Program, client},
};

const PLACE: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions";

/// A stored definition that says it is served.
fn stored(name: &str, spec: &Value) -> String {
    let (plural, _) = name.split_once('.').expect("a plural and a group");
    let metadata =
        json!({"name": name, "uid": name, "generation": 1, "creationTimestamp": "2026-01-02T03:04:05Z"});
    let status = json!({
        "acceptedNames": {"plural": plural, "kind": plural, "listKind": format!("{plural}List")},
        "conditions": [{"type": "Established", "status": "True"}, {"type": "NamesAccepted", "status": "True"}],
    });
    let head = r#"{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":"#;
    format!("{head}{metadata},\"spec\":{spec},\"status\":{status}}}")
}

fn unreadable(group: &str) -> Vec<(String, String)> {
    let broken = json!({"type": "object", "properties": {"spec": {"type": "string", "pattern": "("}}});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": broken}});
    let of = |plural: &str| format!("{plural}.{group}");
    vec![
        (of("garbage"), "\u{1}no JSON".to_owned()),
        (of("cut"), stored(&of("cut"), &json!({}))[..80].to_owned()),
        (of("others"), stored(&of("others"), &json!(5))),
        (of("halves"), stored(&of("halves"), &json!({"group": group, "names": {}}))),
        (of("lists"), stored(&of("lists"), &json!({"group": group, "versions": {"v1": true}}))),
        (
            of("patterns"),
            stored(&of("patterns"), &json!({"group": group, "scope": "Cluster", "versions": [version]})),
        ),
    ]
}

async fn a_kind_can_be_used(client: &Client, group: &str) {
    define(client, &gadgets(group, &json!([version("v1", true)]))).await;
    let resource = kind(group, "v1", "Gadget");
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let made = api.create(&PostParams::default(), &gadget(&resource, "one", &json!({"color": "red"}))).await;
    assert_eq!(made.expect("created").data["spec"]["replicas"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_understood_breaks_nothing_else() {
    let etcd = Cluster::single().await.expect("an etcd");
    let store = etcd_store(&etcd).await;
    let put = async |group: &str| {
        for (name, value) in unreadable(group) {
            store.transact(Txn::new().put(format!("{PLACE}/{name}"), value)).await.expect("written");
        }
    };
    put("before.example.com").await;
    let data = tempdir().expect("a directory");
    let servers = format!("--etcd-servers={}", etcd.endpoints().join(","));
    let server = Program::start_with(data.path(), &[&servers]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    a_kind_can_be_used(&client, "fine.example.com").await;
    // Also in their own group.
    a_kind_can_be_used(&client, "before.example.com").await;
    put("while.example.com").await;
    a_kind_can_be_used(&client, "while.example.com").await;

    // What was served goes on being served when something else writes nonsense into another definition, and what was
    // nonsense is served once it makes sense.
    let spec = json!({
        "group": "while.example.com", "scope": "Cluster",
        "names": {"plural": "garbage", "kind": "garbage", "listKind": "garbageList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    });
    let name = "garbage.while.example.com";
    store.transact(Txn::new().put(format!("{PLACE}/{name}"), stored(name, &spec))).await.expect("written");
    let mut repaired = kind("while.example.com", "v1", "garbage");
    repaired.plural = "garbage".to_owned();
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &repaired);
    let made = async {
        while api.create(&PostParams::default(), &DynamicObject::new("one", &repaired)).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::support::SOON, made).await.expect("served");
}
