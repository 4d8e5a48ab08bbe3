//! Measures any Kubernetes API server.
//!
//! Throughput, latency, CPU and memory of creates, reads, lists, changes, watches and discovery, from one client that
//! costs little itself. It knows nothing about who the server is: everything goes over the wire, and what a server costs
//! is read from `/proc`. It never touches anything outside the namespace it makes, and removes that.
//!
//! `run.rs` is the order of events, `operations.rs` what is repeated, `drive.rs` how, `watch.rs` the fan-out.

mod args;
mod client;
mod compare;
mod crds;
mod definition;
mod drive;
mod flood;
mod kubeconfig;
mod namespace;
mod objects;
mod operations;
mod process;
mod progress;
mod report;
mod run;
mod scan;
mod startup;
mod stats;
mod table;
mod tls;
mod turns;
mod watch;

use std::process::ExitCode;

use anyhow::Result;
use args::{Cli, Command};
use clap::Parser;
use report::Report;
use run::Ending;
use tokio::runtime::{Builder, Runtime};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What shells report for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

#[allow(clippy::print_stderr, reason = "how a program says why it failed")]
fn main() -> ExitCode {
    match command(Cli::parse().command) {
        Ok(Ending::Good) => ExitCode::SUCCESS,
        Ok(Ending::Faulty) => ExitCode::FAILURE,
        Ok(Ending::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(failure) => {
            eprintln!("error: {failure:#}");
            ExitCode::FAILURE
        }
    }
}

fn command(command: Command) -> Result<Ending> {
    match command {
        Command::Run(args) => {
            args.check()?;
            runtime(args.threads())?.block_on(run::run(*args))
        }
        Command::Crds(args) => runtime(1)?.block_on(crds::run(args)),
        Command::Flood(args) => {
            let (found, ending) = runtime(2)?.block_on(flood::flood(&args))?;
            print(&found);
            Ok(ending)
        }
        Command::Turns(args) => runtime(1)?.block_on(turns::run(args)),
        Command::Compare { first, second } => {
            print(&compare::compare(&Report::load(&first)?, &Report::load(&second)?));
            Ok(Ending::Good)
        }
    }
}

fn runtime(threads: usize) -> std::io::Result<Runtime> {
    if threads == 1 {
        return Builder::new_current_thread().enable_all().build();
    }
    Builder::new_multi_thread().worker_threads(threads).enable_all().build()
}

/// Standard output is for results only; progress goes to the terminal.
#[allow(clippy::print_stdout, reason = "the table is the output")]
fn print(text: &str) {
    print!("{text}");
}
