//! Measures the candidates for Concord's embedded engine; docs/decisions/0001-embedded-engine.md has
//! the results.
//!
//! `cargo run --release -- <what> [--rounds N] [--dir D] [engine…]` where `<what>` is `commit`, `slow`
//! (commit with 2 ms added to each sync), `open`, `crash`, `churn`, `backup` or `faults`. Engines take
//! turns within a round, each in a process of its own, in a fresh directory under `D`.

mod engine;
mod faults;
mod fjall;
mod group;
mod measure;
mod redb;
mod rounds;
mod sqlite;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let what = args.next().context("what shall be measured?")?;
    if what == "child" {
        let mut next = || args.next().context("an argument is missing");
        return measure::run(&next()?, &next()?, Path::new(&next()?));
    }
    let mut plan = rounds::Plan { what, rounds: 5, dir: std::env::temp_dir(), engines: Vec::new() };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--rounds" => plan.rounds = args.next().context("how many rounds?")?.parse()?,
            "--dir" => plan.dir = PathBuf::from(args.next().context("which directory?")?),
            _ => plan.engines.push(arg),
        }
    }
    if plan.engines.is_empty() {
        plan.engines = ["sqlite", "redb", "fjall"].map(str::to_owned).to_vec();
    }
    if plan.what == "faults" { faults::run(&plan) } else { rounds::run(&plan) }
}
