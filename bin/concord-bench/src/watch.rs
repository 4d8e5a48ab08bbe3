//! Watch fan-out: many watchers of one collection, and writes that all of them must see.
//!
//! The writers run in a closed loop: only so many writes may be under way that not all watchers have seen. A server
//! that is asked for more than it can deliver must drop watchers, and then its rate would mean nothing.

mod check;
mod lines;
mod watcher;
mod writer;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use self::{watcher::Seen, writer::Writer};
use crate::{
    client::{Call, Connection},
    drive::Crew,
    progress::Progress,
    scan, stats,
};

/// Without any new event for so long, what is missing is lost.
const STALL: Duration = Duration::from_secs(10);
/// Connections made at the same time.
const CONNECTING: usize = 16;
/// Watchers share this many histograms; one each would be much memory, one for all a contended lock.
const SHARDS: usize = 8;

/// How to fan out.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) watchers: usize,
    /// More than one only with HTTP/2.
    pub(crate) per_connection: usize,
    pub(crate) writes: usize,
    /// Writes not yet seen by all that may be under way.
    pub(crate) window: usize,
    /// Writes per second; as many as the window allows when absent.
    pub(crate) rate: Option<f64>,
    /// Of all writes together.
    pub(crate) time_limit: Duration,
    /// Of one write.
    pub(crate) request_timeout: Duration,
}

/// Whether every watcher saw everything once and in order.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Checks {
    pub(crate) watchers: u64,
    pub(crate) writes: u64,
    pub(crate) lost: u64,
    pub(crate) repeated: u64,
    pub(crate) disordered: u64,
    /// Watches that the server ended.
    pub(crate) closed: u64,
    pub(crate) first_closed: Option<String>,
}

impl Checks {
    /// Nothing lost, nothing twice, everything in order.
    pub(crate) fn good(&self) -> bool {
        self.lost == 0 && self.repeated == 0 && self.disordered == 0 && self.closed == 0
    }
}

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    /// From the first write sent to the last event received.
    pub(crate) elapsed: Duration,
    /// From a write's sending to its event's arrival, microseconds.
    pub(crate) delay: Histogram<u64>,
    pub(crate) checks: Checks,
}

/// What writers and watchers share.
struct Fan {
    epoch: Instant,
    watchers: u64,
    /// Writes begun, of all phases.
    issued: AtomicU64,
    /// Events received by all watchers together.
    delivered: AtomicU64,
    closed: AtomicU64,
    /// What the closed watchers had received.
    closed_received: AtomicU64,
    delays: [Mutex<Histogram<u64>>; SHARDS],
}

impl Fan {
    /// Events due to watchers that are still open and have not arrived.
    fn outstanding(&self) -> u64 {
        let (issued, closed) = (self.issued.load(Relaxed), self.closed.load(Relaxed));
        let excused = (closed * issued).saturating_sub(self.closed_received.load(Relaxed));
        (issued * self.watchers).saturating_sub(self.delivered.load(Relaxed) + excused)
    }
}

/// Open watches, warmed up.
pub(crate) struct FanOut {
    plan: Plan,
    fan: Arc<Fan>,
    seen: Vec<Arc<Mutex<Seen>>>,
    writers: Vec<Writer>,
    /// Ends the watches when dropped.
    watches: JoinSet<()>,
}

impl FanOut {
    /// Opens all watches and lets a few writes through.
    pub(crate) async fn open(crew: &Crew, plan: Plan) -> Result<Self> {
        let workers = crew.assemble().await?;
        let writers: Vec<Writer> = workers.into_iter().enumerate().map(Writer::new).collect();
        let fan = Arc::new(Fan {
            epoch: Instant::now(),
            watchers: plan.watchers as u64,
            issued: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            closed: AtomicU64::new(0),
            closed_received: AtomicU64::new(0),
            delays: std::array::from_fn(|_| Mutex::new(stats::histogram())),
        });
        let mut fan_out = Self { plan, fan, seen: Vec::new(), writers, watches: JoinSet::new() };
        fan_out.watch(crew).await.context("cannot open the watches")?;
        let few = 2 * fan_out.writers.len();
        fan_out.write(few, writer::WARM_UP, &Progress::counting("watch warm-up", few as u64)).await?;
        Ok(fan_out)
    }

    async fn watch(&mut self, crew: &Crew) -> Result<()> {
        let version = newest(&mut crew.server.connect().await?, crew.objects.collection()).await?;
        let path = format!("{}?watch=true&resourceVersion={version}", crew.objects.collection());
        let path: Arc<str> = format!("{path}&timeoutSeconds=3600").into();
        let gate = Arc::new(tokio::sync::Semaphore::new(CONNECTING));
        let mut opening = JoinSet::new();
        for first in (0..self.plan.watchers).step_by(self.plan.per_connection) {
            let count = self.plan.per_connection.min(self.plan.watchers - first);
            let (server, path, gate) = (crew.server.clone(), path.clone(), gate.clone());
            opening.spawn(async move {
                let _turn = gate.acquire().await?;
                let limit = server.timeout();
                let opened = tokio::time::timeout(limit, watcher::open(&server, &path, count)).await;
                opened.with_context(|| format!("no answer to a watch within {limit:?}"))?
            });
        }
        while let Some(opened) = opening.join_next().await {
            for watch in opened?? {
                let seen = Arc::new(Mutex::new(Seen::new(self.writers.len())));
                let delays = self.seen.len() % SHARDS;
                self.watches.spawn(watcher::follow(watch, self.fan.clone(), seen.clone(), delays));
                self.seen.push(seen);
            }
        }
        Ok(())
    }

    /// Writes, and waits until all have seen it.
    pub(crate) async fn measure(mut self, name: &str) -> Result<Outcome> {
        let before: u64 = self.fan.delivered.load(Relaxed);
        let bytes: u64 = self.seen.iter().map(|seen| seen.lock().bytes).sum();
        let begun = Instant::now();
        let progress = Progress::counting(name, self.plan.writes as u64 * self.fan.watchers);
        self.write(self.plan.writes, writer::MEASURED, &progress).await?;
        let last = self.seen.iter().filter_map(|seen| seen.lock().last).max().unwrap_or(begun);
        let mut delay = stats::histogram();
        for shard in &self.fan.delays {
            delay.add(&*shard.lock())?;
        }
        Ok(Outcome {
            events: self.fan.delivered.load(Relaxed) - before,
            bytes: self.seen.iter().map(|seen| seen.lock().bytes).sum::<u64>() - bytes,
            elapsed: last.saturating_duration_since(begun),
            delay,
            checks: self.checks(),
        })
    }

    async fn write(&mut self, count: usize, phase: u8, progress: &Progress) -> Result<()> {
        let begun = Instant::now();
        let before = self.fan.delivered.load(Relaxed);
        let show = || progress.show(self.fan.delivered.load(Relaxed) - before, begun.elapsed());
        let schedule = writer::Schedule::new(count, phase, &self.plan);
        let mut writing = JoinSet::new();
        for writer in self.writers.drain(..) {
            writing.spawn(writer.run(schedule.clone(), self.fan.clone()));
        }
        let mut tick = tokio::time::interval(Duration::from_millis(100));
        let mut written = Vec::new();
        while !writing.is_empty() {
            tokio::select! {
                Some(ended) = writing.join_next() => written.push(ended??),
                _ = tick.tick() => show(),
            }
        }
        ensure!(
            schedule.finished(),
            "not all of the {count} writes went out within {:?}: give fewer --watchers or --watch-writes",
            self.plan.time_limit
        );
        self.settle(show).await;
        self.writers = written;
        Ok(())
    }

    /// Waits for what is still on its way, or until nothing comes any more.
    async fn settle(&self, show: impl Fn()) {
        let (mut delivered, mut since) = (self.fan.delivered.load(Relaxed), Instant::now());
        while self.fan.outstanding() > 0 && since.elapsed() < STALL {
            tokio::time::sleep(Duration::from_millis(5)).await;
            show();
            let now = self.fan.delivered.load(Relaxed);
            if now != delivered {
                (delivered, since) = (now, Instant::now());
            }
        }
    }

    fn checks(&self) -> Checks {
        let issued = self.fan.issued.load(Relaxed);
        let mut checks =
            Checks { watchers: self.fan.watchers, writes: self.plan.writes as u64, ..Checks::default() };
        for seen in &self.seen {
            let mut seen = seen.lock();
            checks.lost += issued.saturating_sub(seen.check.distinct);
            checks.repeated += seen.check.repeated;
            checks.disordered += seen.check.disordered;
            checks.closed += u64::from(seen.closed.is_some());
            checks.first_closed = checks.first_closed.take().or(seen.closed.take());
        }
        checks
    }
}

/// The revision the collection is at.
async fn newest(connection: &mut Connection, collection: &str) -> Result<String> {
    let path = format!("{collection}?limit=1");
    let body = scan::whole(connection.expect(Call::get(&path)).await?.into_body()).await?;
    let list = concord_codec::decode(&body, &concord_codec::Options::default()).context("the list")?.object;
    let version = list.get("metadata").and_then(|metadata| metadata.get("resourceVersion")?.as_str());
    version.map(str::to_owned).context("the list has no resourceVersion")
}
