//! All migrations: which of them run, and who carries them out.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use concord_meta::{GroupResource, GroupVersion};
use concord_registry::Resource;
use concord_replica::{Closed, Scope};
use concord_server::Auditing;
use concord_store::KeyRange;
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    choose::choose,
    decide::Orders,
    definitions::End,
    limit::Bounds,
    load::Load,
    migration::Migration,
    shared::{Config, Shared},
    survive::{AFTER_PANIC, survives},
    trigger::Trigger,
    worker::Worker,
};

/// The versions of the API, the newest first.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// How long to wait until migrations can be read.
const RETRY: Duration = Duration::from_millis(200);

/// Carries out StorageVersionMigrations. Only one process of a fleet may run it at a time, for the sake of order and not
/// of safety: two of them do everything twice and nothing wrong.
#[derive(Clone)]
pub struct Migrator(Arc<Shared>);

/// A resource, and whether its migration is a dry run: that writes nothing, and waits for nobody who does.
type Place = (GroupResource, bool);

/// A migration that is under way.
struct Active {
    uid: String,
    orders: watch::Sender<Orders>,
    withdrawn: CancellationToken,
}

impl Migrator {
    /// A migrator; `None` if StorageVersionMigrations are not served. Does nothing before it is run.
    pub fn new(config: Config) -> Option<Self> {
        let find = |version: &&str| -> Option<Arc<Resource>> {
            let version = GroupVersion::new("storagemigration.k8s.io", *version);
            config.resources.find(&version, "storageversionmigrations")
        };
        let migrations = VERSIONS.iter().find_map(find).filter(|found| found.storage().is_some())?;
        let load = |bounds| Load::new(config.registry.clone(), bounds);
        let (together, alone) = (load(Bounds::TOGETHER), load(Bounds::ALONE));
        Some(Self(Arc::new(Shared { config, migrations, auditing: OnceLock::new(), together, alone })))
    }

    /// Has rewrites written down, as the requests of clients are. Only the first time counts.
    pub fn audit(&self, auditing: Arc<Auditing>) {
        self.0.auditing.get_or_init(|| auditing);
    }

    /// Works until it is cancelled. Whatever is under way then, the next one goes on with.
    pub async fn run(&self, cancel: CancellationToken) {
        let trigger = Trigger::new(self.0.clone());
        tokio::join!(self.carry_out(&cancel), async {
            cancel.run_until_cancelled(trigger.run()).await;
        });
    }

    async fn carry_out(&self, cancel: &CancellationToken) {
        let mut workers = JoinSet::new();
        let mut active = BTreeMap::new();
        while !cancel.is_cancelled() {
            if cancel.run_until_cancelled(self.follow(cancel, &mut active, &mut workers)).await.is_none() {
                break;
            }
            cancel.run_until_cancelled(tokio::time::sleep(RETRY)).await;
        }
        while workers.join_next().await.is_some() {}
    }

    /// Follows what is said about migrations until that is no longer possible.
    async fn follow(
        &self,
        cancel: &CancellationToken,
        active: &mut BTreeMap<Place, Active>,
        workers: &mut JoinSet<Place>,
    ) {
        let Some(storage) = self.0.migrations.storage() else { return };
        let replica = self.0.registry().replica();
        let Ok((_, mut changes)) = replica.snapshot_and_subscribe(Scope::prefix(storage.prefix.clone()))
        else {
            return;
        };
        self.tidy(&self.all()).await;
        loop {
            self.reconcile(&self.all(), cancel, active, workers);
            tokio::select! {
                batch = changes.next() => match batch {
                    Ok(_) => while let Ok(Some(_)) = changes.try_next() {},
                    Err(Closed::Shutdown) => return std::future::pending().await,
                    Err(_) => return,
                },
                Some(Ok(ended)) = workers.join_next() => drop(active.remove(&ended)),
            }
        }
    }

    /// All migrations as they are stored.
    fn all(&self) -> Vec<Migration> {
        let Some(storage) = self.0.migrations.storage() else { return Vec::new() };
        let Ok(snapshot) = self.0.registry().replica().newest() else { return Vec::new() };
        let range = KeyRange::prefix(storage.prefix.clone());
        let objects = snapshot.scan(&range).filter_map(|entry| self.0.migrations.object(&entry.into()).ok());
        objects.map(|object| Migration::read(&object)).collect()
    }

    /// Definitions that say that they are being migrated, although no migration of them is open: it was deleted while nobody
    /// was there to see it.
    async fn tidy(&self, all: &[Migration]) {
        for resource in self.0.marked() {
            let is_open = |migration: &Migration| migration.resource == resource && !migration.is_terminal();
            if !all.iter().any(is_open)
                && let Err(error) = self.0.unmark(&resource, None, End::Cancelled).await
            {
                tracing::warn!(%resource, error = error.message, "The definition still says that it is migrated.");
            }
        }
    }

    /// Starts what is to run, withdraws what is gone, and passes on orders.
    fn reconcile(
        &self,
        all: &[Migration],
        cancel: &CancellationToken,
        active: &mut BTreeMap<Place, Active>,
        workers: &mut JoinSet<Place>,
    ) {
        let mut by_resource: BTreeMap<Place, Vec<&Migration>> = BTreeMap::new();
        for migration in all {
            let place = (migration.resource.clone(), migration.orders.is_dry_run);
            by_resource.entry(place).or_default().push(migration);
        }
        for (resource, running) in active.iter() {
            let of_resource = by_resource.get(resource).into_iter().flatten();
            match of_resource.clone().find(|migration| migration.uid == running.uid) {
                None => running.withdrawn.cancel(),
                Some(migration) => drop(running.orders.send_if_modified(|orders| {
                    let is_new = *orders != migration.orders;
                    *orders = migration.orders;
                    is_new
                })),
            }
        }
        for (resource, migrations) in by_resource {
            if active.contains_key(&resource) {
                continue;
            }
            if let Some(chosen) = choose(migrations) {
                active.insert(resource, self.start(chosen, cancel, workers));
            }
        }
    }

    fn start(
        &self,
        migration: &Migration,
        cancel: &CancellationToken,
        workers: &mut JoinSet<Place>,
    ) -> Active {
        let (orders, received) = watch::channel(migration.orders);
        let withdrawn = CancellationToken::new();
        let worker = Worker::new(self.0.clone(), migration, received);
        let (resource, told, stop) = (migration.resource.clone(), withdrawn.clone(), cancel.clone());
        let place = (resource, migration.orders.is_dry_run);
        workers.spawn(async move {
            if !survives(&place.0, worker.run(told, stop.clone())).await {
                // It is begun again then.
                stop.run_until_cancelled(tokio::time::sleep(AFTER_PANIC)).await;
            }
            place
        });
        Active { uid: migration.uid.clone(), orders, withdrawn }
    }
}
