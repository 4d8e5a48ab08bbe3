//! Measures the log end to end and prints a table. Compare within one run: machines differ and drift.

mod commits;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Result;
use clap::Parser;
use concord_store::Store;
use concord_store_embedded::{EmbeddedStore, Options};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures the log end to end and prints a table.
#[derive(Parser)]
struct Args {
    /// Where to put the store; a temporary directory here is removed afterwards.
    #[arg(long, default_value = ".")]
    directory: PathBuf,
    /// Seconds per measurement.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "the table is the output")]
async fn main() -> Result<()> {
    let args = Args::parse();
    let duration = Duration::from_secs_f64(args.seconds);
    let directory = tempfile::tempdir_in(&args.directory)?;
    println!("{:<34} {:>12} {:>10} {:>10}", "", "commits/s", "p50 us", "p99 us");
    let row = |name: &str, measured: &commits::Measured| {
        let (p50, p99) = (measured.micros(0.5), measured.micros(0.99));
        println!("{name:<34} {:>12.0} {p50:>10} {p99:>10}", measured.per_second());
    };
    let bare = commits::bare_appends(directory.path(), duration)?;
    row("append 4 KiB + fdatasync", &bare);
    let store = EmbeddedStore::open(&Options::new(directory.path().join("store.db")))?;
    let store: Arc<dyn Store> = Arc::new(store);
    let mut single = None;
    for writers in [1, 16, 256] {
        let measured = commits::commits(store.clone(), writers, duration).await?;
        row(&format!("embedded, {writers} writers, 1 KiB"), &measured);
        single.get_or_insert(measured.micros(0.5));
    }
    let bare_again = commits::bare_appends(directory.path(), duration)?;
    row("append 4 KiB + fdatasync", &bare_again);
    let floor = (bare.micros(0.5) + bare_again.micros(0.5)) as f64 / 2.0;
    println!("single commit p50 / bare append p50: {:.2}", single.unwrap_or(0) as f64 / floor);
    Ok(())
}
