use std::time::Duration;

use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, Registry, exponential_buckets};

use super::{counters, histograms};
use crate::{Decision, authentication::Authenticated};

/// The names of users that are nobody's in particular; all others are told by their kind only.
const KNOWN: [&str; 5] =
    ["admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"];

/// Who was let in, and who was allowed to.
pub(crate) struct AccessMetrics {
    users: IntCounterVec,
    authentications: [(IntCounter, Histogram); 3],
    authorizations: [(IntCounter, Histogram); 3],
    decisions: IntCounterVec,
    impersonations: IntCounterVec,
    impersonation_times: HistogramVec,
}

impl AccessMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let buckets = exponential_buckets(0.001, 2.0, 15).expect("constant buckets are valid");
        // Looked up once: these are counted for every request.
        let results = |(count, time): (IntCounterVec, HistogramVec), results: [&str; 3]| {
            results.map(|result| (count.with_label_values(&[result]), time.with_label_values(&[result])))
        };
        let by_result = |count: (&str, &str), time: (&str, &str)| {
            let count = counters(registry, count.0, count.1, &["result"]);
            (count, histograms(registry, time.0, time.1, &buckets, &["result"]))
        };
        let authentications = by_result(
            ("authentication_attempts", "Requests by whether their credentials were accepted."),
            ("authentication_duration_seconds", "How long it took to find out who makes a request."),
        );
        let authorizations = by_result(
            ("authorization_attempts_total", "Requests by what the authorizers decided."),
            ("authorization_duration_seconds", "How long it took to find out whether a request is allowed."),
        );
        let impersonation = ["mode", "decision"];
        Self {
            users: counters(
                registry,
                "authenticated_user_requests",
                "Requests by the kind of user that makes them.",
                &["username"],
            ),
            authentications: results(authentications, ["success", "failure", "error"]),
            authorizations: results(authorizations, ["allowed", "denied", "no-opinion"]),
            decisions: counters(
                registry,
                "apiserver_authorization_decisions_total",
                "What each authorizer allowed or denied.",
                &["type", "name", "decision"],
            ),
            impersonations: counters(
                registry,
                "apiserver_impersonation_attempts_total",
                "Requests in the name of somebody else, by whether they were allowed to be.",
                &impersonation,
            ),
            impersonation_times: histograms(
                registry,
                "apiserver_impersonation_attempts_duration_seconds",
                "How long it took to find out whether a user may be somebody else.",
                &buckets,
                &impersonation,
            ),
        }
    }

    pub(crate) fn authentication(&self, authenticated: &Authenticated, time: Duration) {
        let index = match authenticated {
            Ok(Some(user)) => {
                self.users.with_label_values(&[kind(&user.name)]).inc();
                0
            }
            Ok(None) => 1,
            Err(_) => 2,
        };
        let (count, times) = &self.authentications[index];
        count.inc();
        times.observe(time.as_secs_f64());
    }

    pub(super) fn decisions(&self, kind: &str, name: &str) -> DecisionMetrics {
        let count = |decision: &str| self.decisions.with_label_values(&[kind, name, decision]);
        DecisionMetrics { allowed: count("allowed"), denied: count("denied") }
    }

    pub(crate) fn authorization(&self, decision: &Decision, time: Duration) {
        let index = match decision {
            Decision::Allow => 0,
            Decision::Deny(_) => 1,
            Decision::NoOpinion(_) => 2,
        };
        let (count, times) = &self.authorizations[index];
        count.inc();
        times.observe(time.as_secs_f64());
    }

    /// Somebody may be somebody else by this verb; `None` if not.
    pub(crate) fn impersonation(&self, constraint: Option<&str>, time: Duration) {
        let labels = match constraint {
            Some("") => ["legacy", "allowed"],
            Some(verb) => [verb.strip_prefix("impersonate:").unwrap_or(verb), "allowed"],
            None => ["", "denied"],
        };
        self.impersonations.with_label_values(&labels).inc();
        self.impersonation_times.with_label_values(&labels).observe(time.as_secs_f64());
    }
}

/// Counts what one authorizer decides. Who has no opinion decides nothing.
#[derive(Clone)]
pub struct DecisionMetrics {
    allowed: IntCounter,
    denied: IntCounter,
}

impl DecisionMetrics {
    pub(crate) fn count(&self, decision: &Decision) {
        match decision {
            Decision::Allow => self.allowed.inc(),
            Decision::Deny(_) => self.denied.inc(),
            Decision::NoOpinion(_) => {}
        }
    }
}

/// The kind of user that a name is of, as upstream has it.
fn kind(name: &str) -> &str {
    match name {
        name if KNOWN.contains(&name) => name,
        name if name.contains('@') => "email_id",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_told_by_their_kind() {
        for (name, expected) in [
            ("kubelet", "kubelet"),
            ("alice@example.com", "email_id"),
            ("alice", "other"),
            ("system:serviceaccount:kube-system:default", "system:serviceaccount:kube-system:default"),
            ("system:serviceaccount:a:default", "other"),
        ] {
            assert_eq!(kind(name), expected);
        }
    }
}
