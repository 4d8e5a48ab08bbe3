//! Migrations that nobody asks for, where one could be forgotten.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use concord_store::{Txn, Write};
use serde_json::{Value, json};

use crate::{
    definitions::{DEFINITION, definition, says_the_end},
    faulty::Verdict,
    world::{KEY_FIRST, MIGRATIONS, PATIENCE, World, holds},
};

const DELAY: Option<Duration> = Some(Duration::from_millis(20));

async fn until_clean(world: &World, what: &str) {
    let begin = Instant::now();
    while !world.left().await.is_empty() {
        assert!(begin.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Nobody tells of other servers where there are none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_alone_notices_a_new_key() {
    let world = World::new().await;
    world.create(["a", "b"].into_iter()).await;
    let running = world.start_with(DELAY);
    // Everything has been looked at, and found to be right.
    let begin = Instant::now();
    let found = loop {
        if let Some(found) = state(&world).await {
            break found;
        }
        assert!(begin.elapsed() < PATIENCE, "not in time: what is stored is kept");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(found, (String::new(), vec![String::new()]));
    // Long enough for a migration, if there were to be one.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(world.migrations().await.is_empty());
    world.encrypt(KEY_FIRST);
    until_clean(&world, "the new key").await;
    // What is said to be stored follows.
    let begin = Instant::now();
    loop {
        let (current, persisted) = state(&world).await.expect("kept");
        if current.starts_with("aesgcm:v1:key1:") && persisted == [current] {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "not in time: what is stored is kept");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    running.stop().await;
}

/// What ConfigMaps are said to be encrypted with now, and what with that are stored, once anything is said.
async fn state(world: &World) -> Option<(String, Vec<String>)> {
    let (map, _) = world.stored("/registry/configmaps/kube-system/concord-storage-state").await?;
    let state: Value = serde_json::from_str(map["data"]["configmaps"].as_str()?).expect("JSON");
    let key = |row: &Value| row["encryption"].as_str().unwrap_or_default().to_owned();
    Some((key(&state["current"]), state["persisted"].as_array().into_iter().flatten().map(key).collect()))
}

/// One that somebody asked for is in the way, and is taken back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_left_to_another_migration_is_not_forgotten() {
    let world = World::with_maps(3).await;
    world.ask("own", &[("paused", "true")]).await;
    let running = world.start_with(DELAY);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(world.migrations().await.len(), 1, "one is enough");
    assert_eq!(world.left().await.len(), 3);
    world.delete(&format!("{MIGRATIONS}own")).await;
    until_clean(&world, "what was left").await;
    let all = world.migrations().await;
    let names: Vec<&Value> = all.iter().map(|migration| &migration["metadata"]["annotations"]).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(names[0]["storagemigration.concord.dev/automatic"], json!("true"));
    running.stop().await;
}

/// What a definition says is stored.
async fn listed(world: &World) -> Value {
    let (definition, _) = world.stored(DEFINITION).await.expect("it is there");
    definition["status"]["storedVersions"].clone()
}

async fn until_listed(world: &World, expected: &Value) {
    let begin = Instant::now();
    while listed(world).await != *expected {
        assert!(begin.elapsed() < PATIENCE, "not in time: {}", listed(world).await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Nothing was proved for the definition as it is now. The next one proves it, and nobody has to ask for that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_that_is_edited_in_the_middle_is_migrated_again() {
    let world = World::new().await;
    world.put(DEFINITION, definition(1, &["v2", "v1"]).to_string()).await;
    let (is_first, is_seen) = (AtomicBool::new(true), Arc::new(AtomicBool::new(false)));
    let may_end = is_seen.clone();
    world.faulty.judge(move |txn| match says_the_end(txn) {
        true if is_first.swap(false, Ordering::Relaxed) => Verdict::Held,
        // Nobody shortens the list before this test has seen what the first migration left.
        true if shortens(txn) && !may_end.load(Ordering::Relaxed) => Verdict::Refused,
        _ => Verdict::Good,
    });
    let running = world.start_with(DELAY);
    world.faulty.overtake(world.put(DEFINITION, definition(2, &["v2", "v1"]).to_string())).await;
    until_first_end(&world).await;
    assert_eq!(listed(&world).await, json!(["v2", "v1"]), "it was proved for another definition");
    is_seen.store(true, Ordering::Relaxed);
    until_listed(&world, &json!(["v1"])).await;
    running.stop().await;
}

/// Whether nothing but the version of today is in the list of stored versions then.
fn shortens(txn: &Txn) -> bool {
    txn.writes.iter().any(|write| match write {
        Write::Put { value, .. } => String::from_utf8_lossy(value).contains(r#""storedVersions":["v1"]"#),
        Write::Delete { .. } => false,
    })
}

async fn until_first_end(world: &World) {
    let begin = Instant::now();
    while !world.migrations().await.iter().any(|migration| holds(migration, "Succeeded").is_some()) {
        assert!(begin.elapsed() < PATIENCE, "not in time: the end of the first");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whoever did not want it may change his mind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_wanted_is_migrated_as_soon_as_somebody_does() {
    let world = World::new().await;
    let mut unwanted = definition(1, &["v2", "v1"]);
    unwanted["metadata"]["annotations"]["storagemigration.concord.dev/automatic"] = "false".into();
    world.put(DEFINITION, unwanted.to_string()).await;
    let running = world.start_with(DELAY);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(world.migrations().await.is_empty());
    world.put(DEFINITION, definition(1, &["v2", "v1"]).to_string()).await;
    until_listed(&world, &json!(["v1"])).await;
    running.stop().await;
}
