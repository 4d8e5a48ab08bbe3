//! Upstream's scenarios of custom resources, and what it does wrong with them.

use std::{collections::BTreeMap, time::Duration};

use concord_store_embedded::{EmbeddedStore, Options};
use kube::{
    Client,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{
    FOOS, ask, condition, create_foo, define, definitions, foos, kept, migration, migrations, progress,
    stored_versions, succeeds, until,
};
use crate::support::{Program, client};

const NEVER: &str = "--storage-migration-delay=0s";

async fn revisions(client: &Client, version: &str) -> BTreeMap<String, (String, i64)> {
    let all = foos(client, version).list(&ListParams::default()).await.expect("a list").items;
    let of = |object: DynamicObject| {
        let metadata = object.metadata;
        (
            metadata.name.expect("a name"),
            (metadata.resource_version.expect("one"), metadata.generation.unwrap_or_default()),
        )
    };
    all.into_iter().map(of).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_gets_another_version() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &[NEVER]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    define(&client, &["v1"], "v1").await;
    create_foo(&client, "v1", "cr1").await;
    define(&client, &["v1", "v2"], "v1").await;
    create_foo(&client, "v2", "cr2").await;
    define(&client, &["v1", "v2"], "v2").await;
    create_foo(&client, "v1", "cr3").await;
    create_foo(&client, "v2", "cr4").await;
    assert_eq!(stored_versions(&client).await, json!(["v1", "v2"]));
    let before = revisions(&client, "v2").await;
    ask(&client, "upgrade", "example.com", "foos").await;
    succeeds(&client, "upgrade").await;
    let after = revisions(&client, "v2").await;
    for (name, (revision, generation)) in &after {
        let is_written = *revision != before[name].0;
        assert_eq!(is_written, ["cr1", "cr2"].contains(&name.as_str()), "{name}");
        assert_eq!(*generation, before[name].1, "{name}");
    }
    assert_eq!(stored_versions(&client).await, json!(["v2"]));
    let crd = definitions(&client).get(FOOS).await.expect("there");
    let (reason, _) = condition(&crd, "StorageMigrating", "False").expect("a condition");
    assert_eq!(reason, "MigrationSucceeded");
    // Nothing needs version 1 any more.
    define(&client, &["v2"], "v2").await;
    assert_eq!(revisions(&client, "v2").await.len(), 4);
    server.signal("TERM");
    server.ended().await;
    let store = EmbeddedStore::open(&Options::new(data.path().join("store.db"))).expect("a store");
    for (name, value) in kept(&store, "/registry/example.com/foos/").await {
        let text = String::from_utf8_lossy(&value);
        assert!(text.starts_with(r#"{"kind":"Foo","apiVersion":"example.com/v2""#), "{name}: {text}");
    }
}

/// Refuses changes of one object.
pub(super) async fn refuse(client: &Client, name: &str) {
    let group = "admissionregistration.k8s.io";
    let policy = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "keep"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{"apiGroups": ["example.com"], "apiVersions": ["*"],
                "operations": ["UPDATE"], "resources": ["foos"]}]},
            "validations": [{"expression": format!("object.metadata.name != '{name}'"), "message": "it stays"}],
        },
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "keep"}, "spec": {"policyName": "keep", "validationActions": ["Deny"]},
    });
    for (object, kind) in
        [(policy, "ValidatingAdmissionPolicy"), (binding, "ValidatingAdmissionPolicyBinding")]
    {
        let api: kube::Api<DynamicObject> =
            kube::Api::all_with(client.clone(), &super::kind(group, "v1", kind));
        let object = serde_json::from_value(object).expect("an object");
        api.create(&PostParams::default(), &object).await.expect("created");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_object_that_cannot_be_written_neither_stops_the_others_nor_is_forgotten() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &[NEVER]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    define(&client, &["v1", "v2"], "v1").await;
    for name in ["a", "b", "c"] {
        create_foo(&client, "v1", name).await;
    }
    define(&client, &["v1", "v2"], "v2").await;
    refuse(&client, "b").await;
    ask(&client, "upgrade", "example.com", "foos").await;
    let failed =
        until(&client, "upgrade", "a failure", |migration| condition(migration, "Failed", "True").is_some());
    let failed = failed.await;
    let (_, message) = condition(&failed, "Failed", "True").expect("it failed");
    assert!(
        message.starts_with("1 of 3 objects could not be migrated; b: ") && message.contains("it stays"),
        "{message}"
    );
    let progress = progress(&failed);
    assert_eq!((&progress["migrated"], &progress["failed"]), (&json!(2), &json!(1)), "{progress}");
    let rows: Vec<(&Value, &Value)> = progress["census"]
        .as_array()
        .expect("a census")
        .iter()
        .map(|row| (&row["version"], &row["objects"]))
        .collect();
    assert_eq!(rows, [(&json!("example.com/v1"), &json!(1)), (&json!("example.com/v2"), &json!(2))]);
    assert_eq!(stored_versions(&client).await, json!(["v1", "v2"]), "what is still stored is not forgotten");

    // A third version: the list does not get shorter when the next migration begins, nor when it fails.
    define(&client, &["v1", "v2", "v3"], "v3").await;
    let paused = migration("next", "example.com", "foos", &[]);
    migrations(&client).create(&PostParams::default(), &paused).await.expect("created");
    until(&client, "next", "a failure", |migration| condition(migration, "Failed", "True").is_some()).await;
    assert_eq!(stored_versions(&client).await, json!(["v1", "v2", "v3"]));
    let refused = definitions(&client)
        .patch(
            FOOS,
            &PatchParams::default(),
            &Patch::Merge(
                json!({"spec": {"versions": super::definition(&["v2", "v3"], "v3")["spec"]["versions"]}}),
            ),
        )
        .await;
    let refused = refused.expect_err("objects are stored in version 1").to_string();
    assert!(refused.contains("v1 was previously a storage version"), "{refused}");
}

/// Upstream forgets at the beginning of a migration what an earlier one, which went well, did not have to know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_migration_forgets_nothing_when_it_begins() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &[NEVER]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    define(&client, &["v1", "v2"], "v1").await;
    for name in ["a", "b", "c"] {
        create_foo(&client, "v1", name).await;
    }
    define(&client, &["v1", "v2"], "v2").await;
    ask(&client, "first", "example.com", "foos").await;
    succeeds(&client, "first").await;
    assert_eq!(stored_versions(&client).await, json!(["v2"]));
    define(&client, &["v1", "v2", "v3"], "v3").await;
    let slow = migration("second", "example.com", "foos", &[("max-requests-per-second", "0.01")]);
    migrations(&client).create(&PostParams::default(), &slow).await.expect("created");
    until(&client, "second", "its first object", |now| progress(now)["migrated"] == 1).await;
    assert_eq!(stored_versions(&client).await, json!(["v2", "v3"]), "two objects are stored in version 2");
    let versions = json!({"spec": {"versions": super::definition(&["v1", "v3"], "v3")["spec"]["versions"]}});
    let refused = definitions(&client).patch(FOOS, &PatchParams::default(), &Patch::Merge(versions)).await;
    let refused = refused.expect_err("objects are stored in version 2").to_string();
    assert!(refused.contains("v2 was previously a storage version"), "{refused}");
    assert_eq!(revisions(&client, "v1").await.len(), 3, "all are readable");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_migrations_among_many_writers_touch_nothing_that_is_right() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &[NEVER]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    define(&client, &["v1", "v2"], "v2").await;
    for number in 0..50 {
        create_foo(&client, "v2", &format!("static-{number}")).await;
    }
    let before = revisions(&client, "v2").await;
    let writer = |id: usize| {
        let client = client.clone();
        async move {
            for number in 0..20 {
                let name = format!("writer-{id}-{number}");
                create_foo(&client, "v1", &name).await;
                foos(&client, "v1").delete(&name, &DeleteParams::default()).await.expect("deleted");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    };
    let writers: Vec<_> = (0..5).map(|id| tokio::spawn(writer(id))).collect();
    let names: Vec<String> = (0..10).map(|number| format!("m{number}")).collect();
    for name in &names {
        ask(&client, name, "example.com", "foos").await;
    }
    for name in &names {
        let ended = succeeds(&client, name).await;
        assert_eq!(progress(&ended)["migrated"], 0);
    }
    for writer in writers {
        writer.await.expect("no panic");
    }
    assert_eq!(revisions(&client, "v2").await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_that_goes_away_harms_nobody() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &[NEVER]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    define(&client, &["v1", "v2"], "v1").await;
    create_foo(&client, "v1", "a").await;
    define(&client, &["v1", "v2"], "v2").await;
    let slow = migration("slow", "example.com", "foos", &[("paused", "true")]);
    migrations(&client).create(&PostParams::default(), &slow).await.expect("created");
    let has = |reason: &'static str| {
        move |migration: &DynamicObject| {
            condition(migration, "Running", "False").is_some_and(|(is, _)| is == reason)
        }
    };
    until(&client, "slow", "a pause", has("Paused")).await;
    definitions(&client).delete(FOOS, &DeleteParams::default()).await.expect("deleted");
    until(&client, "slow", "that it misses its resource", has("WaitingForResource")).await;
    let resumed = json!({"metadata": {"annotations": {format!("{}/paused", super::ANNOTATIONS): null}}});
    let resumed = Patch::Merge(resumed);
    migrations(&client).patch("slow", &PatchParams::default(), &resumed).await.expect("resumed");
    server.ready(200).await;
    // It comes back, and the migration goes on.
    define(&client, &["v1", "v2"], "v2").await;
    succeeds(&client, "slow").await;
    // One that is deleted while it runs leaves nothing behind.
    let paused = migration("gone", "example.com", "foos", &[("max-requests-per-second", "0.01")]);
    define(&client, &["v1", "v2"], "v1").await;
    for name in ["b", "c", "d"] {
        create_foo(&client, "v1", name).await;
    }
    define(&client, &["v1", "v2"], "v2").await;
    migrations(&client).create(&PostParams::default(), &paused).await.expect("created");
    until(&client, "gone", "that it runs", |migration| condition(migration, "Running", "True").is_some())
        .await;
    migrations(&client).delete("gone", &DeleteParams::default()).await.expect("deleted");
    let begin = std::time::Instant::now();
    loop {
        let crd = definitions(&client).get(FOOS).await.expect("there");
        if condition(&crd, "StorageMigrating", "False")
            .is_some_and(|(reason, _)| reason == "MigrationCancelled")
        {
            break;
        }
        assert!(begin.elapsed() < crate::support::SOON, "not in time: {}", crd.data["status"]);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
