//! Group commit: one thread owns the engine, takes what is waiting, commits it as one transaction with
//! one sync, and answers everyone. The same for all engines.

use std::{
    collections::{HashMap, VecDeque},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use tokio::{
    runtime::Runtime,
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use crate::engine::{Engine, Row};

const MAX_BATCH: usize = 512;
/// Superseded rows are deleted so many at a time, each time between two batches.
const COMPACT_CHUNK: usize = 500;

struct Request {
    key: Vec<u8>,
    value: Vec<u8>,
    answer: oneshot::Sender<Result<u64, String>>,
}

/// A running writer thread.
pub struct Writer {
    requests: mpsc::Sender<Request>,
    thread: JoinHandle<Box<dyn Engine>>,
}

/// The writer's end of the requests.
#[derive(Clone)]
pub struct Handle(mpsc::Sender<Request>);

impl Writer {
    /// Starts with the rows that are in the engine already.
    pub fn start(mut engine: Box<dyn Engine>, compact: bool) -> Result<Self> {
        let mut log = Log { compact, ..Log::default() };
        engine.scan(&mut |row| log.note(row.id, row.key))?;
        log.superseded.clear();
        let (requests, queue) = mpsc::channel(1024);
        let thread = thread::spawn(move || log.run(engine, queue));
        Ok(Self { requests, thread })
    }

    pub fn handle(&self) -> Handle {
        Handle(self.requests.clone())
    }

    /// Ends the thread once nobody holds a handle, and gives the engine back.
    pub fn stop(self) -> Result<Box<dyn Engine>> {
        drop(self.requests);
        self.thread.join().map_err(|_| anyhow!("the writer panicked"))
    }
}

impl Handle {
    /// Puts a key and waits until that is durable.
    pub async fn put(&self, key: Vec<u8>, value: Vec<u8>) -> Result<u64> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Request { key, value, answer }).await.map_err(|_| anyhow!("the writer is gone"))?;
        answered.await?.map_err(|reason| anyhow!(reason))
    }
}

#[derive(Default)]
struct Log {
    last: u64,
    newest: HashMap<Vec<u8>, u64>,
    superseded: VecDeque<u64>,
    compact: bool,
}

impl Log {
    fn note(&mut self, id: u64, key: Vec<u8>) {
        self.last = id;
        self.superseded.extend(self.newest.insert(key, id));
    }

    fn run(mut self, mut engine: Box<dyn Engine>, mut queue: mpsc::Receiver<Request>) -> Box<dyn Engine> {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while queue.blocking_recv_many(&mut batch, MAX_BATCH) > 0 {
            self.commit(&mut *engine, &mut batch);
            if self.compact && self.superseded.len() >= COMPACT_CHUNK {
                let chunk: Vec<u64> = self.superseded.drain(..COMPACT_CHUNK).collect();
                engine.delete(&chunk).expect("no faults are injected while compaction is measured");
            }
        }
        engine
    }

    fn commit(&mut self, engine: &mut dyn Engine, batch: &mut Vec<Request>) {
        let mut answers = Vec::with_capacity(batch.len());
        let mut rows = Vec::with_capacity(batch.len());
        for (id, Request { key, value, answer }) in (self.last + 1..).zip(batch.drain(..)) {
            rows.push(Row { id, revision: id, kind: 1, key, value });
            answers.push((id, answer));
        }
        let result = engine.append(&rows).map_err(|error| format!("{error:#}"));
        if result.is_ok() {
            for row in rows {
                self.note(row.id, row.key);
            }
        }
        for (id, answer) in answers {
            // A client that went away needs no answer.
            answer.send(result.clone().map(|()| id)).ok();
        }
    }
}

/// What a load of concurrent clients got.
pub struct Load {
    pub rate: f64,
    /// Microseconds, ascending.
    pub latencies: Vec<f64>,
}

impl Load {
    pub fn quantile(&self, q: f64) -> f64 {
        let at = (self.latencies.len() as f64 * q) as usize;
        self.latencies.get(at.min(self.latencies.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    }
}

/// `clients` tasks put `key(client, n)` one after another for `time`.
pub fn load(
    runtime: &Runtime,
    handle: &Handle,
    clients: usize,
    time: Duration,
    key: fn(usize, u64) -> String,
) -> Result<Load> {
    let start = Instant::now();
    let mut latencies = runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for client in 0..clients {
            let handle = handle.clone();
            tasks.spawn(async move {
                let mut latencies = Vec::new();
                for n in 0.. {
                    let before = Instant::now();
                    if before - start > time {
                        break;
                    }
                    handle.put(key(client, n).into_bytes(), value(client as u64 ^ (n << 16))).await?;
                    latencies.push(before.elapsed().as_secs_f64() * 1e6);
                }
                anyhow::Ok(latencies)
            });
        }
        let mut all = Vec::new();
        while let Some(done) = tasks.join_next().await {
            all.extend(done??);
        }
        anyhow::Ok(all)
    })?;
    let rate = latencies.len() as f64 / start.elapsed().as_secs_f64();
    latencies.sort_by(f64::total_cmp);
    Ok(Load { rate, latencies })
}

/// 1 KiB that does not compress.
pub fn value(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(1024);
    while bytes.len() < 1024 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}
