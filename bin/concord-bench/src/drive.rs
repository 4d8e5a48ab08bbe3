//! Repeats one operation from many workers at once and times it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use rand::{SeedableRng, rngs::StdRng};
use tokio::task::JoinSet;

use crate::{
    client::{Connection, Refusal, Server},
    objects::Objects,
    operations::{Operation, Worker},
    progress::Progress,
    scan::Reading,
    stats,
};

/// A server that fails this often is not worth measuring further.
const MAX_FAILURES: u64 = 100;

/// When enough is done.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    /// Turns 0 to this, each taken by whichever worker is free; within a time.
    Turns(usize, Duration),
    /// Until the time is over; each worker has objects of its own, so that no write meets another.
    Time(Duration),
}

/// Who does it.
#[derive(Clone)]
pub(crate) struct Crew {
    pub(crate) server: Server,
    pub(crate) workers: usize,
    /// At most as many as workers.
    pub(crate) connections: usize,
    pub(crate) objects: Arc<Objects>,
    pub(crate) reading: Reading,
}

/// What came of it.
pub(crate) struct Outcome {
    /// Microseconds of each success.
    pub(crate) latency: Histogram<u64>,
    pub(crate) bytes: u64,
    pub(crate) failures: u64,
    pub(crate) first_failure: Option<String>,
    pub(crate) elapsed: Duration,
}

/// What the workers share.
struct Shared {
    operation: Operation,
    bound: Bound,
    begun: Instant,
    workers: usize,
    next: AtomicUsize,
    done: AtomicU64,
    failures: AtomicU64,
    first_failure: Mutex<Option<String>>,
    stopped: AtomicBool,
}

impl Crew {
    /// One worker per entry, on connections of their own or shared.
    pub(crate) async fn assemble(&self) -> Result<Vec<Worker>> {
        let mut workers: Vec<Worker> = Vec::with_capacity(self.workers);
        for index in 0..self.workers {
            let shared = workers.get(index % self.connections).and_then(|first| first.connection.share());
            let connection = match shared {
                Some(connection) if index >= self.connections => connection,
                _ => self.server.connect().await?,
            };
            workers.push(self.worker(index, connection));
        }
        Ok(workers)
    }

    fn worker(&self, index: usize, connection: Connection) -> Worker {
        let random = StdRng::seed_from_u64(index as u64);
        Worker { connection, objects: self.objects.clone(), random, reading: self.reading }
    }

    /// Repeats an operation on new connections until the bound is reached.
    pub(crate) async fn run(
        &self,
        operation: Operation,
        bound: Bound,
        progress: &Progress,
    ) -> Result<Outcome> {
        self.drive(self.assemble().await?, operation, bound, progress).await
    }

    /// Repeats an operation until the bound is reached.
    ///
    /// Dropping the future ends all its tasks.
    pub(crate) async fn drive(
        &self,
        workers: Vec<Worker>,
        operation: Operation,
        bound: Bound,
        progress: &Progress,
    ) -> Result<Outcome> {
        let shared = Arc::new(Shared::new(operation, bound, self.workers));
        let mut tasks = JoinSet::new();
        for (index, worker) in workers.into_iter().enumerate() {
            tasks.spawn(work(worker, index, shared.clone(), self.server.clone()));
        }
        let (mut latency, mut bytes) = (stats::histogram(), 0);
        let mut tick = tokio::time::interval(Duration::from_millis(100));
        while !tasks.is_empty() {
            tokio::select! {
                Some(ended) = tasks.join_next() => {
                    let (times, received) = ended?;
                    latency.add(times)?;
                    bytes += received;
                }
                _ = tick.tick() => progress.show(shared.done.load(Relaxed), shared.begun.elapsed()),
            }
        }
        let failures = shared.failures.load(Relaxed);
        let first_failure = shared.first_failure.lock().take();
        shared.check(failures)?;
        Ok(Outcome { latency, bytes, failures, first_failure, elapsed: shared.begun.elapsed() })
    }
}

async fn work(
    mut worker: Worker,
    index: usize,
    shared: Arc<Shared>,
    server: Server,
) -> (Histogram<u64>, u64) {
    let (mut latency, mut bytes) = (stats::histogram(), 0);
    let mut round = 0;
    while let Some(turn) = shared.turn(index, round, worker.objects.count()) {
        round += 1;
        let begun = Instant::now();
        let done = tokio::time::timeout(server.timeout(), worker.perform(&shared.operation, turn)).await;
        match done.unwrap_or_else(|_| Err(anyhow::anyhow!("no answer within {:?}", server.timeout()))) {
            Ok(received) => {
                latency.saturating_record(stats::micros(begun.elapsed()));
                bytes += received;
                shared.done.fetch_add(1, Relaxed);
            }
            Err(failure) => {
                let refused = failure.downcast_ref::<Refusal>().is_some();
                shared.failed(&failure);
                if !refused && !reconnect(&mut worker, &server, &shared).await {
                    break;
                }
            }
        }
    }
    (latency, bytes)
}

/// What failed below HTTP has left the connection in an unknown state.
async fn reconnect(worker: &mut Worker, server: &Server, shared: &Shared) -> bool {
    match server.connect().await {
        Ok(connection) => {
            worker.connection = connection;
            true
        }
        Err(failure) => {
            shared.failed(&failure);
            shared.stopped.store(true, Relaxed);
            false
        }
    }
}

impl Shared {
    fn new(operation: Operation, bound: Bound, workers: usize) -> Self {
        Self {
            operation,
            bound,
            begun: Instant::now(),
            workers,
            next: AtomicUsize::new(0),
            done: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            first_failure: Mutex::new(None),
            stopped: AtomicBool::new(false),
        }
    }

    /// The next turn of a worker, if there is one.
    fn turn(&self, worker: usize, round: usize, objects: usize) -> Option<usize> {
        if self.stopped.load(Relaxed) {
            return None;
        }
        match self.bound {
            Bound::Turns(turns, limit) => {
                let turn = self.next.fetch_add(1, Relaxed);
                (turn < turns && self.begun.elapsed() < limit).then_some(turn)
            }
            Bound::Time(limit) => {
                (self.begun.elapsed() < limit).then(|| own_turn(worker, self.workers, round, objects))
            }
        }
    }

    fn failed(&self, failure: &anyhow::Error) {
        self.first_failure.lock().get_or_insert_with(|| format!("{failure:#}"));
        if self.failures.fetch_add(1, Relaxed) + 1 >= MAX_FAILURES {
            self.stopped.store(true, Relaxed);
        }
    }

    /// Whether it ended the way it should.
    fn check(&self, failures: u64) -> Result<()> {
        if let Bound::Turns(turns, limit) = self.bound
            && failures == 0
        {
            let done = self.done.load(Relaxed);
            ensure!(
                done == turns as u64,
                "only {done} of {turns} done within {limit:?}: give fewer --objects or a longer --time-limit"
            );
        }
        Ok(())
    }
}

/// Of `objects`, worker `w` of `n` has w, w + n, w + 2 n and so on, and goes round among them. The part of the
/// turn above the number of objects is the lap, so that each write differs from the one before.
fn own_turn(worker: usize, workers: usize, round: usize, objects: usize) -> usize {
    let own = objects.saturating_sub(worker).div_ceil(workers).max(1);
    let (lap, place) = (round / own, round % own);
    lap * objects + (worker + place * workers) % objects
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn workers_share_all_objects_out_and_never_meet() {
        for (workers, objects) in [(1, 1), (3, 10), (16, 16), (16, 5000)] {
            let mut seen = BTreeSet::new();
            for worker in 0..workers {
                let own: BTreeSet<_> = (0..2 * objects)
                    .map(|round| own_turn(worker, workers, round, objects) % objects)
                    .collect();
                assert!(own.iter().all(|object| seen.insert(*object)), "{workers} on {objects}: shared");
            }
            assert_eq!(seen.len(), objects, "{workers} workers do not reach all of {objects}");
        }
    }

    #[test]
    fn no_turn_comes_twice() {
        let turns: BTreeSet<_> = (0..100).map(|round| own_turn(1, 3, round, 10)).collect();
        assert_eq!(turns.len(), 100);
    }
}
