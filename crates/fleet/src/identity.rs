//! Keeps the identity lease.

use std::{sync::Arc, time::Duration};

use concord_registry::{Gate as _, Item, Object, Part, metadata_mut};
use concord_storageversion::{
    ADVERTISED_ANNOTATION, Fence, Found, HOSTNAME_LABEL, Holds, IDENTITY_LABEL, LeaseStep, NAMESPACE,
    REGISTERS_ANNOTATION, Record, hostname_label, lease_step, priority, registration,
};
use concord_store::{Txn, Write};
use rand::RngExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::{
    commit::{Backoff, Committer, Failure, Planned, now_milliseconds, object},
    fleet::{Fleet, lease_key},
    view::Known,
};

/// Upstream's bounds of the pauses between failed attempts.
const LEAST_PAUSE: Duration = Duration::from_millis(200);
const MOST_PAUSE: Duration = Duration::from_secs(7);

/// The first pause of a server that was in another one's way.
const AFTER_CONFLICT: Duration = Duration::from_millis(20);

/// How long a process whose lease vanished lets another one that is about to supersede it go first.
const COURTESY: Duration = Duration::from_millis(100);

/// How often a process that was superseded looks again.
const YIELDING: Duration = Duration::from_secs(1);

/// Makes, renews and restores the lease of this process.
pub(crate) struct Keeper {
    pub(crate) committer: Arc<Committer>,
}

struct Situation {
    step: LeaseStep,
    item: Option<Item>,
    /// Whether the lease says about this server what it should.
    is_complete: bool,
    hostname: String,
}

impl Keeper {
    fn fleet(&self) -> &Fleet {
        &self.committer.fleet
    }

    /// Goes on until it is dropped.
    pub(crate) async fn run(&self) {
        let (mut had, mut due) = (false, Instant::now());
        let mut backoff = Backoff::new(LEAST_PAUSE, MOST_PAUSE);
        let mut conflicts = Backoff::new(AFTER_CONFLICT, LEAST_PAUSE);
        let mut changes = self.fleet().shared.changes();
        loop {
            changes.mark_unchanged();
            let Some(situation) = self.look(had) else {
                if changes.changed().await.is_err() {
                    return;
                }
                continue;
            };
            let done = match &situation.step {
                LeaseStep::Create => {
                    if had {
                        tracing::warn!(
                            id = self.fleet().id(),
                            "The identity lease is gone; making a new one."
                        );
                        tokio::time::sleep(COURTESY).await;
                    }
                    due = self.next_renewal();
                    self.acquire().await
                }
                LeaseStep::Supersede { revision } => self.supersede(&situation, *revision).await,
                LeaseStep::Yield { holder } => {
                    self.yield_to(holder, &situation.hostname);
                    timeout_at(Instant::now() + YIELDING, changes.changed()).await.ok();
                    Ok(())
                }
                LeaseStep::Hold { revision, .. } => {
                    had = true;
                    self.fleet().progress.identity(None);
                    let is_due = due <= Instant::now() || !situation.is_complete;
                    if !is_due {
                        tokio::select! {
                            changed = changes.changed() => if changed.is_err() { return },
                            () = sleep_until(due) => {}
                        }
                        continue;
                    }
                    let renewed = self.renew(&situation, *revision).await;
                    if renewed.is_ok() {
                        due = self.next_renewal();
                    }
                    renewed
                }
            };
            match done {
                Ok(()) => {
                    backoff.reset();
                    conflicts.reset();
                }
                Err(Failure::Conflict) => conflicts.pause().await,
                Err(Failure::Failed(error)) => {
                    tracing::warn!(error, id = self.fleet().id(), "The identity lease could not be written.");
                    backoff.pause().await;
                }
            }
        }
    }

    /// What is to be done; `None` while the log has not been read.
    fn look(&self, had: bool) -> Option<Situation> {
        let fleet = self.fleet();
        let known = fleet.shared.known();
        if !known.is_loaded {
            return None;
        }
        let stored = known.leases.get(fleet.id());
        let expired = stored.is_some_and(|stored| stored.is_over(now_milliseconds(), fleet.silence()));
        let step = lease_step(&fleet.identity, stored.map(|stored| &stored.lease), had, expired);
        Some(Situation {
            step,
            item: stored.map(|stored| stored.item.clone()),
            is_complete: stored.is_some_and(|stored| {
                stored.component.as_ref() == Some(&fleet.identity.component)
                    && stored.advertised.as_ref() == fleet.advertised.get()
                    && stored.is_silent != fleet.settings.register_versions
            }),
            hostname: stored.map(|stored| stored.hostname.clone()).unwrap_or_default(),
        })
    }

    fn next_renewal(&self) -> Instant {
        let jitter = rand::rng().random_range(1.0..=1.04);
        Instant::now() + self.fleet().settings.renew_interval.mul_f64(jitter)
    }

    /// Takes the lease and, in the same transaction, says in which versions leases, namespaces and StorageVersions
    /// themselves are stored: nothing is ever written before that is known.
    async fn acquire(&self) -> Result<(), Failure> {
        let fleet = self.fleet();
        let fence = Fence::Acquiring { id: fleet.id().to_owned() };
        let planned = match fleet.versions {
            Some(_) => self.essentials(&fence).inspect_err(|failure| {
                if let Failure::Failed(error) = failure {
                    fleet.progress.identity(Some(error.clone()));
                }
            })?,
            None => Vec::new(),
        };
        let (key, value) = fleet.leases.encode_new(&Committer::context(), NAMESPACE, self.new_lease())?;
        let mut txn = Txn::new().compare(self.committer.compare(&fence.holds()));
        txn.writes.push(Write::Put { key, value, ttl: None });
        self.committer.commit(&planned, txn).await
    }

    /// What has to be said along with the lease.
    fn essentials(&self, fence: &Fence) -> Result<Vec<Planned>, Failure> {
        let fleet = self.fleet();
        let known = fleet.shared.known();
        let mut planned = Vec::new();
        let essential = |record: &&Record| priority(&record.group, &record.resource) == 0;
        for record in fleet.built_in.iter().map(|built_in| &built_in.record).filter(essential) {
            let name = record.name();
            let stored = known.versions.get(&name);
            let found = match known.unreadable.get(&name) {
                Some(revision) => Some(self.replaceable(&known, &name, *revision)?),
                None => stored.map(|stored| stored.found()),
            };
            let step = registration(fence, found.as_ref(), &fleet.with_keys(record));
            planned.extend(step.map(|step| Planned::new(step, stored, None)));
        }
        Ok(planned)
    }

    /// What cannot be read keeps every server from having an identity, and without one nobody can delete it. So whoever is
    /// alone puts what it has to say in its place. Others may know what it says: then it is for the operator to decide.
    fn replaceable(&self, known: &Known, name: &str, revision: u64) -> Result<Found<'static>, Failure> {
        let fleet = self.fleet();
        let (now, silence) = (now_milliseconds(), fleet.silence());
        let members = known.members(&fleet.settings.components);
        let others: Vec<_> = members
            .keys()
            .filter(|id| *id != fleet.id() && !known.leases[*id].is_over(now, silence))
            .collect();
        if !others.is_empty() {
            return Err(Failure::Failed(format!(
                "the stored StorageVersion {name:?} cannot be read, without which no server may write: delete it from the store, or stop the other servers {others:?}"
            )));
        }
        tracing::warn!(name, revision, "A stored StorageVersion that cannot be read is replaced.");
        Ok(Found { revision, entries: &[] })
    }

    fn new_lease(&self) -> Object {
        let mut lease = object(json!({"metadata": {"name": self.fleet().id()}}));
        self.fill(&mut lease);
        lease
    }

    /// What the lease has to say, whatever else is in it.
    fn fill(&self, lease: &mut Object) {
        let Fleet { identity, settings, advertised, .. } = self.fleet();
        let labels = metadata_mut(lease).entry("labels").or_insert_with(|| json!({}));
        labels[IDENTITY_LABEL] = identity.component.as_str().into();
        labels[HOSTNAME_LABEL] = hostname_label(&identity.hostname).into();
        let silent = (!settings.register_versions).then_some((REGISTERS_ANNOTATION, "false"));
        let advertised = advertised.get().map(|address| (ADVERTISED_ANNOTATION, address.as_str()));
        for (name, value) in silent.into_iter().chain(advertised) {
            let annotations = metadata_mut(lease).entry("annotations").or_insert_with(|| json!({}));
            annotations[name] = value.into();
        }
        let spec = lease.entry("spec").or_insert_with(|| json!({}));
        spec["holderIdentity"] = identity.holder.as_str().into();
        spec["leaseDurationSeconds"] = settings.lease_duration.as_secs().into();
        spec["renewTime"] = micro_time(now_milliseconds());
    }

    /// That nobody wrote the lease since is compared: so it is still ours.
    async fn renew(&self, situation: &Situation, revision: u64) -> Result<(), Failure> {
        let fleet = self.fleet();
        let Some(item) = &situation.item else { return Err(Failure::Conflict) };
        let mut lease = fleet.leases.object(item)?;
        self.fill(&mut lease);
        let value = fleet.leases.encode_changed(&Committer::context(), Part::Main, item, lease)?;
        let unchanged = Holds::LeaseAt(fleet.id().to_owned(), revision);
        let mut txn = Txn::new().compare(self.committer.compare(&unchanged));
        txn.writes.push(Write::Put { key: item.key.clone(), value, ttl: None });
        fleet.gate.pass(&mut txn).await?;
        self.committer.transact(txn).await
    }

    async fn supersede(&self, situation: &Situation, revision: u64) -> Result<(), Failure> {
        let fleet = self.fleet();
        tracing::info!(
            id = fleet.id(),
            hostname = situation.hostname,
            "Superseding an earlier process of this server."
        );
        let key = lease_key(&fleet.leases, fleet.id());
        let unchanged = Holds::LeaseAt(fleet.id().to_owned(), revision);
        let txn = Txn::new().compare(self.committer.compare(&unchanged)).delete(key);
        self.committer.transact(txn).await
    }

    /// Says once what the operator has to know.
    fn yield_to(&self, holder: &str, hostname: &str) {
        let fleet = self.fleet();
        let error = format!(
            "another server with the ID {:?} has taken the identity lease (holder {holder:?}, host {hostname:?}): give each server an ID of its own with --server-id",
            fleet.id()
        );
        if fleet.progress.identity_error() != error {
            tracing::error!(error, "This server writes nothing any more.");
        }
        fleet.progress.identity(Some(error));
    }
}

/// As Kubernetes writes moments with microseconds.
fn micro_time(milliseconds: i64) -> Value {
    let time = jiff::Timestamp::from_millisecond(milliseconds).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_six_digits() {
        assert_eq!(micro_time(1_500), "1970-01-01T00:00:01.500000Z");
    }
}
