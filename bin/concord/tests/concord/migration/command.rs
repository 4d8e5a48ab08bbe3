//! `concord storage`, as an operator types it.

use std::path::Path;

use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams},
};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{condition, create_foo, define, definitions::refuse, migration, migrations};
use crate::{
    encryption::{EncryptionFile, reloads},
    support::{Ended, Program, client, run, run_until},
};

/// Runs a command against the server whose data this is.
async fn storage(data: &Path, arguments: &[&str]) -> Ended {
    let data = data.to_str().expect("test paths are text");
    run(&[&["storage"], arguments, &["--data-dir", data]].concat()).await
}

fn json_of(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{} {}", ended.stdout, ended.stderr))
}

async fn create_secret(client: &Client, name: &str) {
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let secret = Secret { metadata, ..Secret::default() };
    secrets.create(&PostParams::default(), &secret).await.expect("created");
}

/// Ctrl-C ends the command and not the migration.
async fn leaves_it_running(data: &Path, client: &Client) {
    let everything = async || migrations(client).list(&ListParams::default()).await;
    let before = everything().await.expect("a list").items.len();
    let data = data.to_str().expect("test paths are text");
    let slow = ["storage", "migrate", "nothings.example.com", "--data-dir", data];
    let begun = async || everything().await.is_ok_and(|all| all.items.len() > before);
    let ended = run_until(&slow, begun, "INT").await;
    assert_eq!(ended.status.code(), Some(130), "{}", ended.stderr);
    assert!(ended.stdout.contains("goes on without this command"), "{}", ended.stdout);
    // Nobody looks at it: no line is written over another one.
    assert!(!format!("{}{}", ended.stdout, ended.stderr).contains(['\r', '\x1b']), "{}", ended.stderr);
    let all = everything().await.expect("a list").items;
    let left =
        all.iter().find(|left| left.data["spec"]["resource"]["resource"] == "nothings").expect("there");
    assert!(["Succeeded", "Failed"].iter().all(|kind| condition(left, kind, "True").is_none()));
    let name = left.metadata.name.as_deref().expect("a name");
    migrations(client).delete(name, &DeleteParams::default()).await.expect("deleted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stored_is_shown_counted_and_migrated() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &["--storage-migration-delay=0s", "--server-id=me"]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    define(&client, &["v1", "v2"], "v1").await;
    create_foo(&client, "v1", "a").await;
    let census = storage(data.path(), &["census", "foos.example.com"]).await;
    assert_eq!(census.status.code(), Some(0), "{}", census.stderr);
    assert!(
        census.stdout.contains("example.com/v1   -            1         as the servers write"),
        "{}",
        census.stdout
    );
    define(&client, &["v1", "v2"], "v2").await;
    create_foo(&client, "v2", "b").await;
    let census = storage(data.path(), &["census", "foos.example.com", "-o", "json"]).await;
    assert_eq!(census.status.code(), Some(2));
    let census = json_of(&census);
    assert_eq!((&census["clean"], census["rows"].as_array().map(Vec::len)), (&json!(false), Some(2)));

    let migrated = storage(data.path(), &["migrate", "foos.example.com", "-o", "json"]).await;
    assert_eq!(migrated.status.code(), Some(0), "{}", migrated.stderr);
    let migrated = json_of(&migrated);
    assert_eq!((&migrated[0]["migrated"], &migrated[0]["succeeded"]), (&json!(1), &json!(true)));
    // Whoever reads it with a program relies on these.
    let members: Vec<&String> = migrated[0].as_object().expect("an object").keys().collect();
    let stable = [
        "census",
        "current",
        "failed",
        "failures",
        "message",
        "migrated",
        "migration",
        "resource",
        "succeeded",
    ];
    assert_eq!(members, stable);
    let status = storage(data.path(), &["status", "foos.example.com", "-o", "json"]).await;
    let status = json_of(&status);
    let found = &status["resources"][0];
    assert_eq!((&found["agreed"], &found["servers"][0]["version"]), (&json!(true), &json!("example.com/v2")));
    assert_eq!(found["stored"], json!([{"version": "example.com/v2", "objects": 2}]), "{found}");
    assert!(found["lastMigration"].as_str().is_some_and(|text| text.starts_with("Succeeded (")), "{found}");
    let text = storage(data.path(), &["status"]).await.stdout;
    assert!(text.lines().next().is_some_and(|line| line.starts_with("RESOURCE ")), "{text}");

    leaves_it_running(data.path(), &client).await;
    let paused = migration("held", "example.com", "foos", &[("paused", "true")]);
    migrations(&client).create(&PostParams::default(), &paused).await.expect("created");
    // To count is to wait for nobody.
    let census = storage(data.path(), &["census", "foos.example.com"]).await;
    assert_eq!(census.status.code(), Some(0), "{}", census.stderr);
    for (command, code) in [("resume", 0), ("cancel", 0), ("pause", 0)] {
        assert_eq!(storage(data.path(), &[command, "held"]).await.status.code(), Some(code), "{command}");
    }
    let missing = storage(data.path(), &["cancel", "nobody"]).await;
    assert_eq!(missing.status.code(), Some(1));
    assert!(missing.stderr.contains("\"nobody\" not found"), "{}", missing.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_resources_are_migrated_and_those_that_failed_are_told() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &["--storage-migration-delay=0s"]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    define(&client, &["v1", "v2"], "v1").await;
    for name in ["a", "b"] {
        create_foo(&client, "v1", name).await;
    }
    define(&client, &["v1", "v2"], "v2").await;
    refuse(&client, "b").await;
    let ended = storage(data.path(), &["migrate", "--all", "-o", "json"]).await;
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    let all = json_of(&ended);
    let failed: Vec<&Value> =
        all.as_array().expect("a list").iter().filter(|one| one["succeeded"] != true).collect();
    assert_eq!(failed.len(), 1, "{all}");
    assert_eq!((&failed[0]["migrated"], &failed[0]["failed"]), (&json!(1), &json!(1)), "{}", failed[0]);
    assert!(all.as_array().is_some_and(|all| all.len() > 30), "{all}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_rotated_step_by_step() {
    let data = tempdir().expect("a directory");
    let file = EncryptionFile::new("[secrets]", "[{aesgcm: {keys: [<key1>]}}, {identity: {}}]");
    let flags = [file.flag(), "--encryption-provider-config-automatic-reload".to_owned()];
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(["--storage-migration-delay=0s"]).collect();
    let server = Program::start_with(data.path(), &flags).await;
    server.ready(200).await;
    create_secret(&client(data.path()).await, "one").await;
    let rotate = || storage(data.path(), &["rotate-key", "--to", "aesgcm:v1:key2"]);
    // What is in force is known to others a moment later.
    let until = async |code: i32, text: &str| {
        let begin = std::time::Instant::now();
        loop {
            let ended = rotate().await;
            if ended.status.code() == Some(code) && ended.stdout.contains(text) {
                return;
            }
            assert!(begin.elapsed() < crate::support::SOON, "{} {}", ended.stdout, ended.stderr);
        }
    };
    until(3, "Step 1 of 4").await;
    file.replace("[secrets]", "[{aesgcm: {keys: [<key1>, <key2>]}}, {identity: {}}]");
    reloads(&server, "success", 1).await;
    until(3, "Step 2 of 4").await;
    file.replace("[secrets]", "[{aesgcm: {keys: [<key2>, <key1>]}}, {identity: {}}]");
    reloads(&server, "success", 2).await;
    until(0, "nothing needs aesgcm:v1:key1:").await;
    let census = json_of(&storage(data.path(), &["census", "secrets", "-o", "json"]).await);
    let key = census["rows"][0]["encryption"].as_str().unwrap_or_default();
    assert!(census["clean"] == true && key.starts_with("aesgcm:v1:key2:"), "{census}");
}
