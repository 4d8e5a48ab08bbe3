//! On one etcd with a kube-apiserver: its objects are in protobuf.

use concord_store::{Scan, Store as _, Txn};
use concord_testing::etcd::Cluster;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tempfile::tempdir;

use crate::{
    encryption::etcd_store,
    support::{Program, client},
};

const KEY: &str = "/registry/configmaps/default/foreign";

/// An object as a kube-apiserver stores it.
fn stored() -> Vec<u8> {
    let object = json!({
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {
            "name": "foreign",
            "namespace": "default",
            "uid": "4a1f6c0e-95a1-4c4c-8f0c-3f2f6f6c6b5d",
            "creationTimestamp": "2026-01-02T03:04:05Z",
        },
        "data": {"a": "b"},
    });
    let codec = concord_builtins::protobuf("", "v1", "ConfigMap").expect("a kind");
    codec.encode("v1", "ConfigMap", object.as_object().expect("an object"))
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_a_kube_apiserver_stored_are_read_and_changed() {
    let etcd = Cluster::single().await.expect("an etcd");
    let store = etcd_store(&etcd).await;
    // One from before, and one while it runs.
    store.transact(Txn::new().put(KEY, stored())).await.expect("written");
    let data = tempdir().expect("a directory");
    let servers = format!("--etcd-servers={}", etcd.endpoints().join(","));
    let server = Program::start_with(data.path(), &[&servers]).await;
    let client = client(data.path()).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let read = maps.get("foreign").await.expect("readable");
    assert_eq!(read.data.expect("data")["a"], "b");
    let written = store.transact(Txn::new().put(KEY, stored())).await.expect("written").revision;
    let listed = maps.list(&kube::api::ListParams::default()).await.expect("a list");
    let again =
        listed.items.iter().find(|map| map.metadata.name.as_deref() == Some("foreign")).expect("listed");
    assert_eq!(again.metadata.resource_version, Some(written.to_string()));

    // A change that changes nothing else changes the form, so that a migration is more than nothing.
    let touched =
        maps.patch("foreign", &PatchParams::default(), &Patch::Merge(json!({}))).await.expect("patched");
    assert_ne!(touched.metadata.resource_version, again.metadata.resource_version);
    let kept = store.scan(Scan::key(KEY)).await.expect("a page").entries[0].value.clone();
    assert!(kept.starts_with(br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"#), "{kept:?}");
    let after = maps.get("foreign").await.expect("readable");
    assert_eq!((after.data, after.metadata.uid), (again.data.clone(), again.metadata.uid.clone()));
    drop(server);
}
