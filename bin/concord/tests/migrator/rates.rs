//! How fast objects are written, and how long it is said to take.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::world::{MAPS, PATIENCE, World, holds, progress};

const RATE: &str = "max-requests-per-second";

/// In no two seconds are there more writes than a tenth too many, and altogether no less than a tenth too few; or else what is
/// wrong. It is looked at them when they are committed, and a busy machine commits some late: in one second that might be a
/// tenth already.
fn check_rate(times: &[Instant], rate: usize) -> Result<(), String> {
    for (at, begin) in times.iter().enumerate() {
        let end = *begin + Duration::from_secs(2);
        let within = times[at..].iter().take_while(|time| **time < end).count();
        if within * 10 > rate * 22 {
            return Err(format!("{within} in the two seconds after write {at}"));
        }
    }
    let took = times[times.len() - 1] - times[0];
    let reached = (times.len() - 1) as f64 / took.as_secs_f64();
    if reached >= rate as f64 * 0.9 { Ok(()) } else { Err(format!("only {reached} in a second")) }
}

/// What is not written while the machine is busy with something else is not caught up on, but it is not busy each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_is_kept_within_a_tenth_also_across_restarts() {
    let mut wrong = Vec::new();
    while wrong.len() < 3 {
        match three_processes_keep_to_a_rate().await {
            Ok(()) => return,
            Err(why) => wrong.push(why),
        }
    }
    panic!("{wrong:?}");
}

async fn three_processes_keep_to_a_rate() -> Result<(), String> {
    const OBJECTS: usize = 750;
    let world = World::with_maps(OBJECTS).await;
    world.ask("m", &[(RATE, "100")]).await;
    let mut processes = Vec::new();
    for after in [250, 500, OBJECTS] {
        let running = world.start();
        let begin = Instant::now();
        while world.faulty.written(MAPS) < after {
            assert!(begin.elapsed() < PATIENCE, "not in time: {after} are written");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        if after < OBJECTS {
            running.crash().await;
        } else {
            world.succeeds("m").await;
            running.stop().await;
        }
        processes.push(world.faulty.times(MAPS));
    }
    let (first, second, all) = (&processes[0], &processes[1], &processes[2]);
    assert_eq!(all.len(), OBJECTS, "each is written once");
    for of_process in [first, &second[first.len()..], &all[second.len()..]] {
        check_rate(of_process, 100)?;
    }
    // Nobody catches up on what another process did not do.
    check_rate(all, 100)
}

/// What is said to be left, in seconds, when so many of all objects are done, is what it takes at the rate of the last
/// seconds, however many of them count. How busy the machine will be until the end nobody can know, so the end is not
/// looked at.
pub(crate) fn assert_foretold(told: f64, times: &[Instant], begin: Instant, (done, all): (usize, usize)) {
    let left = |until: Instant, seconds: u64| {
        let since = until.checked_sub(Duration::from_secs(seconds)).map_or(begin, |since| since.max(begin));
        let count = times[..done].iter().filter(|time| **time >= since).count();
        (all - done) as f64 * (until - since).as_secs_f64() / count as f64
    };
    // It was told between the last write that it knows of and now.
    let (at, now) = (times[done - 1], Instant::now());
    let windows = 1..=(now - begin).as_secs() + 1;
    let measured = || windows.clone().flat_map(|seconds| [left(at, seconds), left(now, seconds)]);
    let (least, most) = (measured().fold(f64::INFINITY, f64::min), measured().fold(0.0, f64::max));
    // In whole seconds.
    let is_so = told >= least * 0.75 - 2.0 && told <= most * 1.25 + 2.0;
    assert!(is_so, "{told} was foretold with {done} of {all} done, but it is {least} to {most}");
}

/// Another process began it, on a machine whose clock was wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_clock_decides_how_long_it_is_said_to_take() {
    for started in ["2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"] {
        let world = World::with_maps(900).await;
        let before = json!({"phase": "Migrating", "startedAt": started, "total": 900});
        world.ask("m", &[(RATE, "150"), ("progress", &before.to_string())]).await;
        let (running, begin) = (world.start(), Instant::now());
        let (mut seen, mut foretold) = (0, 0);
        loop {
            let now = world.until("m", "anything", |_| true).await;
            if holds(&now, "Succeeded").is_some() {
                assert_eq!(progress(&now)["startedAt"], started, "it is the same migration");
                break;
            }
            assert!(holds(&now, "Failed").is_none() && begin.elapsed() < PATIENCE, "{now}");
            let said = progress(&now);
            let done = said["migrated"].as_u64().unwrap_or_default() as usize;
            if let Some(left) = said["etaSeconds"].as_f64().filter(|_| done > seen && done > 90) {
                assert_foretold(left, &world.faulty.times(MAPS), begin, (done, 900));
                foretold += 1;
            }
            seen = done;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(foretold > 0);
        running.stop().await;
    }
}
