//! What monitoring reads at `/metrics`: upstream's names and labels, in Prometheus' text format.
//!
//! A label's value must never be a client's to choose, or every client could fill the server's memory.
//! Names of resources therefore become labels only when a handler says, with [`Served`], that it knows them.

mod access;
mod admission;
mod aggregation;
mod audit;
mod cel;
mod clients;
mod encryption;
mod flow_control;
mod in_flight;
mod migration;
mod parts;
mod peers;
mod process;
mod queues;
mod requests;
mod series;
mod slis;
mod storage;
mod terminations;
mod tokens;

use std::sync::Arc;

use concord_meta::GroupResource;
use http::StatusCode;
use parking_lot::Mutex;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder, core::Collector, exponential_buckets,
};

use crate::{
    Version,
    http::{Response, text, with_body},
};

pub(crate) use access::AccessMetrics;
pub use access::DecisionMetrics;
pub use admission::{AdmissionMetrics, AdmissionStep, Conditions, PluginMetrics};
pub use aggregation::AggregationMetrics;
pub(crate) use audit::AuditMetrics;
pub use cel::CelMetrics;
pub use clients::ClientMetrics;
use encryption::EncryptionMetrics;
use flow_control::FlowControlMetrics;
pub use flow_control::{FlowMetrics, LevelSeats};
pub(crate) use in_flight::InFlight;
pub use migration::MigrationMetrics;
pub use peers::PeerMetrics;
use process::Process;
pub use queues::QueueMetrics;
use requests::Requests;
pub(crate) use requests::{RequestLabels, Times};
pub(crate) use slis::Slis;
use storage::Storage;
pub use storage::StorageLatency;
use terminations::Terminations;
pub use terminations::{Deprecated, Terminated};
use tokens::TokenMetrics;
pub use tokens::TokenUses;

/// A handler's word, among the extensions of its answer, that the resource or path asked for is one it
/// knows: the request is then counted under that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served;

type ScrapeHook = Arc<dyn Fn(&Metrics) + Send + Sync>;

/// The metrics of a server.
pub struct Metrics {
    registry: Registry,
    requests: Requests,
    terminations: Terminations,
    long_running: IntGaugeVec,
    pub(crate) read_only: Arc<InFlight>,
    pub(crate) mutating: Arc<InFlight>,
    in_flight: IntGaugeVec,
    access: AccessMetrics,
    admission: AdmissionMetrics,
    aggregation: AggregationMetrics,
    cel: CelMetrics,
    clients: ClientMetrics,
    queues: QueueMetrics,
    pub(crate) tls_handshake_errors: IntCounter,
    watch_events: IntCounterVec,
    watch_event_sizes: HistogramVec,
    build_info: IntGaugeVec,
    features: IntGaugeVec,
    audit: AuditMetrics,
    encryption: EncryptionMetrics,
    flow_control: FlowControlMetrics,
    migration: MigrationMetrics,
    peers: PeerMetrics,
    storage: Storage,
    tokens: TokenMetrics,
    process: Process,
    hooks: Mutex<Vec<ScrapeHook>>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// Metrics are made from constants, so that nothing can be wrong with them that a test does not show.
fn registered<C: Collector + Clone + 'static>(registry: &Registry, made: prometheus::Result<C>) -> C {
    let collector = made.expect("constant names and labels are valid");
    registry.register(Box::new(collector.clone())).expect("each name is registered once");
    collector
}

fn counters(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    registered(registry, IntCounterVec::new(Opts::new(name, help), labels))
}

fn gauges(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    registered(registry, IntGaugeVec::new(Opts::new(name, help), labels))
}

fn histograms(registry: &Registry, name: &str, help: &str, buckets: &[f64], labels: &[&str]) -> HistogramVec {
    let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
    registered(registry, HistogramVec::new(options, labels))
}

const BUILD_INFO: [&str; 9] = [
    "major",
    "minor",
    "git_version",
    "git_commit",
    "git_tree_state",
    "build_date",
    "go_version",
    "compiler",
    "platform",
];
const LONG_RUNNING: [&str; 7] = ["verb", "group", "version", "resource", "subresource", "scope", "component"];
const RESOURCE: [&str; 3] = ["group", "version", "resource"];

impl Metrics {
    /// All of them, at zero.
    #[must_use]
    pub fn new() -> Self {
        let registry = Registry::new();
        let of = &registry;
        let event_sizes = exponential_buckets(1024.0, 2.0, 8).expect("constant buckets are valid");
        let tls_errors =
            IntCounter::new("apiserver_tls_handshake_errors_total", "TLS handshakes that failed.");
        Self {
            requests: Requests::new(of),
            terminations: Terminations::new(of),
            long_running: gauges(
                of,
                "apiserver_longrunning_requests",
                "Long-running requests that are open now.",
                &LONG_RUNNING,
            ),
            read_only: InFlight::default().into(),
            mutating: InFlight::default().into(),
            in_flight: gauges(
                of,
                "apiserver_current_inflight_requests",
                "The most requests that ran at once within the last second.",
                &["request_kind"],
            ),
            access: AccessMetrics::new(of),
            admission: AdmissionMetrics::new(of),
            aggregation: AggregationMetrics::new(of),
            cel: CelMetrics::new(of),
            clients: ClientMetrics::new(of),
            queues: QueueMetrics::new(of),
            tls_handshake_errors: registered(of, tls_errors),
            watch_events: counters(of, "apiserver_watch_events_total", "Events sent to watches.", &RESOURCE),
            watch_event_sizes: histograms(
                of,
                "apiserver_watch_events_sizes",
                "Sizes of the events sent to watches, in bytes.",
                &event_sizes,
                &RESOURCE,
            ),
            build_info: gauges(
                of,
                "kubernetes_build_info",
                "Always 1; the labels say what the server was built from.",
                &BUILD_INFO,
            ),
            features: gauges(
                of,
                "kubernetes_feature_enabled",
                "Whether a feature is on.",
                &["name", "stage"],
            ),
            audit: AuditMetrics::new(of),
            encryption: EncryptionMetrics::new(of),
            flow_control: FlowControlMetrics::new(of),
            migration: MigrationMetrics::new(of),
            peers: PeerMetrics::new(of),
            storage: Storage::new(of),
            tokens: TokenMetrics::new(of),
            process: Process::new(of),
            hooks: Mutex::default(),
            registry,
        }
    }

    /// Says what the server was built from.
    pub fn set_build_info(&self, version: &Version) {
        let Version { major, minor, git_version, git_commit, git_tree_state, .. } = version;
        let Version { build_date, go_version, compiler, platform, .. } = version;
        let values: [&str; 9] = [
            major,
            minor,
            git_version,
            git_commit,
            git_tree_state,
            build_date,
            go_version,
            compiler,
            platform,
        ];
        self.build_info.with_label_values(&values).set(1);
    }

    /// Says whether a feature is on. `stage` is upstream's word: `ALPHA`, `BETA`, or empty for a stable one.
    pub fn set_feature_enabled(&self, name: &str, stage: &str, enabled: bool) {
        self.features.with_label_values(&[name, stage]).set(i64::from(enabled));
    }

    /// Has `hook` run before each scrape, to set what is cheaper to look up than to keep.
    pub fn before_scrape(&self, hook: impl Fn(&Self) + Send + Sync + 'static) {
        self.hooks.lock().push(Arc::new(hook));
    }

    /// The number of stored objects of a resource: `apiserver_storage_objects` and
    /// `apiserver_resource_objects`.
    pub fn set_objects(&self, resource: &GroupResource, count: i64) {
        self.storage.set_objects(resource, count);
    }

    /// The size of the store, in bytes.
    pub fn set_storage_size(&self, bytes: i64) {
        self.storage.set_size(bytes);
    }

    /// Where to tell how long operations on the store take: `etcd_request_duration_seconds`, whichever store
    /// it is. To be kept by who asks the store.
    #[must_use]
    pub fn storage_latency(&self, operation: &str, resource: &GroupResource) -> StorageLatency {
        self.storage.latency(operation, resource)
    }

    /// Where to count the events sent to watches of a resource. To be kept by the watch.
    #[must_use]
    pub fn watch_events(&self, group: &str, version: &str, resource: &str) -> WatchEvents {
        let labels = [group, version, resource];
        WatchEvents {
            count: self.watch_events.with_label_values(&labels),
            sizes: self.watch_event_sizes.with_label_values(&labels),
        }
    }

    pub(crate) fn audit(&self) -> &AuditMetrics {
        &self.audit
    }

    pub(crate) fn requests(&self) -> &Requests {
        &self.requests
    }

    /// A request was ended to protect the server. One that no handler knows of is counted here.
    pub(crate) fn terminated(&self, labels: &RequestLabels, by: Terminated, code: StatusCode, counted: bool) {
        self.terminations.terminated(&self.requests, labels, by, code);
        if !counted {
            self.requests.drop(labels, code);
        }
    }

    /// Only part of an answer was sent.
    pub(crate) fn aborted(&self, labels: &RequestLabels) {
        self.terminations.aborted(labels);
    }

    pub(crate) fn deprecated(&self, labels: &RequestLabels, deprecated: &Deprecated) {
        self.terminations.deprecated(labels, deprecated);
    }

    pub(crate) fn long_running(&self, labels: &RequestLabels) -> IntGauge {
        self.long_running.with_label_values(&labels.values())
    }

    pub(crate) fn access(&self) -> &AccessMetrics {
        &self.access
    }

    /// The answer to `GET /metrics`.
    pub(crate) fn scrape(&self) -> Response {
        // A copy, so that no lock is held while others run.
        let hooks = self.hooks.lock().clone();
        hooks.iter().for_each(|hook| hook(self));
        self.process.update();
        for (kind, in_flight) in [("readOnly", &self.read_only), ("mutating", &self.mutating)] {
            self.in_flight.with_label_values(&[kind]).set(in_flight.peak());
        }
        answer(&self.registry)
    }
}

fn answer(registry: &Registry) -> Response {
    match TextEncoder::new().encode_to_string(&registry.gather()) {
        Ok(body) => with_body(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", body.into()),
        Err(error) => {
            tracing::error!(%error, "The metrics could not be encoded.");
            text(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be encoded\n")
        }
    }
}

/// Counts the events sent to watches of one resource.
#[derive(Clone)]
pub struct WatchEvents {
    count: IntCounter,
    sizes: Histogram,
}

impl WatchEvents {
    /// One more event, of this many bytes.
    pub fn sent(&self, bytes: usize) {
        self.count.inc();
        self.sizes.observe(bytes as f64);
    }
}

#[cfg(test)]
mod tests;
