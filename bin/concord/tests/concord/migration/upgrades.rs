//! A release that stores what is built in otherwise than the one before.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use concord_store::Store;
use concord_store_embedded::{EmbeddedStore, Options};
use concord_testing::etcd::Cluster;
use kube::{
    Api,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{ANNOTATIONS, ask, condition, kept, kind, migrations, succeeds, until};
use crate::{
    encryption::etcd_store,
    support::{Program, SOON, client},
};

const OLD: &[&str] = &["--emulated-version=1.33", "--storage-migration-delay=0s"];
const NEW: &[&str] = &["--emulated-version=1.36", "--storage-migration-delay=300ms"];

async fn create(client: &kube::Client, of: &str, name: &str, spec: Value) {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind("networking.k8s.io", "v1", of));
    let object =
        json!({"apiVersion": "networking.k8s.io/v1", "kind": of, "metadata": {"name": name}, "spec": spec});
    let object = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &object).await.expect("created");
}

/// A migration in the first version of its API.
async fn migrate_as_ever(client: &kube::Client) {
    let of = kind("storagemigration.k8s.io", "v1alpha1", "StorageVersionMigration");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &of);
    let object = json!({"apiVersion": "storagemigration.k8s.io/v1alpha1", "kind": "StorageVersionMigration",
        "metadata": {"name": "old"}, "spec": {"resource": {"version": "v1", "resource": "configmaps"}}});
    let object = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &object).await.expect("created");
    let begin = Instant::now();
    loop {
        let now = api.get("old").await.expect("there");
        if condition(&now, "Succeeded", "True").is_some() {
            let all = now.data["status"]["conditions"].as_array().expect("a list");
            assert!(all.iter().all(|one| one["lastUpdateTime"].is_string()), "{all:?}");
            return;
        }
        assert!(begin.elapsed() < SOON, "not in time: {}", now.data);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// The versions in which objects are stored by a server that has ended.
async fn versions(data: &Path, resource: &str) -> Vec<String> {
    let store = EmbeddedStore::open(&Options::new(data.join("store.db"))).expect("a store");
    let found = versions_in(&store, resource).await;
    store.close().await;
    found
}

async fn versions_in(store: &dyn Store, resource: &str) -> Vec<String> {
    let all = kept(store, &format!("/registry/{resource}/")).await;
    let version = |value: &[u8]| serde_json::from_slice::<Value>(value).expect("JSON")["apiVersion"].clone();
    let mut found: Vec<String> =
        all.iter().map(|(_, value)| version(value).as_str().expect("a version").to_owned()).collect();
    found.sort();
    found.dedup();
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_built_in_is_migrated_after_an_upgrade_unless_somebody_says_no() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), OLD).await;
    server.ready(200).await;
    let old = client(data.path()).await;
    create(&old, "ServiceCIDR", "more", json!({"cidrs": ["10.1.0.0/24"]})).await;
    let parent = json!({"parentRef": {"resource": "services", "namespace": "default", "name": "s"}});
    create(&old, "IPAddress", "10.1.0.1", parent).await;
    migrate_as_ever(&old).await;
    let of = kind("internal.apiserver.k8s.io", "v1alpha1", "StorageVersion");
    let all: Api<DynamicObject> = Api::all_with(old.clone(), &of);
    let no = json!({"metadata": {"annotations": {format!("{ANNOTATIONS}/automatic"): "false"}}});
    let named = "networking.k8s.io.ipaddresses";
    all.patch(named, &PatchParams::default(), &Patch::Merge(no)).await.expect("annotated");
    server.signal("TERM");
    server.ended().await;
    for resource in ["servicecidrs", "ipaddresses"] {
        assert_eq!(versions(data.path(), resource).await, ["networking.k8s.io/v1beta1"], "{resource}");
    }
    let server = Program::start_with(data.path(), NEW).await;
    server.ready(200).await;
    let new = client(data.path()).await;
    // What the older release said is said in the words of this one.
    let ended = migrations(&new).get("old").await.expect("readable");
    assert_eq!(ended.data["spec"], json!({"resource": {"group": "", "resource": "configmaps"}}));
    assert!(condition(&ended, "Succeeded", "True").is_some(), "{:?}", ended.data);
    let times = ended.data["status"]["conditions"].as_array().expect("a list");
    assert!(times.iter().all(|one| one["lastTransitionTime"].is_string()), "{times:?}");
    let begin = Instant::now();
    loop {
        let all = migrations(&new).list(&ListParams::default()).await.expect("a list").items;
        let of = |plural: &str| {
            let mut found = all.iter().filter(|one| one.data["spec"]["resource"]["resource"] == plural);
            found.next()
        };
        assert!(of("ipaddresses").is_none(), "nobody wants that");
        if of("servicecidrs").is_some_and(|one| condition(one, "Succeeded", "True").is_some()) {
            break;
        }
        assert!(begin.elapsed() < SOON, "not in time: the upgrade is noticed");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    server.signal("TERM");
    server.ended().await;
    assert_eq!(versions(data.path(), "servicecidrs").await, ["networking.k8s.io/v1"]);
    assert_eq!(versions(data.path(), "ipaddresses").await, ["networking.k8s.io/v1beta1"]);
}

/// Three servers, one of which has not been upgraded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_three_that_stores_an_older_version_is_waited_for_by_name() {
    let etcd = Cluster::single().await.expect("an etcd");
    let data = ["s1", "s2", "s3"].map(|id| (id, tempdir().expect("a directory")));
    let etcds = format!("--etcd-servers={}", etcd.endpoints()[0]);
    let start = async |at: usize, release: &str| {
        let (id, data) = &data[at];
        let (id, release) = (format!("--server-id={id}"), format!("--emulated-version={release}"));
        let flags = [etcds.as_str(), &id, &release, "--storage-migration-delay=0s"];
        let server = Program::start_with(data.path(), &flags).await;
        server.ready(200).await;
        server
    };
    let old = start(2, "1.33").await;
    create(&client(data[2].1.path()).await, "ServiceCIDR", "more", json!({"cidrs": ["10.1.0.0/24"]})).await;
    let _new = [start(0, "1.36").await, start(1, "1.36").await];
    let (store, client) = (etcd_store(&etcd).await, client(data[0].1.path()).await);
    ask(&client, "upgrade", "networking.k8s.io", "servicecidrs").await;
    let names_it = |now: &DynamicObject| {
        condition(now, "Running", "False").is_some_and(|(reason, message)| {
            let said = ["s1=networking.k8s.io/v1,", "s3=networking.k8s.io/v1beta1"];
            reason == "WaitingForAgreement" && said.iter().all(|said| message.contains(said))
        })
    };
    until(&client, "upgrade", "that it waits for s3", names_it).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(versions_in(&store, "servicecidrs").await.contains(&"networking.k8s.io/v1beta1".to_owned()));
    old.signal("TERM");
    old.ended().await;
    let _upgraded = start(2, "1.36").await;
    succeeds(&client, "upgrade").await;
    assert_eq!(versions_in(&store, "servicecidrs").await, ["networking.k8s.io/v1"]);
    store.shutdown().await;
}
