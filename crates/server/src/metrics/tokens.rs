use prometheus::{IntCounter, Registry};

use super::registered;

/// Tokens of service accounts that were accepted, by how they were made.
pub(super) struct TokenMetrics {
    legacy: IntCounter,
    stale: IntCounter,
    valid: IntCounter,
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
}

impl TokenMetrics {
    pub(super) fn new(of: &Registry) -> Self {
        let count = |name: &str, help: &str| registered(of, IntCounter::new(name, help));
        Self {
            legacy: count("serviceaccount_legacy_tokens_total", "Uses of tokens in Secrets."),
            stale: count(
                "serviceaccount_stale_tokens_total",
                "Uses of tokens that should have been replaced by now.",
            ),
            valid: count("serviceaccount_valid_tokens_total", "Uses of other tokens of service accounts."),
        }
    }

    pub(super) fn set(&self, uses: TokenUses) {
        for (counter, total) in
            [(&self.legacy, uses.legacy), (&self.stale, uses.stale), (&self.valid, uses.valid)]
        {
            counter.inc_by(total.saturating_sub(counter.get()));
        }
    }
}
