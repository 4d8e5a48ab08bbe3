use std::time::Duration;

use prometheus::{HistogramVec, IntCounterVec, IntGaugeVec, Registry, exponential_buckets};

use super::{counters, gauges, histograms};

/// What controllers have to do: `workqueue_*`. The names of queues are the controllers'.
pub struct QueueMetrics {
    depth: IntGaugeVec,
    adds: IntCounterVec,
    retries: IntCounterVec,
    waits: HistogramVec,
    work: HistogramVec,
}

const NAME: &[&str] = &["name"];

impl QueueMetrics {
    pub(super) fn new(of: &Registry) -> Self {
        let buckets = exponential_buckets(10e-9, 10.0, 10).expect("constant buckets are valid");
        Self {
            depth: gauges(of, "workqueue_depth", "What waits to be done now.", NAME),
            adds: counters(of, "workqueue_adds_total", "What was put into the queue.", NAME),
            retries: counters(of, "workqueue_retries_total", "What has to be done again.", NAME),
            waits: histograms(
                of,
                "workqueue_queue_duration_seconds",
                "How long it took until something was begun.",
                &buckets,
                NAME,
            ),
            work: histograms(
                of,
                "workqueue_work_duration_seconds",
                "How long it took to do something.",
                &buckets,
                NAME,
            ),
        }
    }

    /// So much waits now.
    pub fn set_depth(&self, queue: &str, depth: usize) {
        self.depth.with_label_values(&[queue]).set(i64::try_from(depth).unwrap_or(i64::MAX));
    }

    /// So much was put into the queue.
    pub fn added(&self, queue: &str, count: usize) {
        self.adds.with_label_values(&[queue]).inc_by(count as u64);
    }

    /// Something was begun that had waited for so long.
    pub fn begun(&self, queue: &str, waited: Duration) {
        self.waits.with_label_values(&[queue]).observe(waited.as_secs_f64());
    }

    /// Something was done in so long; if it was not done well, it is done again.
    pub fn done(&self, queue: &str, took: Duration, again: bool) {
        self.work.with_label_values(&[queue]).observe(took.as_secs_f64());
        if again {
            self.retries.with_label_values(&[queue]).inc();
        }
    }
}
