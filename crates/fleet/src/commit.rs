//! Carries out what was decided.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use concord_merge::apply::Time;
use concord_meta::Status;
use concord_registry::{Context, Item, Object, ObjectName, Part, Registry, metadata_mut};
use concord_storageversion::{
    ENCRYPTION_ANNOTATION, Fence, Found, Holds, Owner, Status as Versions, Step, derive,
    encryption_annotation,
};
use concord_store::{Compare, Error as StoreError, Revision, Txn, Write};
use rand::RngExt as _;
use serde_json::{Value, json};

use crate::{
    fleet::{Fleet, lease_key},
    view::{Known, StoredVersion},
};

/// How long to wait until what was written can be seen here.
const SEEN: Duration = Duration::from_secs(10);

/// Why something could not be committed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What it was decided on has changed: decide again.
    Conflict,
    /// The store did not take it.
    Failed(String),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Failed(status.message)
    }
}

/// A step, and what of the log it builds on.
pub(crate) struct Planned {
    pub(crate) step: Step,
    item: Option<Item>,
    before: Versions,
    owner: Option<Owner>,
}

impl Planned {
    pub(crate) fn new(step: Step, stored: Option<&StoredVersion>, owner: Option<Owner>) -> Self {
        Self {
            item: stored.map(|stored| stored.item.clone()),
            before: stored.map(|stored| stored.status.clone()).unwrap_or_default(),
            step,
            owner,
        }
    }
}

pub(crate) struct Committer {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) registry: Arc<Registry>,
}

/// Seconds since 1970.
pub(crate) fn now() -> Time {
    Time { unix: now_milliseconds() / 1000 }
}

pub(crate) fn now_milliseconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl Committer {
    pub(crate) fn context() -> Context {
        Context::of_the_server(now())
    }

    /// Commits several steps at once, with whatever else is to happen along with them.
    pub(crate) async fn commit(&self, planned: &[Planned], mut txn: Txn) -> Result<(), Failure> {
        for planned in planned {
            let compares = planned.step.holds.iter().map(|holds| self.compare(holds));
            for compare in compares.collect::<Vec<_>>() {
                if !txn.compares.contains(&compare) {
                    txn.compares.push(compare);
                }
            }
            txn.writes.push(self.write(planned)?);
        }
        self.transact(txn).await
    }

    /// Commits, and returns when this server sees it.
    pub(crate) async fn transact(&self, txn: Txn) -> Result<(), Failure> {
        match self.registry.store().transact(txn).await {
            Ok(committed) => self.seen(committed.revision).await,
            Err(StoreError::CompareFailed(failed)) => {
                self.seen(failed.revision).await?;
                Err(Failure::Conflict)
            }
            Err(error) => Err(Failure::Failed(error.to_string())),
        }
    }

    async fn seen(&self, revision: Revision) -> Result<(), Failure> {
        let seen = self.registry.replica().not_older_than(revision, SEEN).await;
        seen.map(drop).map_err(|error| Failure::Failed(error.to_string()))
    }

    /// What the registration of this server's own StorageVersions demands of a write of one.
    pub(crate) fn own_gate(&self, known: &Known, fence: &Fence) -> Option<Vec<Holds>> {
        let versions = self.fleet.versions.as_ref()?.storage()?;
        let (group, resource) = (&versions.resource.group, &versions.resource.resource);
        let name = concord_storageversion::object_name(group, resource);
        let found: Option<Found<'_>> = known.versions.get(&name).map(StoredVersion::found);
        let encoding = versions.encoding.to_string();
        let open = concord_storageversion::gate(Some(fence), &name, found.as_ref(), &encoding);
        open.ok().map(Vec::from)
    }

    pub(crate) fn compare(&self, holds: &Holds) -> Compare {
        let lease = |id: &str| lease_key(&self.fleet.leases, id);
        match holds {
            Holds::LeaseSince(id, since) => Compare::create_revision(lease(id), *since),
            Holds::LeaseAbsent(id) => Compare::absent(lease(id)),
            Holds::LeaseAt(id, at) => Compare::mod_revision(lease(id), *at),
            Holds::StorageVersionAt(name, at) => Compare::mod_revision(self.version_key(name), *at),
            Holds::StorageVersionAbsent(name) => Compare::absent(self.version_key(name)),
            Holds::DefinitionAt(name, at) => Compare::mod_revision(self.definition_key(name), *at),
        }
    }

    fn version_key(&self, name: &str) -> Bytes {
        let storage = self.fleet.versions.as_ref().and_then(|versions| versions.storage());
        let storage = storage.expect("steps are made only where versions are registered");
        storage.key(ObjectName { namespace: "", name })
    }

    fn definition_key(&self, name: &str) -> Bytes {
        let definitions = self.fleet.definitions.as_ref();
        let definitions = definitions.expect("records of definitions are made only where there are any");
        definitions.key(ObjectName { namespace: "", name })
    }

    fn write(&self, planned: &Planned) -> Result<Write, Failure> {
        let Planned { step, item, before, owner } = planned;
        let key = self.version_key(&step.name);
        let Some(entries) = &step.entries else { return Ok(Write::Delete { key }) };
        let resource = self.fleet.versions.as_ref().expect("checked where the key was made");
        let context = Self::context();
        let item = match item {
            Some(item) => item.clone(),
            None => {
                let new = json!({"metadata": {"name": step.name}, "spec": {}});
                let (key, value) = resource.encode_new(&context, "", object(new))?;
                Item { key, value, revision: None }
            }
        };
        let mut changed = resource.object(&item)?;
        let generation = concord_registry::metadata(&changed).generation();
        let status = derive(before, entries.clone(), generation, &context.now.to_string());
        changed.insert("status".to_owned(), status.value());
        annotate(&mut changed, encryption_annotation(entries));
        if let Some(owner) = owner {
            metadata_mut(&mut changed).insert("ownerReferences".to_owned(), owner_references(owner));
        }
        let value = resource.encode_changed(&context, Part::Sub("status"), &item, changed)?;
        Ok(Write::Put { key, value, ttl: None })
    }
}

/// Says in an object what each server encrypts with.
fn annotate(object: &mut Object, said: Option<String>) {
    let metadata = metadata_mut(object);
    let mut annotations = match metadata.remove("annotations") {
        Some(Value::Object(annotations)) => annotations,
        _ => Object::new(),
    };
    match said {
        Some(said) => drop(annotations.insert(ENCRYPTION_ANNOTATION.to_owned(), said.into())),
        None => drop(annotations.remove(ENCRYPTION_ANNOTATION)),
    }
    if !annotations.is_empty() {
        metadata.insert("annotations".to_owned(), Value::Object(annotations));
    }
}

/// The definition is the owner: with it, the object goes.
pub(crate) fn owner_references(owner: &Owner) -> Value {
    json!([{
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "name": owner.name, "uid": owner.uid,
    }])
}

pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// Pauses that double from failure to failure, with jitter, so that servers that are in each other's way go apart.
pub(crate) struct Backoff {
    least: Duration,
    most: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(least: Duration, most: Duration) -> Self {
        Self { least, most, next: least }
    }

    pub(crate) fn reset(&mut self) {
        self.next = self.least;
    }

    pub(crate) async fn pause(&mut self) {
        let nominal = self.next.min(self.most);
        self.next = nominal * 2;
        let pause = nominal.mul_f64(rand::rng().random_range(0.5..=1.0));
        tokio::time::sleep(pause).await;
    }
}
