use prometheus::{IntCounter, IntCounterVec, IntGaugeVec, Registry};

use super::{RESOURCE, counters, gauges, registered};

/// What is sent to other servers of the fleet, and what is known about them. The names are upstream's, but for the last two.
pub struct PeerMetrics {
    rerouted: IntCounterVec,
    proxy_errors: IntCounterVec,
    sync_errors: IntCounterVec,
    aggregated: IntCounter,
    hits: IntCounter,
    misses: IntCounter,
    nopeer: IntCounter,
    peers: IntGaugeVec,
    failovers: IntCounter,
}

impl PeerMetrics {
    pub(super) fn new(of: &Registry) -> Self {
        let count = |name: &str, help: &str| registered(of, IntCounter::new(name, help));
        let with = |label| [&[label][..], &RESOURCE].concat();
        Self {
            rerouted: counters(
                of,
                "apiserver_rerouted_request_total",
                "Requests that were sent to other servers; without a resource those for discovery.",
                &with("code"),
            ),
            proxy_errors: counters(
                of,
                "apiserver_peer_proxy_errors_total",
                "Requests that could not be sent to other servers.",
                &with("type"),
            ),
            sync_errors: counters(
                of,
                "apiserver_peer_discovery_sync_errors_total",
                "Failures to find out what other servers serve.",
                &["type"],
            ),
            aggregated: count(
                "aggregator_discovery_aggregation_count_total",
                "How often the aggregated discovery document of this server was made.",
            ),
            hits: count(
                "aggregator_discovery_peer_aggregated_cache_hits_total",
                "Answers with the merged discovery document as it was.",
            ),
            misses: count(
                "aggregator_discovery_peer_aggregated_cache_misses_total",
                "How often the merged discovery document was made.",
            ),
            nopeer: count(
                "aggregator_discovery_nopeer_requests_total",
                "Requests for discovery of this server alone.",
            ),
            peers: gauges(
                of,
                "concord_peers",
                "Other servers, by what is known about them: fresh, lkg (what they said last), unknown.",
                &["state"],
            ),
            failovers: count(
                "concord_peer_failovers_total",
                "Requests that were sent to another server because the first could not be reached.",
            ),
        }
    }

    /// A request was sent to another server and answered with this code. The resource is empty for discovery.
    pub fn rerouted(&self, code: u16, [group, version, resource]: [&str; 3]) {
        self.rerouted.with_label_values(&[&code.to_string(), group, version, resource]).inc();
    }

    /// A request could not be sent: `endpoint_resolution` or `proxy_transport`, upstream's words; or nobody waited any more for
    /// its answer: `cancelled`.
    pub fn proxy_error(&self, kind: &str, [group, version, resource]: [&str; 3]) {
        self.proxy_errors.with_label_values(&[kind, group, version, resource]).inc();
    }

    /// How many requests for a resource had that happen to them.
    pub fn proxy_errors(&self, kind: &str, [group, version, resource]: [&str; 3]) -> u64 {
        self.proxy_errors.with_label_values(&[kind, group, version, resource]).get()
    }

    /// What another server serves could not be found out: `hostport_resolution` or `fetch_discovery`.
    pub fn sync_error(&self, kind: &str) {
        self.sync_errors.with_label_values(&[kind]).inc();
    }

    /// The aggregated document of this server was made.
    pub fn aggregated(&self) {
        self.aggregated.inc();
    }

    /// How often it was made.
    pub fn aggregations(&self) -> u64 {
        self.aggregated.get()
    }

    /// The merged document was answered, and was there already or not.
    pub fn merged(&self, hit: bool) {
        if hit { &self.hits } else { &self.misses }.inc();
    }

    /// Somebody asked for this server alone.
    pub fn nopeer(&self) {
        self.nopeer.inc();
    }

    /// How many servers there are in which state.
    pub fn set_peers<const N: usize>(&self, states: [(&str, usize); N]) {
        for (state, count) in states {
            self.peers.with_label_values(&[state]).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// A request went to another server than the first that was chosen.
    pub fn failover(&self) {
        self.failovers.inc();
    }
}
