//! The power fails: what was not synced may be there, be missing or be torn.

use std::path::Path;

use concord_faultfs::{
    FaultFs,
    power_loss::Disk,
    trace::{self, Event, Record},
};

use crate::{
    model::Model,
    process::Start,
    workload::{Run, mix},
};

/// In how many places of the trace the power fails, and how often in each.
const PLACES: u64 = 60;
const IMAGES: u64 = 2;

#[test]
fn what_was_acknowledged_survives_power_loss() {
    let seed = crate::seed();
    eprintln!("seed {seed}");
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().canonicalize().expect("it exists").join("disk");
    std::fs::create_dir(&root).expect("a directory");
    let path = dir.path().join("trace");
    let faults = FaultFs::new(&root, &dir.path().join("control")).expect("a control file").with_trace(&path);
    let run = Run { seed, round: 0 };
    let store = root.join("store.db");
    let start = Start {
        writes: Some(250),
        marks: Some(root.join("acks.mark")),
        faults: Some(&faults),
        ..Start::new(&store, run)
    };
    start.spawn().finish();
    let records = trace::read(&path).expect("a trace");
    let acknowledged = fail_everywhere(&records, &root, run);
    eprintln!("{} records, {acknowledged} acknowledged writes verified", records.len());
    assert!(acknowledged > PLACES * 10, "the child hardly wrote anything");
}

/// Returns how many acknowledged writes were looked for in all images together.
fn fail_everywhere(records: &[Record], root: &Path, run: Run) -> u64 {
    let len = records.len() as u64;
    // Half of the places right after a mark: nothing was done yet that the next sync would save.
    let place = |n: u64| {
        let at = (mix(&[run.seed, n, 3]) % len) as usize;
        let mark = |record: &Record| matches!(record.event, Event::Mark(_));
        let skipped = if n.is_multiple_of(2) { records[at..].iter().position(mark) } else { None };
        at + skipped.unwrap_or(0)
    };
    let mut places: Vec<usize> = (0..PLACES).map(place).collect();
    places.sort_unstable();
    let (mut disk, mut lines, mut applied, mut acknowledged) = (Disk::default(), Vec::new(), 0, 0);
    for place in places {
        for record in &records[applied..=place.max(applied)] {
            disk.apply(record);
            if let Event::Mark(text) = &record.event {
                lines.extend(String::from_utf8_lossy(text).lines().map(str::to_owned));
            }
        }
        applied = place.max(applied) + 1;
        if applied >= records.len() {
            break;
        }
        for image in 0..IMAGES {
            acknowledged += check(&disk, root, run, &lines, (place as u64, image));
        }
    }
    acknowledged
}

fn check(disk: &Disk, root: &Path, run: Run, lines: &[String], (place, image): (u64, u64)) -> u64 {
    let mut count = 0;
    let choose = |n: u64| {
        count += 1;
        mix(&[run.seed, place, image, count]) % n
    };
    let dir = tempfile::tempdir().expect("a directory");
    disk.crash(choose).write(root, dir.path()).expect("the image can be written");
    let mut model = Model::new(run.seed);
    let verified = model.absorb(run, lines.iter().map(String::as_str)).and_then(|()| {
        let acknowledged = model.acknowledged() as u64;
        model.verify(&dir.path().join("store.db")).map(|()| acknowledged)
    });
    verified.unwrap_or_else(|wrong| {
        panic!("power failed after record {place}, image {image} of CONCORD_SEED={}: {wrong}", run.seed)
    })
}
