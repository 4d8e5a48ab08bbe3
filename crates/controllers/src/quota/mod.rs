//! How much of everything a namespace may have.
//!
//! What an object uses is added to its quotas in the transaction that writes the object, so that a quota is never
//! exceeded, whoever writes at the same moment; [`barrier`] is about who writes while a quota is new. Upstream charges first
//! and writes then, and charges for what could not be written until somebody counts again. What is given back, when objects
//! go or end, the controller counts.

mod barrier;
mod charge;
mod controller;
mod ledger;
mod scope;
mod usage;

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{
    Admission, Attributes, Context, Guard, Item, Object, Operation, Part, Resource, Resources, Storage,
};
use concord_replica::{Replica, Snapshot};
use concord_store::{Compare, KeyRange, Write};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

pub use self::controller::QuotaController;
use self::{
    barrier::{Barrier, limits_anew},
    charge::Charge,
    ledger::{Ledger, is_ignored},
    usage::Measure,
};
use crate::{Error, lifecycle::namespace_storage, own::required};

/// How long to wait for a turn. It only saves work: who has none has to try more often.
const WAIT_FOR_TURN: Duration = Duration::from_secs(5);

/// Lets nothing into a namespace that would exceed one of its ResourceQuotas.
pub struct ResourceQuota {
    quotas: Arc<Resource>,
    storage: Arc<Storage>,
    barrier: Barrier,
    replica: Arc<Replica>,
    resources: OnceLock<Weak<dyn Resources>>,
    turns: Mutex<HashMap<String, Weak<Turn<()>>>>,
}

/// The turn of a request, which ends with it.
#[derive(Default)]
struct Held(Mutex<Option<OwnedMutexGuard<()>>>);

impl ResourceQuota {
    /// By the quotas that are among the resources.
    ///
    /// # Errors
    ///
    /// [`Error::NotServed`] if there are none.
    pub fn new(replica: Arc<Replica>, resources: &dyn Resources) -> Result<Self, Error> {
        let quotas = required(resources, "", "v1", "resourcequotas")?;
        let storage = quotas.storage().cloned().expect("a required resource is stored");
        let barrier = Barrier { namespaces: namespace_storage(resources)? };
        Ok(Self { quotas, storage, barrier, replica, resources: OnceLock::new(), turns: Mutex::default() })
    }

    /// Says what is served. Until then nothing can be counted.
    pub fn connect(&self, resources: Weak<dyn Resources>) {
        // Whoever is first is right: there is one server.
        self.resources.set(resources).ok();
    }

    fn range(&self, namespace: &str) -> KeyRange {
        KeyRange::prefix(self.storage.key_prefix(Some(namespace)))
    }

    /// How the request is measured, if it can change what is used.
    fn measure(attributes: &Attributes<'_>, object: Option<&Object>) -> Option<Measure> {
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        if attributes.namespace.is_empty() || !attributes.resource.namespaced || !writes {
            return None;
        }
        let about = attributes.resource.group_resource();
        let measure = Measure::of(&about);
        (!is_ignored(&about) && measure.handles(attributes, object?)).then_some(measure)
    }

    /// Those who charge the same quotas take turns: otherwise all but one of them would try again and again.
    async fn take_turn(&self, attributes: &Attributes<'_>) {
        let held = attributes.context.memory::<Held>();
        if held.0.lock().is_some() {
            return;
        }
        let turn = {
            let mut turns = self.turns.lock();
            turns.retain(|_, turn| turn.strong_count() > 0);
            let slot = turns.entry(attributes.namespace.to_owned()).or_default();
            let turn = slot.upgrade().unwrap_or_default();
            *slot = Arc::downgrade(&turn);
            turn
        };
        if let Ok(guard) = tokio::time::timeout(WAIT_FOR_TURN, turn.lock_owned()).await {
            *held.0.lock() = Some(guard);
        }
    }
}

#[async_trait]
impl Admission for ResourceQuota {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let limited = Self::measure(attributes, object).is_some() && !attributes.context.dry_run;
        let newest = self.replica.newest().ok().filter(|_| limited);
        if newest.is_some_and(|snapshot| snapshot.scan(&self.range(attributes.namespace)).next().is_some()) {
            self.take_turn(attributes).await;
        }
        Ok(())
    }

    fn guard(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
        snapshot: &Snapshot,
    ) -> Result<Guard, Status> {
        let mut guard = Guard::default();
        if object.is_some_and(|object| limits_anew(attributes, object)) {
            self.barrier.raise(attributes, snapshot, &mut guard);
        }
        let Some((object, measure)) = object.zip(Self::measure(attributes, object)) else { return Ok(guard) };
        self.barrier.pass(attributes, snapshot, &mut guard);
        for entry in snapshot.scan(&self.range(attributes.namespace)) {
            // A quota that cannot be counted lets nothing in.
            let resources = self.resources.get().cloned();
            let resources = resources.ok_or_else(|| Status::internal_error("the server is starting"))?;
            let ledger = Ledger { quotas: self.quotas.clone(), resources };
            let charge = Charge { attributes, measure, object, ledger: &ledger, snapshot };
            let item = Item::from(entry);
            let Some(charged) = charge.apply(self.quotas.object(&item)?)? else { continue };
            let context = Context::of_the_server(attributes.context.now);
            let value = self.quotas.encode_changed(&context, Part::Sub("status"), &item, charged)?;
            let key = entry.key.clone();
            guard.compares.push(Compare::mod_revision(key.clone(), entry.mod_revision));
            guard.writes.push(Write::Put { key, value, ttl: None });
        }
        Ok(guard)
    }
}

/// What is at a path of an object.
fn at<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(object.get(*first)?, |value, name| value.get(name)).filter(|value| !value.is_null())
}

/// The text at a path of an object; empty if there is none.
fn text<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
