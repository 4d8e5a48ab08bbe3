//! Disks that fail, fill up or turn read-only under a running store.

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use concord_faultfs::{
    Errno, Fault, FaultFs, Faults, When,
    trace::{self, Event},
};
use tempfile::TempDir;

use crate::{
    model::Model,
    process::{Process, Start},
    workload::{Run, Tag},
};

/// The user that may do nothing special, everywhere.
const NOBODY: u32 = 65534;

struct Disk {
    dir: TempDir,
    store: PathBuf,
    faults: FaultFs,
}

impl Disk {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let watched = dir.path().join("disk");
        fs::create_dir(&watched).expect("a directory");
        let faults = FaultFs::new(&watched, &dir.path().join("control")).expect("a control file");
        Self { dir, store: watched.join("store.db"), faults }
    }

    fn start(&self, run: Run) -> Process {
        Start { faults: Some(&self.faults), ..Start::new(&self.store, run) }.spawn()
    }

    fn set(&self, faults: &Faults) {
        self.faults.set(faults).expect("the control file can be written");
    }

    /// Lets one of the next syncs of a busy store fail. Which one is counted from how many there were, and
    /// while that is looked up the store may pass it: then again.
    fn fail_one_sync(&self) {
        let fault = Fault { errno: Errno::Io, when: When::Nth(3) };
        for _ in 0..600 {
            self.set(&Faults { syncs: Some(fault), ..Faults::default() });
            thread::sleep(Duration::from_millis(100));
            if self.faults.counters().expect("counters").sync_faults > 0 {
                return;
            }
        }
        panic!("the store does not sync");
    }
}

fn starts_with(prefix: &'static str) -> impl Fn(&str) -> bool {
    move |line| line.starts_with(prefix)
}

fn refused(line: &str) -> bool {
    line.starts_with("no ") && line.contains("unavailable")
}

fn check(model: &mut Model, run: Run, lines: &[String], store: &Path) {
    let absorbed = model.absorb(run, lines.iter().map(String::as_str));
    let verified = absorbed.and_then(|()| model.verify(store));
    verified.unwrap_or_else(|wrong| panic!("round {} of CONCORD_SEED={}: {wrong}", run.round, run.seed));
    assert!(!lines.iter().any(|line| line.starts_with("read-failed")), "reads go on whatever happens");
}

/// Many short lives with faults at random; after each, everything acknowledged is there.
fn survive(rounds: u64, faults: impl Fn(u64) -> Faults) {
    let seed = crate::seed();
    eprintln!("seed {seed}");
    let disk = Disk::new();
    let mut model = Model::new(seed);
    let mut acknowledged = 0;
    for round in 0..rounds {
        let run = Run { seed, round };
        disk.set(&Faults { seed: seed ^ round, ..faults(round) });
        // The last life is a healthy one: the file must be good for that.
        if round + 1 == rounds {
            disk.set(&Faults::default());
        }
        let mut start = Start::new(&disk.store, run);
        (start.faults, start.writes) = (Some(&disk.faults), Some(60));
        let lines = start.spawn().finish();
        acknowledged += lines.iter().filter(|line| line.starts_with("ack")).count();
        check(&mut model, run, &lines, &disk.store);
    }
    let counters = disk.faults.counters().expect("counters");
    eprintln!("{acknowledged} acknowledged, {counters:?}");
    assert!(counters.write_faults + counters.sync_faults >= rounds / 2, "hardly anything failed");
    assert!(acknowledged > 100, "hardly anything succeeded");
}

#[test]
fn failing_writes_lose_nothing_acknowledged() {
    let writes = |n| Some(Fault { errno: Errno::Io, when: When::OneIn(n) });
    survive(15, |round| Faults { writes: writes(50 + round * 20), ..Faults::default() });
}

#[test]
fn failing_syncs_lose_nothing_acknowledged() {
    let syncs = |n| Some(Fault { errno: Errno::Io, when: When::OneIn(n) });
    survive(15, |round| Faults { syncs: syncs(5 + round * 2), ..Faults::default() });
}

#[test]
fn short_writes_and_a_disk_full_now_and_then_lose_nothing_acknowledged() {
    let writes = Some(Fault { errno: Errno::NoSpace, when: When::OneIn(20) });
    survive(15, |_| Faults { writes, short_writes_one_in: Some(10), ..Faults::default() });
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_space_again() {
    let run = Run { seed: crate::seed(), round: 0 };
    let disk = Disk::new();
    let mut child = disk.start(run);
    assert!(child.wait_for(starts_with("ack")), "a healthy store takes writes");
    disk.set(&Faults { writes: Some(Fault::always(Errno::NoSpace)), ..Faults::default() });
    assert!(child.wait_for(refused), "a full disk refuses writes and says that nothing happened");
    assert!(child.wait_for(starts_with("read ")), "and reads go on");
    disk.set(&Faults::default());
    assert!(child.wait_for(starts_with("ack")), "the store takes writes again by itself");
    check(&mut Model::new(run.seed), run, &child.kill(), &disk.store);
}

#[test]
fn a_disk_turned_read_only_keeps_reads_alive() {
    let run = Run { seed: crate::seed(), round: 0 };
    let disk = Disk::new();
    let mut child = disk.start(run);
    assert!(child.wait_for(starts_with("ack")), "a healthy store takes writes");
    disk.set(&Faults { writes: Some(Fault::always(Errno::ReadOnly)), ..Faults::default() });
    assert!(child.wait_for(refused), "writes are refused");
    assert!(child.wait_for(starts_with("read ")), "and reads go on");
    check(&mut Model::new(run.seed), run, &child.kill(), &disk.store);
}

#[test]
fn after_a_failed_sync_no_write_is_acknowledged() {
    let run = Run { seed: crate::seed(), round: 0 };
    let disk = Disk::new();
    let mut child = disk.start(run);
    // SQLite syncs the directory once per connection and ignores how that ends, rightly: the first one
    // did it before the first commit. After some checkpoints all connections are past it.
    for _ in 0..4000 {
        assert!(child.wait_for(starts_with("ack")), "a healthy store takes writes");
    }
    // Only one sync fails. The system may have dropped the pages all the same, so that the next sync
    // would succeed without them: that must never count.
    disk.fail_one_sync();
    assert!(child.wait_for(refused), "writes are refused from then on");
    for _ in 0..20 {
        let next = |line: &str| line.starts_with("ack") || refused(line);
        assert!(child.wait_for(next), "the child goes on trying");
    }
    let lines = child.kill();
    let first = lines.iter().position(|line| refused(line)).expect("it was waited for");
    // An answer that was given before may be reported a moment after; what was asked after may not be.
    let tried = |tag: &str| lines[first..].contains(&format!("try {tag}"));
    let acknowledged = |line: &&String| line.split(' ').nth(1).is_some_and(tried) && line.starts_with("ack");
    assert_eq!(lines[first..].iter().find(acknowledged), None, "asked after the first refusal");
    assert_eq!(disk.faults.counters().expect("counters").sync_faults, 1);
    check(&mut Model::new(run.seed), run, &lines, &disk.store);
}

/// For every acknowledgement a sync of the write-ahead log began after the write was asked for and
/// ended well before the acknowledgement.
#[test]
fn every_acknowledgement_has_a_sync_of_its_own() {
    let run = Run { seed: crate::seed(), round: 0 };
    let mut disk = Disk::new();
    let path = disk.dir.path().join("trace");
    disk.faults = disk.faults.with_trace(&path);
    let marks = Some(disk.store.with_file_name("acks.mark"));
    let start = Start { writes: Some(80), marks, faults: Some(&disk.faults), ..Start::new(&disk.store, run) };
    start.spawn().finish();
    let (mut tried, mut begun, mut synced) = (std::collections::HashMap::new(), 0, 0);
    let mut acknowledged = 0;
    for (at, record) in trace::read(&path).expect("a trace").into_iter().enumerate() {
        let is_log = record.path.extension().is_some_and(|end| end == "db-wal");
        match record.event {
            Event::SyncStart { .. } if is_log => begun = at,
            Event::SyncEnd { .. } if is_log => synced = begun,
            Event::Mark(line) => {
                let line = String::from_utf8(line).expect("marks are text");
                let Some(tag) = line.split_whitespace().nth(1).and_then(Tag::parse) else { continue };
                if line.starts_with("try") {
                    tried.insert(tag, at);
                } else if line.starts_with("ack") && changes_something(run, tag) {
                    acknowledged += 1;
                    assert!(synced > tried[&tag], "{tag} was acknowledged without a sync");
                }
            }
            _ => {}
        }
    }
    assert!(acknowledged > 100, "the child hardly wrote anything");
}

/// A delete of an absent key needs no sync; whether it was absent is not known here.
fn changes_something(run: Run, tag: Tag) -> bool {
    !matches!(run.op(tag.writer, tag.number), crate::workload::Op::Delete { .. })
}

#[test]
fn a_directory_without_write_permission_is_a_typed_error() {
    let dir = tempfile::tempdir().expect("a directory");
    // Permissions mean nothing to root, so root lets a child without privileges try, from a copy of
    // this executable that it can reach.
    let executable = dir.path().join("child");
    fs::copy(std::env::current_exe().expect("the path of this test"), &executable).expect("a copy");
    let read_only = dir.path().join("read-only");
    fs::create_dir(&read_only).expect("a directory");
    for path in [dir.path(), &read_only] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o555)).expect("permissions");
    }
    let store = read_only.join("store.db");
    let template = Start::new(&store, Run { seed: 0, round: 0 }).command();
    let mut command = std::process::Command::new(&executable);
    command
        .args(template.get_args())
        .envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
        command.uid(NOBODY).gid(NOBODY);
    }
    let lines = Process::spawn(command).finish();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    let complaint = lines.iter().find(|line| line.starts_with("open-failed")).expect("it cannot open");
    assert!(complaint.contains("cannot open the store") && complaint.contains("ermission"), "{complaint}");
}
