//! A clock that jumps by an hour while something is migrated.

use std::time::Instant;

use concord_faultfs::{FaultFs, Faults};
use kube::api::{DynamicObject, PostParams};
use tempfile::tempdir;

use super::{ask, condition, create_foo, define, migration, migrations, progress, succeeds, until};
use crate::support::{Program, SOON, client};

const HOUR: i64 = 3600;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_jumps_changes_nothing() {
    if concord_faultfs::library().is_none() {
        eprintln!("skipped: no clock can be made to jump here");
        return;
    }
    let (data, place) = (tempdir().expect("a directory"), tempdir().expect("a directory"));
    let watched = place.path().join("watched");
    std::fs::create_dir(&watched).expect("made");
    let clock = FaultFs::new(&watched, &place.path().join("control")).expect("a control file");
    let set = |ahead: i64| {
        clock.set(&Faults { clock_offset_seconds: ahead, ..Faults::default() }).expect("the clock is set");
    };
    set(0);
    let flags = ["--storage-migration-delay=0s"];
    let server =
        Program::start_as(data.path(), &flags, |command| clock.attach(command).expect("a library")).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    define(&client, &["v1", "v2"], "v1").await;
    for number in 0..100 {
        create_foo(&client, "v1", &format!("foo-{number:03}")).await;
    }
    define(&client, &["v1", "v2"], "v2").await;
    ask(&client, "missing", "example.com", "nothings").await;
    let slow = migration("slow", "example.com", "foos", &[("max-requests-per-second", "10")]);
    migrations(&client).create(&PostParams::default(), &slow).await.expect("created");
    let begin = Instant::now();
    for (ahead, done) in [(HOUR, 20), (-HOUR, 40), (HOUR, 60), (0, 80)] {
        let so_far = |now: &DynamicObject| progress(now)["migrated"].as_u64() >= Some(done);
        let before = until(&client, "slow", "some objects", so_far).await;
        // Ten seconds altogether.
        let left = progress(&before)["etaSeconds"].as_u64().expect("it is foretold");
        assert!((1..=12).contains(&left), "{left} seconds left of {}", 10 - done / 10);
        set(ahead);
    }
    succeeds(&client, "slow").await;
    let missing = migrations(&client).get("missing").await.expect("there");
    assert!(condition(&missing, "Failed", "True").is_none(), "not a minute is over: {:?}", missing.data);
    assert!(begin.elapsed() < SOON);
}
