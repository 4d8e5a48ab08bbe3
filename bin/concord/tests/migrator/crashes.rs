//! A process that dies at every moment at which something is told.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use concord_store::Txn;
use tokio::sync::Notify;

use crate::{
    faulty::Verdict,
    world::{KEY_FIRST, MAPS, MIGRATIONS, World, progress},
};

fn tells(txn: &Txn) -> bool {
    txn.writes.iter().any(|write| write.key().starts_with(MIGRATIONS.as_bytes()))
}

/// Runs a migration whose process dies with the n-th time that something is told, and lets another one end it. False if it
/// is not told that often.
async fn dies_at(at: usize, verdict: Verdict) -> bool {
    let world = World::new().await;
    world.create(["a", "b", "c"].into_iter()).await;
    world.encrypt(KEY_FIRST);
    world.create(["d", "e"].into_iter()).await;
    let before = world.kept().await;
    let (told, reached) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (count, dead) = (told.clone(), reached.clone());
    world.faulty.judge(move |txn| {
        if !tells(txn) || count.fetch_add(1, Ordering::Relaxed) != at {
            return Verdict::Good;
        }
        dead.notify_one();
        verdict
    });
    let first = world.start();
    world.ask("m", &[]).await;
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
