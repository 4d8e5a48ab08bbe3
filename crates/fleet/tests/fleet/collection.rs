use std::sync::Arc;

use concord_registry::Part;
use concord_store::{Store, Txn};
use concord_store_etcd::{Config, EtcdStore};
use concord_testing::etcd::Cluster;
use serde_json::{Value, json};

use crate::support::{Kind, LEASES, Log, STORAGE_VERSIONS, Server, wait_for, wait_said};

pub(crate) fn says(entries: &[(&str, &str)]) -> Value {
    let entry = |(id, version): &(&str, &str)| json!({"apiServerID": id, "encodingVersion": version, "decodableVersions": [version]});
    let entries: Vec<Value> = entries.iter().map(entry).collect();
    let mut status = json!({"storageVersions": entries});
    let first = &entries[0]["encodingVersion"];
    if entries.iter().all(|entry| entry["encodingVersion"] == *first) {
        status["commonEncodingVersion"] = first.clone();
    }
    status
}

pub(crate) async fn identity(server: &Server, id: &str, component: &str) {
    let labels = json!({"apiserver.kubernetes.io/identity": component});
    let lease = json!({"metadata": {"name": id, "labels": labels}, "spec": {
        "holderIdentity": id, "leaseDurationSeconds": 3600, "renewTime": "2100-01-01T00:00:00.000000Z"}});
    server.create(LEASES, "kube-system", lease).await.expect("created");
}

pub(crate) async fn object(server: &Server, name: &str, status: Value) {
    server.create(STORAGE_VERSIONS, "", json!({"metadata": {"name": name}})).await.expect("created");
    let set =
        |object: &mut concord_registry::Object| drop(object.insert("status".to_owned(), status.clone()));
    server.update(STORAGE_VERSIONS, ("", name), Part::Sub("status"), set).await;
}

async fn wait_gone(server: &Server, name: &str) {
    wait_for(name, || async { server.storage_version(name).await.is_none().then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_live_as_long_as_their_leases() {
    let log = Log::new();
    let server = Server::ready(&log, &Kind::new("a")).await;
    object(&server, "test.unknown", says(&[("nobody", "test/v1")])).await;
    wait_gone(&server, "test.unknown").await;
    identity(&server, "x", "kube-apiserver").await;
    identity(&server, "y", "kube-apiserver").await;
    object(&server, "test.one", says(&[("x", "test/v1")])).await;
    object(&server, "test.two", says(&[("x", "test/v1"), ("y", "test/v2")])).await;
    assert_eq!(server.said("test.two").await, "x=test/v1,y=test/v2");
    server.delete(LEASES, "kube-system", "x").await;
    wait_gone(&server, "test.one").await;
    wait_said(&server, "test.two", "y=test/v2 -> test/v2").await;
    server.delete(LEASES, "kube-system", "y").await;
    wait_gone(&server, "test.two").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_not_a_servers_counts_as_none() {
    let log = Log::new();
    let server = Server::ready(&log, &Kind::new("a")).await;
    let lease = json!({"metadata": {"name": "x", "labels": {"app": "kube-apiserver"}}, "spec": {}});
    server.create(LEASES, "kube-system", lease).await.expect("created");
    object(&server, "test.things", says(&[("x", "test/v1")])).await;
    wait_gone(&server, "test.things").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_servers_entries_stay_whatever_its_component() {
    let log = Log::new();
    let server = Server::ready(&log, &Kind::new("a")).await;
    identity(&server, "x", "metrics-server").await;
    object(&server, "test.things", says(&[("x", "test/v1")])).await;
    let other = json!({"metadata": {"name": "test.gone"}});
    server.create(STORAGE_VERSIONS, "", other).await.expect("created");
    let gone = says(&[("nobody", "test/v1")]);
    let set = |object: &mut concord_registry::Object| drop(object.insert("status".to_owned(), gone.clone()));
    server.update(STORAGE_VERSIONS, ("", "test.gone"), Part::Sub("status"), set).await;
    wait_gone(&server, "test.gone").await;
    assert_eq!(server.said("test.things").await, "x=test/v1 -> test/v1");
    server.stop().await;
}

/// More than an etcd compares in one transaction, in one object and in several.
#[tokio::test(flavor = "multi_thread")]
async fn any_number_of_entries_of_nobody_is_removed_from_an_etcd() {
    let cluster = Cluster::single().await.expect("an etcd");
    let config = Config::new(cluster.endpoints().iter().cloned());
    let store: Arc<dyn Store> = Arc::new(EtcdStore::open(config).await.expect("a store"));
    let server = Server::start_between(store.clone(), store.clone(), &Kind::new("a"));
    server.registered().await;
    identity(&server, "x", "kube-apiserver").await;
    let ids: Vec<String> = (0..300).map(|at| format!("nobody-{at}")).collect();
    let nobody: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "test/v1")).collect();
    let all = [&nobody[..150], &[("x", "test/v1")], &nobody[150..]].concat();
    object(&server, "test.many", says(&all)).await;
    let several: Vec<String> = (0..5).map(|at| format!("test.some{at}")).collect();
    for (at, name) in several.iter().enumerate() {
        object(&server, name, says(&nobody[at * 50..][..50])).await;
    }
    wait_said(&server, "test.many", "x=test/v1 -> test/v1").await;
    for name in &several {
        wait_gone(&server, name).await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_killed_leaves_no_entries_once_its_lease_is_gone() {
    let log = Log::new();
    let (a, b) = (Server::ready(&log, &Kind::new("a")).await, Server::ready(&log, &Kind::new("b")).await);
    b.kill().await;
    assert_eq!(a.said("core.pods").await, "a=v1,b=v1 -> v1", "it may still have something on its way");
    a.delete(LEASES, "kube-system", "b").await;
    for name in log.names("storageversions").await {
        wait_for(&name, || async { (!a.said(&name).await.contains("b=")).then_some(()) }).await;
    }
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_missed_is_found_at_the_next_start() {
    let log = Log::new();
    let a = Server::ready(&log, &Kind::new("a")).await;
    let b = Server::ready(&log, &Kind::new("b")).await;
    b.kill().await;
    a.kill().await;
    // Nobody is there to see it.
    let gone = Txn::new().delete("/registry/leases/kube-system/b");
    log.store.transact(gone).await.expect("deleted");
    let a = Server::ready(&log, &Kind::new("a")).await;
    for name in log.names("storageversions").await {
        wait_for(&name, || async { (!a.said(&name).await.contains("b=")).then_some(()) }).await;
    }
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_nobody_fills_are_removed_once_they_are_old() {
    let log = Log::new();
    let empty = |name: &str, created: &str| {
        json!({"apiVersion": "internal.apiserver.k8s.io/v1alpha1", "kind": "StorageVersion",
            "metadata": {"name": name, "uid": name, "creationTimestamp": created}, "spec": {}, "status": {}})
    };
    let put = |txn: Txn, (name, created): (&str, &str)| {
        txn.put(format!("/registry/storageversions/{name}"), empty(name, created).to_string())
    };
    let objects = [("test.old", "2020-01-01T00:00:00Z"), ("test.young", "2100-01-01T00:00:00Z")];
    log.store.transact(objects.into_iter().fold(Txn::new(), put)).await.expect("stored");
    let server = Server::ready(&log, &Kind::new("a")).await;
    wait_gone(&server, "test.old").await;
    assert!(server.storage_version("test.young").await.is_some());
    server.stop().await;
}
