//! How soon what an owner says is heard, and that nothing he says does harm.

use std::time::{Duration, Instant};

use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{
    ANNOTATIONS, ask, condition, create_foo, define, kind, migration, migrations, progress, stored_versions,
    succeeds, until,
};
use crate::support::{Program, SOON, client};

const RATE: &str = "max-requests-per-second";

async fn annotate(client: &kube::Client, name: &str, annotation: &str, value: Value) {
    let patch = json!({"metadata": {"annotations": {format!("{ANNOTATIONS}/{annotation}"): value}}});
    migrations(client).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
}

/// So many objects in version 1, of which version 2 is to be stored.
async fn begin(data: &std::path::Path, count: usize) -> (Program, kube::Client) {
    let server = Program::start_with(data, &["--storage-migration-delay=0s"]).await;
    server.ready(200).await;
    let client = client(data).await;
    define(&client, &["v1", "v2"], "v1").await;
    for number in 0..count {
        create_foo(&client, "v1", &format!("foo-{number:03}")).await;
    }
    define(&client, &["v1", "v2"], "v2").await;
    (server, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_is_kept_and_none_is_too_low() {
    let data = tempdir().expect("a directory");
    let (_server, client) = begin(data.path(), 61).await;
    let slow = migration("slow", "example.com", "foos", &[(RATE, "1e-20")]);
    migrations(&client).create(&PostParams::default(), &slow).await.expect("created");
    until(&client, "slow", "its first object", |migration| progress(migration)["migrated"] == 1).await;
    let began = Instant::now();
    annotate(&client, "slow", RATE, json!("30")).await;
    let ended = succeeds(&client, "slow").await;
    let took = began.elapsed();
    assert_eq!(progress(&ended)["migrated"], 61);
    assert!(took >= Duration::from_millis(1800), "60 objects at 30 in a second, in {took:?}");
    assert!(took < SOON / 2, "{took:?}");
}

/// The machine may be busy, but not each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_is_held_up_ends_within_a_second() {
    let data = tempdir().expect("a directory");
    let (_server, client) = begin(data.path(), 3).await;
    // Nobody is there.
    let hook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "away"},
        "webhooks": [{"name": "away.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": "https://127.0.0.1:9/"},
            "rules": [{"apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["UPDATE"],
                "resources": ["foos"]}]}],
    });
    let of = kind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration");
    let hooks: Api<DynamicObject> = Api::all_with(client.clone(), &of);
    let hook = serde_json::from_value(hook).expect("an object");
    hooks.create(&PostParams::default(), &hook).await.expect("created");
    let trouble = |now: &DynamicObject| progress(now)["lastError"].is_string();
    let mut least = SOON;
    for name in ["stuck-1", "stuck-2", "stuck-3"] {
        ask(&client, name, "example.com", "foos").await;
        until(&client, name, "its beginning", |now| condition(now, "Running", "True").is_some()).await;
        until(&client, name, "that it is held up", trouble).await;
        let began = Instant::now();
        annotate(&client, name, "cancelled", json!("true")).await;
        until(&client, name, "the end", |now| condition(now, "Failed", "True").is_some()).await;
        least = least.min(began.elapsed());
    }
    assert!(least < Duration::from_millis(1500), "{least:?}");
}

/// The list of stored versions says what may be stored, and only a migration proves that nothing is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_without_objects_is_migrated_as_well() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &["--storage-migration-delay=300ms"]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    define(&client, &["v1", "v2"], "v1").await;
    define(&client, &["v1", "v2"], "v2").await;
    let began = Instant::now();
    while stored_versions(&client).await != json!(["v2"]) {
        assert!(began.elapsed() < SOON, "not in time: {}", stored_versions(&client).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
