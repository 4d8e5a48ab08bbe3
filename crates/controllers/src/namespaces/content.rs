use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use concord_registry::{Item, Object, Resource, Resources, Verb, metadata};
use concord_replica::{Entry, Snapshot};
use concord_store::KeyRange;

use super::{elsewhere::Left, strangers::Strangers};

/// What is in a namespace.
#[derive(Default)]
pub(super) struct Content {
    /// By resource. Those of which there is nothing are not there.
    pub(super) kinds: Vec<Kind>,
    /// What is not served here.
    pub(super) strangers: Strangers,
}

/// The objects of one resource.
pub(super) struct Kind {
    pub(super) resource: Arc<Resource>,
    pub(super) entries: Vec<Entry>,
}

/// What holds up the deletion of a namespace, counted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// How many objects there are, by `plural.group`.
    pub(super) objects: BTreeMap<String, usize>,
    /// How many objects each finalizer is on.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// How many objects there are that are not served here, by the version they are stored in.
    pub(super) strangers: BTreeMap<String, usize>,
    /// The versions of other servers of which it is not known what there is, and why.
    pub(super) undiscovered: BTreeMap<String, String>,
}

impl Totals {
    /// Counts what is left on other servers, too.
    pub(super) fn add(&mut self, left: &Left) {
        for (counts, more) in [(&mut self.objects, &left.objects), (&mut self.finalizers, &left.finalizers)] {
            for (name, count) in more {
                *counts.entry(name.clone()).or_default() += count;
            }
        }
        self.undiscovered.extend(left.undiscovered.clone());
    }
}

impl Content {
    /// What is in a namespace at some moment, Pods first.
    pub(super) fn of(resources: &dyn Resources, snapshot: &Snapshot, root: &Bytes, namespace: &str) -> Self {
        let kinds = deletable(resources).into_iter().filter_map(|resource| {
            let range = KeyRange::prefix(resource.storage()?.key_prefix(Some(namespace)));
            let entries: Vec<Entry> = snapshot.scan(&range).cloned().collect();
            (!entries.is_empty()).then_some(Kind { resource, entries })
        });
        let mut kinds: Vec<Kind> = kinds.collect();
        kinds.sort_by_key(|kind| !kind.is_pods());
        Self { kinds, strangers: Strangers::find(resources, snapshot, root, namespace) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.strangers.is_empty()
    }

    /// What is to be deleted now: while there are Pods nothing else, so that nothing they use is taken from under them.
    pub(super) fn stage(&self) -> &[Kind] {
        match self.kinds.first() {
            Some(first) if first.is_pods() => &self.kinds[..1],
            _ => &self.kinds,
        }
    }

    /// How much is left, and what holds it.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals { strangers: self.strangers.objects.clone(), ..Totals::default() };
        for kind in &self.kinds {
            totals.objects.insert(kind.name(), kind.entries.len());
            for object in kind.objects() {
                for finalizer in metadata(&object).finalizers() {
                    *totals.finalizers.entry(finalizer.to_owned()).or_default() += 1;
                }
            }
        }
        totals
    }

    /// How many of the objects that are to be deleted now nobody has begun to delete.
    pub(super) fn untouched(&self) -> usize {
        let objects = self.stage().iter().flat_map(Kind::objects);
        objects.filter(|object| !metadata(object).is_terminating()).count()
    }
}

impl Kind {
    /// The resource as conditions name it, with the dot also where there is no group.
    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.resource.names.plural, self.resource.version.group)
    }

    fn is_pods(&self) -> bool {
        self.resource.version.group.is_empty() && self.resource.names.plural == "pods"
    }

    /// The objects that can be read; that others cannot be is said by their deletion.
    fn objects(&self) -> impl Iterator<Item = Object> {
        let storage = self.resource.storage();
        self.entries.iter().filter_map(move |entry| storage?.object(&Item::from(entry)).ok())
    }
}

/// The resources whose objects go with their namespace. Several versions of a kind, and the two groups of Events, have
/// one storage; they are there once.
fn deletable(resources: &dyn Resources) -> Vec<Arc<Resource>> {
    let mut found: Vec<Arc<Resource>> = Vec::new();
    for resource in resources.all() {
        let Some(storage) = resource.storage() else { continue };
        let known =
            |other: &Arc<Resource>| other.storage().is_some_and(|known| known.prefix == storage.prefix);
        if resource.namespaced && resource.allows(Verb::Delete) && !found.iter().any(known) {
            found.push(resource);
        }
    }
    found
}
