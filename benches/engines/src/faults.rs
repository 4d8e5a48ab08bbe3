//! What each engine does when the disk does not do its part.

use std::{
    io::{BufRead as _, BufReader, Lines, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use anyhow::{Context as _, Result};
use concord_faultfs::{Errno, Fault, FaultFs, Faults, When};

use crate::rounds::{Plan, child};

pub fn run(plan: &Plan) -> Result<()> {
    for engine in &plan.engines {
        for (name, faults) in scenarios() {
            println!("\n{engine}: {name}");
            let temp = tempfile::tempdir_in(&plan.dir)?;
            let dir = temp.path().join("data");
            std::fs::create_dir(&dir)?;
            let control = FaultFs::new(&dir, &temp.path().join("control"))?;
            scenario(engine, &dir, &control, &faults)?;
        }
    }
    Ok(())
}

fn scenarios() -> [(&'static str, Faults); 5] {
    let fault = |errno, when| Some(Fault { errno, when });
    [
        ("disk full", Faults { writes: fault(Errno::NoSpace, When::Always), ..Faults::default() }),
        ("one write fails (EIO)", Faults { writes: fault(Errno::Io, When::Nth(1)), ..Faults::default() }),
        ("one sync fails (EIO)", Faults { syncs: fault(Errno::Io, When::Nth(1)), ..Faults::default() }),
        ("every sync fails (EIO)", Faults { syncs: fault(Errno::Io, When::Always), ..Faults::default() }),
        ("every second write is short", Faults { short_writes_one_in: Some(2), ..Faults::default() }),
    ]
}

/// Healthy, faulty, healthy again, reopened.
fn scenario(engine: &str, dir: &Path, control: &FaultFs, faults: &Faults) -> Result<()> {
    let mut process = Process::start(engine, dir, control)?;
    process.steps("healthy", &["put", "put"])?;
    control.set(faults)?;
    process.steps("faulty", &["put", "put", "scan"])?;
    control.set(&Faults::default())?;
    process.steps("healthy again", &["put", "put", "scan"])?;
    process.kill()?;
    let counters = control.counters()?;
    println!("  {} writes and {} syncs were hit", counters.write_faults, counters.sync_faults);
    Process::start(engine, dir, control)?.steps("reopened", &["scan", "put"])
}

struct Process {
    child: Child,
    stdin: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(engine: &str, dir: &Path, control: &FaultFs) -> Result<Self> {
        let mut command = child("steps", engine, dir)?;
        control.attach(&mut command)?;
        let mut child = command.stdin(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take().context("piped")?;
        let answers = BufReader::new(child.stdout.take().context("piped")?).lines();
        let mut process = Self { child, stdin, answers };
        println!("  {}", process.answer());
        Ok(process)
    }

    fn answer(&mut self) -> String {
        match self.answers.next() {
            Some(Ok(line)) => line,
            _ => "DIED".to_owned(),
        }
    }

    fn steps(&mut self, when: &str, steps: &[&str]) -> Result<()> {
        for step in steps {
            // A process that died cannot be told anything; its silence is the answer.
            writeln!(self.stdin, "{step}").ok();
            println!("  {when}, {step}: {}", self.answer());
        }
        Ok(())
    }

    fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill().ok();
    }
}
