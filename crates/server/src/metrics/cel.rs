use std::time::Duration;

use prometheus::{DEFAULT_BUCKETS, Histogram, HistogramOpts, Registry};

use super::registered;

/// How long the rules of custom resources take: `apiserver_cel_*`.
pub struct CelMetrics {
    compilation: Histogram,
    evaluation: Histogram,
}

impl CelMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let times = |name: &str, help: &str| {
            let options = HistogramOpts::new(name, help).buckets(DEFAULT_BUCKETS.to_vec());
            registered(registry, Histogram::with_opts(options))
        };
        Self {
            compilation: times(
                "apiserver_cel_compilation_duration_seconds",
                "How long it took to compile CEL expressions.",
            ),
            evaluation: times(
                "apiserver_cel_evaluation_duration_seconds",
                "How long it took to evaluate CEL expressions.",
            ),
        }
    }

    /// Expressions were compiled.
    pub fn compiled(&self, time: Duration) {
        self.compilation.observe(time.as_secs_f64());
    }

    /// Expressions were evaluated.
    pub fn evaluated(&self, time: Duration) {
        self.evaluation.observe(time.as_secs_f64());
    }
}
