//! Others that are in the way: a converter that fails, a status that cannot be written, a server that goes back for a while.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use concord_testing::{
    etcd::Cluster,
    webhook::{Asked, Certificate, Reply, WebhookServer},
};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{
    FOOS, ask, condition, create_foo, define, definition, definitions, foos, kept, kind, migrations,
    progress, stored_versions, succeeds, until,
};
use crate::{
    encryption::{EncryptionFile, etcd_store, reloads},
    support::{Program, SOON, client},
};

const GOOD: u8 = 0;
const DOWN: u8 = 1;
const WRONG: u8 = 2;
const SLOW: u8 = 3;

/// Converts as well as it can in its mood.
fn convert(asked: &Asked, mood: u8) -> Reply {
    let review: Value = serde_json::from_slice(&asked.body).expect("a review");
    let request = &review["request"];
    if mood == SLOW {
        std::thread::sleep(Duration::from_millis(500));
    }
    let mut objects = request["objects"].as_array().expect("objects").clone();
    for object in &mut objects {
        object["apiVersion"] = request["desiredAPIVersion"].clone();
        if mood == WRONG {
            object["metadata"]["name"] = "other".into();
        }
    }
    let response =
        json!({"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects});
    let answer =
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response});
    if mood == DOWN { Reply::hang_up() } else { Reply::ok(&answer.to_string()) }
}

/// The definition of [`FOOS`], whose versions a webhook converts.
async fn define_converted(client: &Client, hook: &WebhookServer) {
    let mut new = definition(&["v1", "v2"], "v1");
    new["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"url": format!("https://127.0.0.1:{}/", hook.port),
            "caBundle": BASE64_STANDARD.encode(&hook.authority)},
    }});
    let new = serde_json::from_value(new).expect("an object");
    definitions(client).create(&PostParams::default(), &new).await.expect("created");
}

/// Names, resource versions and generations, as they are served without a conversion.
async fn objects(client: &Client, version: &str) -> Vec<(String, String, i64)> {
    let all = foos(client, version).list(&ListParams::default()).await.expect("a list").items;
    let of = |object: DynamicObject| {
        let metadata = object.metadata;
        let revision = metadata.resource_version.expect("one");
        (metadata.name.expect("a name"), revision, metadata.generation.unwrap_or_default())
    };
    all.into_iter().map(of).collect()
}

/// Upstream's scenario of a definition, with a converter that is as bad as can be in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_a_webhook_converts_wait_for_it() {
    let data = tempdir().expect("a directory");
    let mood = Arc::new(AtomicU8::new(GOOD));
    let shared = mood.clone();
    let answer = move |asked: &Asked| convert(asked, shared.load(Ordering::Relaxed));
    let hook = WebhookServer::start(Certificate::For("127.0.0.1"), answer).await.expect("a webhook");
    let server = Program::start_with(data.path(), &["--storage-migration-delay=0s"]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    define_converted(&client, &hook).await;
    for name in ["a", "b", "c"] {
        create_foo(&client, "v1", name).await;
    }
    define(&client, &["v1", "v2"], "v2").await;
    // As soon as one is stored in the new version, the new definition is in force.
    create_foo(&client, "v2", "new").await;
    let before = objects(&client, "v1").await;
    let complains = |before: String| {
        move |migration: &DynamicObject| {
            let error = progress(migration)["lastError"].as_str().unwrap_or_default().to_owned();
            error.contains("conversion webhook") && error != before
        }
    };
    mood.store(DOWN, Ordering::Relaxed);
    ask(&client, "upgrade", "example.com", "foos").await;
    let held = until(&client, "upgrade", "that it says why it waits", complains(String::new())).await;
    mood.store(WRONG, Ordering::Relaxed);
    let error = progress(&held)["lastError"].as_str().unwrap_or_default().to_owned();
    let held = until(&client, "upgrade", "another complaint", complains(error)).await;
    assert!(condition(&held, "Running", "True").is_some(), "it is no reason to give up: {:?}", held.data);
    mood.store(SLOW, Ordering::Relaxed);
    succeeds(&client, "upgrade").await;
    mood.store(GOOD, Ordering::Relaxed);
    let after = objects(&client, "v1").await;
    for ((name, revision, generation), (same, now, after)) in before.iter().zip(&after) {
        assert_eq!((name, generation), (same, after));
        assert_eq!(revision == now, name == "new", "{name}");
    }
    assert_eq!((before.len(), stored_versions(&client).await), (4, json!(["v2"])));
    // Nobody needs the webhook any more.
    mood.store(DOWN, Ordering::Relaxed);
    let mut versions = definition(&["v1", "v2"], "v2")["spec"]["versions"].clone();
    versions[0]["served"] = false.into();
    let unserved = Patch::Merge(json!({"spec": {"versions": versions}}));
    definitions(&client).patch(FOOS, &PatchParams::default(), &unserved).await.expect("patched");
    assert_eq!(objects(&client, "v2").await.len(), 4);
}

/// Refuses that a migration is said to have succeeded.
async fn refuse_success(client: &Client) {
    let group = "admissionregistration.k8s.io";
    let policy = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "never"},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": ["storagemigration.k8s.io"],
                "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["storageversionmigrations/status"]}]},
            "validations": [{"expression":
                "!object.status.conditions.exists(c, c.type == 'Succeeded' && c.status == 'True')"}],
        },
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "never"}, "spec": {"policyName": "never", "validationActions": ["Deny"]},
    });
    for (object, of) in [(policy, "ValidatingAdmissionPolicy"), (binding, "ValidatingAdmissionPolicyBinding")]
    {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind(group, "v1", of));
        let object = serde_json::from_value(object).expect("an object");
        api.create(&PostParams::default(), &object).await.expect("created");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_cannot_be_told_is_told_later() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &["--storage-migration-delay=0s"]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    define(&client, &["v1", "v2"], "v1").await;
    create_foo(&client, "v1", "a").await;
    define(&client, &["v1", "v2"], "v2").await;
    refuse_success(&client).await;
    ask(&client, "mute", "example.com", "foos").await;
    let done = |migration: &DynamicObject| progress(migration)["phase"] == "Done";
    let mute = until(&client, "mute", "its last object", done).await;
    assert!(condition(&mute, "Succeeded", "True").is_none(), "{:?}", mute.data);
    let of = kind("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding");
    let bindings: Api<DynamicObject> = Api::all_with(client.clone(), &of);
    bindings.delete("never", &DeleteParams::default()).await.expect("deleted");
    let ended = succeeds(&client, "mute").await;
    assert_eq!((&progress(&ended)["migrated"], stored_versions(&client).await), (&json!(1), json!(["v2"])));
}

/// Waits until a Secret is kept under a key.
async fn until_sealed(store: &dyn concord_store::Store, name: &str, seal: &str) {
    let begin = Instant::now();
    loop {
        let all = kept(store, "/registry/secrets/default/").await;
        if all.iter().any(|(known, value)| known == name && value.starts_with(seal.as_bytes())) {
            return;
        }
        assert!(begin.elapsed() < SOON, "not in time: {name} is kept under {seal}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// All servers agree on the same as before, but in between somebody wrote something else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_wrote_that_went_back_for_a_while_is_found() {
    const ONE: &str = "[{aescbc: {keys: [<key1>, <key2>]}}]";
    const TWO: &str = "[{aescbc: {keys: [<key2>, <key1>]}}]";
    let etcd = Cluster::single().await.expect("an etcd");
    let data = [(); 2].map(|()| tempdir().expect("a directory"));
    let files = [(); 2].map(|()| EncryptionFile::new("[secrets]", TWO));
    let mut servers = Vec::new();
    for (at, (data, file)) in data.iter().zip(&files).enumerate() {
        let flags = [
            format!("--etcd-servers={}", etcd.endpoints()[0]),
            format!("--server-id=s{at}"),
            file.flag(),
            "--encryption-provider-config-automatic-reload=true".to_owned(),
            "--storage-migration-delay=200ms".to_owned(),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let server = Program::start_with(data.path(), &flags).await;
        server.ready(200).await;
        servers.push(server);
    }
    let create = async |at: usize, name: &str| {
        let secrets: Api<Secret> = Api::default_namespaced(client(data[at].path()).await);
        let secret = serde_json::from_value(json!({"metadata": {"name": name}})).expect("a secret");
        secrets.create(&PostParams::default(), &secret).await.expect("created");
    };
    create(0, "first").await;
    let store = etcd_store(&etcd).await;
    for (file, server) in files.iter().zip(&servers) {
        file.replace("[secrets]", ONE);
        reloads(server, "success", 1).await;
    }
    until_sealed(&store, "first", "k8s:enc:aescbc:v1:key1:").await;
    files[1].replace("[secrets]", TWO);
    reloads(&servers[1], "success", 2).await;
    let names = async || {
        let all = migrations(&client(data[0].path()).await).list(&ListParams::default()).await;
        let all = all.expect("a list").items.into_iter();
        all.filter_map(|migration| migration.metadata.name).collect::<Vec<_>>()
    };
    let before = names().await;
    create(1, "second").await;
    until_sealed(&store, "second", "k8s:enc:aescbc:v1:key2:").await;
    // Several times as long as they would have to agree.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(names().await, before, "nothing is asked for while servers differ");
    files[1].replace("[secrets]", ONE);
    until_sealed(&store, "second", "k8s:enc:aescbc:v1:key1:").await;
    store.shutdown().await;
}
