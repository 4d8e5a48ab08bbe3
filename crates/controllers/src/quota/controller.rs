//! Counts again what quotas limit, when something of it may have been given back.

use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use concord_meta::Status;
use concord_registry::{Item, ObjectName, Part, Registry, Resources, Storage, UpdateRequest};
use concord_replica::{Entry, Event, EventKind, Scope, Snapshot};
use concord_store::KeyRange;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{
    ledger::{Balance, Ledger},
    scope,
    usage::Measure,
};
use crate::{
    Error,
    own::{context, now, required},
    queue::{self, Sync},
};

/// How long a count is believed, as upstream. What goes by the clock, such as pods that should be gone by now, comes with no
/// change, and neither does what a kube-apiserver on the same store charged and did not write.
const RESYNC: Duration = Duration::from_secs(5 * 60);

/// Who owns what it writes.
const MANAGER: &str = "kube-controller-manager";

/// Keeps the status of ResourceQuotas true.
pub struct QuotaController {
    registry: Arc<Registry>,
    ledger: Ledger,
    storage: Arc<Storage>,
    /// What objects can use more or less of while they are there.
    measured: Vec<(Arc<Storage>, Measure)>,
    /// The namespaces that have quotas: of all others, nothing has to be looked at.
    limited: Mutex<BTreeSet<String>>,
}

impl QuotaController {
    /// For the quotas that are among the resources.
    ///
    /// # Errors
    ///
    /// [`Error::NotServed`] if there are none.
    pub fn new(registry: Arc<Registry>, resources: &Arc<dyn Resources>) -> Result<Self, Error> {
        let stored = |plural: &str| {
            let found = required(resources.as_ref(), "", "v1", plural)?;
            let storage = found.storage().cloned().expect("a required resource is stored");
            Ok::<_, Error>((storage, Measure::of(&found.group_resource())))
        };
        let measured = ["pods", "services", "persistentvolumeclaims"].into_iter().map(stored);
        let quotas = required(resources.as_ref(), "", "v1", "resourcequotas")?;
        let resources: Weak<dyn Resources> = Arc::downgrade(resources);
        Ok(Self {
            registry,
            measured: measured.collect::<Result<_, _>>()?,
            storage: stored("resourcequotas")?.0,
            ledger: Ledger { quotas, resources },
            limited: Mutex::default(),
        })
    }

    /// Goes on until it is cancelled or the replica ends.
    pub async fn run(self: Arc<Self>, cancel: CancellationToken) {
        // Every kind can be counted.
        let everything = [Scope::prefix(Bytes::new())];
        let counting = async {
            let count = || queue::run(self.as_ref(), &self.registry, &everything);
            while tokio::time::timeout(RESYNC, count()).await.is_err() {}
        };
        cancel.run_until_cancelled(counting).await;
    }

    /// Whether an object uses something else than before, or counts for other quotas.
    fn is_other(&self, current: &Entry, previous: &Entry) -> bool {
        let Some((storage, measure)) =
            self.measured.iter().find(|(storage, _)| current.key.starts_with(&storage.prefix))
        else {
            return false;
        };
        let usage = |entry: &Entry| {
            let object = storage.object(&Item::from(entry)).ok()?;
            let usage = measure.usage(&storage.resource, &object, now().unix);
            Some((usage, scope::decisive(*measure, &object)))
        };
        usage(current) != usage(previous)
    }

    /// A quota that is new, or limits something else than it says.
    fn quota(&self, namespace: &str, event: &Event, items: &mut BTreeSet<String>) {
        match &event.kind {
            EventKind::Created(entry) | EventKind::Modified { current: entry, .. } => {
                self.limited.lock().insert(namespace.to_owned());
                let quota = self.storage.object(&Item::from(entry));
                if quota.is_ok_and(|quota| Balance::of(&quota).is_none()) {
                    items.insert(namespace.to_owned());
                }
            }
            EventKind::Deleted { .. } => {}
        }
    }

    async fn count(&self, snapshot: &Snapshot, entry: &Entry, at: ObjectName<'_>) -> Result<(), Status> {
        let mut quota = self.ledger.quotas.object(&Item::from(entry))?;
        let balance = self.ledger.count(&quota, snapshot, now().unix)?;
        if Balance::of(&quota).as_ref() == Some(&balance) {
            return Ok(());
        }
        balance.write(&mut quota);
        // It is written only if it is still what was counted for: whatever was charged since counts.
        let request = UpdateRequest { name: at, part: Part::Sub("status"), object: quota };
        let context = context(MANAGER);
        Box::pin(self.registry.update(&context, &self.ledger.quotas, request)).await.map(drop)
    }
}

impl Sync for QuotaController {
    type Item = String;
    const QUEUE: &str = "resourcequota_primary";

    fn all(&self, snapshot: &Snapshot, items: &mut BTreeSet<String>) {
        let entries = snapshot.scan(&KeyRange::prefix(self.storage.prefix.clone()));
        let names = entries.filter_map(|entry| self.storage.object_name(&entry.key));
        items.extend(names.map(|at| at.namespace.to_owned()));
        *self.limited.lock() = items.clone();
    }

    fn changed(&self, _: usize, event: &Event, items: &mut BTreeSet<String>) {
        if let Some(at) = self.storage.object_name(event.key()) {
            self.quota(at.namespace, event, items);
        }
        // Objects are at the end of their keys, below their namespace.
        let Some(namespace) = event.key().rsplit(|byte| *byte == b'/').nth(1) else { return };
        let Some(namespace) =
            std::str::from_utf8(namespace).ok().filter(|name| self.limited.lock().contains(*name))
        else {
            return;
        };
        let counts = match &event.kind {
            // What comes into being was charged then.
            EventKind::Created(_) => false,
            EventKind::Modified { current, previous } => self.is_other(current, previous),
            EventKind::Deleted { .. } => true,
        };
        if counts {
            items.insert(namespace.to_owned());
        }
    }

    async fn sync(&self, namespace: &String) -> Result<(), Status> {
        let snapshot = self.registry.replica().newest().map_err(Status::internal_error)?;
        let range = KeyRange::prefix(self.storage.key_prefix(Some(namespace)));
        let quotas: Vec<Entry> = snapshot.scan(&range).cloned().collect();
        for entry in &quotas {
            if let Some(at) = self.storage.object_name(&entry.key) {
                self.count(&snapshot, entry, at).await?;
            }
        }
        if quotas.is_empty() {
            self.limited.lock().remove(namespace);
        }
        Ok(())
    }
}
