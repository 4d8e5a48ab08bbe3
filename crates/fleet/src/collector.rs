//! Removes what servers that are gone left behind.

use std::{sync::Arc, time::Duration};

use concord_storageversion::{Fence, Holds, Membership, abandoned, collection};
use concord_store::Txn;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::{
    commit::{Backoff, Committer, Failure, Planned, now, now_milliseconds},
    fleet::{Fleet, lease_key},
    view::Known,
};

/// How many objects are written at once.
const BATCH: usize = 60;

/// How much longer each server waits than the one before it. Whoever leads is the first, and the others take turns by age:
/// as a rule nobody else has to. But nothing waits for a leader that is gone, for it is safe without one: whatever is
/// removed is compared in the transaction, so that it would do no harm if all removed it at once.
const TURN: Duration = Duration::from_millis(150);
const MOST_TURNS: u32 = 4;

/// How long everybody waits: a server that is started again replaces its lease, and is back in a moment.
const GRACE: Duration = Duration::from_millis(100);

pub(crate) struct Collector {
    committer: Arc<Committer>,
    attention: Mutex<Attention>,
}

/// Since when this server has been hearing of others without a break. After one, that they were not heard of says nothing
/// about them: it may be this server that slept, or the store was away for all. They get the time to renew again.
struct Attention {
    since: Instant,
    last: Instant,
}

impl Attention {
    fn begin() -> Self {
        let now = Instant::now();
        Self { since: now, last: now }
    }

    /// Whether it has lasted for so long, with no break that was longer. This server's own renewals alone are heard more
    /// often.
    fn has_lasted(&mut self, silence: Duration) -> bool {
        let now = Instant::now();
        if now.duration_since(self.last) > silence {
            self.since = now;
        }
        self.last = now;
        now.duration_since(self.since) >= silence
    }
}

/// What is to be removed.
#[derive(Default)]
struct Leftovers {
    versions: Vec<Planned>,
    /// The IDs and revisions of leases that are over.
    leases: Vec<(String, u64)>,
    own: Vec<Holds>,
    /// What this server must still hold for any of it.
    fence: Option<Holds>,
    turn: u32,
}

impl Collector {
    pub(crate) fn new(committer: Arc<Committer>) -> Self {
        Self { committer, attention: Mutex::new(Attention::begin()) }
    }

    fn fleet(&self) -> &Fleet {
        &self.committer.fleet
    }

    /// Goes on until it is dropped.
    pub(crate) async fn run(&self) {
        let mut changes = self.fleet().shared.changes();
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
        loop {
            changes.mark_unchanged();
            let found = self.look();
            if found.is_empty() {
                backoff.reset();
                let again = Instant::now() + self.fleet().settings.collect_interval;
                if let Ok(Err(_)) = timeout_at(again, changes.changed()).await {
                    return;
                }
                continue;
            }
            tokio::time::sleep(GRACE + TURN * found.turn).await;
            if let Err(failure) = self.remove(self.look()).await {
                if let Failure::Failed(error) = failure {
                    tracing::warn!(error, "Leftovers of servers that are gone could not be removed.");
                }
                backoff.pause().await;
            }
        }
    }

    fn look(&self) -> Leftovers {
        let fleet = self.fleet();
        let known = fleet.shared.known();
        let Some(fence) = fleet.gate.fence(&known) else { return Leftovers::default() };
        let now_ms = now_milliseconds();
        let is_attentive = self.attention.lock().has_lasted(fleet.silence());
        let is_over = |id: &String| {
            let lease = &known.leases[id];
            is_attentive && id != fleet.id() && lease.is_over(now_ms, fleet.silence())
        };
        let members = known.members(&fleet.settings.components);
        let leases = members.keys().filter(|id| is_over(id));
        let leases = leases.map(|id| (id.clone(), known.leases[id].lease.revision)).collect();
        let own = self.committer.own_gate(&known, &fence);
        Leftovers {
            versions: own.as_ref().map(|_| self.versions(&known, &fence)).unwrap_or_default(),
            leases,
            own: own.unwrap_or_default(),
            fence: Some(fence.holds()),
            turn: self.turn(&known),
        }
    }

    fn versions(&self, known: &Known, fence: &Fence) -> Vec<Planned> {
        let components = &self.fleet().settings.components;
        let membership = |id: &str| match known.leases.get(id) {
            None => Membership::Absent,
            Some(lease) if lease.component.as_ref().is_some_and(|own| components.contains(own)) => {
                Membership::Member
            }
            Some(lease) => Membership::Foreign(lease.lease.revision),
        };
        let now = now().unix;
        let step = |(name, stored): (&String, &crate::view::StoredVersion)| {
            let found = stored.found();
            let step = collection(fence, name, &found, membership);
            let step = step.or_else(|| abandoned(fence, name, &found, stored.created, now))?;
            Some(Planned::new(step, Some(stored), None))
        };
        known.versions.iter().filter_map(step).collect()
    }

    /// How many servers there are whose turn it is before this one's.
    fn turn(&self, known: &Known) -> u32 {
        let fleet = self.fleet();
        let leadership = fleet.leadership.get();
        if leadership.is_some_and(|leadership| leadership.is_leader()) {
            return 0;
        }
        let Some(own) = known.leases.get(fleet.id()) else { return 0 };
        let members = known.members(&fleet.settings.components);
        let is_older = |id: &String, created: u64| {
            created < own.lease.created && known.leases[id].was_heard_within(fleet.silence())
        };
        let older = members.iter().filter(|(id, created)| is_older(id, **created)).count();
        let before = older + usize::from(leadership.is_some());
        u32::try_from(before).unwrap_or(MOST_TURNS).min(MOST_TURNS)
    }

    async fn remove(&self, found: Leftovers) -> Result<(), Failure> {
        let own: Vec<_> = found.own.iter().map(|holds| self.committer.compare(holds)).collect();
        let mut outcome = Ok(());
        for steps in found.versions.chunks(BATCH) {
            let mut txn = Txn::new();
            txn.compares.extend(own.iter().cloned());
            outcome = outcome.and(self.committer.commit(steps, txn).await);
        }
        for (id, revision) in found.leases {
            tracing::info!(id, "Removing the identity lease of a server that has not been heard of.");
            let unchanged = self.committer.compare(&Holds::LeaseAt(id.clone(), revision));
            let mut txn = Txn::new().compare(unchanged).delete(lease_key(&self.fleet().leases, &id));
            txn.compares.extend(found.fence.iter().map(|holds| self.committer.compare(holds)));
            outcome = outcome.and(self.committer.transact(txn).await);
        }
        outcome
    }
}

impl Leftovers {
    fn is_empty(&self) -> bool {
        self.versions.is_empty() && self.leases.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_heard_nobody_waits_until_the_others_had_time_to_speak() {
        let (silence, interval) = (Duration::from_secs(30), Duration::from_secs(10));
        let mut attention = Attention::begin();
        for lasted in [false, false, true, true] {
            tokio::time::advance(interval).await;
            assert_eq!(attention.has_lasted(silence), lasted);
        }
        tokio::time::advance(2 * silence).await;
        for lasted in [false, false, false, true] {
            assert_eq!(attention.has_lasted(silence), lasted);
            tokio::time::advance(interval).await;
        }
    }
}
