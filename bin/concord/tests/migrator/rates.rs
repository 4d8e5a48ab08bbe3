//! How fast objects are written, and how long it is said to take.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::world::{MAPS, PATIENCE, World, holds, progress};

const RATE: &str = "max-requests-per-second";

/// In no two seconds are there more writes than a tenth too many, and altogether no less than a tenth too few. It is looked at
/// them when they are committed, and a busy machine commits some late: in one second that might be a tenth already.
fn assert_rate(times: &[Instant], rate: usize) {
    for (at, begin) in times.iter().enumerate() {
        let end = *begin + Duration::from_secs(2);
        let within = times[at..].iter().take_while(|time| **time < end).count();
        assert!(within * 10 <= rate * 22, "{within} in the two seconds after write {at}");
    }
    let took = times[times.len() - 1] - times[0];
    let reached = (times.len() - 1) as f64 / took.as_secs_f64();
    assert!(reached >= rate as f64 * 0.9, "only {reached} in a second");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_is_kept_within_a_tenth_also_across_restarts() {
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
        assert_rate(of_process, 100);
    }
    // Nobody catches up on what another process did not do.
    assert_rate(all, 100);
}

/// Another process began it, on a machine whose clock was wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_clock_decides_how_long_it_is_said_to_take() {
    for started in ["2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"] {
        let world = World::with_maps(900).await;
        let before = json!({"phase": "Migrating", "startedAt": started, "total": 900});
        world.ask("m", &[(RATE, "150"), ("progress", &before.to_string())]).await;
        let (running, begin) = (world.start(), Instant::now());
        let mut foretold = Vec::new();
        loop {
            let now = world.until("m", "anything", |_| true).await;
            if holds(&now, "Succeeded").is_some() {
                assert_eq!(progress(&now)["startedAt"], started, "it is the same migration");
                break;
            }
            assert!(holds(&now, "Failed").is_none() && begin.elapsed() < PATIENCE, "{now}");
            let said = progress(&now);
            if said["migrated"].as_u64() > Some(90)
                && let Some(left) = said["etaSeconds"].as_f64()
            {
                foretold.push(begin.elapsed().as_secs_f64() + left);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let took = begin.elapsed().as_secs_f64();
        assert!(!foretold.is_empty());
        for end in foretold {
            // What is told is up to a second old, and in whole seconds.
            assert!((end - took).abs() <= took / 4.0 + 2.0, "{end} was foretold, it took {took}");
        }
        running.stop().await;
    }
}
