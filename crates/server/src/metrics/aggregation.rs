use prometheus::{IntCounterVec, IntGaugeVec, Registry};

use super::{counters, gauges};

/// Whether the servers behind this one can be reached. The names are upstream's; the labels are names of APIServices, of which
/// there are as many as administrators made.
pub struct AggregationMetrics {
    unavailable: IntGaugeVec,
    failures: IntCounterVec,
}

impl AggregationMetrics {
    pub(super) fn new(of: &Registry) -> Self {
        Self {
            unavailable: gauges(
                of,
                "aggregator_unavailable_apiservice",
                "APIServices of other servers: 1 for those that cannot be reached from here.",
                &["name"],
            ),
            failures: counters(
                of,
                "aggregator_unavailable_apiservice_total",
                "How often the server of an APIService was found to be out of reach, by the reason.",
                &["name", "reason"],
            ),
        }
    }

    /// It was found out whether the server of an APIService can be reached from here.
    pub fn set_available(&self, name: &str, is_available: bool) {
        self.unavailable.with_label_values(&[name]).set(i64::from(!is_available));
    }

    /// The server of an APIService can no longer be reached.
    pub fn became_unavailable(&self, name: &str, reason: &str) {
        self.failures.with_label_values(&[name, reason]).inc();
    }

    /// An APIService is gone, or is this server's own now.
    pub fn forget(&self, name: &str) {
        // It may never have been looked at.
        self.unavailable.remove_label_values(&[name]).ok();
    }
}
