//! Keeps what this server says about its versions true.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use concord_meta::GroupResource;
use concord_registry::{Item, Storage};
use concord_replica::{Batch, Closed, Entry, Error as ReplicaError, Scope, Snapshot, Subscription};
use concord_storageversion::{
    Fence, Found, Holds, Phase, Record, Step, cannot_read, object_name, order, phase, registration,
    withdrawal,
};
use concord_store::Txn;
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

use crate::{
    commit::{Backoff, Committer, Failure, Planned, owner_references},
    fleet::Fleet,
    progress::UNREADABLE,
    view::{Known, StoredVersion},
};

/// How many objects are written at once: with what each compares, less than an etcd takes.
const BATCH: usize = 60;

/// The bounds of the pauses after failures.
const LEAST_PAUSE: Duration = Duration::from_millis(20);
const MOST_PAUSE: Duration = Duration::from_secs(5);

/// The bounds of the pauses of a server that was in another one's way, and after how many of them in a row it writes less at
/// once: servers that start together are out of each other's way before that, but somebody may change one object for ever.
const LEAST_CONFLICT: Duration = Duration::from_millis(10);
const MOST_CONFLICT: Duration = Duration::from_millis(200);
const MANY_CONFLICTS: usize = 4;

/// The StorageVersion of StorageVersions.
const STORAGE_VERSIONS: &str = "internal.apiserver.k8s.io.storageversions";

/// How much is written at once, and how long is waited after a round that did not succeed.
struct Pace {
    batch: usize,
    conflicts: usize,
    failed: Backoff,
    crowded: Backoff,
}

impl Pace {
    fn new() -> Self {
        Self {
            batch: BATCH,
            conflicts: 0,
            failed: Backoff::new(LEAST_PAUSE, MOST_PAUSE),
            crowded: Backoff::new(LEAST_CONFLICT, MOST_CONFLICT),
        }
    }

    async fn slow_down(&mut self, failure: &Failure) {
        match failure {
            Failure::Conflict => {
                self.conflicts += 1;
                if self.conflicts.is_multiple_of(MANY_CONFLICTS) {
                    self.batch = (self.batch / 2).max(1);
                }
                self.crowded.pause().await;
            }
            // What fails keeps nothing else waiting: smaller batches find it.
            Failure::Failed(_) => {
                self.batch = (self.batch / 8).max(1);
                self.failed.pause().await;
            }
        }
    }
}

pub(crate) struct Registrar {
    committer: Arc<Committer>,
    /// What the definitions in the log define, by their names; `None` until they were read.
    definitions: Mutex<Option<BTreeMap<String, Record>>>,
    begun: Instant,
}

impl Registrar {
    pub(crate) fn new(committer: Arc<Committer>) -> Self {
        Self { committer, definitions: Mutex::new(None), begun: Instant::now() }
    }

    fn fleet(&self) -> &Fleet {
        &self.committer.fleet
    }

    /// Goes on until it is dropped.
    pub(crate) async fn run(&self) {
        if self.fleet().versions.is_none() {
            return;
        }
        let mut followed = None;
        let mut pace = Pace::new();
        let mut changes = self.fleet().shared.changes();
        let mut keys = self.fleet().settings.keyring.as_ref().map(|keyring| keyring.changes());
        loop {
            changes.mark_unchanged();
            self.catch_up(&mut followed);
            if followed.is_none() {
                followed = self.follow_definitions();
            }
            match self.round(pace.batch).await {
                Ok(false) => pace = Pace::new(),
                Ok(true) => {
                    pace = Pace::new();
                    continue;
                }
                Err(failure) => {
                    pace.slow_down(&failure).await;
                    continue;
                }
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                closed = self.follow(&mut followed) => if closed { followed = None },
                () = replaced(&mut keys) => {}
            }
        }
    }

    /// Reads all definitions and subscribes to what changes; `None` if that cannot be now.
    fn follow_definitions(&self) -> Option<Subscription> {
        let storage = self.fleet().definitions.as_ref()?;
        let scope = Scope::prefix(storage.prefix.clone());
        match self.committer.registry.replica().snapshot_and_subscribe(scope) {
            Ok((snapshot, subscription)) => {
                *self.definitions.lock() = Some(read_all(storage, &snapshot));
                Some(subscription)
            }
            Err(ReplicaError::Shutdown) => None,
            Err(error) => {
                tracing::debug!(%error, "The definitions cannot be read yet.");
                None
            }
        }
    }

    /// Takes note of the next changes; true if there will be none any more.
    async fn follow(&self, followed: &mut Option<Subscription>) -> bool {
        let Some(changes) = followed.as_mut() else { return std::future::pending().await };
        match changes.next().await {
            Ok(batch) => {
                self.learn(&batch);
                false
            }
            Err(Closed::Shutdown) => std::future::pending().await,
            Err(_) => true,
        }
    }

    /// Takes note of all changes there are. A round that is decided on an old definition cannot succeed.
    fn catch_up(&self, followed: &mut Option<Subscription>) {
        while let Some(changes) = followed.as_mut() {
            match changes.try_next() {
                Ok(Some(batch)) => self.learn(&batch),
                Ok(None) => return,
                Err(_) => *followed = None,
            }
        }
    }

    fn learn(&self, batch: &Batch) {
        let Some(storage) = self.fleet().definitions.as_ref() else { return };
        let mut definitions = self.definitions.lock();
        let definitions = definitions.get_or_insert_default();
        for event in batch.iter() {
            let Some(name) = storage.object_name(event.key()) else { continue };
            match event.current().and_then(|entry| record(storage, entry)) {
                Some(record) => drop(definitions.insert(name.name.to_owned(), record)),
                None => drop(definitions.remove(name.name)),
            }
        }
    }

    /// Writes whatever is not as it should be. True if something was written, and it is worth looking again.
    async fn round(&self, batch: usize) -> Result<bool, Failure> {
        let (planned, own) = {
            let known = self.fleet().shared.known();
            let Some(fence) = self.fleet().gate.fence(&known) else { return Ok(false) };
            (self.plan(&known, &fence), self.committer.own_gate(&known, &fence))
        };
        if planned.is_empty() {
            self.tried();
            return Ok(false);
        }
        // Acquiring the lease registered StorageVersions themselves. If somebody took that away again, it is the first
        // thing to write, and nothing else until it is there.
        let is_all = own.is_some();
        let (planned, own) = match own {
            Some(own) => (planned, own),
            None => {
                let of_itself = |planned: &Planned| planned.step.name == STORAGE_VERSIONS;
                (planned.into_iter().filter(of_itself).collect::<Vec<_>>(), Vec::new())
            }
        };
        let mut outcome = Ok(true);
        for steps in planned.chunks(batch) {
            let mut txn = Txn::new();
            txn.compares.extend(own.iter().map(|holds| self.committer.compare(holds)));
            match self.committer.commit(steps, txn).await {
                Ok(()) => {}
                Err(Failure::Conflict) => outcome = outcome.and(Err(Failure::Conflict)),
                Err(Failure::Failed(error)) => {
                    self.report(steps, &error);
                    outcome = Err(Failure::Failed(error));
                }
            }
        }
        if is_all {
            self.tried();
        }
        outcome
    }

    /// Takes note that everything that is defined was tried, if it is known what that is.
    fn tried(&self) {
        let fleet = self.fleet();
        let defined = match &*self.definitions.lock() {
            Some(definitions) => definitions.len(),
            None if fleet.definitions.is_none() => 0,
            None => return,
        };
        if fleet.progress.tried_definitions() {
            let (built_in, milliseconds) = (fleet.built_in.len(), self.begun.elapsed().as_millis());
            tracing::info!(built_in, defined, milliseconds, "Storage versions are registered.");
        }
    }

    fn report(&self, steps: &[Planned], error: &str) {
        let names: BTreeSet<&str> = steps.iter().map(|planned| planned.step.name.as_str()).collect();
        tracing::warn!(error, count = names.len(), "Storage versions could not be registered.");
        let progress = &self.fleet().progress;
        for built_in in self.fleet().built_in.iter().filter(|known| names.contains(&*known.record.name())) {
            built_in.names.iter().for_each(|name| progress.failed(name, error));
        }
        let definitions = self.definitions.lock();
        let customs = definitions.iter().flat_map(BTreeMap::values);
        for custom in customs.filter(|custom| names.contains(&*custom.name())) {
            progress.custom_failed(GroupResource::new(custom.group.as_str(), &custom.resource), error);
        }
    }

    /// What has to be written, in order; and takes note of what is as it should be.
    fn plan(&self, known: &Known, fence: &Fence) -> Vec<Planned> {
        let definitions = self.definitions.lock();
        let mut planned = Vec::new();
        let mut names = BTreeSet::new();
        let mut is_complete = true;
        for built_in in &self.fleet().built_in {
            let name = built_in.record.name();
            let is_readable = !known.unreadable.contains_key(&name);
            let step = is_readable.then(|| self.step(known, fence, &built_in.record)).flatten();
            for name in &built_in.names {
                match (is_readable, &step) {
                    (false, _) => self.fleet().progress.failed(name, UNREADABLE),
                    (true, None) => self.fleet().progress.registered(name),
                    (true, Some(_)) => {}
                }
            }
            is_complete &= is_readable && step.is_none();
            planned.extend(step);
            names.insert(name);
        }
        if is_complete {
            self.fleet().progress.complete();
        }
        let Some(definitions) = definitions.as_ref() else { return planned };
        let mut customs: Vec<&Record> = definitions.values().collect();
        customs.sort_by(|one, other| order(one, other));
        let mut pending = BTreeSet::new();
        for record in customs {
            // What the server has built in is not what somebody defines under the same name.
            if names.insert(record.name()) && !known.unreadable.contains_key(&record.name()) {
                let step = self.step(known, fence, record);
                pending.extend(step.as_ref().map(|_| record.name()));
                planned.extend(step);
            }
        }
        let is_pending =
            |custom: &GroupResource| pending.contains(&object_name(&custom.group, &custom.resource));
        self.fleet().progress.keep_custom_failures(is_pending);
        for (name, stored) in known.versions.iter().filter(|(name, _)| !names.contains(*name)) {
            let step = withdrawal(fence, name, &stored.found());
            planned.extend(step.map(|step| Planned::new(step, Some(stored), None)));
        }
        planned
    }

    fn step(&self, known: &Known, fence: &Fence, record: &Record) -> Option<Planned> {
        let record = &self.fleet().with_keys(record);
        let name = record.name();
        let stored = known.versions.get(&name);
        let found: Option<Found<'_>> = stored.map(StoredVersion::found);
        if let (Phase::Unpublished { from: Some(from) }, to) =
            (phase(fence.id(), found.as_ref(), record), &record.encoding)
            && from != *to
        {
            tracing::info!(name, from, to, "The stored version changes.");
            let blind = cannot_read(fence.id(), found.as_ref(), to);
            if !blind.is_empty() {
                tracing::warn!(name, to, servers = ?blind, "Other servers cannot read what this one is about to store.");
            }
        }
        let step = registration(fence, found.as_ref(), record).or_else(|| {
            // A definition that was deleted and made anew is another owner.
            let (owner, stored) = (record.owner.as_ref()?, stored?);
            (stored.owners != owner_references(owner)).then(|| Step {
                holds: vec![
                    fence.holds(),
                    Holds::StorageVersionAt(name.clone(), stored.revision),
                    Holds::DefinitionAt(owner.name.clone(), owner.revision),
                ],
                entries: Some(stored.status.storage_versions.clone()),
                name,
            })
        })?;
        Some(Planned::new(step, stored, record.owner.clone()))
    }
}

/// Returns when other keys are in use.
async fn replaced(keys: &mut Option<watch::Receiver<u64>>) {
    let Some(changes) = keys else { return std::future::pending().await };
    if changes.changed().await.is_err() {
        *keys = None;
    }
}

fn record(storage: &Storage, entry: &Entry) -> Option<Record> {
    let definition = storage.object(&Item::from(entry)).ok()?;
    Record::of_definition(&definition, entry.mod_revision)
}

fn read_all(storage: &Storage, snapshot: &Snapshot) -> BTreeMap<String, Record> {
    let entries = snapshot.scan(&Scope::prefix(storage.prefix.clone()).range());
    entries
        .filter_map(|entry| {
            let name = storage.object_name(&entry.key)?.name.to_owned();
            Some((name, record(storage, entry)?))
        })
        .collect()
}
