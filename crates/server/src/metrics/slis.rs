use prometheus::{IntCounterVec, IntGaugeVec, Registry};

use super::{answer, counters, gauges};
use crate::http::Response;

/// What monitoring reads at `/metrics/slis`: how health checks went when somebody asked for them. Upstream keeps them apart so
/// that they can be read more often than all others.
pub(crate) struct Slis {
    registry: Registry,
    last: IntGaugeVec,
    all: IntCounterVec,
}

impl Slis {
    pub(crate) fn new() -> Self {
        let registry = Registry::new();
        Self {
            last: gauges(
                &registry,
                "kubernetes_healthcheck",
                "Whether a health check passed when it was last asked for.",
                &["name", "type"],
            ),
            all: counters(
                &registry,
                "kubernetes_healthchecks_total",
                "Health checks by how they went.",
                &["name", "status", "type"],
            ),
            registry,
        }
    }

    /// A check of an endpoint, such as `readyz`, was made.
    pub(crate) fn observe(&self, check: &str, endpoint: &str, passed: bool) {
        let status = if passed { "success" } else { "error" };
        self.all.with_label_values(&[check, status, endpoint]).inc();
        self.last.with_label_values(&[check, endpoint]).set(i64::from(passed));
    }

    /// The answer to `GET /metrics/slis`.
    pub(crate) fn scrape(&self) -> Response {
        answer(&self.registry)
    }
}
