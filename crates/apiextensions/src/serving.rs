//! What is defined, and what follows for requests.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use bytes::Bytes;
use concord_endpoints::{ApiSet, Endpoint, Origin};
use concord_meta::{GroupVersion, Status};
use concord_registry::{
    Admission, Attributes, Guard, Item, Object, ObjectName, Operation, Resource, Resources, Storage, metadata,
};
use concord_replica::{Entry, Snapshot};
use concord_store::{Compare, Revision};
use concord_webhook::Client;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;

use crate::{
    definition::{Definition, Names},
    groups,
    ledger::Ledger,
    names::Conflict,
    progress::Progress,
    resources::{Place, endpoint},
    settled,
};

/// The definitions that the server knows, which custom objects it serves and when one may be written.
pub struct CustomResources {
    /// The resource of the definitions themselves.
    pub(crate) resource: Arc<Resource>,
    pub(crate) storage: Arc<Storage>,
    place: Place,
    /// The oldest minor version of Kubernetes to get along with.
    minor: u16,
    /// By the name of the definition, `plural.group`.
    known: RwLock<BTreeMap<String, Arc<Known>>>,
    ledger: Mutex<Ledger>,
    pub(crate) progress: Arc<Progress>,
}

/// What follows from a change of a definition.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// The groups in which something else is served now.
    pub(crate) groups: BTreeSet<String>,
    /// The definitions that may get names, or have something to be told.
    pub(crate) open: BTreeSet<String>,
    /// Whether the definition is being deleted.
    pub(crate) is_terminating: bool,
}

/// A definition at one revision.
pub(crate) struct Known {
    pub(crate) definition: Definition,
    /// The revision it was read at.
    revision: Revision,
    /// Since when its objects have been written as they would be now.
    since: Revision,
    endpoints: Vec<Endpoint>,
}

impl CustomResources {
    /// For the definitions that are among these resources; `None` if there are none. `prefix` is what all keys begin
    /// with, with a slash at the end. Objects of definitions that say so are converted by calling webhooks. `minor` is the
    /// oldest minor version of Kubernetes that the server has to get along with.
    pub fn new(
        resources: &dyn Resources,
        prefix: &str,
        progress: Arc<Progress>,
        webhooks: Arc<Client>,
        minor: u16,
    ) -> Option<Self> {
        let version = GroupVersion::new("apiextensions.k8s.io", "v1");
        let resource = resources.find(&version, "customresourcedefinitions")?;
        let storage = Arc::clone(resource.storage()?);
        let place = Place { prefix: prefix.to_owned(), webhooks };
        let (known, ledger) = (RwLock::default(), Mutex::default());
        Some(Self { resource, storage, place, minor, known, ledger, progress })
    }

    /// Whether everything that was defined when the server started is served.
    pub fn is_synced(&self) -> bool {
        self.progress.has_begun()
    }

    pub(crate) fn key(&self, name: &str) -> Bytes {
        self.storage.key(ObjectName { namespace: "", name })
    }

    pub(crate) fn object(&self, entry: &Entry) -> Option<Object> {
        let object = self.storage.object(&Item::from(entry));
        object.inspect_err(|error| tracing::error!(%error, "A CustomResourceDefinition cannot be read.")).ok()
    }

    /// The names of all definitions that are known.
    pub(crate) fn names(&self) -> Vec<String> {
        self.ledger.lock().definitions()
    }

    /// The resource of a definition, in whichever version.
    pub(crate) fn any_resource(&self, name: &str, object: &Object) -> Option<Arc<Resource>> {
        let made = |definition: &Definition, since| {
            let stored = definition.version(&definition.stored)?;
            Some(endpoint(&self.place, definition, stored, since).resource)
        };
        let Some(known) = self.known(name) else {
            // It may have lost its names to another one.
            return made(&Definition::read_wanted(object, self.minor)?, 0);
        };
        let served = known.endpoints.first().map(|endpoint| Arc::clone(&endpoint.resource));
        // All versions may have been turned off.
        served.or_else(|| made(&known.definition, known.since))
    }

    /// The `spec` of the definition that a resource was made from: what documents tell of the resource, and nobody else
    /// needs to keep. If the definition says something else by now, it is what it said then, as long as the replica
    /// remembers: documents are made after the resources, and are kept for ever under the hash of what they say.
    pub fn spec(&self, resource: &Resource, snapshot: &Snapshot) -> Option<Value> {
        let spec = |entry: &Entry| self.object(entry)?.remove("spec");
        match self.defining(resource, snapshot) {
            Some((_, entry, known)) if known.made(resource) => spec(&entry),
            _ => {
                let name = format!("{}.{}", resource.names.plural, resource.version.group);
                spec(snapshot.at(resource.storage()?.formed_since).ok()?.get(&self.key(&name))?)
            }
        }
    }

    fn known(&self, name: &str) -> Option<Arc<Known>> {
        self.known.read().get(name).cloned()
    }

    /// Takes note of what a definition is now, and tells what follows. `revision` is that of the change, or of the state
    /// in which it is so.
    pub(crate) fn learn(&self, name: &str, entry: Option<&Entry>, revision: Revision) -> Learned {
        let object = entry.and_then(|entry| Some((entry.mod_revision, self.object(entry)?)));
        let noted = object.as_ref().map(|(revision, object)| (*revision, object));
        let mut learned = Learned::default();
        // One that cannot be read keeps its names.
        if entry.is_none() || noted.is_some() {
            learned.open = self.ledger.lock().note(name, noted);
        }
        learned.is_terminating = noted.is_some_and(|(_, object)| metadata(object).is_terminating());
        let before = self.known(name);
        let now = noted.and_then(|(revision, object)| self.read(revision, object, before.as_deref()));
        let end = entry.map_or(revision, |entry| entry.mod_revision);
        learned.groups = self.remember(name, before.as_deref(), now, end);
        learned
    }

    /// The groups in which something else is served now. What was served before ends with the change at `end`.
    fn remember(
        &self,
        name: &str,
        before: Option<&Known>,
        now: Option<Known>,
        end: Revision,
    ) -> BTreeSet<String> {
        let same = match (before, &now) {
            (Some(before), Some(now)) => now.serves_as(before),
            (None, None) => true,
            _ => false,
        };
        let known = before.into_iter().chain(&now).filter(|_| !same);
        let groups = known.map(|known| known.definition.group.clone()).collect();
        before.into_iter().for_each(|before| before.end(now.as_ref(), end));
        match now {
            Some(now) => drop(self.known.write().insert(name.to_owned(), Arc::new(now))),
            None => drop(self.known.write().remove(name)),
        }
        groups
    }

    /// Decides which names a definition gets, as it is at this revision.
    pub(crate) fn give_names(
        &self,
        name: &str,
        revision: Revision,
        definition: &Object,
    ) -> (Names, Option<Conflict>) {
        let (wanted, accepted) = settled::names(definition);
        self.ledger.lock().give(name, revision, &wanted, &accepted)
    }

    fn read(&self, revision: Revision, object: &Object, before: Option<&Known>) -> Option<Known> {
        let definition = Definition::read(object, self.minor, before.map(|before| &before.definition))?;
        let same = before.filter(|before| before.definition.writes_as(&definition));
        let since = same.map_or(revision, |before| before.since);
        let mut endpoints = match same.filter(|before| before.definition.names == definition.names) {
            // Watchers share what is in them.
            Some(before) => before.endpoints.clone(),
            None => {
                let served = definition.versions.iter().filter(|version| version.served);
                served.map(|version| endpoint(&self.place, &definition, version, since)).collect()
            }
        };
        endpoints.iter_mut().for_each(|endpoint| endpoint.is_terminating = definition.is_terminating);
        Some(Known { definition, revision, since, endpoints })
    }

    /// A set in which these groups are what the definitions make of them. The server's own groups stay as they are,
    /// whatever somebody defines in them.
    pub(crate) fn serve(&self, set: &ApiSet, groups: &BTreeSet<String>) -> ApiSet {
        let known = self.known.read();
        let mut next: Option<ApiSet> = None;
        let is_own = |name: &&String| set.group(name).is_some_and(|group| group.origin() == Origin::BuiltIn);
        for name in groups.iter().filter(|name| !is_own(name)) {
            let served = known.values().filter(|known| known.definition.group == *name && known.is_served());
            let endpoints = served.flat_map(|known| known.endpoints.iter().cloned());
            let set = next.as_ref().unwrap_or(set);
            next = Some(match groups::group(name, endpoints) {
                Some(group) => set.with_group(group),
                None => set.without_group(name),
            });
        }
        next.unwrap_or_else(|| ApiSet::new(set.groups().iter().cloned()))
    }

    /// The definition that an object of this resource is written by, at the state of the snapshot.
    fn defining(&self, resource: &Resource, snapshot: &Snapshot) -> Option<(Bytes, Entry, Arc<Known>)> {
        let name = format!("{}.{}", resource.names.plural, resource.version.group);
        let key = self.key(&name);
        let entry = snapshot.get(&key)?.clone();
        let known = self.known(&name);
        let known = match known.filter(|known| known.revision == entry.mod_revision) {
            Some(known) => known,
            // This server has not come round to the newest definition yet.
            None => {
                let object = self.object(&entry)?;
                Arc::new(self.read(entry.mod_revision, &object, self.known(&name).as_deref())?)
            }
        };
        Some((key, entry, known))
    }
}

impl Known {
    fn is_served(&self) -> bool {
        self.definition.is_established
    }

    /// Ends the watches of what is not served any more, or in another way.
    fn end(&self, now: Option<&Self>, end: Revision) {
        let is_kept = |resource: &Arc<Resource>| {
            let mut kept = now.into_iter().flat_map(|now| &now.endpoints);
            kept.any(|endpoint| Arc::ptr_eq(&endpoint.resource, resource))
        };
        let gone = self.endpoints.iter().filter(|endpoint| !is_kept(&endpoint.resource));
        let storages = gone.filter_map(|endpoint| endpoint.resource.storage());
        storages.filter_map(|storage| storage.lifetime.as_ref()).for_each(|lifetime| lifetime.end(end));
    }

    fn serves_as(&self, other: &Self) -> bool {
        self.is_served() == other.is_served()
            && self.definition.is_terminating == other.definition.is_terminating
            && self.definition.names == other.definition.names
            && self.definition.writes_as(&other.definition)
    }

    /// Whether a resource was made from this definition, or from one that writes objects as it does.
    fn made(&self, resource: &Resource) -> bool {
        let since = resource.storage().map(|storage| storage.formed_since);
        since == Some(self.since) && self.definition.version(&resource.version.version).is_some()
    }
}

#[async_trait]
impl Admission for CustomResources {
    fn name(&self) -> &'static str {
        "CustomResourceLifecycle"
    }

    /// No custom object is written by a definition that is gone, being deleted, or another one by now.
    fn guard(
        &self,
        attributes: &Attributes<'_>,
        _object: Option<&Object>,
        snapshot: &Snapshot,
    ) -> Result<Guard, Status> {
        let resource = attributes.resource;
        let is_custom = resource.schema().is_none() && resource.storage().is_some();
        if !is_custom || attributes.operation == Operation::Delete {
            return Ok(Guard::default());
        }
        let Some((key, entry, known)) = self.defining(resource, snapshot) else {
            return Err(Status::unknown_resource());
        };
        if known.definition.is_terminating && attributes.operation == Operation::Create {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(&resource.group_resource(), attributes.name, why));
        }
        if !known.made(resource) {
            // Every client tries again by itself then.
            return Err(Status::too_many_requests(
                "the definition of this resource is changing, try again later",
                1,
            ));
        }
        Ok(Guard { compares: vec![Compare::mod_revision(key, entry.mod_revision)], writes: Vec::new() })
    }
}
