//! Compares two Kubernetes API servers request by request, or writes down what one answers.

#![allow(clippy::print_stdout, reason = "the report is what the program is for")]

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use concord_differential::{Session, Table, differences, load};

/// Sends the same requests to Kubernetes API servers.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// The namespace to work in. It must not exist, and is deleted at the end.
    #[arg(long, global = true, default_value = "differential")]
    namespace: String,
}

#[derive(Subcommand)]
enum Command {
    /// Tell where the answers of two servers differ.
    Compare {
        /// The kubeconfig of the first server.
        left: PathBuf,
        /// The kubeconfig of the second server.
        right: PathBuf,
        /// The tables of requests.
        #[arg(required = true)]
        tables: Vec<PathBuf>,
    },
    /// Write the answers of a server into the tables.
    Record {
        /// The kubeconfig of the server.
        server: PathBuf,
        /// The tables of requests.
        #[arg(required = true)]
        tables: Vec<PathBuf>,
        /// Write them as Concord's own, where the table says that Concord differs; and nowhere else.
        #[arg(long)]
        ours: bool,
    },
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    match &arguments.command {
        Command::Compare { left, right, tables } => {
            let mut sessions = [
                Session::begin(load(left)?, &arguments.namespace)?,
                Session::begin(load(right)?, &arguments.namespace)?,
            ];
            let mut total = Total::default();
            for path in tables {
                compare(&mut sessions, &read(path)?, &mut total)?;
            }
            println!("{} cases, {} differ, {} of them knowingly", total.cases, total.different, total.known);
            for session in sessions {
                session.end()?;
            }
            Ok(if total.different == total.known { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Command::Record { server, tables, ours } => {
            let mut session = Session::begin(load(server)?, &arguments.namespace)?;
            for path in tables {
                let mut table = read(path)?;
                record(&mut session, &mut table, *ours)?;
                std::fs::write(path, table.render())?;
            }
            session.end()?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

#[derive(Default)]
struct Total {
    cases: usize,
    different: usize,
    known: usize,
}

fn read(path: &Path) -> Result<Table> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Table::parse(&text).with_context(|| path.display().to_string())
}

fn compare(sessions: &mut [Session; 2], table: &Table, total: &mut Total) -> Result<()> {
    let [left, right] = sessions;
    for case in &table.cases {
        let (a, b) = (left.run(case)?, right.run(case)?);
        let pairs = a.answers.iter().zip(&b.answers).enumerate();
        let found: Vec<String> = pairs
            .flat_map(|(at, (a, b))| {
                let found = differences(case, (a, left.variables()), (b, right.variables()));
                found
                    .into_iter()
                    .map(move |line| if case.sweep.is_some() { format!("byte {at}: {line}") } else { line })
            })
            .collect();
        total.cases += 1;
        if found.is_empty() {
            continue;
        }
        total.different += 1;
        total.known += usize::from(case.known.is_some());
        let known = case.known.as_ref().map(|reason| format!(" (known: {reason})")).unwrap_or_default();
        println!("{}{known}\n  {}\n  {}\n", case.title, case.request, found.join("\n  "));
    }
    Ok(())
}

fn record(session: &mut Session, table: &mut Table, ours: bool) -> Result<()> {
    for case in &mut table.cases {
        let outcome = session.run(case)?;
        match (ours, case.known.is_some()) {
            (false, _) => case.upstream = Some(outcome.short),
            (true, true) => case.ours = Some(outcome.short),
            (true, false) => {}
        }
    }
    Ok(())
}
