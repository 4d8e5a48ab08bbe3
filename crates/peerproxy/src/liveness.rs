//! Whether a server is alive, as far as this one can tell.
//!
//! Nobody's clock is compared with anybody else's. A server is alive as long as its lease is seen to be renewed or its endpoint
//! record, which ends by itself, is there. It is silent only while this server sees its own renewals arrive through the same
//! log: when the store stalls, everybody is silent, and that says nothing about anybody.

use std::time::Duration;

/// For how long a server may be silent. Servers renew at least every 10 seconds; as many renewals can be missed as
/// kube-apiserver's own controllers tolerate of each other.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// How much time passes at most between two renewals of this server. What is longer is a store that did not answer.
const STEP: Duration = Duration::from_secs(10);

/// Time in which this server saw that it could see.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attested {
    total: Duration,
    last: Option<Duration>,
}

impl Attested {
    /// One of this server's own renewals arrived.
    pub(crate) fn renewed(&mut self, now: Duration) {
        if let Some(last) = self.last {
            self.total += now.saturating_sub(last).min(STEP);
        }
        self.last = Some(now);
    }

    /// How much of it there was so far.
    pub(crate) fn total(&self) -> Duration {
        self.total
    }

    /// Whether a server that was last heard of then is silent for too long.
    pub(crate) fn is_lost(&self, last_heard: Duration) -> bool {
        self.total.saturating_sub(last_heard) > PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn silence_counts_only_while_own_renewals_arrive() {
        let mut attested = Attested::default();
        attested.renewed(seconds(100));
        let heard = attested.total();
        for now in (102..=140).step_by(2) {
            attested.renewed(seconds(now));
            assert!(!attested.is_lost(heard), "{now}");
        }
        attested.renewed(seconds(142));
        assert!(attested.is_lost(heard));
    }

    #[test]
    fn a_store_that_stalls_for_an_hour_kills_nobody() {
        let mut attested = Attested::default();
        attested.renewed(seconds(0));
        attested.renewed(seconds(2));
        let heard = attested.total();
        attested.renewed(seconds(3602));
        assert!(!attested.is_lost(heard));
        assert_eq!(attested.total(), seconds(12));
    }
}
