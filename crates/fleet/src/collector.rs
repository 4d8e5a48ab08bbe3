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

/// How many conditions a transaction has at most: with those that are this server's own, less than an etcd takes. Half as
/// many after each that the store did not take.
const MOST_COMPARES: usize = 100;

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
        let mut most = MOST_COMPARES;
        loop {
            changes.mark_unchanged();
            let found = self.look(most);
            if found.is_empty() {
                backoff.reset();
                most = MOST_COMPARES;
                let again = Instant::now() + self.fleet().settings.collect_interval;
                if let Ok(Err(_)) = timeout_at(again, changes.changed()).await {
                    return;
                }
                continue;
            }
            tokio::time::sleep(GRACE + TURN * found.turn).await;
            if let Err(failure) = self.remove(self.look(most), most).await {
                if let Failure::Failed(error) = failure {
                    tracing::warn!(error, "Leftovers of servers that are gone could not be removed.");
                    most = (most / 2).max(1);
                }
                backoff.pause().await;
            }
        }
    }

    fn look(&self, most: usize) -> Leftovers {
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
            versions: own.as_ref().map(|_| self.versions(&known, &fence, most)).unwrap_or_default(),
            leases,
            own: own.unwrap_or_default(),
            fence: Some(fence.holds()),
            turn: self.turn(&known),
        }
    }

    fn versions(&self, known: &Known, fence: &Fence, most: usize) -> Vec<Planned> {
        // Of whatever component: an extension server that shares the store says what it writes in its own name.
        let membership = |id: &str| match known.leases.get(id) {
            None => Membership::Absent,
            Some(lease) if lease.component.as_ref().is_some_and(|own| !own.is_empty()) => Membership::Member,
            Some(lease) => Membership::Foreign(lease.lease.revision),
        };
        let now = now().unix;
        let step = |(name, stored): (&String, &crate::view::StoredVersion)| {
            let found = stored.found();
            let step = collection(fence, name, &found, membership, most);
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

    async fn remove(&self, found: Leftovers, most: usize) -> Result<(), Failure> {
        let own: Vec<_> = found.own.iter().map(|holds| self.committer.compare(holds)).collect();
        let mut outcome = Ok(());
        for steps in batches(&found.versions, most) {
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

/// Steps that are committed together: as many as have no more conditions than that, but at least one.
fn batches(mut planned: &[Planned], most: usize) -> Vec<&[Planned]> {
    let mut batches = Vec::new();
    while !planned.is_empty() {
        let mut compares = 0;
        let fits = planned.iter().take_while(|planned| {
            compares += planned.step.holds.len();
            compares <= most
        });
        let (batch, rest) = planned.split_at(fits.count().max(1));
        batches.push(batch);
        planned = rest;
    }
    batches
}

impl Leftovers {
    fn is_empty(&self) -> bool {
        self.versions.is_empty() && self.leases.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use concord_storageversion::Step;

    use super::*;

    #[test]
    fn steps_are_committed_together_as_far_as_their_conditions_fit() {
        let planned = |conditions: &usize| {
            let holds = vec![Holds::LeaseAbsent("a".to_owned()); *conditions];
            let step = Step { name: "core.pods".to_owned(), holds, entries: None };
            Planned::new(step, None, None)
        };
        let planned: Vec<Planned> = [3, 3, 4, 1, 30, 2, 8].iter().map(planned).collect();
        let sizes = |most| batches(&planned, most).iter().map(|batch| batch.len()).collect::<Vec<_>>();
        assert_eq!(sizes(10), [3, 1, 1, 2]);
        assert_eq!(sizes(1), [1; 7]);
        assert_eq!(sizes(100), [7]);
        assert!(batches(&[], 10).is_empty());
    }

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
