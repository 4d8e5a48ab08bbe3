//! Runs a measurement for all engines in turn, several times, and prints medians and spread.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use concord_faultfs::{FaultFs, Faults};

/// What to measure.
pub struct Plan {
    pub what: String,
    pub rounds: usize,
    pub dir: PathBuf,
    pub engines: Vec<String>,
}

type Samples = BTreeMap<String, Vec<Vec<f64>>>;

pub fn run(plan: &Plan) -> Result<()> {
    let mut names = Vec::new();
    let mut samples = Samples::new();
    for round in 0..plan.rounds {
        for (column, engine) in plan.engines.iter().enumerate() {
            eprintln!("round {} of {}: {} {engine}", round + 1, plan.rounds, plan.what);
            for (name, value) in measure(plan, engine).with_context(|| engine.clone())? {
                if !names.contains(&name) {
                    names.push(name.clone());
                }
                samples.entry(name).or_insert_with(|| vec![Vec::new(); plan.engines.len()])[column]
                    .push(value);
            }
        }
    }
    println!("| {} | {} |", plan.what, plan.engines.join(" | "));
    println!("|---|{}", "---|".repeat(plan.engines.len()));
    for name in names {
        let cells: Vec<String> = samples[&name].iter().map(|values| summary(values)).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    Ok(())
}

fn measure(plan: &Plan, engine: &str) -> Result<Vec<(String, f64)>> {
    let temp = tempfile::tempdir_in(&plan.dir)?;
    let dir = temp.path().join("data");
    std::fs::create_dir(&dir)?;
    match plan.what.as_str() {
        "slow" => {
            let faults = FaultFs::new(&dir, &temp.path().join("control"))?;
            faults.set(&Faults { sync_delay: Duration::from_millis(2), ..Faults::default() })?;
            let mut command = child("commit", engine, &dir)?;
            faults.attach(&mut command)?;
            read(&mut command)
        }
        "crash" => {
            kill_while_writing(engine, &dir)?;
            read(&mut child("open", engine, &dir)?)
        }
        "open" | "backup" => {
            let mut values = read(&mut child("fill", engine, &dir)?)?;
            values.extend(read(&mut child(&plan.what, engine, &dir)?)?);
            Ok(values)
        }
        what => read(&mut child(what, engine, &dir)?),
    }
}

/// This program again, for one measurement.
pub fn child(what: &str, engine: &str, dir: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["child", what, engine]).arg(dir).stdout(Stdio::piped());
    Ok(command)
}

fn read(command: &mut Command) -> Result<Vec<(String, f64)>> {
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("the measurement ended with {}", output.status);
    }
    let text = String::from_utf8(output.stdout)?;
    let pair = |line: &str| {
        let (name, value) = line.split_once(' ').context("no value")?;
        anyhow::Ok((name.to_owned(), value.parse()?))
    };
    text.lines().map(|line| pair(line).with_context(|| line.to_owned())).collect()
}

fn kill_while_writing(engine: &str, dir: &Path) -> Result<()> {
    let mut process = child("crash", engine, dir)?.spawn()?;
    let stdout = process.stdout.take().context("the output is piped")?;
    let running = BufReader::new(stdout).lines().any(|line| line.is_ok_and(|line| line == "running 1"));
    thread::sleep(Duration::from_secs(1));
    process.kill()?;
    process.wait()?;
    if running { Ok(()) } else { bail!("the measurement ended early") }
}

/// Median, and the range in brackets.
fn summary(values: &[f64]) -> String {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let round = |value: f64| if value < 100.0 { format!("{value:.2}") } else { format!("{value:.0}") };
    match values.as_slice() {
        [] => "–".to_owned(),
        [only] => round(*only),
        [first, .., last] => {
            format!("{} ({}–{})", round(values[values.len() / 2]), round(*first), round(*last))
        }
    }
}
