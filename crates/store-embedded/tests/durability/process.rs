//! The parent's grip on a child.

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use concord_faultfs::FaultFs;

use crate::{child, workload::Run};

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// How to start a child.
pub(crate) struct Start<'a> {
    pub(crate) store: &'a Path,
    pub(crate) run: Run,
    /// How many writes each writer does; without end if `None`.
    pub(crate) writes: Option<u64>,
    pub(crate) marks: Option<PathBuf>,
    pub(crate) faults: Option<&'a FaultFs>,
}

impl<'a> Start<'a> {
    pub(crate) fn new(store: &'a Path, run: Run) -> Self {
        Self { store, run, writes: None, marks: None, faults: None }
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env::current_exe().expect("the path of this test"));
        command.args(["--exact", "child", "--ignored", "--nocapture"]);
        command
            .env(child::STORE, self.store)
            .env(child::RUN, format!("{} {}", self.run.seed, self.run.round));
        if let Some(writes) = self.writes {
            command.env(child::WRITES, writes.to_string());
        }
        if let Some(marks) = &self.marks {
            command.env(child::MARKS, marks);
        }
        if let Some(faults) = self.faults {
            faults.attach(&mut command).expect("Linux has the library");
        }
        command
    }

    pub(crate) fn spawn(&self) -> Process {
        Process::spawn(self.command())
    }
}

/// A running child; killed when dropped.
pub(crate) struct Process {
    child: Child,
    lines: Receiver<String>,
    reader: Option<JoinHandle<()>>,
    seen: Vec<String>,
}

impl Process {
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the child starts");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        // Bounded: a child that is far ahead waits for its parent.
        let (sender, lines) = mpsc::sync_channel(10_000);
        let reader = thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines, reader: Some(reader), seen: Vec::new() }
    }

    /// Reads on until a line satisfies `wanted`; false if the child ended without one.
    pub(crate) fn wait_for(&mut self, wanted: impl Fn(&str) -> bool) -> bool {
        let end = Instant::now() + PATIENCE;
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            let found = wanted(&line);
            self.seen.push(line);
            if found {
                return true;
            }
        }
        false
    }

    /// Kills it the hard way and returns all that it has ever reported.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("a child that was not waited for can be killed");
        self.finish()
    }

    /// Waits until it ends by itself and returns all that it has ever reported.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let drained = !self.wait_for(|_| false);
        assert!(drained, "nothing is waited for");
        self.child.wait().expect("the child can be waited for");
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader does not panic");
        }
        std::mem::take(&mut self.seen)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail if it has ended, which is what is wanted.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
