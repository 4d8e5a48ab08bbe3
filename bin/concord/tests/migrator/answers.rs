//! What is answered to writes.

use std::time::{Duration, Instant};

use concord_meta::{GroupResource, Status};
use concord_store::{MAX_REQUEST_BYTES, Txn};
use serde_json::json;

use crate::{
    faulty::Verdict,
    world::{KEY_FIRST, MAPS, PATIENCE, PLAIN_FIRST, World, holds, map, progress},
};

/// How often admission is asked before a write is refused: a state that may be old is no reason.
const TWICE: usize = 2;

/// How many objects are written at once in the beginning.
const FEW: usize = 48;

fn writes(txn: &Txn, prefix: &str) -> bool {
    txn.writes.iter().any(|write| write.key().starts_with(prefix.as_bytes()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fails_for_now_is_no_reason_to_end() {
    let world = World::new().await;
    let names = ["away", "busy", "fails", "late", "lost", "quiet"];
    world.create(names.into_iter()).await;
    world.encrypt(KEY_FIRST);
    world.manners.judge(|name, count| match name {
        "away" if count <= 2 * TWICE => Some(Status::service_unavailable("not now")),
        "busy" if count <= 2 * TWICE => Some(Status::too_many_requests("later", 1)),
        // More often than one object is tried before the others go first.
        "fails" if count <= 8 * TWICE => Some(Status::internal_error("failed calling webhook")),
        "late" if count <= 2 * TWICE => Some(Status::timeout("too slow", 0)),
        _ => None,
    });
    // Committed, but nobody is told.
    let lost = std::sync::atomic::AtomicBool::new(false);
    world.faulty.judge(move |txn| {
        let is_first =
            writes(txn, &format!("{MAPS}lost")) && !lost.swap(true, std::sync::atomic::Ordering::Relaxed);
        if is_first { Verdict::Unanswered } else { Verdict::Good }
    });
    let running = world.start();
    world.ask("m", &[]).await;
    let held = world.until("m", "that it says why", |now| progress(now)["lastError"].is_string()).await;
    assert!(holds(&held, "Failed").is_none(), "{held}");
    world.succeeds("m").await;
    assert!(world.left().await.is_empty());
    for name in names {
        assert_eq!(world.faulty.written(&format!("{MAPS}{name}")), 1, "{name} is written once");
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_is_heard_while_an_object_waits_for_its_next_try() {
    let world = World::with_maps(3).await;
    world.manners.judge(|_, _| Some(Status::too_many_requests("later", 30)));
    let running = world.start();
    world.ask("m", &[]).await;
    while world.manners.asked("map") < 3 * TWICE {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let begin = Instant::now();
    world.annotate("m", "cancelled", &json!("true")).await;
    let ended = world.ends("m").await;
    // They would wait for half a minute otherwise.
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    assert_eq!(holds(&ended, "Failed").expect("it ended").0, "MigrationCancelled");
    assert_eq!(world.manners.asked("map"), 3 * TWICE, "nothing was tried again");
    running.stop().await;
}

/// What is refused once halves what is under way, and what goes well brings it back slowly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_requests_are_a_brake() {
    for (refused, most) in [(0, FEW), (1, FEW / 2)] {
        let world = World::with_maps(3 * FEW + 2).await;
        world.manners.pause(Duration::from_millis(20));
        let first = format!("map-{FEW:05}");
        world.manners.shut(Some(&first));
        world.manners.judge(move |name, count| {
            let is_first = count <= TWICE && name < first.as_str();
            (is_first && refused > 0).then(|| Status::too_many_requests("later", 0))
        });
        let running = world.start();
        world.ask("m", &[]).await;
        // Those that come after the first ones wait for each other, so that all that may be under way are.
        let begin = Instant::now();
        while world.manners.kept() < if refused > 0 { 1 } else { FEW - 1 } {
            assert!(begin.elapsed() < PATIENCE, "{refused}: only {} at once", world.manners.kept());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        world.manners.take_most();
        // Long enough for more to begin, if there were to be more.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let kept = world.manners.kept();
        world.manners.shut(None);
        world.succeeds("m").await;
        let found = world.manners.take_most().max(kept);
        assert!((1..=most + 1).contains(&found), "{refused}: {found} at once");
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_written_is_named_and_all_others_are_done() {
    let world = World::new().await;
    world.encrypt(PLAIN_FIRST);
    world.create(["a", "denied", "z"].into_iter()).await;
    // It was stored when this was allowed.
    world.put(&format!("{MAPS}invalid"), map("invalid", &json!({"no label at all": "x"}), "v")).await;
    // What comes with encryption is too much for it.
    let key = format!("{MAPS}large");
    let rest = map("large", &json!({}), "").len() + key.len();
    world.put(&key, map("large", &json!({}), &"x".repeat(MAX_REQUEST_BYTES - rest))).await;
    world.encrypt(KEY_FIRST);
    world.manners.judge(|name, _| {
        let quota =
            "exceeded quota: none, requested: configmaps=1, used: configmaps=5, limited: configmaps=0";
        (name == "denied").then(|| Status::forbidden(&GroupResource::new("", "configmaps"), name, quota))
    });
    let running = world.start();
    world.ask("m", &[]).await;
    let ended = world.ends("m").await;
    let (_, message) = holds(&ended, "Failed").expect("it failed");
    assert!(message.starts_with("3 of 5 objects could not be migrated; "), "{message}");
    for said in ["default/denied: ", "exceeded quota", "default/invalid: ", "default/large: "] {
        assert!(message.contains(said), "{said}: {message}");
    }
    assert_eq!(world.left().await, ["denied", "invalid", "large"]);
    assert_eq!((&progress(&ended)["migrated"], &progress(&ended)["failed"]), (&json!(2), &json!(3)));
    running.stop().await;
}

/// Objects are read in pages, and much may happen before it is their turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_before_its_turn_is_taken_as_it_is() {
    let world = World::with_maps(30).await;
    let running = world.start();
    world.ask("m", &[("max-requests-per-second", "30")]).await;
    while world.faulty.written(MAPS) == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let key = |name: &str| format!("{MAPS}{name}");
    world.delete(&key("map-00025")).await;
    // By somebody who does not know the new key.
    let changed = map("map-00026", &json!({}), "changed");
    world.put_plain(&key("map-00026"), changed).await;
    world.delete(&key("map-00027")).await;
    let other = map("map-00027", &json!({}), "v").replace("uid-of-", "another-");
    world.put_plain(&key("map-00027"), other).await;
    // And by somebody who does.
    world.put(&key("map-00028"), map("map-00028", &json!({}), "new")).await;
    let ended = world.succeeds("m").await;
    assert!(world.left().await.is_empty());
    let names: Vec<String> = world.kept().await.into_keys().collect();
    assert!(!names.contains(&"map-00025".to_owned()), "what is gone stays so");
    assert_eq!(world.stored(&key("map-00026")).await.expect("there").0["data"]["word"], "changed");
    let other = world.stored(&key("map-00027")).await.expect("there").0;
    assert_eq!(other["metadata"]["uid"], "another-map-00027");
    assert_eq!(world.faulty.written(&key("map-00028")), 0, "it had the right form");
    assert_eq!((&progress(&ended)["migrated"], &progress(&ended)["failed"]), (&json!(28), &json!(0)));
    running.stop().await;
}
