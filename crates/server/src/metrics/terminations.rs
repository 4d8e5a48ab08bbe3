use http::StatusCode;
use prometheus::{IntCounterVec, IntGaugeVec, Registry};

use super::{RequestLabels, counters, gauges, requests::Requests};

/// A filter's or handler's word, among the extensions of its answer, that it ended the request to protect the server. It is
/// upstream's name of the part that did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminated(pub &'static str);

impl Terminated {
    /// A filter of the chain did it.
    pub(crate) const BY_SERVER: Self = Self("apiserver");
}

/// A handler's word, among the extensions of its answer, that what was asked for is deprecated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deprecated {
    /// The release that no longer has it, such as `1.25`; empty if none is known.
    pub removed_release: String,
}

/// Requests that did not end well, and those that should not have been made.
pub(super) struct Terminations {
    terminated: IntCounterVec,
    aborted: IntCounterVec,
    deprecated: IntGaugeVec,
}

impl Terminations {
    pub(super) fn new(registry: &Registry) -> Self {
        let labels = ["verb", "group", "version", "resource", "subresource", "scope"];
        Self {
            terminated: counters(
                registry,
                "apiserver_request_terminations_total",
                "Requests that were ended to protect the server.",
                &[&labels[..], &["component", "code"]].concat(),
            ),
            aborted: counters(
                registry,
                "apiserver_request_aborts_total",
                "Requests whose answers broke off, for an error or because they were not read in time.",
                &labels,
            ),
            deprecated: gauges(
                registry,
                "apiserver_requested_deprecated_apis",
                "Always 1; the labels say which deprecated APIs have been requested.",
                &["group", "version", "resource", "subresource", "removed_release"],
            ),
        }
    }

    pub(super) fn terminated(
        &self,
        requests: &Requests,
        labels: &RequestLabels,
        Terminated(component): Terminated,
        code: StatusCode,
    ) {
        let values = [&requests.bounded(labels)[..], &[component, code.as_str()]].concat();
        self.terminated.with_label_values(&values).inc();
    }

    /// The answer was that of a handler, so that what it is about may be named.
    pub(super) fn aborted(&self, labels: &RequestLabels) {
        self.aborted.with_label_values(&labels.values()[..6]).inc();
    }

    pub(super) fn deprecated(&self, labels: &RequestLabels, deprecated: &Deprecated) {
        let [_, group, version, resource, subresource, ..] = labels.values();
        let values = [group, version, resource, subresource, &deprecated.removed_release];
        self.deprecated.with_label_values(&values).set(1);
    }
}
