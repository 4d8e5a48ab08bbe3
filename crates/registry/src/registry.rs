use std::sync::Arc;

use concord_meta::{Status, options::ReadAt};
use concord_replica::Replica;
use concord_store::{Store, Txn};

use crate::{Admission, Gate, Item, ObjectName, Observer, QueueEvent, Storage};

/// Carries out the verbs on the log.
pub struct Registry {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) replica: Arc<Replica>,
    pub(crate) admission: Vec<Arc<dyn Admission>>,
    pub(crate) gate: Option<Arc<dyn Gate>>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

impl Registry {
    /// A registry that writes to the store and reads from its replica. Admission is asked in the order given.
    pub fn new(store: Arc<dyn Store>, replica: Arc<Replica>, admission: Vec<Arc<dyn Admission>>) -> Self {
        Self { store, replica, admission, gate: None, observer: None }
    }

    /// The same, but every write has to pass this gate.
    #[must_use]
    pub fn with_gate(self, gate: Arc<dyn Gate>) -> Self {
        Self { gate: Some(gate), ..self }
    }

    /// The same, but somebody hears how long the store takes.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Tells whoever observes of something that happened to the queue of a controller.
    pub fn observe_queue(&self, queue: &'static str, event: QueueEvent) {
        if let Some(observer) = &self.observer {
            observer.queue(queue, event);
        }
    }

    /// The replica the registry reads from.
    pub fn replica(&self) -> &Arc<Replica> {
        &self.replica
    }

    /// The store the registry writes to.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// A transaction that is committed only while this server is the one it says it is: for what is no object, and still must
    /// not be written by a process that another one has superseded. May wait as every write does.
    ///
    /// # Errors
    ///
    /// Why this server cannot write now.
    pub async fn begin(&self) -> Result<Txn, Status> {
        let mut txn = Txn::new();
        if let Some(gate) = &self.gate {
            gate.pass(&mut txn).await?;
        }
        Ok(txn)
    }

    /// One object.
    ///
    /// # Errors
    ///
    /// 404, 504 for a state that is not here yet.
    pub async fn get(
        &self,
        storage: &Storage,
        object: ObjectName<'_>,
        read_at: ReadAt,
    ) -> Result<Item, Status> {
        let snapshot = self.snapshot(read_at).await?;
        let entry = snapshot.get(&storage.key(object));
        entry.map(Item::from).ok_or_else(|| Status::not_found(&storage.resource, object.name))
    }
}
