use concord_store::Revision;

use crate::Identity;

/// An identity lease as it was found in the log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Since when there is one.
    pub created: Revision,
    /// When it was last written.
    pub revision: Revision,
    /// Who holds it.
    pub holder: String,
}

/// What a server does about its identity lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseStep {
    /// Make one, if there still is none.
    Create,
    /// It is ours since then, and has to be renewed from time to time, as long as it was last written at `revision`.
    Hold {
        /// Since when.
        since: Revision,
        /// What a renewal compares.
        revision: Revision,
    },
    /// Remove the one that an earlier process of this server left, if it is still as it was. Then make a new one: so every
    /// write that the earlier process may still have on its way is refused.
    Supersede {
        /// What the removal compares.
        revision: Revision,
    },
    /// Another process has superseded this one. Write nothing, and wait until it is gone: if both took the lease from
    /// each other, neither would ever be able to write.
    Yield {
        /// Who holds it.
        holder: String,
    },
}

/// What a server does about its identity lease. `had` says whether this process ever held it.
pub fn lease_step(me: &Identity, found: Option<&Lease>, had: bool, expired: bool) -> LeaseStep {
    match found {
        None => LeaseStep::Create,
        Some(lease) if lease.holder == me.holder => {
            LeaseStep::Hold { since: lease.created, revision: lease.revision }
        }
        Some(lease) if !had || expired => LeaseStep::Supersede { revision: lease.revision },
        Some(lease) => LeaseStep::Yield { holder: lease.holder.clone() },
    }
}

/// Whether a lease is over, by upstream's rule: one that does not say when it was renewed, or for how long, is. Times are
/// in milliseconds.
pub fn is_expired(renewed: Option<i64>, duration_seconds: Option<i64>, now: i64) -> bool {
    let (Some(renewed), Some(duration)) = (renewed, duration_seconds) else { return true };
    renewed.saturating_add(duration.saturating_mul(1000)) < now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_process_of_a_server_has_the_lease() {
        let me = Identity {
            id: "a".to_owned(),
            holder: "a_2".to_owned(),
            component: String::new(),
            hostname: String::new(),
        };
        let lease = |holder: &str| Lease { created: 3, revision: 5, holder: holder.to_owned() };
        let (mine, other) = (lease("a_2"), lease("a_1"));
        let hold = LeaseStep::Hold { since: 3, revision: 5 };
        let supersede = LeaseStep::Supersede { revision: 5 };
        for (found, had, expired, step) in [
            (None, false, false, LeaseStep::Create),
            (None, true, false, LeaseStep::Create),
            (Some(&mine), false, false, hold.clone()),
            (Some(&mine), true, true, hold),
            (Some(&other), false, false, supersede.clone()),
            (Some(&other), true, true, supersede),
            (Some(&other), true, false, LeaseStep::Yield { holder: "a_1".to_owned() }),
        ] {
            assert_eq!(lease_step(&me, found, had, expired), step);
        }
    }

    #[test]
    fn leases_end_as_upstreams_do() {
        for (renewed, duration, now, expired) in [
            (Some(1_000), Some(3600), 3_601_000, false),
            (Some(1_000), Some(3600), 3_601_001, true),
            (None, Some(3600), 0, true),
            (Some(1_000), None, 0, true),
            (Some(i64::MAX), Some(i64::MAX), 0, false),
        ] {
            assert_eq!(is_expired(renewed, duration, now), expired);
        }
    }
}
