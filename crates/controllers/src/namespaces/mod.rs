//! Namespaces that are being deleted are emptied, and then let go.

mod cleanup;
mod conditions;
mod content;
mod elsewhere;
mod strangers;

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use concord_registry::{Object, ObjectName, Registry, Resource, Resources, Storage, metadata};
use concord_replica::{Closed, Entry, Error as ReplicaError, Scope, Snapshot, Subscription};
use serde_json::Value;
use tokio::{
    sync::Semaphore,
    task::{Id, JoinError, JoinSet},
};
use tokio_util::sync::CancellationToken;

use self::cleanup::Cleanup;
pub use self::elsewhere::{Elsewhere, Left};
use crate::{Error, backoff::Backoff, lifecycle::terminating, own::required};

/// How many namespaces are worked on at the same moment, as upstream's; those that wait for something do not count.
const AT_ONCE: usize = 10;

/// The finalizer in `spec.finalizers` that this controller removes.
const FINALIZER: &str = "kubernetes";

/// Follows namespaces, and has a [`Cleanup`] for each that is being deleted.
pub(crate) struct NamespaceController {
    registry: Arc<Registry>,
    resources: Arc<dyn Resources>,
    namespaces: Arc<Resource>,
    storage: Arc<Storage>,
    /// What all keys begin with.
    root: Bytes,
    passes: Arc<Semaphore>,
    elsewhere: Option<Arc<dyn Elsewhere>>,
}

/// The tasks of the namespaces that are being deleted.
#[derive(Default)]
struct Deletions {
    tasks: JoinSet<()>,
    names: HashMap<String, Id>,
}

impl NamespaceController {
    pub(crate) fn new(
        registry: Arc<Registry>,
        resources: Arc<dyn Resources>,
        elsewhere: Option<Arc<dyn Elsewhere>>,
    ) -> Result<Self, Error> {
        let namespaces = required(resources.as_ref(), "", "v1", "namespaces")?;
        let storage = namespaces.storage().cloned().expect("a required resource is stored");
        let root = storage.prefix.strip_suffix(b"namespaces/").unwrap_or(&storage.prefix);
        let root = storage.prefix.slice_ref(root);
        let passes = Arc::new(Semaphore::new(AT_ONCE));
        Ok(Self { registry, resources, namespaces, storage, root, passes, elsewhere })
    }

    /// Goes on until it is cancelled or the replica ends.
    pub(crate) async fn run(self, cancel: CancellationToken) {
        let controller = Arc::new(self);
        let mut deletions = Deletions::default();
        cancel.run_until_cancelled(controller.follow(&mut deletions)).await;
        deletions.tasks.shutdown().await;
    }

    async fn follow(self: &Arc<Self>, deletions: &mut Deletions) {
        let mut backoff = Backoff::new();
        loop {
            let scope = Scope::prefix(self.storage.prefix.clone());
            match self.registry.replica().snapshot_and_subscribe(scope) {
                Ok((snapshot, subscription)) => {
                    backoff.reset();
                    let closed = self.follow_from(&snapshot, subscription, deletions).await;
                    if matches!(closed, Closed::Shutdown | Closed::Failed) {
                        return;
                    }
                }
                Err(ReplicaError::Shutdown | ReplicaError::Failed { .. }) => return,
                Err(_) => {}
            }
            backoff.pause().await;
        }
    }

    async fn follow_from(
        self: &Arc<Self>,
        snapshot: &Snapshot,
        mut changes: Subscription,
        deletions: &mut Deletions,
    ) -> Closed {
        for entry in snapshot.scan(&changes.scope().range()) {
            self.consider(entry, deletions);
        }
        loop {
            tokio::select! {
                batch = changes.next() => match batch {
                    Ok(batch) => batch.iter().filter_map(|event| event.current()).for_each(|entry| self.consider(entry, deletions)),
                    Err(closed) => return closed,
                },
                Some(ended) = deletions.tasks.join_next_with_id() => self.ended(ended, deletions),
            }
        }
    }

    /// Begins to delete a namespace unless that is under way.
    fn consider(self: &Arc<Self>, entry: &Entry, deletions: &mut Deletions) {
        let Some(name) = self.storage.object_name(&entry.key) else { return };
        if deletions.names.contains_key(name.name) || self.doomed(entry).is_none() {
            return;
        }
        let cleanup = Cleanup::new(Arc::clone(self), name.name.to_owned());
        let task = deletions.tasks.spawn(cleanup.run());
        deletions.names.insert(name.name.to_owned(), task.id());
    }

    /// A namespace may have come back and be on its way out again before the task of the first one ended.
    fn ended(self: &Arc<Self>, ended: Result<(Id, ()), JoinError>, deletions: &mut Deletions) {
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(%error, "The deletion of a namespace did not end well.");
                error.id()
            }
        };
        let name = deletions.names.iter().find(|(_, task)| **task == id).map(|(name, _)| name.clone());
        let Some(name) = name else { return };
        deletions.names.remove(&name);
        let Ok(snapshot) = self.registry.replica().newest() else { return };
        if let Some(entry) = snapshot.get(&self.key(&name)) {
            self.consider(entry, deletions);
        }
    }

    fn key(&self, name: &str) -> Bytes {
        self.storage.key(ObjectName { namespace: "", name })
    }

    /// The namespace, if it is being deleted and waits for this controller.
    fn doomed(&self, entry: &Entry) -> Option<Object> {
        terminating(&self.storage, entry).filter(|namespace| finalizers(namespace).contains(&FINALIZER))
    }
}

/// What keeps a namespace from going away besides `metadata.finalizers`.
fn finalizers(namespace: &Object) -> Vec<&str> {
    let spec = namespace.get("spec").and_then(Value::as_object);
    let items = spec.and_then(|spec| spec.get("finalizers")).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The uid: a namespace that was made again under the same name is another one.
fn uid(namespace: &Object) -> &str {
    metadata(namespace).uid()
}
