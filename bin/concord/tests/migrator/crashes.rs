//! A process that dies at every moment at which something is told.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use concord_store::Txn;
use serde_json::json;
use tokio::sync::Notify;

use crate::{
    definitions::{DEFINITION, definition},
    faulty::Verdict,
    world::{KEY_FIRST, MAPS, MIGRATIONS, World, progress},
};

fn tells(txn: &Txn) -> bool {
    let is_told = |key: &[u8]| key.starts_with(MIGRATIONS.as_bytes()) || key == DEFINITION.as_bytes();
    txn.writes.iter().any(|write| is_told(write.key()))
}

/// Lets whoever works die with the n-th time that something is told.
fn kill_at(world: &World, at: usize, verdict: Verdict) -> Arc<Notify> {
    let (told, reached) = (AtomicUsize::new(0), Arc::new(Notify::new()));
    let dead = reached.clone();
    world.faulty.judge(move |txn| {
        if !tells(txn) || told.fetch_add(1, Ordering::Relaxed) != at {
            return Verdict::Good;
        }
        dead.notify_one();
        verdict
    });
    reached
}

/// Runs a migration until it ends, by another process if the first one dies. Whether it did.
async fn ends_anyway(world: &World, reached: &Notify) -> bool {
    let first = world.start();
    let was_killed = tokio::select! {
        () = reached.notified() => true,
        _ = world.succeeds("m") => false,
    };
    if was_killed {
        // The store may still be busy with it.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        first.crash().await;
        world.faulty.judge(|_| Verdict::Good);
        let second = world.start();
        world.succeeds("m").await;
        second.stop().await;
    } else {
        first.stop().await;
    }
    was_killed
}

/// Runs a migration whose process dies with the n-th time that something is told, and lets another one end it. False if it
/// is not told that often.
async fn dies_at(at: usize, verdict: Verdict) -> bool {
    let world = World::new().await;
    world.create(["a", "b", "c"].into_iter()).await;
    world.encrypt(KEY_FIRST);
    world.create(["d", "e"].into_iter()).await;
    let before = world.kept().await;
    world.ask("m", &[]).await;
    let was_killed = ends_anyway(&world, &kill_at(&world, at, verdict)).await;
    assert!(world.left().await.is_empty(), "{at} {verdict:?}");
    let after = world.kept().await;
    for (name, (_, revision)) in &before {
        let times = world.faulty.written(&format!("{MAPS}{name}"));
        let expected = usize::from(["a", "b", "c"].contains(&name.as_str()));
        assert_eq!(
            (times, *revision == after[name].1),
            (expected, expected == 0),
            "{name}, {at} {verdict:?}"
        );
    }
    let ended = world.succeeds("m").await;
    assert_eq!(progress(&ended)["phase"], "Done");
    was_killed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whenever_it_dies_another_one_ends_it_and_writes_nothing_twice() {
    for verdict in [Verdict::Stuck, Verdict::CommittedAndStuck] {
        let mut at = 0;
        while dies_at(at, verdict).await {
            at += 1;
        }
        assert!(at >= 3, "{verdict:?}: it was told {at} times");
    }
}

/// The same for one whose definition has to be told, too.
async fn definition_dies_at(at: usize, verdict: Verdict) -> bool {
    let world = World::new().await;
    world.put(DEFINITION, definition(1, &["v2", "v1"]).to_string()).await;
    world.ask_about("m", ("coordination.k8s.io", "leases"), "2026-01-01T00:00:00Z", &[]).await;
    let was_killed = ends_anyway(&world, &kill_at(&world, at, verdict)).await;
    let (after, _) = world.stored(DEFINITION).await.expect("it is there");
    assert_eq!(after["status"]["storedVersions"], json!(["v1"]), "{at} {verdict:?}");
    let said = &after["status"]["conditions"][0];
    assert_eq!((&said["type"], &said["status"]), (&json!("StorageMigrating"), &json!("False")), "{at}");
    was_killed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whenever_it_dies_its_definition_hears_of_the_end() {
    for verdict in [Verdict::Stuck, Verdict::CommittedAndStuck] {
        let mut at = 0;
        while definition_dies_at(at, verdict).await {
            at += 1;
        }
        assert!(at >= 5, "{verdict:?}: it was told {at} times");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_at_once_write_nothing_twice() {
    let world = World::with_maps(200).await;
    let both = [world.start(), world.start()];
    world.ask("m", &[]).await;
    world.succeeds("m").await;
    assert!(world.left().await.is_empty());
    assert_eq!(world.faulty.written(MAPS), 200, "each is written by one of them");
    for running in both {
        running.stop().await;
    }
}
