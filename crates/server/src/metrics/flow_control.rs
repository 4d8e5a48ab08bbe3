use std::time::Duration;

use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry};

use super::{counters, gauges, histograms};

const FLOW: [&str; 2] = ["priority_level", "flow_schema"];
const BUCKETS: [f64; 13] = [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];

/// Who waited, who ran, who was sent away: `apiserver_flowcontrol_*`.
pub(super) struct FlowControlMetrics {
    rejected: IntCounterVec,
    dispatched: IntCounterVec,
    waiting: IntGaugeVec,
    running: IntGaugeVec,
    seats: IntGaugeVec,
    waits: HistogramVec,
    executions: HistogramVec,
    nominal: IntGaugeVec,
}

impl FlowControlMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            rejected: counters(
                registry,
                "apiserver_flowcontrol_rejected_requests_total",
                "Requests that were sent away.",
                &["priority_level", "flow_schema", "reason"],
            ),
            dispatched: counters(
                registry,
                "apiserver_flowcontrol_dispatched_requests_total",
                "Requests that ran.",
                &FLOW,
            ),
            waiting: gauges(
                registry,
                "apiserver_flowcontrol_current_inqueue_requests",
                "Requests that wait now.",
                &FLOW,
            ),
            running: gauges(
                registry,
                "apiserver_flowcontrol_current_executing_requests",
                "Requests that run now; watches until they have begun.",
                &FLOW,
            ),
            seats: gauges(
                registry,
                "apiserver_flowcontrol_current_executing_seats",
                "Seats that are taken now.",
                &FLOW,
            ),
            waits: histograms(
                registry,
                "apiserver_flowcontrol_request_wait_duration_seconds",
                "How long requests waited.",
                &BUCKETS,
                &["priority_level", "flow_schema", "execute"],
            ),
            executions: histograms(
                registry,
                "apiserver_flowcontrol_request_execution_seconds",
                "How long requests ran; watches until they had begun.",
                &BUCKETS,
                &["priority_level", "flow_schema", "type"],
            ),
            nominal: gauges(
                registry,
                "apiserver_flowcontrol_nominal_limit_seats",
                "The seats that are a priority level's own.",
                &["priority_level"],
            ),
        }
    }

    pub(super) fn flow(&self, level: &str, schema: &str) -> FlowMetrics {
        let labels = [level, schema];
        FlowMetrics {
            labels: labels.map(str::to_owned),
            dispatched: self.dispatched.with_label_values(&labels),
            waiting: self.waiting.with_label_values(&labels),
            running: self.running.with_label_values(&labels),
            seats: self.seats.with_label_values(&labels),
            waits: self.waits.with_label_values(&[level, schema, "true"]),
            regular: self.executions.with_label_values(&[level, schema, "regular"]),
            watch: self.executions.with_label_values(&[level, schema, "watch"]),
            all_waits: self.waits.clone(),
            rejected: self.rejected.clone(),
        }
    }

    pub(super) fn nominal(&self, level: &str, seats: u32) {
        self.nominal.with_label_values(&[level]).set(seats.into());
    }
}

/// Where to count the requests of one FlowSchema in one priority level. To be kept by who decides about them.
#[derive(Clone)]
pub struct FlowMetrics {
    labels: [String; 2],
    dispatched: IntCounter,
    waiting: IntGauge,
    running: IntGauge,
    seats: IntGauge,
    waits: Histogram,
    regular: Histogram,
    watch: Histogram,
    all_waits: HistogramVec,
    rejected: IntCounterVec,
}

impl FlowMetrics {
    /// A request runs, and has so many seats.
    pub fn started(&self, waited: Duration, seats: u32) {
        self.dispatched.inc();
        self.running.inc();
        self.seats.add(seats.into());
        self.waits.observe(waited.as_secs_f64());
    }

    /// It has given the seats back, after so long.
    pub fn finished(&self, seats: u32, is_watch: bool, time: Duration) {
        let times = if is_watch { &self.watch } else { &self.regular };
        times.observe(time.as_secs_f64());
        self.running.dec();
        self.seats.sub(seats.into());
    }

    /// A request runs that needs no seat.
    pub fn exempt(&self) {
        self.dispatched.inc();
    }

    /// One more waits.
    pub fn waits(&self) {
        self.waiting.inc();
    }

    /// It no longer does.
    pub fn waited(&self) {
        self.waiting.dec();
    }

    /// A request was sent away.
    pub fn rejected(&self, reason: &str, waited: Duration) {
        let [level, schema] = &self.labels;
        self.rejected.with_label_values(&[level, schema, reason]).inc();
        self.all_waits.with_label_values(&[level, schema, "false"]).observe(waited.as_secs_f64());
    }
}
