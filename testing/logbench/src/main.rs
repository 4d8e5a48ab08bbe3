//! Measures the log end to end and prints a table. Compare within one run: machines differ and drift.

mod commits;
mod slow_disk;
mod start;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Result;
use clap::{Parser, Subcommand};
use commits::Measured;
use concord_store::Store;
use concord_store_embedded::{EmbeddedStore, Options};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures the log end to end and prints a table.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
    /// Where to put the store; a temporary directory made here is removed afterwards.
    #[arg(long, global = true, default_value = ".", overrides_with = "directory")]
    directory: PathBuf,
}

#[derive(Subcommand)]
enum Command {
    /// Durable commits of 1, 16 and 256 writers, against bare appends to a file of the same disk.
    Commits {
        /// Seconds per measurement.
        #[arg(long, default_value_t = 3.0)]
        seconds: f64,
        /// Measurements of each; the median is printed.
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// Milliseconds added to every sync, as if the disk were slower.
        #[arg(long, default_value_t = 0)]
        sync_delay_ms: u64,
    },
    /// Time from a closed store of 100,000 entries of 1 KiB to a replica that answers.
    Start,
    /// Fills a store for `start`, in a process of its own so that its memory does not count.
    #[command(hide = true)]
    Fill {
        /// The store file.
        path: PathBuf,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let directory = tempfile::tempdir_in(&args.directory)?;
    let path = directory.path().join("store.db");
    match args.command {
        Command::Commits { sync_delay_ms, .. } if sync_delay_ms > 0 && !slow_disk::is_slow() => {
            slow_disk::run_again(directory.path(), Duration::from_millis(sync_delay_ms))
        }
        Command::Commits { seconds, rounds, .. } => {
            let store = Arc::new(EmbeddedStore::open(&Options::new(&path))?);
            print_commits(store, directory.path(), Duration::from_secs_f64(seconds), rounds.max(1)).await
        }
        Command::Start => print_start(&path).await,
        Command::Fill { path } => start::fill(&path).await,
    }
}

const WRITERS: [usize; 3] = [1, 16, 256];

#[allow(clippy::print_stdout, reason = "the table is the output")]
async fn print_commits(
    store: Arc<dyn Store>,
    directory: &std::path::Path,
    duration: Duration,
    rounds: usize,
) -> Result<()> {
    let mut bare = Vec::new();
    let mut measured: [Vec<Measured>; 3] = Default::default();
    // Interleaved, so that what drifts drifts for all.
    for _ in 0..rounds {
        bare.push(commits::bare_appends(directory, duration)?);
        for (writers, results) in WRITERS.into_iter().zip(&mut measured) {
            results.push(commits::commits(store.clone(), writers, duration).await?);
        }
    }
    println!("{:<28} {:>10} {:>9} {:>9} {:>12}", "", "commits/s", "p50 us", "p99 us", "p50 / bare");
    let floor = median(bare.iter().map(|bare| bare.micros(0.5) as f64));
    print_row("append 4 KiB + fdatasync", &bare, floor);
    for (writers, results) in WRITERS.into_iter().zip(&measured) {
        print_row(&format!("embedded, {writers} writers"), results, floor);
    }
    let rate = |results: &[Measured]| median(results.iter().map(Measured::per_second));
    println!("256 writers / 1 writer: {:.0} x", rate(&measured[2]) / rate(&measured[0]));
    Ok(())
}

#[allow(clippy::print_stdout, reason = "the table is the output")]
fn print_row(name: &str, results: &[Measured], floor: f64) {
    let rate = median(results.iter().map(Measured::per_second));
    let p50 = median(results.iter().map(|measured| measured.micros(0.5) as f64));
    let p99 = median(results.iter().map(|measured| measured.micros(0.99) as f64));
    println!("{name:<28} {rate:>10.0} {p50:>9.0} {p99:>9.0} {:>12.2}", p50 / floor);
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[allow(clippy::print_stdout, reason = "the table is the output")]
async fn print_start(path: &std::path::Path) -> Result<()> {
    let filled = std::process::Command::new(std::env::current_exe()?).arg("fill").arg(path).status()?;
    anyhow::ensure!(filled.success(), "filling the store failed: {filled}");
    let started = start::start(path).await?;
    println!("100,000 entries of 1 KiB");
    println!("open and check the store   {:>8.3} s", started.open);
    println!("load the replica           {:>8.3} s", started.load);
    println!("scan the replica           {:>8.3} s", started.scan);
    println!(
        "memory beyond the data     {:>8.0} bytes per entry, engine and replica",
        started.overhead_per_entry
    );
    Ok(())
}
