//! Upstream's scenario of a rotated key, and two servers with different files.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use concord_testing::{etcd::Cluster, kms::KmsPlugin};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use tempfile::tempdir;

use super::{ask, condition, kept, migrations, progress, succeeds, until};
use crate::{
    encryption::{EncryptionFile, etcd_store, reloads},
    support::{Program, client},
};

const SECRETS: &str = "/registry/secrets/default/";
const KEY1: &str = "[{aescbc: {keys: [<key1>]}}, {identity: {}}]";
const KEY2_SECOND: &str = "[{aescbc: {keys: [<key1>, <key2>]}}, {identity: {}}]";
const KEY2_FIRST: &str = "[{aescbc: {keys: [<key2>, <key1>]}}, {identity: {}}]";
const KEY2: &str = "[{aescbc: {keys: [<key2>]}}]";

async fn create(client: &Client, name: &str) -> String {
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let secret = Secret { metadata, ..Secret::default() };
    let made = secrets.create(&PostParams::default(), &secret).await.expect("created");
    made.metadata.resource_version.expect("a resource version")
}

async fn revision(client: &Client, name: &str) -> String {
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    secrets.get(name).await.expect("readable").metadata.resource_version.expect("a resource version")
}

/// Writes down who asks for what.
const POLICY: &str = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [{level: Metadata, \
    resources: [{group: '', resources: [secrets]}]}]}";

async fn server(etcd: &Cluster, data: &std::path::Path, id: &str, file: &EncryptionFile) -> Program {
    std::fs::write(data.join("policy.yaml"), POLICY).expect("written");
    let flags = [
        format!("--audit-policy-file={}", data.join("policy.yaml").display()),
        format!("--audit-log-path={}", data.join("audit.log").display()),
        format!("--etcd-servers={}", etcd.endpoints()[0]),
        format!("--server-id={id}"),
        file.flag(),
        "--encryption-provider-config-automatic-reload=true".to_owned(),
        "--storage-migration-delay=0s".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Program::start_with(data, &flags).await;
    server.ready(200).await;
    server
}

/// Every request of the migrator is written down, and none of them was anything but a patch that went well.
async fn audited(data: &std::path::Path) {
    let begin = Instant::now();
    loop {
        let log = std::fs::read_to_string(data.join("audit.log")).expect("a log");
        let events =
            log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("an event"));
        let migrator = "system:serviceaccount:kube-system:storage-version-migrator-controller";
        let own: Vec<_> = events.filter(|event| event["user"]["username"] == migrator).collect();
        if !own.is_empty() {
            let told = |event: &serde_json::Value| {
                (
                    event["verb"].clone(),
                    event["objectRef"]["name"].clone(),
                    event["responseStatus"]["code"].clone(),
                )
            };
            assert_eq!(
                own.iter().map(told).collect::<Vec<_>>(),
                [("patch".into(), "one".into(), 200.into())]
            );
            return;
        }
        // The log is written by a thread of its own.
        assert!(begin.elapsed() < crate::support::SOON, "not in time: the log has the patch");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_brought_under_a_new_key() {
    let (etcd, data) = (Cluster::single().await.expect("an etcd"), tempdir().expect("a directory"));
    let file = EncryptionFile::new("[secrets]", KEY1);
    let server = server(&etcd, data.path(), "s1", &file).await;
    let (client, store) = (client(data.path()).await, etcd_store(&etcd).await);
    let first = create(&client, "one").await;
    file.replace("[secrets]", KEY2_FIRST);
    reloads(&server, "success", 1).await;
    let second = create(&client, "two").await;
    ask(&client, "rotate", "", "secrets").await;
    let ended = succeeds(&client, "rotate").await;
    for (name, value) in kept(&store, SECRETS).await {
        assert!(value.starts_with(b"k8s:enc:aescbc:v1:key2:"), "{name} was left behind");
    }
    let moved = revision(&client, "one").await;
    assert_ne!(moved, first, "it was written");
    assert_eq!(revision(&client, "two").await, second, "it had the right key already");
    let progress = progress(&ended);
    assert_eq!((&progress["phase"], &progress["failed"]), (&"Done".into(), &0.into()), "{progress}");
    let census = progress["census"].as_array().expect("a census");
    assert_eq!(census.len(), 1, "{progress}");
    let key = census[0]["encryption"].as_str().unwrap_or_default();
    assert!(key.starts_with("aescbc:v1:key2:"), "{key}");
    assert!(ended.data["status"]["resourceVersion"].is_string());

    ask(&client, "again", "", "secrets").await;
    succeeds(&client, "again").await;
    assert_eq!(revision(&client, "one").await, moved, "there was nothing to do");
    audited(data.path()).await;
    // Nothing needs the old key any more.
    file.replace("[secrets]", KEY2);
    reloads(&server, "success", 2).await;
    drop(server);
    let server = self::server(&etcd, data.path(), "s1", &file).await;
    let client = crate::support::client(data.path()).await;
    assert_eq!(revision(&client, "one").await, moved);
    drop(server);
    store.shutdown().await;
}

/// A value says the name of its key, and another key may have taken that name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_took_the_name_of_another_is_another_key() {
    let (etcd, data) = (Cluster::single().await.expect("an etcd"), tempdir().expect("a directory"));
    let file = EncryptionFile::new("[secrets]", KEY1);
    let server = server(&etcd, data.path(), "s1", &file).await;
    let client = client(data.path()).await;
    let first = create(&client, "one").await;
    file.replace("[secrets]", "[{aescbc: {keys: [<key1b>, <key1>]}}, {identity: {}}]");
    reloads(&server, "success", 1).await;
    ask(&client, "rotate", "", "secrets").await;
    let ended = succeeds(&client, "rotate").await;
    assert_eq!(progress(&ended)["migrated"], 1, "{}", progress(&ended));
    let moved = revision(&client, "one").await;
    assert_ne!(moved, first, "it was written");
    file.replace("[secrets]", "[{aescbc: {keys: [<key1b>]}}]");
    reloads(&server, "success", 2).await;
    drop(server);
    let server = self::server(&etcd, data.path(), "s1", &file).await;
    assert_eq!(revision(&crate::support::client(data.path()).await, "one").await, moved);
    drop(server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_can_read_is_named_and_holds_nothing_up() {
    let (etcd, data) = (Cluster::single().await.expect("an etcd"), tempdir().expect("a directory"));
    let file = EncryptionFile::new("[secrets]", KEY1);
    let server = server(&etcd, data.path(), "s1", &file).await;
    let client = client(data.path()).await;
    create(&client, "lost").await;
    file.replace("[secrets]", KEY2);
    // A server that has read it before would know it still, and save it.
    drop(server);
    let _server = self::server(&etcd, data.path(), "s1", &file).await;
    let client = crate::support::client(data.path()).await;
    create(&client, "new").await;
    ask(&client, "rotate", "", "secrets").await;
    let has_failed = |migration: &kube::api::DynamicObject| condition(migration, "Failed", "True").is_some();
    let failed = until(&client, "rotate", "a failure", has_failed).await;
    let (_, message) = condition(&failed, "Failed", "True").expect("it failed");
    assert!(message.contains("default/lost: "), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_migrated_while_servers_encrypt_with_different_keys() {
    let etcd = Cluster::single().await.expect("an etcd");
    let data = [(); 2].map(|()| tempdir().expect("a directory"));
    let files = [(); 2].map(|()| EncryptionFile::new("[secrets]", KEY1));
    let one = server(&etcd, data[0].path(), "s1", &files[0]).await;
    let two = server(&etcd, data[1].path(), "s2", &files[1]).await;
    let client = client(data[0].path()).await;
    create(&client, "one").await;
    for (file, server) in files.iter().zip([&one, &two]) {
        file.replace("[secrets]", KEY2_SECOND);
        reloads(server, "success", 1).await;
    }
    // One of them writes with the new key, the other one not yet.
    files[0].replace("[secrets]", KEY2_FIRST);
    reloads(&one, "success", 2).await;
    ask(&client, "rotate", "", "secrets").await;
    let waiting = |migration: &kube::api::DynamicObject| {
        condition(migration, "Running", "False").is_some_and(|(reason, message)| {
            reason == "WaitingForAgreement"
                && ["s1=aescbc:v1:key2:", "s2=aescbc:v1:key1:"].iter().all(|key| message.contains(key))
        })
    };
    until(&client, "rotate", "a reason to wait", waiting).await;
    let store = etcd_store(&etcd).await;
    assert!(
        kept(&store, SECRETS).await[0].1.starts_with(b"k8s:enc:aescbc:v1:key1:"),
        "nobody has written it"
    );

    files[1].replace("[secrets]", KEY2_FIRST);
    succeeds(&client, "rotate").await;
    assert!(kept(&store, SECRETS).await[0].1.starts_with(b"k8s:enc:aescbc:v1:key2:"));
    assert!(migrations(&client).get("rotate").await.is_ok());
    store.shutdown().await;
}

/// How many tasks write through each server.
const WRITERS: usize = 8;

/// What those who write are told, and how often they wrote.
#[derive(Default)]
struct Writing {
    stop: AtomicBool,
    writes: AtomicUsize,
}

impl Writing {
    /// How many writes there are in a second while something happens.
    async fn rate(&self, happens: impl Future<Output = ()>) -> f64 {
        let (before, begin) = (self.writes.load(Ordering::Relaxed), Instant::now());
        happens.await;
        (self.writes.load(Ordering::Relaxed) - before) as f64 / begin.elapsed().as_secs_f64()
    }
}

/// Writes Secrets through one server until told to stop, no more often than so; how many there are then.
async fn write(client: Client, id: usize, pause: Duration, writing: Arc<Writing>) -> usize {
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let mut count = 0;
    let mut turns = tokio::time::interval(pause);
    while !writing.stop.load(Ordering::Relaxed) {
        turns.tick().await;
        create(&client, &format!("writer-{id}-{count}")).await;
        writing.writes.fetch_add(1, Ordering::Relaxed);
        let label = serde_json::json!({"metadata": {"labels": {"round": count.to_string()}}});
        let name = format!("writer-{id}-0");
        secrets.patch(&name, &PatchParams::default(), &Patch::Merge(label)).await.expect("patched");
        writing.writes.fetch_add(1, Ordering::Relaxed);
        count += 1;
    }
    count
}

/// Brings everything under the second key, and forgets the first.
async fn rotate(client: &Client, files: &[EncryptionFile; 2], servers: [&Program; 2]) {
    for (round, providers) in [KEY2_SECOND, KEY2_FIRST].into_iter().enumerate() {
        for (file, server) in files.iter().zip(servers) {
            file.replace("[secrets]", providers);
            reloads(server, "success", round + 1).await;
        }
    }
    ask(client, "rotate", "", "secrets").await;
    succeeds(client, "rotate").await;
    for (file, server) in files.iter().zip(servers) {
        file.replace("[secrets]", KEY2);
        reloads(server, "success", 3).await;
    }
}

/// `CONCORD_ROTATION_WRITES` is how many writes there are in a second meanwhile, nine tenths of which have to be reached: or
/// of what the machine does without a rotation, if that is less.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_rotated_while_two_servers_write() {
    let asked = std::env::var("CONCORD_ROTATION_WRITES").ok().and_then(|asked| asked.parse().ok());
    let rate: f64 = asked.unwrap_or(50.0);
    // Each turn writes twice.
    let pause = Duration::from_secs_f64(4.0 * WRITERS as f64 / rate);
    let etcd = Cluster::single().await.expect("an etcd");
    let data = [(); 2].map(|()| tempdir().expect("a directory"));
    let files = [(); 2].map(|()| EncryptionFile::new("[secrets]", KEY1));
    let one = server(&etcd, data[0].path(), "s1", &files[0]).await;
    let two = server(&etcd, data[1].path(), "s2", &files[1]).await;
    let writing = Arc::new(Writing::default());
    let mut writers = Vec::new();
    for (at, data) in data.iter().enumerate() {
        for id in 0..WRITERS {
            let client = client(data.path()).await;
            writers.push(tokio::spawn(write(client, at * WRITERS + id, pause, writing.clone())));
        }
    }
    let client = client(data[0].path()).await;
    let usual = writing.rate(tokio::time::sleep(Duration::from_secs(5))).await;
    let reached = writing.rate(Box::pin(rotate(&client, &files, [&one, &two]))).await;
    eprintln!("{reached:.0} writes in a second during the rotation, {usual:.0} before");
    writing.stop.store(true, Ordering::Relaxed);
    let mut written = 0;
    for writer in writers {
        written += writer.await.expect("no panic");
    }
    // A server that never knew the old key reads everything.
    let (fresh, file) = (tempdir().expect("a directory"), EncryptionFile::new("[secrets]", KEY2));
    let _three = server(&etcd, fresh.path(), "s3", &file).await;
    let secrets: Api<Secret> = Api::default_namespaced(crate::support::client(fresh.path()).await);
    let all = secrets.list(&ListParams::default()).await.expect("every Secret is readable");
    assert_eq!(all.items.len(), written);
    assert!(written > 20, "{written}");
    // Last: a machine that is too slow for it is no reason not to look at the rest.
    assert!(
        reached >= rate.min(usual) * 0.9,
        "{reached} writes in a second instead of {rate}, {usual} before"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_brought_under_a_new_key_of_a_key_management_service() {
    let (etcd, data) = (Cluster::single().await.expect("an etcd"), tempdir().expect("a directory"));
    let plugin = KmsPlugin::start("key-1").expect("a service");
    let providers = |timeout: &str| {
        let endpoint = plugin.endpoint();
        format!(
            "[{{kms: {{apiVersion: v2, name: vault, endpoint: '{endpoint}', timeout: {timeout}}}}}, {{identity: {{}}}}]"
        )
    };
    let file = EncryptionFile::new("[secrets]", &providers("5s"));
    let server = server(&etcd, data.path(), "s1", &file).await;
    let (client, store) = (client(data.path()).await, etcd_store(&etcd).await);
    let first = create(&client, "one").await;
    assert!(kept(&store, SECRETS).await[0].1.starts_with(b"k8s:enc:kms:v2:vault:"));
    let health = server.ready(200).await.body;
    assert!(health.contains("[+]kms-providers ok"), "{health}");
    ask(&client, "before", "", "secrets").await;
    let before = progress(&succeeds(&client, "before").await)["census"].clone();
    // A service that is configured anew is asked at once.
    plugin.rotate("key-2");
    file.replace("[secrets]", &providers("6s"));
    reloads(&server, "success", 1).await;
    ask(&client, "after", "", "secrets").await;
    let after = progress(&succeeds(&client, "after").await)["census"].clone();
    assert_ne!(revision(&client, "one").await, first, "it was written");
    let label = |census: &serde_json::Value| census[0]["encryption"].as_str().unwrap_or_default().to_owned();
    assert!(
        label(&after).starts_with("kms:v2:vault:") && label(&after) != label(&before),
        "{before} {after}"
    );
    // One that is not well is not taken.
    plugin.change(|behaviour| behaviour.healthz = "tired".to_owned());
    file.replace("[secrets]", &providers("7s"));
    reloads(&server, "failure", 1).await;
    create(&client, "two").await;
    drop(server);
    store.shutdown().await;
}
