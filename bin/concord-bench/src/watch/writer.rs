//! The writes that watchers see.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use super::{Fan, Plan, check::Stamp};
use crate::operations::Worker;

/// Events that are only to warm up.
pub(super) const WARM_UP: u8 = 0;
/// Events whose delay counts.
pub(super) const MEASURED: u8 = 1;

/// How long to wait before looking again whether watchers have caught up.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Which writes are to be made, and when.
#[derive(Clone)]
pub(super) struct Schedule {
    next: Arc<AtomicUsize>,
    count: usize,
    phase: u8,
    window: u64,
    interval: Duration,
    begun: Instant,
    end: Instant,
    request_timeout: Duration,
}

impl Schedule {
    pub(super) fn new(count: usize, phase: u8, plan: &Plan) -> Self {
        let interval = plan.rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(1.0 / rate));
        let begun = Instant::now();
        Self {
            next: Arc::new(AtomicUsize::new(0)),
            count,
            phase,
            window: plan.window as u64,
            interval,
            begun,
            end: begun + plan.time_limit,
            request_timeout: plan.request_timeout,
        }
    }

    /// Whether every write was taken up.
    pub(super) fn finished(&self) -> bool {
        self.next.load(Relaxed) >= self.count
    }

    /// Waits for the moment of the next write; false when there is none, or no time for it.
    async fn turn(&self, fan: &Fan) -> bool {
        while fan.outstanding() > self.window * fan.watchers {
            if Instant::now() >= self.end {
                return false;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        if Instant::now() >= self.end {
            return false;
        }
        let turn = self.next.fetch_add(1, Relaxed);
        if turn >= self.count {
            return false;
        }
        let due = self.begun + self.interval.saturating_mul(u32::try_from(turn).unwrap_or(u32::MAX));
        tokio::time::sleep_until(due.into()).await;
        true
    }
}

/// One of those who write, each on objects of its own.
pub(super) struct Writer {
    index: usize,
    worker: Worker,
    sequence: u64,
}

impl Writer {
    pub(super) fn new((index, worker): (usize, Worker)) -> Self {
        Self { index, worker, sequence: 0 }
    }

    /// Writes until the schedule is done. Whether a failed write is seen cannot be known, so the first failure
    /// ends the measurement.
    pub(super) async fn run(mut self, schedule: Schedule, fan: Arc<Fan>) -> Result<Self> {
        while schedule.turn(&fan).await {
            fan.issued.fetch_add(1, Relaxed);
            let nanos = u64::try_from(fan.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let (phase, sequence) = (schedule.phase, self.sequence);
            let stamp = Stamp { phase, writer: self.index, sequence, nanos };
            self.sequence += 1;
            // One object per writer: events of one object must be in order too.
            let text = stamp.text();
            let write = tokio::time::timeout(schedule.request_timeout, self.worker.patch(self.index, &text));
            let written = write.await.map_err(anyhow::Error::from).and_then(|written| written);
            written.context("a write that watchers wait for")?;
        }
        Ok(self)
    }
}
