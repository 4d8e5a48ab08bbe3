//! How long a server with many objects takes to be able to answer, and what they cost in memory.

use std::{path::Path, sync::Arc, time::Instant};

use anyhow::{Context, Result};
use concord_replica::{Config, Replica};
use concord_store::{KeyRange, Store, Txn};
use concord_store_embedded::{EmbeddedStore, Options};

const ENTRIES: usize = 100_000;
const VALUE_BYTES: usize = 1024;

/// Seconds of each step, and bytes of memory.
pub(crate) struct Started {
    pub(crate) open: f64,
    pub(crate) load: f64,
    pub(crate) scan: f64,
    pub(crate) overhead_per_entry: f64,
}

/// Fills a store and closes it.
pub(crate) async fn fill(path: &Path) -> Result<()> {
    let store = EmbeddedStore::open(&Options::new(path))?;
    for first in (0..ENTRIES).step_by(1000) {
        let keys: Vec<String> = (first..first + 1000).map(key).collect();
        let puts = keys.iter().map(|key| {
            let value = vec![0x5a_u8; VALUE_BYTES];
            store.transact(Txn::new().put(key.clone(), value))
        });
        futures_util::future::try_join_all(puts).await?;
    }
    store.close().await;
    Ok(())
}

/// Opens the filled store and loads a replica from it, as a starting server does.
pub(crate) async fn start(path: &Path) -> Result<Started> {
    let before = resident_bytes()?;
    let begun = Instant::now();
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(&Options::new(path))?);
    let open = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let config = Config::default();
    let patience = std::time::Duration::from_secs(60);
    let replica = Replica::start(store.clone(), config, Vec::new());
    let snapshot = replica.not_older_than(store.current_revision().await?, patience).await?;
    let load = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let bytes: usize = snapshot.scan(&KeyRange::all()).map(|entry| entry.value.len()).sum();
    let scan = begun.elapsed().as_secs_f64();
    anyhow::ensure!(bytes == ENTRIES * VALUE_BYTES, "the replica holds {bytes} bytes of values");
    let data = ENTRIES * (VALUE_BYTES + key(0).len());
    let grown = resident_bytes()?.saturating_sub(before);
    let overhead_per_entry = (grown as f64 - data as f64) / ENTRIES as f64;
    replica.shutdown().await;
    Ok(Started { open, load, scan, overhead_per_entry })
}

fn key(n: usize) -> String {
    format!("/registry/configmaps/bench/configmap-{n:06}")
}

fn resident_bytes() -> Result<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
    let kib: usize = line.split_whitespace().nth(1).context("no number")?.parse()?;
    Ok(kib * 1024)
}
