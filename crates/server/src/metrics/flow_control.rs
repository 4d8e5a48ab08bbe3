use std::time::Duration;

use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry};

use super::{counters, gauges, histograms};

const FLOW: [&str; 2] = ["priority_level", "flow_schema"];
const LEVEL: [&str; 1] = ["priority_level"];
const SEATS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0];
const LENGTHS: [f64; 8] = [0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];
const BUCKETS: [f64; 13] = [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];

/// Who waited, who ran, who was sent away: `apiserver_flowcontrol_*`.
pub(super) struct FlowControlMetrics {
    rejected: IntCounterVec,
    dispatched: IntCounterVec,
    waiting: IntGaugeVec,
    running: IntGaugeVec,
    seats: IntGaugeVec,
    waiting_seats: IntGaugeVec,
    waits: HistogramVec,
    executions: HistogramVec,
    estimates: HistogramVec,
    queue_lengths: HistogramVec,
    no_room: IntCounterVec,
    levels: LevelGauges,
}

/// What priority levels have, by name.
struct LevelGauges {
    nominal: IntGaugeVec,
    lower: IntGaugeVec,
    upper: IntGaugeVec,
    current: IntGaugeVec,
}

/// How many seats a priority level has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelSeats {
    /// Those that are its own.
    pub nominal: u32,
    /// Those of them that nobody else gets.
    pub lower: u32,
    /// The most it can have, with those it borrows.
    pub upper: u32,
}

impl LevelGauges {
    fn new(registry: &Registry) -> Self {
        let gauge = |name: &str, help: &str| {
            gauges(registry, &format!("apiserver_flowcontrol_{name}_limit_seats"), help, &LEVEL)
        };
        Self {
            nominal: gauge("nominal", "The seats that are a priority level's own."),
            lower: gauge("lower", "The seats of a priority level that nobody else gets."),
            upper: gauge("upper", "The seats that a priority level can have at most, with those it borrows."),
            current: gauge("current", "The seats that a priority level could have now."),
        }
    }
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
            waiting_seats: gauges(
                registry,
                "apiserver_flowcontrol_current_inqueue_seats",
                "Seats that are waited for now.",
                &FLOW,
            ),
            estimates: histograms(
                registry,
                "apiserver_flowcontrol_work_estimated_seats",
                "How many seats requests take.",
                &SEATS,
                &FLOW,
            ),
            queue_lengths: histograms(
                registry,
                "apiserver_flowcontrol_request_queue_length_after_enqueue",
                "How long the queue of a request was that had to wait, with itself.",
                &LENGTHS,
                &FLOW,
            ),
            no_room: counters(
                registry,
                "apiserver_flowcontrol_request_dispatch_no_accommodation_total",
                "Requests that could not run when they came, since there were too few seats.",
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
            levels: LevelGauges::new(registry),
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
            waiting_seats: self.waiting_seats.with_label_values(&labels),
            estimates: self.estimates.with_label_values(&labels),
            queue_lengths: self.queue_lengths.with_label_values(&labels),
            no_room: self.no_room.with_label_values(&labels),
            waits: self.waits.with_label_values(&[level, schema, "true"]),
            regular: self.executions.with_label_values(&[level, schema, "regular"]),
            watch: self.executions.with_label_values(&[level, schema, "watch"]),
            all_waits: self.waits.clone(),
            rejected: self.rejected.clone(),
        }
    }

    pub(super) fn set_seats(&self, level: &str, seats: LevelSeats) {
        let LevelGauges { nominal, lower, upper, .. } = &self.levels;
        for (gauge, seats) in [(nominal, seats.nominal), (lower, seats.lower), (upper, seats.upper)] {
            gauge.with_label_values(&[level]).set(seats.into());
        }
    }

    pub(super) fn set_current(&self, level: &str, seats: u32) {
        self.levels.current.with_label_values(&[level]).set(seats.into());
    }

    pub(super) fn forget(&self, level: &str) {
        let LevelGauges { nominal, lower, upper, current } = &self.levels;
        for gauge in [nominal, lower, upper, current] {
            // It may never have been set.
            gauge.remove_label_values(&[level]).ok();
        }
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
    waiting_seats: IntGauge,
    estimates: Histogram,
    queue_lengths: Histogram,
    no_room: IntCounter,
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

    /// A request came that takes so many seats.
    pub fn estimated(&self, seats: u32) {
        self.estimates.observe(seats.into());
    }

    /// One more waits for so many seats, in a queue of so many.
    pub fn waits(&self, seats: u32, queue: usize) {
        self.waiting.inc();
        self.waiting_seats.add(seats.into());
        self.no_room.inc();
        self.queue_lengths.observe(queue as f64);
    }

    /// It no longer does.
    pub fn waited(&self, seats: u32) {
        self.waiting.dec();
        self.waiting_seats.sub(seats.into());
    }

    /// A request was sent away.
    pub fn rejected(&self, reason: &str, waited: Duration) {
        let [level, schema] = &self.labels;
        self.rejected.with_label_values(&[level, schema, reason]).inc();
        self.all_waits.with_label_values(&[level, schema, "false"]).observe(waited.as_secs_f64());
    }
}
