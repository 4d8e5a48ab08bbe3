//! Migrations that nobody asks for, where one could be forgotten.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::world::{KEY_FIRST, MIGRATIONS, PATIENCE, World};

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
    // Long enough for everything to have been looked at, and found to be right.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(world.migrations().await.is_empty());
    world.encrypt(KEY_FIRST);
    until_clean(&world, "the new key").await;
    running.stop().await;
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
