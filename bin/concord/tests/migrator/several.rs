//! Several migrations of one resource, one after another.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::world::{MAPS, MIGRATIONS, PATIENCE, World, holds, progress, waits};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_comes_first_and_the_next_finds_nothing_to_do() {
    let world = World::with_maps(30).await;
    world.ask_for("a-younger", "configmaps", "2026-01-02T00:00:00Z", &[]).await;
    world
        .ask_for("b-older", "configmaps", "2026-01-01T00:00:00Z", &[("max-requests-per-second", "30")])
        .await;
    let running = world.start();
    let older = world.succeeds("b-older").await;
    let after = world.kept().await;
    let younger = world.succeeds("a-younger").await;
    assert_eq!((&progress(&older)["migrated"], &progress(&younger)["migrated"]), (&json!(30), &json!(0)));
    // And what the server itself keeps.
    assert!([30, 31].contains(&progress(&younger)["current"].as_u64().unwrap_or_default()));
    assert_eq!((world.kept().await, world.faulty.written(MAPS)), (after, 30));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_deleted_writes_no_more_and_the_next_begins() {
    let world = World::with_maps(1000).await;
    let running = world.start();
    world.ask_for("first", "configmaps", "2026-01-01T00:00:00Z", &[("max-requests-per-second", "100")]).await;
    world.ask_for("next", "configmaps", "2026-01-02T00:00:00Z", &[("paused", "true")]).await;
    while world.faulty.written(MAPS) < 20 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    world.delete(&format!("{MIGRATIONS}first")).await;
    // It is the next one's turn when the first has stopped.
    world.until("next", "a pause", |now| waits(now) == "Paused").await;
    let written = world.faulty.written(MAPS);
    assert!(written < 1000, "it was not in the middle");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.faulty.written(MAPS), written, "nothing is written after that");
    world.annotate("next", "paused", &json!(null)).await;
    world.succeeds("next").await;
    assert!(world.left().await.is_empty());
    assert!(world.stored(&format!("{MIGRATIONS}first")).await.is_none(), "nobody made it anew");
    running.stop().await;
}

/// The machine may be busy, but not each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_to_do_is_done_within_a_second() {
    let world = World::with_maps(0).await;
    let running = world.start();
    let mut least = PATIENCE;
    for name in ["a", "b", "c", "d", "e"] {
        let begin = Instant::now();
        world.ask(name, &[]).await;
        let ended = world.succeeds(name).await;
        least = least.min(begin.elapsed());
        assert!(holds(&ended, "Running").is_none() && progress(&ended)["migrated"] == 0);
    }
    assert!(least < Duration::from_secs(1), "{least:?}");
    running.stop().await;
}
