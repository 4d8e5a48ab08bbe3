//! Servers that come with another key in the middle, go back to it, or die with it.

use std::time::Duration;

use concord_testing::etcd::Cluster;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    api::{DynamicObject, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tempfile::{TempDir, tempdir};

use super::{ANNOTATIONS, condition, kept, migration, migrations, succeeds, until};
use crate::{
    encryption::{EncryptionFile, etcd_store, reloads},
    support::{Program, client},
};

const SECRETS: &str = "/registry/secrets/default/";
const OLD: &str = "[{aesgcm: {keys: [<key1>, <key2>]}}, {identity: {}}]";
const NEW: &str = "[{aesgcm: {keys: [<key2>, <key1>]}}, {identity: {}}]";
const RATE: &str = "max-requests-per-second";

struct Member {
    data: TempDir,
    file: EncryptionFile,
    program: Program,
}

async fn member(etcd: &Cluster, id: &str, providers: &str) -> Member {
    let (data, file) = (tempdir().expect("a directory"), EncryptionFile::new("[secrets]", providers));
    let flags = [
        format!("--etcd-servers={}", etcd.endpoints()[0]),
        format!("--server-id={id}"),
        file.flag(),
        "--encryption-provider-config-automatic-reload=true".to_owned(),
        "--storage-migration-delay=0s".to_owned(),
        // Whoever leads is followed soon, so that something happens while a dead server still counts, also if the machine
        // is busy.
        "--identity-lease-duration=20s".to_owned(),
        "--identity-lease-renew-interval=500ms".to_owned(),
        "--leader-elect-lease-duration=3s".to_owned(),
        "--leader-elect-renew-deadline=2s".to_owned(),
        "--leader-elect-retry-period=500ms".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let program = Program::start_with(data.path(), &flags).await;
    program.ready(200).await;
    Member { data, file, program }
}

async fn create(client: &Client, name: &str) {
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let secret = Secret { metadata, ..Secret::default() };
    secrets.create(&PostParams::default(), &secret).await.expect("created");
}

async fn begin(client: &Client, rate: &str) {
    let slow = migration("rotate", "", "secrets", &[(RATE, rate)]);
    migrations(client).create(&PostParams::default(), &slow).await.expect("created");
}

/// Whether it waits for a server.
fn waits_for(id: &'static str) -> impl Fn(&DynamicObject) -> bool {
    move |now| {
        condition(now, "Running", "False").is_some_and(|(reason, message)| {
            reason == "WaitingForAgreement" && message.contains(&format!("{id}=aesgcm:v1:key1:"))
        })
    }
}

/// How many Secrets are kept under the new key.
async fn renewed(store: &dyn concord_store::Store) -> usize {
    let all = kept(store, SECRETS).await;
    all.iter().filter(|(_, value)| value.starts_with(b"k8s:enc:aesgcm:v1:key2:")).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_writes_otherwise_in_the_middle_is_waited_for() {
    let etcd = Cluster::single().await.expect("an etcd");
    let store = etcd_store(&etcd).await;
    let one = member(&etcd, "s1", OLD).await;
    let first = client(one.data.path()).await;
    for number in 0..80 {
        create(&first, &format!("secret-{number:02}")).await;
    }
    one.file.replace("[secrets]", NEW);
    reloads(&one.program, "success", 1).await;
    begin(&first, "2").await;
    while renewed(&store).await < 4 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // One joins that has not heard of the new key's being first.
    let two = member(&etcd, "s2", OLD).await;
    create(&client(two.data.path()).await, "of-two").await;
    until(&first, "rotate", "that it waits", waits_for("s2")).await;
    let before = renewed(&store).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(renewed(&store).await, before, "nothing is written");
    two.file.replace("[secrets]", NEW);
    let runs = |now: &DynamicObject| condition(now, "Running", "True").is_some();
    until(&first, "rotate", "that it goes on", runs).await;
    while renewed(&store).await <= before {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // It goes back. As soon as that is known, nothing is written.
    two.file.replace("[secrets]", OLD);
    reloads(&two.program, "success", 2).await;
    until(&first, "rotate", "that it waits", waits_for("s2")).await;
    let before = renewed(&store).await;
    assert!(before < 80, "it was not in the middle");
    // Long enough for two of them.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(renewed(&store).await, before, "nothing is written");
    two.file.replace("[secrets]", NEW);
    let faster = json!({"metadata": {"annotations": {format!("{ANNOTATIONS}/{RATE}"): "1000"}}});
    migrations(&first)
        .patch("rotate", &PatchParams::default(), &Patch::Merge(faster))
        .await
        .expect("patched");
    succeeds(&first, "rotate").await;
    assert_eq!((renewed(&store).await, kept(&store, SECRETS).await.len()), (81, 81));
    store.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_server_is_waited_for_as_long_as_its_lease() {
    let etcd = Cluster::single().await.expect("an etcd");
    let store = etcd_store(&etcd).await;
    let one = member(&etcd, "s1", OLD).await;
    let two = member(&etcd, "s2", OLD).await;
    let first = client(one.data.path()).await;
    create(&first, "secret").await;
    one.file.replace("[secrets]", NEW);
    reloads(&one.program, "success", 1).await;
    two.program.signal("KILL");
    two.program.ended().await;
    begin(&first, "1000").await;
    until(&first, "rotate", "that it waits", waits_for("s2")).await;
    assert_eq!(renewed(&store).await, 0, "it may still have something on its way");
    succeeds(&first, "rotate").await;
    assert_eq!(renewed(&store).await, 1);
    store.shutdown().await;
}

/// Frozen for longer than its leases last, and then it goes on as if nothing had been.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_frozen_in_the_middle_ends_it() {
    let etcd = Cluster::single().await.expect("an etcd");
    let store = etcd_store(&etcd).await;
    let one = member(&etcd, "s1", OLD).await;
    let first = client(one.data.path()).await;
    for number in 0..30 {
        create(&first, &format!("secret-{number:02}")).await;
    }
    one.file.replace("[secrets]", NEW);
    reloads(&one.program, "success", 1).await;
    // Slow enough to be in the middle, however late anybody looks.
    begin(&first, "4").await;
    while renewed(&store).await < 5 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    one.program.signal("STOP");
    tokio::time::sleep(Duration::from_secs(30)).await;
    let before = renewed(&store).await;
    assert!(before < 30, "it was not in the middle");
    one.program.signal("CONT");
    succeeds(&first, "rotate").await;
    assert_eq!(renewed(&store).await, 30);
    store.shutdown().await;
}
