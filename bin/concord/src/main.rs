//! The `concord` program: parse, compose, run, drain.
//!
//! It decides nothing that a library could decide: `cli.rs` says what can be asked for, `serve.rs` puts a
//! server together, `store.rs` runs the store tools.

mod access;
mod admission_config;
mod aggregation;
mod audit;
mod authentication;
mod cli;
mod components;
mod compose;
mod config_file;
mod controllers;
mod duration;
mod egress;
mod election;
mod emulation;
mod encryption;
mod engine;
mod fleet;
mod garbage;
mod host;
mod kubeconfig;
mod logging;
mod memory;
mod migration;
mod overload;
mod peers;
mod plugins;
mod progress;
mod reload;
mod serve;
mod service_accounts;
mod storage;
mod store;
mod transport;
mod upkeep;
mod version;
mod webhooks;

use std::{
    env,
    io::{self, Write as _},
    process::ExitCode,
};

use clap::Parser as _;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            // Nothing is left to do if even this cannot be written.
            writeln!(io::stderr(), "error: {error:#}").ok();
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    let arguments = config_file::expand(env::args_os().collect())?;
    let done = match Cli::parse_from(arguments).command {
        Command::Serve(options) => serve::run(*options),
        Command::Kubeconfig(options) => kubeconfig::run(&options),
        Command::Store(command) => store::run(command),
        Command::Storage(command) => return storage::run(command),
        Command::Controllers(options) => return controllers::run(&options),
        Command::Version => say(&version::summary()),
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// Writes a line for people or scripts to standard output.
fn say(line: &str) -> anyhow::Result<()> {
    let mut output = io::stdout();
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}
