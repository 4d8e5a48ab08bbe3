//! Servers that nobody knows anything about, when there are too many of them.
//!
//! A lease says that a server is alive, and whoever may write leases in `kube-system` can write as many as he likes. Each
//! of them counts, for the one that is left out may be the server that has what is asked for; but beyond some it is enough
//! to know that there are more.

use std::time::Duration;

use concord_store::Revision;

use crate::liveness::Attested;

/// How many servers that never said where they are are tracked one by one.
pub(crate) const MOST_UNLOCATED: usize = 100;

/// All others that never said where they are, as one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Crowd {
    size: usize,
    /// The newest revision of any of their leases: whichever is renewed, it becomes another one.
    newest: Revision,
    last_heard: Duration,
}

impl Crowd {
    /// Takes note of who is in it now: the revisions of their leases.
    pub(crate) fn observe(&mut self, leases: &[Revision], attested: Duration) {
        self.size = leases.len();
        let newest = leases.iter().copied().max().unwrap_or_default();
        if newest > self.newest {
            (self.newest, self.last_heard) = (newest, attested);
        }
    }

    /// When one of them was last heard of that is tracked by itself from now on, at the latest.
    pub(crate) fn last_heard(&self, lease: Revision, attested: Duration) -> Duration {
        if lease <= self.newest { self.last_heard } else { attested }
    }

    /// Whether any of them is alive.
    pub(crate) fn is_alive(&self, attested: &Attested) -> bool {
        self.size > 0 && !attested.is_lost(self.last_heard)
    }
}
