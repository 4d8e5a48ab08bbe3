//! The test runs itself again as the child whose disk misbehaves.
#![cfg(target_os = "linux")]

use std::{
    env,
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use concord_faultfs::{
    Errno, Fault, FaultFs, Faults, When,
    trace::{self, Event},
};
use tempfile::TempDir;

const CHILD: &str = "FAULTFS_TEST_DIR";

struct Bench {
    dir: TempDir,
    faults: FaultFs,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("watched")).expect("a directory");
        let control = dir.path().join("control");
        let faults = FaultFs::new(&dir.path().join("watched"), &control).expect("a control file");
        Self { dir, faults }
    }

    fn watched(&self) -> PathBuf {
        self.dir.path().join("watched").canonicalize().expect("the directory is there")
    }

    /// Runs the named child below in the watched directory and returns what it reported.
    fn run(&self, child: &str, dir: &Path) -> String {
        let mut command = Command::new(env::current_exe().expect("the path of this test"));
        command.args(["--exact", child, "--ignored", "--nocapture"]).env(CHILD, dir);
        self.faults.attach(&mut command).expect("Linux has the library");
        let output = command.output().expect("the child starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read_to_string(dir.join("report")).expect("the child reports")
    }
}

/// Where to work, for a child; `None` when somebody runs the ignored tests by hand.
fn child_dir() -> Option<PathBuf> {
    env::var_os(CHILD).map(PathBuf::from)
}

fn outcome<T>(result: &io::Result<T>) -> String {
    result.as_ref().map_or_else(|error| error.raw_os_error().unwrap_or(-1).to_string(), |_| "ok".to_owned())
}

/// Ten rounds of a write and a sync; the report comes last and says how each call ended.
#[test]
#[ignore = "a child process of the other tests"]
fn child_writes_and_syncs() {
    let Some(dir) = child_dir() else { return };
    let file = File::create(dir.join("data")).expect("a file");
    let mut report = Vec::new();
    for round in 0..10 {
        report.push(outcome(&file.write_all_at(&[round; 4096], u64::from(round) * 4096)));
        report.push(outcome(&file.sync_data()));
    }
    // Retried: the fault under test may strike the report, too.
    while fs::write(dir.join("report"), report.join(" ")).is_err() {}
}

#[test]
#[ignore = "a child process of the other tests"]
fn child_uses_every_traced_call() {
    let Some(dir) = child_dir() else { return };
    let mut plain = File::create(dir.join("plain")).expect("a file");
    plain.write_all(b"one").expect("a write");
    plain.write_all(b"two").expect("a write at the position reached");
    let pieces = [io::IoSlice::new(b"th"), io::IoSlice::new(b"ree")];
    let first = plain.write_vectored(&pieces).expect("a vectored write");
    plain.write_all(&b"three"[first..]).expect("the rest");
    plain.set_len(5).expect("a truncation");
    plain.sync_all().expect("a sync");
    fs::rename(dir.join("plain"), dir.join("moved")).expect("a rename");
    fs::write(dir.join("acks.mark"), "7").expect("a mark");
    File::open(&dir).and_then(|dir| dir.sync_all()).expect("a sync of the directory");
    fs::remove_file(dir.join("moved")).expect("a removal");
    fs::write(dir.join("report"), "done").expect("a report");
}

/// Says what time it is, and that what took a moment took a moment.
#[test]
#[ignore = "a child process of the other tests"]
fn child_tells_the_time() {
    let Some(dir) = child_dir() else { return };
    let begin = Instant::now();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    assert!(begin.elapsed() < Duration::from_secs(60));
    fs::write(dir.join("report"), now.to_string()).expect("a report");
}

#[test]
fn the_wall_clock_jumps_and_nothing_else() {
    let bench = Bench::new();
    for offset in [0, 7200, -1800] {
        bench.faults.set(&Faults { clock_offset_seconds: offset, ..Faults::default() }).expect("set");
        let told: i64 = bench.run("child_tells_the_time", &bench.watched()).parse().expect("seconds");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let ahead = told - i64::try_from(now).expect("seconds");
        assert!((offset - 60..=offset).contains(&ahead), "{ahead} instead of {offset}");
    }
}

#[test]
fn without_faults_nothing_changes_and_calls_are_counted() {
    let bench = Bench::new();
    assert_eq!(bench.run("child_writes_and_syncs", &bench.watched()), ["ok"; 20].join(" "));
    let counters = bench.faults.counters().expect("counters");
    assert_eq!((counters.writes, counters.syncs), (11, 10), "ten writes and the report");
    assert_eq!((counters.write_faults, counters.sync_faults), (0, 0));
}

#[test]
fn the_nth_call_fails_with_the_error_asked_for() {
    let bench = Bench::new();
    let writes = Some(Fault { errno: Errno::NoSpace, when: When::Nth(3) });
    let syncs = Some(Fault { errno: Errno::Io, when: When::Nth(5) });
    bench.faults.set(&Faults { writes, syncs, ..Faults::default() }).expect("set");
    let report = bench.run("child_writes_and_syncs", &bench.watched());
    let mut expected = vec!["ok"; 20];
    (expected[4], expected[9]) = ("28", "5");
    assert_eq!(report, expected.join(" "));
}

#[test]
fn a_failed_sync_is_in_the_trace() {
    let mut bench = Bench::new();
    let path = bench.dir.path().join("trace");
    bench.faults = bench.faults.with_trace(&path);
    let syncs = Some(Fault { errno: Errno::Io, when: When::Nth(2) });
    bench.faults.set(&Faults { syncs, ..Faults::default() }).expect("set");
    bench.run("child_writes_and_syncs", &bench.watched());
    let records = trace::read(&path).expect("a trace");
    let ends = |event: Event| records.iter().filter(|record| record.event == event).count();
    assert_eq!((ends(Event::SyncFail { number: 2 }), ends(Event::SyncEnd { number: 2 })), (1, 0));
    assert_eq!((ends(Event::SyncFail { number: 1 }), ends(Event::SyncEnd { number: 1 })), (0, 1));
}

#[test]
fn random_faults_repeat_with_their_seed() {
    let report = |seed| {
        let bench = Bench::new();
        let syncs = Some(Fault { errno: Errno::Io, when: When::OneIn(2) });
        bench.faults.set(&Faults { syncs, seed, ..Faults::default() }).expect("set");
        bench.run("child_writes_and_syncs", &bench.watched())
    };
    assert_eq!(report(1), report(1));
    assert!(report(1).contains('5') && report(1).contains("ok"));
    assert_ne!(report(1), report(2));
}

#[test]
fn short_writes_are_completed_by_their_callers() {
    let bench = Bench::new();
    bench.faults.set(&Faults { short_writes_one_in: Some(1), ..Faults::default() }).expect("set");
    assert_eq!(bench.run("child_writes_and_syncs", &bench.watched()), ["ok"; 20].join(" "));
    let data = fs::read(bench.watched().join("data")).expect("the data");
    assert_eq!(data.len(), 40960);
    assert!(data.chunks(4096).zip(0..).all(|(chunk, round)| chunk == [round; 4096]));
    assert!(bench.faults.counters().expect("counters").write_faults > 10);
}

#[test]
fn a_delay_is_added_to_every_sync() {
    let bench = Bench::new();
    bench.faults.set(&Faults { sync_delay: Duration::from_millis(30), ..Faults::default() }).expect("set");
    let start = Instant::now();
    bench.run("child_writes_and_syncs", &bench.watched());
    assert!(start.elapsed() >= Duration::from_millis(300));
}

#[test]
fn files_elsewhere_are_left_alone() {
    let bench = Bench::new();
    let always = Some(Fault::always(Errno::Io));
    bench.faults.set(&Faults { writes: always, syncs: always, ..Faults::default() }).expect("set");
    // Its name begins like the watched one, which must not be enough.
    let elsewhere = bench.dir.path().canonicalize().expect("there").join("watched-not");
    fs::create_dir(&elsewhere).expect("a directory");
    assert_eq!(bench.run("child_writes_and_syncs", &elsewhere), ["ok"; 20].join(" "));
    assert_eq!(bench.faults.counters().expect("counters").writes, 0);
}

#[test]
fn a_trace_tells_everything_in_order() {
    let mut bench = Bench::new();
    let path = bench.dir.path().join("trace");
    bench.faults = bench.faults.with_trace(&path);
    let watched = bench.watched();
    bench.run("child_uses_every_traced_call", &watched);
    let records = trace::read(&path).expect("a trace");
    let events: Vec<_> =
        records.iter().map(|r| (r.path.strip_prefix(&watched).expect("watched"), &r.event)).collect();
    let position = |event: &Event| {
        events.iter().position(|(_, e)| *e == event).unwrap_or_else(|| panic!("no {event:?} in {events:?}"))
    };
    let write = |offset, data: &[u8]| position(&Event::Write { offset, data: data.to_vec() });
    let order = [
        write(0, b"one"),
        write(3, b"two"),
        write(6, b"th"),
        write(8, b"ree"),
        position(&Event::Truncate { len: 5 }),
        position(&Event::SyncStart { number: 1 }),
        position(&Event::SyncEnd { number: 1 }),
        position(&Event::Rename { to: watched.join("moved") }),
        position(&Event::Mark(b"7".to_vec())),
        position(&Event::SyncEnd { number: 2 }),
        position(&Event::Unlink),
    ];
    assert!(order.is_sorted(), "{order:?} in {events:?}");
    assert_eq!(events[order[9]].0, Path::new(""), "the second sync is of the directory");
}
