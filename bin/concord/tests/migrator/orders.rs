//! What the owner of a migration says, and what he is told.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    rates::assert_foretold,
    world::{MAPS, World, holds, progress, waits},
};

const RATE: &str = "max-requests-per-second";

/// How many objects were written.
fn written(world: &World) -> usize {
    world.faulty.written(MAPS)
}

async fn until_written(world: &World, count: usize) {
    let begin = Instant::now();
    while written(world) < count {
        assert!(begin.elapsed() < crate::world::PATIENCE, "not in time: {count} are written");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_label_does_not_make_it_begin_anew() {
    let world = World::with_maps(80).await;
    let running = world.start();
    world.ask("m", &[(RATE, "60")]).await;
    for round in 0..5 {
        until_written(&world, 10 * (round + 1)).await;
        world.change("m", |object| object["metadata"]["labels"] = json!({"round": round.to_string()})).await;
    }
    let ended = world.succeeds("m").await;
    assert_eq!((written(&world), world.manners.asked("map")), (80, 80), "each once");
    assert_eq!(ended["metadata"]["labels"]["round"], "4");
    running.stop().await;
}

fn is_paused(migration: &Value) -> bool {
    waits(migration) == "Paused"
}

/// How long it takes after a pause was asked for until nothing is written any more, and how much is written then.
async fn pause(world: &World) -> (Duration, usize) {
    let begin = Instant::now();
    world.annotate("m", "paused", &json!("true")).await;
    world.until("m", "a pause", is_paused).await;
    let after = written(world);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(written(world), after, "nothing is written after that");
    let last = world.faulty.times(MAPS).pop().expect("something is written");
    (last.saturating_duration_since(begin), after)
}

/// Both within a second. The machine may be busy, but not each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_is_heard_at_once_and_outlives_the_process() {
    const SECOND: Duration = Duration::from_secs(1);
    let world = World::with_maps(2000).await;
    let mut running = world.start();
    world.ask("m", &[(RATE, "200")]).await;
    until_written(&world, 50).await;
    let (mut paused, mut resumed) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let (took, after) = pause(&world).await;
        paused.push(took);
        running.crash().await;
        running = world.start();
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(written(&world), after, "another process keeps to it");
        let begin = Instant::now();
        world.annotate("m", "paused", &Value::Null).await;
        until_written(&world, after + 1).await;
        resumed.push(begin.elapsed());
        until_written(&world, after + 20).await;
    }
    assert!(paused.iter().any(|took| *took < SECOND), "{paused:?}");
    assert!(resumed.iter().any(|took| *took < SECOND), "{resumed:?}");
    world.annotate("m", RATE, &json!("100000")).await;
    world.succeeds("m").await;
    assert_eq!(written(&world), 2000);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_writes_nothing_but_what_it_says() {
    let world = World::with_maps(30).await;
    let before = world.kept().await;
    let running = world.start();
    world.ask("m", &[("dry-run", "true")]).await;
    let ended = world.succeeds("m").await;
    let (reason, message) = holds(&ended, "Succeeded").expect("it has");
    assert_eq!(reason, "DryRunCompleted");
    assert_eq!(message, "dry run: 30 of 30 objects would be rewritten");
    assert_eq!(world.kept().await, before);
    assert_eq!((written(&world), world.manners.asked("map")), (0, 0));
    let told = ["/registry/storageversionmigrations/", "/registry/events/"];
    let told: usize = told.iter().map(|prefix| world.faulty.written(prefix)).sum();
    assert_eq!(world.faulty.written(""), told, "every revision is something that was told");
    running.stop().await;
}

/// Upstream counts from when the migration was created, by a clock that may be wrong and while it may have waited for others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_clock_decides_how_long_a_resource_may_be_missing() {
    let world = World::new().await;
    let running = world.start();
    for (name, created) in [("past", "2020-01-01T00:00:00Z"), ("future", "2100-01-01T00:00:00Z")] {
        world.ask_for(name, &format!("{name}nothings"), created, &[]).await;
    }
    for name in ["past", "future"] {
        world.until(name, "that it waits", |now| waits(now) == "WaitingForResource").await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for name in ["past", "future"] {
        let now = world.until(name, "that it waits", |now| waits(now) == "WaitingForResource").await;
        assert!(holds(&now, "Failed").is_none(), "{now}");
    }
    running.stop().await;
}

/// Whoever serves something else stores it, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_api_server_stores_is_left_to_it() {
    let world = World::new().await;
    let service = json!({
        "kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1",
        "metadata": {"name": "v1.books.example.com", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"group": "books.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
            "service": {"namespace": "default", "name": "books", "port": 443}},
    });
    let place = "/registry/apiregistration.k8s.io/apiservices/v1.books.example.com";
    world.put(place, service.to_string()).await;
    let running = world.start();
    world.ask_about("m", ("books.example.com", "books"), "2026-01-01T00:00:00Z", &[]).await;
    let (_, message) = holds(&world.ends("m").await, "Failed").expect("it failed");
    let expected = "resource \"books.books.example.com\" is stored by another API server, that of APIService \
                    \"v1.books.example.com\", which has to migrate it";
    assert_eq!(message, expected);
    running.stop().await;
}

/// The resident memory of this process, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4096
}

/// `CONCORD_MIGRATED_MAPS=100000` shows that nothing grows with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_objects_it_is_known_how_long_they_take() {
    let asked = std::env::var("CONCORD_MIGRATED_MAPS").ok().and_then(|asked| asked.parse().ok());
    let count: usize = asked.unwrap_or(2400);
    let world = World::with_maps(count).await;
    // No page is larger than what is looked at together.
    world.faulty.judge_scans(|scan| {
        assert!(scan.limit <= 1000, "{scan:?}");
        None
    });
    let running = world.start();
    // Ten seconds or more, so that there is something to foretell.
    let rate = (count / 8).clamp(100, 2000).to_string();
    let begin = Instant::now();
    world.ask("m", &[(RATE, &rate)]).await;
    let (mut seen, mut foretold) = (0, 0);
    let (before, mut most) = (resident(), 0);
    loop {
        let now = world.until("m", "anything", |_| true).await;
        if holds(&now, "Succeeded").is_some() {
            break;
        }
        assert!(begin.elapsed() < crate::world::PATIENCE * 10 && holds(&now, "Failed").is_none(), "{now}");
        most = most.max(resident());
        let progress = progress(&now);
        let done = progress["migrated"].as_u64().unwrap_or_default();
        assert!(done >= seen, "it goes back from {seen} to {done}");
        // Before the first second is over nothing is known, and when nothing is left nothing is foretold.
        let left = progress["etaSeconds"].as_f64().filter(|_| done > seen && done * 10 >= count as u64);
        if let Some(left) = left {
            assert_foretold(left, &world.faulty.times(MAPS), begin, (done as usize, count));
            foretold += 1;
        }
        seen = done;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let grown = most.saturating_sub(before) >> 20;
    // The store and the replica are in this process as well, and the test itself remembers every write: half a KiB for each
    // object is allowed for that.
    let most = 64 + ((count as u64 * 512) >> 20);
    assert!(grown < most, "{grown} MiB more than before for {count} objects");
    assert!(foretold >= 2, "{foretold}");
    assert!(world.left().await.is_empty());
    running.stop().await;
}
