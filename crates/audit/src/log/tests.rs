use std::sync::mpsc::{Sender as Gate, channel as gate};

use super::*;

/// Waits for a word before each line, and keeps what it was given.
struct Slow {
    go: Receiver<bool>,
    kept: Arc<Mutex<Vec<u8>>>,
}

impl Write for Slow {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.go.recv() {
            Ok(false) => Err(io::Error::other("full")),
            _ => {
                self.kept.lock().extend_from_slice(line);
                Ok(line.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn slow() -> (Log, Gate<bool>, Arc<Mutex<Vec<u8>>>) {
    let (let_go, go) = gate();
    let kept = Arc::new(Mutex::default());
    let log = Log::with_output(Box::new(Slow { go, kept: kept.clone() })).expect("a thread");
    (log, let_go, kept)
}

#[test]
fn nobody_waits_for_a_disk_and_what_is_lost_is_counted() {
    let (log, let_go, kept) = slow();
    let line = vec![b'x'; WAITING / 4];
    for _ in 0..10 {
        log.write(line.clone());
    }
    assert_eq!(log.counters().lost(), 6, "as much as may wait does");
    drop(let_go);
    log.close();
    assert_eq!(kept.lock().len(), WAITING);
    log.write(line);
    assert_eq!(log.counters().lost(), 7, "it is closed");
}

#[test]
fn a_line_that_cannot_be_written_is_lost_and_the_next_one_is_tried() {
    let (log, let_go, kept) = slow();
    for (line, succeeds) in [("a", true), ("b", false), ("c", false), ("d", true)] {
        let_go.send(succeeds).expect("the writer is there");
        log.write(line.into());
    }
    log.close();
    assert_eq!((kept.lock().as_slice(), log.counters().lost()), (&b"ad"[..], 2));
}

#[test]
fn lines_go_to_a_file_that_only_its_owner_reads() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("logs/audit.log");
    let options = || LogOptions { path: Some(path.clone()), rotation: Rotation::default() };
    for line in ["one\n", "two\n"] {
        let log = Log::open(options()).expect("opened");
        log.write(line.into());
        log.close();
    }
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), "one\ntwo\n");
    let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let nowhere = LogOptions { path: Some(path.join("below")), rotation: Rotation::default() };
    let error = Log::open(nowhere).err().expect("a file is no directory");
    assert!(error.to_string().starts_with("cannot write the audit log "), "{error}");
}
