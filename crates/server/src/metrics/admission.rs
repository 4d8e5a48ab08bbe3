use std::{sync::OnceLock, time::Duration};

use prometheus::{Histogram, HistogramVec, IntCounterVec, Registry};

use super::{counters, histograms};

/// The plugins that may change and refuse what is written, and what they ask.
pub struct AdmissionMetrics {
    steps: HistogramVec,
    controllers: HistogramVec,
    webhooks: HistogramVec,
    webhook_requests: IntCounterVec,
    webhook_rejections: IntCounterVec,
    webhooks_passed_over: IntCounterVec,
    condition_errors: IntCounterVec,
    condition_exclusions: IntCounterVec,
    condition_times: HistogramVec,
    validations: PolicyMetrics,
    mutations: PolicyMetrics,
}

/// How often policies were evaluated, and how long that took.
struct PolicyMetrics {
    checks: IntCounterVec,
    times: HistogramVec,
}

/// Who asks, in which step and about which operation: `validate` or `admit`, and `CREATE` and so on.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionStep<'a> {
    /// The webhook, the policy or the plugin.
    pub name: &'a str,
    /// `admit` or `validate`.
    pub step: &'static str,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'static str,
}

/// Upstream's buckets, in seconds.
const PLUGIN_BUCKETS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
const WEBHOOK_BUCKETS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
const CONDITION_BUCKETS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];
const POLICY_BUCKETS: [f64; 5] = [0.000_000_5, 0.001, 0.01, 0.1, 1.0];

const STEP: [&str; 3] = ["type", "operation", "rejected"];
const NAMED: [&str; 4] = ["name", "type", "operation", "rejected"];
const CONDITION: [&str; 4] = ["name", "kind", "type", "operation"];

/// Codes above this are told as this, so that nobody can make as many series as they like.
const MAX_CODE: u16 = 600;

impl PolicyMetrics {
    fn new(of: &Registry, kind: &str, labels: &[&str]) -> Self {
        let name = |what: &str| format!("apiserver_{kind}_admission_policy_{what}");
        Self {
            checks: counters(of, &name("check_total"), "Evaluations of policies.", labels),
            times: histograms(
                of,
                &name("check_duration_seconds"),
                "How long policies take to evaluate.",
                &POLICY_BUCKETS,
                labels,
            ),
        }
    }

    fn observe(&self, labels: &[&str], time: Duration) {
        self.checks.with_label_values(labels).inc();
        self.times.with_label_values(labels).observe(time.as_secs_f64());
    }
}

impl AdmissionMetrics {
    pub(super) fn new(of: &Registry) -> Self {
        let name = |what: &str| format!("apiserver_admission_{what}");
        let count = |what: &str, help: &str, labels: &[&str]| counters(of, &name(what), help, labels);
        let times = |what: &str, help: &str, buckets: &[f64], labels: &[&str]| {
            histograms(of, &name(what), help, buckets, labels)
        };
        let policy = ["policy", "policy_binding", "error_type", "enforcement_action"];
        Self {
            steps: times(
                "step_admission_duration_seconds",
                "How long a step of admission takes.",
                &PLUGIN_BUCKETS,
                &STEP,
            ),
            controllers: times(
                "controller_admission_duration_seconds",
                "How long a plugin takes in a step of admission.",
                &PLUGIN_BUCKETS,
                &NAMED,
            ),
            webhooks: times(
                "webhook_admission_duration_seconds",
                "How long webhooks take to answer.",
                &WEBHOOK_BUCKETS,
                &NAMED,
            ),
            webhook_requests: count(
                "webhook_request_total",
                "Requests to webhooks.",
                &["name", "type", "operation", "code", "rejected"],
            ),
            webhook_rejections: count(
                "webhook_rejection_count",
                "Requests that were refused because of a webhook.",
                &["name", "type", "operation", "error_type", "rejection_code"],
            ),
            webhooks_passed_over: count(
                "webhook_fail_open_count",
                "Webhooks that failed and were passed over.",
                &["name", "type"],
            ),
            condition_errors: count(
                "match_condition_evaluation_errors_total",
                "Match conditions that could not be evaluated.",
                &CONDITION,
            ),
            condition_exclusions: count(
                "match_condition_exclusions_total",
                "Requests that match conditions excluded.",
                &CONDITION,
            ),
            condition_times: times(
                "match_condition_evaluation_seconds",
                "How long match conditions take to evaluate.",
                &CONDITION_BUCKETS,
                &CONDITION,
            ),
            validations: PolicyMetrics::new(of, "validating", &policy),
            mutations: PolicyMetrics::new(of, "mutating", &policy[..3]),
        }
    }

    /// A step of admission is done, with all its plugins; [`AdmissionStep::name`] does not matter.
    pub fn step(&self, of: AdmissionStep<'_>, rejected: bool, time: Duration) {
        let labels = [of.step, of.operation, truth(rejected)];
        self.steps.with_label_values(&labels).observe(time.as_secs_f64());
    }

    /// Where to tell how long a plugin takes. To be kept by who asks it.
    #[must_use]
    pub fn plugin(&self, name: &'static str) -> PluginMetrics {
        PluginMetrics { name, times: self.controllers.clone(), usual: Default::default() }
    }

    /// A webhook answered or failed to. The code is that of its answer.
    pub fn webhook(&self, of: AdmissionStep<'_>, rejected: bool, code: u16, time: Duration) {
        let AdmissionStep { name, step, operation } = of;
        let code = code.min(MAX_CODE).to_string();
        self.webhook_requests.with_label_values(&[name, step, operation, &code, truth(rejected)]).inc();
        let labels = [name, step, operation, truth(rejected)];
        self.webhooks.with_label_values(&labels).observe(time.as_secs_f64());
    }

    /// A request is refused because of a webhook: it said so with this code, or could not be asked, and then the kind of
    /// error is upstream's word.
    pub fn webhook_rejection(&self, of: AdmissionStep<'_>, error: &str, code: u16) {
        let AdmissionStep { name, step, operation } = of;
        let code = code.min(MAX_CODE).to_string();
        self.webhook_rejections.with_label_values(&[name, step, operation, error, &code]).inc();
    }

    /// A webhook failed and was passed over.
    pub fn webhook_passed_over(&self, of: AdmissionStep<'_>) {
        self.webhooks_passed_over.with_label_values(&[of.name, of.step]).inc();
    }

    /// The match conditions of a `webhook` or a `policy` were evaluated.
    pub fn conditions(&self, of: AdmissionStep<'_>, kind: &str, verdict: Conditions, time: Duration) {
        let labels = [of.name, kind, of.step, of.operation];
        self.condition_times.with_label_values(&labels).observe(time.as_secs_f64());
        match verdict {
            Conditions::Met => {}
            Conditions::Excluding => self.condition_exclusions.with_label_values(&labels).inc(),
            Conditions::Failed => self.condition_errors.with_label_values(&labels).inc(),
        }
    }

    /// A ValidatingAdmissionPolicy was evaluated for a binding. The kind of error and what follows are upstream's words.
    pub fn validation(&self, policy: &str, binding: &str, [error, action]: [&str; 2], time: Duration) {
        self.validations.observe(&[policy, binding, error, action], time);
    }

    /// A mutation of a MutatingAdmissionPolicy was evaluated for a binding.
    pub fn mutation(&self, policy: &str, binding: &str, error: &str, time: Duration) {
        self.mutations.observe(&[policy, binding, error], time);
    }
}

/// How long a plugin takes.
pub struct PluginMetrics {
    name: &'static str,
    times: HistogramVec,
    /// Those of requests that were not refused, by step and operation, looked up once: they are counted for every write.
    usual: [[OnceLock<Histogram>; OPERATIONS.len()]; STEPS.len()],
}

const STEPS: [&str; 2] = ["admit", "validate"];
const OPERATIONS: [&str; 4] = ["CONNECT", "CREATE", "DELETE", "UPDATE"];

impl PluginMetrics {
    /// The plugin is done with a request in a step of admission.
    pub fn observe(&self, step: &'static str, operation: &'static str, rejected: bool, time: Duration) {
        let find = || self.times.with_label_values(&[self.name, step, operation, truth(rejected)]);
        let at = |all: &[&str], one: &str| all.iter().position(|known| *known == one);
        match (at(&STEPS, step), at(&OPERATIONS, operation)) {
            (Some(step), Some(operation)) if !rejected => {
                self.usual[step][operation].get_or_init(find).observe(time.as_secs_f64());
            }
            _ => find().observe(time.as_secs_f64()),
        }
    }
}

/// What match conditions say about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conditions {
    /// It is concerned.
    Met,
    /// It is not.
    Excluding,
    /// That cannot be said.
    Failed,
}

fn truth(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}
