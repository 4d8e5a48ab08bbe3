use concord_audit::Level;
use prometheus::{IntCounter, IntCounterVec, Registry};

use super::{counters, registered};

/// What is written down about requests, and what could not be.
pub(crate) struct AuditMetrics {
    events: IntCounter,
    errors: IntCounterVec,
    levels: IntCounterVec,
}

impl AuditMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let counter = |name, help| registered(registry, IntCounter::new(name, help));
        // Always 0: no request is refused because of the log.
        counter(
            "apiserver_audit_requests_rejected_total",
            "Requests refused because they could not be audited.",
        );
        Self {
            events: counter("apiserver_audit_event_total", "Audit events that were made."),
            errors: counters(
                registry,
                "apiserver_audit_error_total",
                "Audit events that could not be written.",
                &["plugin"],
            ),
            levels: counters(
                registry,
                "apiserver_audit_level_total",
                "Requests by how much of them the audit policy wants.",
                &["level"],
            ),
        }
    }

    pub(crate) fn event(&self) {
        self.events.inc();
    }

    pub(crate) fn level(&self, level: Level) {
        self.levels.with_label_values(&[level.as_str()]).inc();
    }

    /// `total` events have been lost so far.
    pub(super) fn lost(&self, plugin: &str, total: u64) {
        let errors = self.errors.with_label_values(&[plugin]);
        errors.inc_by(total.saturating_sub(errors.get()));
    }
}
