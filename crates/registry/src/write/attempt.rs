//! Writes that are decided on a state and committed only if it still holds.

use std::time::{Duration, Instant};

use bytes::Bytes;
use concord_meta::{Status, options::ReadAt};
use concord_replica::{Entry, Snapshot};
use concord_store::{Committed, Compare, Error, Revision, Txn};

use crate::{Attributes, Guard, Object, Registry, Storage, failure, list::WAIT_FOR_STORE};

/// How long one request goes on trying, as upstream's.
const PATIENCE: Duration = Duration::from_secs(34);

/// What a state was found to call for.
pub(super) enum Decision {
    /// The object is to be this.
    Put(Bytes),
    /// The object is to go away.
    Delete,
}

/// The state a decision is made on.
pub(super) struct Live {
    pub(super) snapshot: Snapshot,
    pub(super) entry: Option<Entry>,
}

/// The attempts of one request to change one key.
///
/// The first decision is made on what the replica has, which costs nothing and is almost always the newest state. If
/// it turns out that it was not, or if the decision is a refusal or to do nothing, the next one is made on a state that is
/// certainly as new as the request: nobody is refused, or told that all is done, for what is no longer so.
pub(super) struct Attempts<'a> {
    registry: &'a Registry,
    storage: &'a Storage,
    key: Bytes,
    fresh: bool,
    together: bool,
    started: Instant,
}

impl<'a> Attempts<'a> {
    /// A dry run is decided on the newest state from the beginning: no transaction tells it that there was a newer one.
    pub(super) fn new(registry: &'a Registry, storage: &'a Storage, key: Bytes, dry_run: bool) -> Self {
        Self { registry, storage, key, fresh: dry_run, together: false, started: Instant::now() }
    }

    /// What is written may share its revision with other writes, if this is so.
    pub(super) fn together(self, together: bool) -> Self {
        Self { together, ..self }
    }

    pub(super) fn key(&self) -> &Bytes {
        &self.key
    }

    /// The state to decide on.
    pub(super) async fn live(&self) -> Result<Live, Status> {
        let snapshot = self.registry.write_state(self.fresh).await?;
        let entry = snapshot.get(&self.key).cloned();
        Ok(Live { snapshot, entry })
    }

    /// Whether to try again after this refusal.
    pub(super) fn refused(&mut self, status: Status) -> Result<(), Status> {
        if self.fresh {
            return Err(status);
        }
        self.fresh = true;
        Ok(())
    }

    /// Whether to look again before saying that there is nothing to do: no transaction would tell that there is.
    pub(super) fn must_look_again(&mut self) -> bool {
        !std::mem::replace(&mut self.fresh, true)
    }

    /// Commits a decision made on `entry`. `None` if the state has changed: decide again.
    pub(super) async fn commit(
        &mut self,
        entry: Option<&Entry>,
        decision: Decision,
        guard: Guard,
    ) -> Result<Option<Revision>, Status> {
        let key = self.key.clone();
        let condition = match entry {
            Some(entry) => Compare::mod_revision(key.clone(), entry.mod_revision),
            None => Compare::absent(key.clone()),
        };
        let operation = match (entry, &decision) {
            (_, Decision::Delete) => "delete",
            (Some(_), Decision::Put(_)) => "update",
            (None, Decision::Put(_)) => "create",
        };
        let mut txn = Txn { together: self.together, ..Txn::new() }.compare(condition);
        txn.compares.extend(guard.compares);
        txn.writes.extend(guard.writes);
        let mut txn = match (decision, self.storage.strategy.time_to_live()) {
            (Decision::Put(value), None) => txn.put(key, value),
            (Decision::Put(value), Some(ttl)) => txn.put_with_ttl(key, value, ttl),
            (Decision::Delete, _) => txn.delete(key),
        };
        if let Some(gate) = &self.registry.gate {
            gate.pass(&mut txn).await?;
        }
        match self.transact(operation, txn).await {
            Ok(committed) => Ok(Some(committed.revision)),
            Err(Error::CompareFailed(_)) if self.started.elapsed() < PATIENCE => {
                self.fresh = true;
                Ok(None)
            }
            Err(Error::CompareFailed(_)) => Err(Status::request_timeout()),
            Err(error) => Err(failure::store_failed(&error)),
        }
    }

    async fn transact(&self, operation: &'static str, txn: Txn) -> Result<Committed, Error> {
        let asked = Instant::now();
        let answer = self.registry.store.transact(txn).await;
        if let Some(observer) = &self.registry.observer {
            observer.answered(operation, &self.storage.resource, asked.elapsed());
        }
        answer
    }
}

impl Registry {
    /// A state to decide a write on: certainly as new as the request, or just what is at hand.
    pub(super) async fn write_state(&self, fresh: bool) -> Result<Snapshot, Status> {
        match fresh {
            true => self.snapshot(ReadAt::MostRecent).await,
            false => match self.replica.newest() {
                Ok(snapshot) => Ok(snapshot),
                Err(_) => {
                    let loaded = self.replica.consistent(WAIT_FOR_STORE).await;
                    loaded.map_err(|error| failure::read_failed(&error))
                }
            },
        }
    }

    /// What admission and whoever asks add to a write that is decided on this state.
    pub(super) fn guard(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
        snapshot: &Snapshot,
    ) -> Result<Guard, Status> {
        let mut all = demanded(attributes, snapshot)?;
        for admission in &self.admission {
            all.extend(admission.guard(attributes, object, snapshot)?);
        }
        Ok(all)
    }

    /// What admission adds to a delete by which the object goes away.
    pub(super) fn removal(&self, attributes: &Attributes<'_>, snapshot: &Snapshot) -> Result<Guard, Status> {
        let mut all = Guard::default();
        for admission in &self.admission {
            all.extend(admission.removal(attributes, snapshot)?);
        }
        Ok(all)
    }
}

/// What whoever asks demands of this state.
pub(super) fn demanded(attributes: &Attributes<'_>, snapshot: &Snapshot) -> Result<Guard, Status> {
    let condition = attributes.context.condition.as_ref();
    condition.map_or_else(|| Ok(Guard::default()), |condition| condition.holds(snapshot))
}
