//! What everything waits for: a webhook that is down, an etcd that is full, a quota that is used up.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use concord_testing::{
    etcd::Cluster,
    webhook::{Asked, Certificate, Reply, WebhookServer},
};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tempfile::tempdir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    ANNOTATIONS, FOOS, ask, condition, create_foo, define, definitions, kept, kind, migration, migrations,
    progress, stored_versions, succeeds, until,
};
use crate::{
    encryption::{EncryptionFile, etcd_store, reloads},
    support::{Program, SOON, client},
};

const NEVER: &str = "--storage-migration-delay=0s";
const RATE: &str = "max-requests-per-second";

fn allow(asked: &Asked) -> Reply {
    let review: Value = serde_json::from_slice(&asked.body).expect("a review");
    let response = json!({"uid": review["request"]["uid"], "allowed": true});
    let answer =
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
    Reply::ok(&answer.to_string())
}

/// Every change of an object is asked for at a webhook.
async fn ask_webhook(client: &Client, hook: &WebhookServer) {
    let hook = json!({
        "name": "keep.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail", "timeoutSeconds": 1,
        "clientConfig": {"url": format!("https://127.0.0.1:{}/", hook.port),
            "caBundle": BASE64_STANDARD.encode(&hook.authority)},
        "rules": [{"apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["UPDATE"],
            "resources": ["foos"]}],
    });
    let object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "keep"}, "webhooks": [hook],
    });
    let of = kind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &of);
    let object = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &object).await.expect("created");
}

/// A webhook that is down until it is told otherwise.
async fn down() -> (WebhookServer, Arc<AtomicBool>) {
    let is_down = Arc::new(AtomicBool::new(true));
    let down = is_down.clone();
    let answer =
        move |asked: &Asked| if down.load(Ordering::Relaxed) { Reply::hang_up() } else { allow(asked) };
    let hook = WebhookServer::start(Certificate::For("127.0.0.1"), answer).await.expect("a webhook");
    (hook, is_down)
}

/// Nobody asks for anything, and in the end the list is right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_that_is_edited_while_nobody_asks_is_migrated_in_the_end() {
    let (data, (hook, is_down)) = (tempdir().expect("a directory"), down().await);
    let flags = ["--storage-migration-delay=300ms", "--identity-lease-renew-interval=500ms"];
    let server = Program::start_with(data.path(), &flags).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    define(&client, &["v1", "v2"], "v1").await;
    create_foo(&client, "v1", "a").await;
    ask_webhook(&client, &hook).await;
    define(&client, &["v1", "v2"], "v2").await;
    let began = Instant::now();
    let mut first = None;
    while first.is_none() {
        assert!(began.elapsed() < SOON, "not in time: a migration is made");
        tokio::time::sleep(Duration::from_millis(20)).await;
        let all = migrations(&client).list(&ListParams::default()).await.expect("a list").items;
        first = all.into_iter().find_map(|made| made.metadata.name);
    }
    let first = first.expect("it was made");
    let is_held = |now: &DynamicObject| progress(now)["lastError"].is_string();
    until(&client, &first, "that it is in the middle", is_held).await;
    let edit = Patch::Merge(json!({"spec": {"names": {"shortNames": ["fo"]}}}));
    definitions(&client).patch(FOOS, &PatchParams::default(), &edit).await.expect("edited");
    is_down.store(false, Ordering::Relaxed);
    while stored_versions(&client).await != json!(["v2"]) {
        assert!(began.elapsed() < SOON * 2, "not in time: {}", stored_versions(&client).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // It took another one, which has put itself in the place of the first.
    while migrations(&client).get_opt(&first).await.expect("an answer").is_some() {
        assert!(began.elapsed() < SOON * 2, "not in time: the first one has gone");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_is_down_is_waited_for() {
    let (data, (hook, is_down)) = (tempdir().expect("a directory"), down().await);
    let server = Program::start_with(data.path(), &[NEVER]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    define(&client, &["v1", "v2"], "v1").await;
    for name in ["a", "b", "c"] {
        create_foo(&client, "v1", name).await;
    }
    define(&client, &["v1", "v2"], "v2").await;
    ask_webhook(&client, &hook).await;
    ask(&client, "upgrade", "example.com", "foos").await;
    let complains = |now: &DynamicObject| {
        progress(now)["lastError"].as_str().is_some_and(|error| error.contains("keep.example.com"))
            && condition(now, "Running", "True").is_some_and(|(_, said)| said.contains("transient error"))
    };
    let held = until(&client, "upgrade", "that it says why it waits", complains).await;
    assert!(condition(&held, "Failed", "True").is_none(), "{:?}", held.data);
    is_down.store(false, Ordering::Relaxed);
    let ended = succeeds(&client, "upgrade").await;
    assert_eq!((&progress(&ended)["failed"], stored_versions(&client).await), (&json!(0), json!(["v2"])));
}

/// Raises etcd's alarm of a database that is full, or takes it back.
async fn alarm(etcd: &Cluster, action: &str) {
    let body = json!({"action": action, "memberID": "1", "alarm": "NOSPACE"}).to_string();
    let mut stream = TcpStream::connect(etcd.client_address(0)).await.expect("an etcd");
    let head = format!(
        "POST /v3/maintenance/alarm HTTP/1.0\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.contains("200 OK"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_without_space_is_waited_for() {
    let (etcd, data) = (Cluster::single().await.expect("an etcd"), tempdir().expect("a directory"));
    let servers = format!("--etcd-servers={}", etcd.endpoints()[0]);
    let server = Program::start_with(data.path(), &[NEVER, &servers]).await;
    server.ready(200).await;
    let (client, store) = (client(data.path()).await, etcd_store(&etcd).await);
    define(&client, &["v1", "v2"], "v1").await;
    for number in 0..60 {
        create_foo(&client, "v1", &format!("foo-{number:02}")).await;
    }
    define(&client, &["v1", "v2"], "v2").await;
    // Slow enough to be in the middle, however late anybody looks.
    let slow = migration("upgrade", "example.com", "foos", &[(RATE, "4")]);
    migrations(&client).create(&PostParams::default(), &slow).await.expect("created");
    let renewed = async || {
        let all = kept(&store, "/registry/example.com/foos/").await;
        all.iter().filter(|(_, value)| value.windows(14).any(|text| text == b"example.com/v2")).count()
    };
    while renewed().await < 5 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    alarm(&etcd, "ACTIVATE").await;
    let before = renewed().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(before < 60 && renewed().await <= before + 1, "it was not in the middle, or there was space");
    let now = migrations(&client).get("upgrade").await.expect("reads go on");
    assert!(condition(&now, "Failed", "True").is_none(), "{:?}", now.data);
    alarm(&etcd, "DEACTIVATE").await;
    let faster =
        Patch::Merge(json!({"metadata": {"annotations": {format!("{ANNOTATIONS}/{RATE}"): "1000"}}}));
    migrations(&client).patch("upgrade", &PatchParams::default(), &faster).await.expect("patched");
    succeeds(&client, "upgrade").await;
    assert_eq!((renewed().await, stored_versions(&client).await), (60, json!(["v2"])));
    store.shutdown().await;
}

/// What there is too much of may stay, and is written again as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_that_is_used_up_is_no_obstacle() {
    let data = tempdir().expect("a directory");
    let file = EncryptionFile::new("[configmaps]", "[{identity: {}}, {aescbc: {keys: [<key1>]}}]");
    let flags = [file.flag(), "--encryption-provider-config-automatic-reload".to_owned()];
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain([NEVER]).collect();
    let server = Program::start_with(data.path(), &flags).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    let create = async |of: &str, name: &str, spec: Value| {
        let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &kind("", "v1", of));
        let object = json!({"apiVersion": "v1", "kind": of, "metadata": {"name": name}, "spec": spec});
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        api.create(&PostParams::default(), &object).await
    };
    for name in ["a", "b", "c"] {
        create("ConfigMap", name, Value::Null).await.expect("created");
    }
    let hard = json!({"hard": {"configmaps": "1"}});
    create("ResourceQuota", "few", hard).await.expect("created");
    let refused = create("ConfigMap", "d", Value::Null).await.expect_err("there are too many").to_string();
    assert!(refused.contains("exceeded quota: few"), "{refused}");
    file.replace("[configmaps]", "[{aescbc: {keys: [<key1>]}}, {identity: {}}]");
    reloads(&server, "success", 1).await;
    ask(&client, "seal", "", "configmaps").await;
    let ended = succeeds(&client, "seal").await;
    let said = progress(&ended);
    assert!(said["failed"] == 0 && said["migrated"].as_u64() >= Some(3), "{said}");
}
