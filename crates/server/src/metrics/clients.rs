use std::time::Duration;

use prometheus::{HistogramVec, IntCounterVec, Registry};

use super::{counters, histograms};

const TIMES: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
const SIZES: [f64; 11] = [
    64.0,
    256.0,
    512.0,
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
];

/// What this server asks others: `rest_client_*`. Hosts are as many as administrators configured.
pub struct ClientMetrics {
    requests: IntCounterVec,
    times: HistogramVec,
    sent: HistogramVec,
    received: HistogramVec,
}

impl ClientMetrics {
    pub(super) fn new(of: &Registry) -> Self {
        let by_host =
            |name: &str, help: &str, buckets: &[f64]| histograms(of, name, help, buckets, &["verb", "host"]);
        Self {
            requests: counters(
                of,
                "rest_client_requests_total",
                "Requests to other servers.",
                &["code", "method", "host"],
            ),
            times: by_host(
                "rest_client_request_duration_seconds",
                "How long requests to other servers took.",
                &TIMES,
            ),
            sent: by_host("rest_client_request_size_bytes", "How large such requests were.", &SIZES),
            received: by_host("rest_client_response_size_bytes", "How large their answers were.", &SIZES),
        }
    }

    /// A host was asked. `None` for the code, and for the size of the answer, if there was none.
    pub fn asked(&self, method: &str, host: &str, code: Option<u16>, time: Duration) {
        // Upstream's word for no answer.
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        self.requests.with_label_values(&[&*code, method, host]).inc();
        self.times.with_label_values(&[method, host]).observe(time.as_secs_f64());
    }

    /// So many bytes were sent and received.
    pub fn sizes(&self, method: &str, host: &str, sent: usize, received: Option<usize>) {
        self.sent.with_label_values(&[method, host]).observe(sent as f64);
        if let Some(received) = received {
            self.received.with_label_values(&[method, host]).observe(received as f64);
        }
    }
}
