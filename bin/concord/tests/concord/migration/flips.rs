//! Definitions that others change in the middle, and resources that go away or never come.

use std::time::{Duration, Instant};

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{
    ANNOTATIONS, FOOS, ask, condition, create_foo, define, definition, definitions, migration, migrations,
    progress, stored_versions, succeeds, until,
};
use crate::support::{Program, SOON, client};

const NEVER: &str = "--storage-migration-delay=0s";
const RATE: &str = "max-requests-per-second";

async fn annotate(client: &kube::Client, name: &str, annotation: &str, value: Value) {
    let patch = json!({"metadata": {"annotations": {format!("{ANNOTATIONS}/{annotation}"): value}}});
    migrations(client).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
}

/// A migration from version 1 to version 2 that has written one object of so many, and takes its time.
async fn in_the_middle(client: &kube::Client, count: usize) {
    define(client, &["v1", "v2"], "v1").await;
    for number in 0..count {
        create_foo(client, "v1", &format!("foo-{number}")).await;
    }
    define(client, &["v1", "v2"], "v2").await;
    let slow = migration("slow", "example.com", "foos", &[(RATE, "0.01")]);
    migrations(client).create(&PostParams::default(), &slow).await.expect("created");
    until(client, "slow", "its first object", |now| progress(now)["migrated"] == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_comes_back_in_the_middle_is_what_everything_is_stored_in() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &[NEVER]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    in_the_middle(&client, 6).await;
    define(&client, &["v1", "v2"], "v1").await;
    assert_eq!(stored_versions(&client).await, json!(["v1", "v2"]));
    annotate(&client, "slow", RATE, json!("1000")).await;
    let ended = succeeds(&client, "slow").await;
    let census = progress(&ended)["census"].clone();
    assert_eq!(census, json!([{"version": "example.com/v1", "objects": 6}]));
    assert_eq!(stored_versions(&client).await, json!(["v1"]));
}

/// What was proved was proved for another definition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_that_is_edited_in_the_middle_keeps_its_list() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &[NEVER]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    in_the_middle(&client, 4).await;
    let edit = Patch::Merge(json!({"spec": {"names": {"shortNames": ["fo"]}}}));
    definitions(&client).patch(FOOS, &PatchParams::default(), &edit).await.expect("edited");
    annotate(&client, "slow", RATE, json!("1000")).await;
    succeeds(&client, "slow").await;
    assert_eq!(stored_versions(&client).await, json!(["v1", "v2"]));
    let crd = definitions(&client).get(FOOS).await.expect("there");
    let (_, message) = condition(&crd, "StorageMigrating", "False").expect("it is said");
    assert!(message.ends_with("have not been updated due to a generation mismatch"), "{message}");
    ask(&client, "next", "example.com", "foos").await;
    succeeds(&client, "next").await;
    assert_eq!(stored_versions(&client).await, json!(["v2"]));
}

/// Applies the definition as a tool does that keeps it in a file.
async fn apply(client: &kube::Client, manager: &str, stored: &str) -> Value {
    let mut definition = definition(&["v1", "v2"], stored);
    definition["status"] = json!({"storedVersions": [stored]});
    let parameters = PatchParams::apply(manager).force();
    let applied = definitions(client).patch(FOOS, &parameters, &Patch::Apply(definition)).await;
    applied.expect("applied").data["status"]["storedVersions"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_applies_a_definition_does_not_lose_what_is_stored() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &[NEVER]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    in_the_middle(&client, 3).await;
    for manager in ["one", "two"] {
        assert_eq!(apply(&client, manager, "v2").await, json!(["v1", "v2"]), "{manager}, in the middle");
    }
    annotate(&client, "slow", RATE, json!("1000")).await;
    succeeds(&client, "slow").await;
    assert_eq!(stored_versions(&client).await, json!(["v2"]));
    for (manager, stored, expected) in
        [("one", "v2", json!(["v2"])), ("two", "v1", json!(["v2", "v1"])), ("one", "v2", json!(["v2", "v1"]))]
    {
        assert_eq!(apply(&client, manager, stored).await, expected, "{manager} wants {stored}");
    }
    ask(&client, "again", "example.com", "foos").await;
    succeeds(&client, "again").await;
    assert_eq!(apply(&client, "two", "v2").await, json!(["v2"]));
}

/// The same definition in another group.
async fn define_late(client: &kube::Client) {
    let mut late = definition(&["v1"], "v1");
    late["metadata"]["name"] = "foos.late.example.com".into();
    late["spec"]["group"] = "late.example.com".into();
    let late = serde_json::from_value(late).expect("an object");
    definitions(client).create(&PostParams::default(), &late).await.expect("created");
}

/// Upstream's process dies of it, again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_gone_for_a_minute_does_not_come_back() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &[NEVER]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    in_the_middle(&client, 3).await;
    let begin = Instant::now();
    ask(&client, "never", "example.com", "nothings").await;
    definitions(&client).delete(FOOS, &DeleteParams::default()).await.expect("deleted");
    let waits = |now: &DynamicObject| {
        condition(now, "Running", "False").is_some_and(|(reason, _)| reason == "WaitingForResource")
    };
    for name in ["slow", "never"] {
        until(&client, name, "that it misses its resource", waits).await;
    }
    // What comes in the meantime is in time.
    ask(&client, "late", "late.example.com", "foos").await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    until(&client, "late", "that it misses its resource", waits).await;
    define_late(&client).await;
    succeeds(&client, "late").await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    for name in ["slow", "never"] {
        let failed = |now: &DynamicObject| condition(now, "Failed", "True").is_some();
        let ended = until(&client, name, "the end", failed).await;
        assert!(begin.elapsed() > Duration::from_secs(55), "{name} after {:?}", begin.elapsed());
        let (_, message) = condition(&ended, "Failed", "True").expect("it failed");
        assert_eq!(message, "resource does not exist in discovery", "{name}");
    }
    server.signal("KILL");
    server.ended().await;
    let server = Program::start_with(data.path(), &[NEVER]).await;
    server.ready(200).await;
    let client = crate::support::client(data.path()).await;
    define(&client, &["v1"], "v1").await;
    ask(&client, "next", "example.com", "foos").await;
    succeeds(&client, "next").await;
    assert!(begin.elapsed() < SOON * 3);
}
