//! Durable commits: latency of one writer, throughput of many.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use bytes::Bytes;
use concord_store::{Store, Txn};
use hdrhistogram::Histogram;

/// What a number of writers achieved.
pub(crate) struct Measured {
    pub(crate) commits: u64,
    pub(crate) elapsed: Duration,
    /// Microseconds.
    pub(crate) latency: Histogram<u64>,
}

impl Measured {
    pub(crate) fn per_second(&self) -> f64 {
        self.commits as f64 / self.elapsed.as_secs_f64()
    }

    pub(crate) fn micros(&self, quantile: f64) -> u64 {
        self.latency.value_at_quantile(quantile)
    }
}

/// What the disk itself can do: append 4 KiB, make it durable, again.
pub(crate) fn bare_appends(directory: &Path, duration: Duration) -> Result<Measured> {
    let path = directory.join("bare-appends");
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let block = [0x5a_u8; 4096];
    let measured = repeat(duration, || append(&mut file, &block))?;
    std::fs::remove_file(path)?;
    Ok(measured)
}

fn append(file: &mut File, block: &[u8]) -> Result<()> {
    file.write_all(block)?;
    file.sync_data().context("the disk cannot sync")
}

fn repeat(duration: Duration, mut step: impl FnMut() -> Result<()>) -> Result<Measured> {
    let mut latency = Histogram::new(3)?;
    let start = Instant::now();
    while start.elapsed() < duration {
        let begun = Instant::now();
        step()?;
        latency.record(micros(begun))?;
    }
    Ok(Measured { commits: latency.len(), elapsed: start.elapsed(), latency })
}

/// `writers` tasks that each put 1 KiB values as fast as they are answered, over 10,000 keys.
pub(crate) async fn commits(store: Arc<dyn Store>, writers: usize, duration: Duration) -> Result<Measured> {
    let value = Bytes::from(vec![0x5a_u8; 1024]);
    let start = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| tokio::spawn(write_until(store.clone(), writer, value.clone(), start + duration)))
        .collect();
    let mut latency = Histogram::new(3)?;
    for task in tasks {
        latency.add(task.await??)?;
    }
    Ok(Measured { commits: latency.len(), elapsed: start.elapsed(), latency })
}

async fn write_until(
    store: Arc<dyn Store>,
    writer: usize,
    value: Bytes,
    end: Instant,
) -> Result<Histogram<u64>> {
    let mut latency = Histogram::new(3)?;
    let mut n = writer;
    while Instant::now() < end {
        let txn = Txn::new().put(format!("/registry/configmaps/bench/{:05}", n % 10_000), value.clone());
        let begun = Instant::now();
        store.transact(txn).await?;
        latency.record(micros(begun))?;
        n += 257;
    }
    Ok(latency)
}

pub(crate) fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX).max(1)
}
