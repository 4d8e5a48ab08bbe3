use prometheus::{IntCounter, Registry};

use super::{counters, registered};

/// Tokens of service accounts that were accepted, by how they were made.
pub(super) struct TokenMetrics {
    legacy: IntCounter,
    stale: IntCounter,
    valid: IntCounter,
    hits: IntCounter,
    misses: IntCounter,
}

/// How often tokens of service accounts were accepted since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenUses {
    /// Those of Secrets.
    pub legacy: u64,
    /// Those that should have been replaced by now.
    pub stale: u64,
    /// All others.
    pub valid: u64,
    /// Tokens whose signature had been verified before.
    pub hits: u64,
    /// Tokens that nobody knew.
    pub misses: u64,
}

impl TokenMetrics {
    pub(super) fn new(of: &Registry) -> Self {
        let count = |name: &str, help: &str| registered(of, IntCounter::new(name, help));
        let cache = counters(
            of,
            "authentication_token_cache_request_total",
            "Tokens by whether they had been verified before.",
            &["status"],
        );
        Self {
            legacy: count("serviceaccount_legacy_tokens_total", "Uses of tokens in Secrets."),
            stale: count(
                "serviceaccount_stale_tokens_total",
                "Uses of tokens that should have been replaced by now.",
            ),
            valid: count("serviceaccount_valid_tokens_total", "Uses of other tokens of service accounts."),
            hits: cache.with_label_values(&["hit"]),
            misses: cache.with_label_values(&["miss"]),
        }
    }

    pub(super) fn set(&self, uses: TokenUses) {
        for (counter, total) in [
            (&self.legacy, uses.legacy),
            (&self.stale, uses.stale),
            (&self.valid, uses.valid),
            (&self.hits, uses.hits),
            (&self.misses, uses.misses),
        ] {
            counter.inc_by(total.saturating_sub(counter.get()));
        }
    }
}
