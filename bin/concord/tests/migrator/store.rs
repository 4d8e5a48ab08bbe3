//! A store in trouble, and a server that is behind it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use concord_store::{Error, Scan};
use parking_lot::Mutex;

use crate::{
    faulty::Verdict,
    world::{MAPS, MIGRATIONS, PATIENCE, PLAIN_FIRST, World, encryption, holds, progress},
};

/// Whether it is about the ConfigMaps.
fn reads_maps(scan: &Scan) -> bool {
    scan.range.start.starts_with(b"/registry/configmaps/")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_compacted_while_it_is_counted_is_counted_anew() {
    let world = World::with_maps(700).await;
    let failures = Arc::new(AtomicUsize::new(0));
    let counted = failures.clone();
    // The second page of a census is of the revision of the first.
    world.faulty.judge_scans(move |scan| {
        let is_one =
            reads_maps(scan) && scan.revision.is_some() && counted.fetch_add(1, Ordering::Relaxed) < 3;
        is_one.then_some(Error::Compacted { oldest: 1000 })
    });
    let running = world.start();
    world.ask("m", &[]).await;
    let ended = world.succeeds("m").await;
    assert_eq!(progress(&ended)["census"][0]["objects"], 700);
    assert!(failures.load(Ordering::Relaxed) > 3 && world.left().await.is_empty());
    running.stop().await;
}

/// Nothing can be written, not even that nothing can be written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_without_space_is_waited_for() {
    let world = World::with_maps(40).await;
    let running = world.start();
    let written = Arc::new(AtomicUsize::new(0));
    let count = written.clone();
    world.faulty.judge(move |_| {
        if count.fetch_add(1, Ordering::Relaxed) < 10 { Verdict::Good } else { Verdict::Refused }
    });
    world.ask("m", &[]).await;
    let begin = Instant::now();
    while written.load(Ordering::Relaxed) < 60 {
        assert!(begin.elapsed() < PATIENCE, "it does not try again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!world.left().await.is_empty());
    world.until("m", "that it has not ended", |now| holds(now, "Failed").is_none()).await;
    world.faulty.judge(|_| Verdict::Good);
    world.succeeds("m").await;
    assert!(world.left().await.is_empty());
    running.stop().await;
}

/// What others wrote in the old form, and this server has not heard of, is not overlooked; also if that lasts longer than
/// anybody waits for it at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_behind_does_not_succeed() {
    let world = World::with_maps(60).await;
    let running = world.start();
    world.ask("m", &[("max-requests-per-second", "60")]).await;
    let begun = |now: &serde_json::Value| holds(now, "Running").is_some();
    world.until("m", "its beginning", begun).await;
    world.faulty.show(false);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(60) {
        let now = world.until("m", "anything", |_| true).await;
        assert!(["Succeeded", "Failed"].iter().all(|kind| holds(&now, kind).is_none()), "{now}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    world.faulty.show(true);
    let ended = world.succeeds("m").await;
    assert!(world.left().await.is_empty());
    assert_eq!(progress(&ended)["census"][0]["objects"], 60);
    running.stop().await;
}

/// All objects are written, and that cannot be said. `CONCORD_MIGRATION_MUTE` is for how many seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_cannot_be_told_for_long_is_told_at_last() {
    let asked = std::env::var("CONCORD_MIGRATION_MUTE").ok().and_then(|asked| asked.parse().ok());
    let mute = Duration::from_secs(asked.unwrap_or(10));
    let world = World::with_maps(20).await;
    let (inner, refused) = (world.faulty.clone(), Arc::new(AtomicUsize::new(0)));
    let count = refused.clone();
    let tells = |txn: &concord_store::Txn| {
        txn.writes.iter().any(|write| write.key().starts_with(MIGRATIONS.as_bytes()))
    };
    world.faulty.judge(move |txn| match tells(txn) && inner.written(MAPS) == 20 {
        true => {
            count.fetch_add(1, Ordering::Relaxed);
            Verdict::Refused
        }
        false => Verdict::Good,
    });
    let running = world.start();
    world.ask("m", &[]).await;
    let begin = Instant::now();
    while world.faulty.written(MAPS) < 20 {
        assert!(begin.elapsed() < PATIENCE, "not in time: all are written");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let after = world.kept().await;
    tokio::time::sleep(mute).await;
    world.until("m", "nothing yet", |now| holds(now, "Succeeded").is_none()).await;
    let tries = refused.load(Ordering::Relaxed);
    assert!((2..20 + mute.as_secs() as usize).contains(&tries), "tried {tries} times");
    world.faulty.judge(|_| Verdict::Good);
    let ended = world.succeeds("m").await;
    assert_eq!((progress(&ended)["migrated"].as_u64(), world.kept().await), (Some(20), after));
    running.stop().await;
}

/// After trouble the first pause is short again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pauses_begin_anew_after_something_went_well() {
    let world = World::with_maps(600).await;
    let scans: Arc<Mutex<Vec<(Instant, bool)>>> = Arc::default();
    let all = scans.clone();
    // Four times nothing, then a page, then once nothing for the second page.
    world.faulty.judge_scans(move |scan| {
        if !reads_maps(scan) || scan.limit < 2 || scan.revision.is_some() {
            return None;
        }
        let mut all = all.lock();
        let fails = all.len() < 4 || all.len() == 5;
        all.push((Instant::now(), fails));
        fails.then(|| Error::unavailable("away"))
    });
    let running = world.start();
    world.ask("m", &[]).await;
    world.succeeds("m").await;
    let scans = scans.lock().clone();
    let gap = |at: usize| scans[at].0 - scans[at - 1].0;
    assert!(gap(4) >= Duration::from_millis(1900), "they get longer: {:?}", gap(4));
    assert!(gap(6) < gap(4), "and begin anew: {:?}", gap(6));
    assert_eq!(world.faulty.written(MAPS), 600);
    running.stop().await;
}

/// What was read in a page is not read again, one by one, before it is written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_read_once() {
    let world = World::with_maps(20).await;
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = reads.clone();
    world.faulty.judge_scans(move |scan| {
        counted.fetch_add(usize::from(reads_maps(scan) && scan.limit == 1), Ordering::Relaxed);
        None
    });
    let running = world.start();
    world.ask("m", &[]).await;
    let ended = world.succeeds("m").await;
    assert_eq!((progress(&ended)["migrated"].as_u64(), reads.load(Ordering::Relaxed)), (Some(20), 0));
    running.stop().await;
}

/// A page of those that are looked at, the last ones of the page before, and those that are being written: however many there
/// are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_than_500_objects_are_in_memory() {
    let mut most = Vec::new();
    for count in [600, 2400] {
        let world = World::with_maps(count).await;
        world.faulty.in_memory();
        let running = world.start();
        world.ask("m", &[]).await;
        world.succeeds("m").await;
        running.stop().await;
        let counts = world.faulty.in_memory();
        assert!(counts.read.load(Ordering::Relaxed) >= 2 * count, "all are read, and all are counted");
        most.push(counts.most.load(Ordering::Relaxed));
    }
    assert!(most.iter().all(|most| (1..=500).contains(most)), "{most:?}");
}

/// The key goes back between the moment an object is read and the moment it is written: it has the right form then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_became_right_is_not_written() {
    let world = World::with_maps(5).await;
    let before = world.kept().await;
    let keyring = world.keyring.clone();
    world.manners.judge(move |_, _| {
        keyring.replace(encryption(PLAIN_FIRST));
        None
    });
    let running = world.start();
    world.ask("m", &[]).await;
    world.succeeds("m").await;
    assert_eq!(world.kept().await, before);
    running.stop().await;
}
