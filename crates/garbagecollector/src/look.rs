//! Looks at an object and its owners in one state of the log.

use std::sync::Arc;

use concord_registry::{Item, ObjectName, Resource};
use concord_replica::{Entry, Snapshot};
use concord_store::{Compare, KeyRange, MAX_KEY_BYTES};

use crate::{
    Metadata, OwnerReference, Uid,
    decide::{Decision, Dependents, Owner, decide},
    kinds::Kinds,
    metadata::stored_type,
    view::{GraphState, Known},
};

/// What there is to look with.
pub(crate) struct Look<'a> {
    pub(crate) kinds: &'a Kinds,
    pub(crate) state: &'a GraphState,
    pub(crate) snapshot: &'a Snapshot,
}

/// What was seen of an object.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) item: Item,
    pub(crate) uid: String,
    pub(crate) decision: Decision,
    /// What must still hold for the decision to be right.
    pub(crate) proof: Vec<Compare>,
    /// The references to owners that are not in the namespace that they should be in.
    pub(crate) missing: Vec<Missing>,
}

/// A reference to an owner that is not where objects of its kind have to be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Missing {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// An owner, and what must hold for it to be what it was found to be. There is nothing to prove about one that is to stay.
struct Found {
    owner: Owner,
    proof: Option<Compare>,
    /// Whether it may be in another namespace.
    is_missing: bool,
}

impl From<Owner> for Found {
    fn from(owner: Owner) -> Self {
        Self { owner, proof: None, is_missing: false }
    }
}

impl Look<'_> {
    /// The resource that an object is of, and what is it called there; `None` if it is not served here.
    pub(crate) fn resource(&self, entry: &Entry) -> Option<Arc<Resource>> {
        let (_, api_version) = stored_type(&entry.value).unwrap_or_default();
        self.kinds.of_key(&entry.key, api_version)
    }

    /// What is to become of an object; `None` if there is nothing that could be decided about.
    pub(crate) fn at(&self, entry: &Entry, namespace: &str) -> Option<Seen> {
        let item = Metadata::read(&entry.value)?;
        let known = self.state.known();
        let found: Vec<Found> =
            item.owner_references.iter().map(|reference| self.owner(&known, reference, namespace)).collect();
        let dependents = dependents(&known, &item);
        drop(known);
        let owners: Vec<Owner> = found.iter().map(|found| found.owner).collect();
        let decision = match self.kinds.is_current() {
            true => decide(&item, &owners, dependents),
            // A kind may be served differently than its definition says by now.
            false => Decision::Ask,
        };
        let missing = item.owner_references.iter().zip(&found).filter(|(_, found)| found.is_missing);
        let missing = missing.map(|(reference, _)| Missing::from(reference)).collect();
        let proof = found.into_iter().enumerate().filter(|(at, _)| rests_on(&decision, *at));
        let proof = proof.filter_map(|(_, found)| found.proof).collect();
        Some(Seen { item: Item::from(entry), uid: item.uid.into_owned(), decision, proof, missing })
    }

    fn owner(&self, known: &Known, reference: &OwnerReference<'_>, namespace: &str) -> Found {
        let uid = Uid::from(reference.uid.as_ref());
        if let Some(key) = known.graph.tombstone(&uid) {
            match self.snapshot.get(key) {
                None => return absent(Compare::absent(key.clone())),
                Some(entry) if !is(entry, reference) => return replaced(entry),
                // The graph is ahead of this state.
                Some(_) => {}
            }
        }
        // It lets go of everything that names its uid, whatever else the reference says.
        let orphaning = known.graph.orphaning(&uid).and_then(|key| self.snapshot.get(key));
        if let Some(found) = orphaning.map(|entry| there(entry, reference))
            && found.owner == Owner::Orphaning
        {
            return found;
        }
        let resource = self.kinds.of_kind(&reference.api_version, &reference.kind);
        let Some((resource, storage)) = resource.as_ref().and_then(|found| Some((found, found.storage()?)))
        else {
            return Owner::Unknown.into();
        };
        // No request could be made for such a name.
        if reference.name.contains('/') || reference.name.is_empty() {
            return Owner::Misplaced.into();
        }
        if resource.namespaced && namespace.is_empty() {
            return Found { is_missing: true, ..Owner::Misplaced.into() };
        }
        let namespace = if resource.namespaced { namespace } else { "" };
        let key = storage.key(ObjectName { namespace, name: &reference.name });
        let Some(entry) = self.snapshot.get(&key) else {
            let proof = (key.len() <= MAX_KEY_BYTES).then(|| Compare::absent(key));
            return Found { owner: Owner::Absent, proof, is_missing: resource.namespaced };
        };
        there(entry, reference)
    }

    /// Whether the owner is in some namespace after all.
    pub(crate) fn is_elsewhere(&self, missing: &Missing) -> bool {
        let resource = self.kinds.of_kind(&missing.api_version, &missing.kind);
        let namespaces = self.kinds.of_kind("v1", "Namespace");
        let storage = |resource: Option<&Arc<Resource>>| resource.and_then(|found| found.storage().cloned());
        let (Some(storage), Some(namespaces)) = (storage(resource.as_ref()), storage(namespaces.as_ref()))
        else {
            return false;
        };
        let all = self.snapshot.scan(&KeyRange::prefix(namespaces.prefix.clone()));
        all.filter_map(|entry| namespaces.object_name(&entry.key)).any(|namespace| {
            let name = ObjectName { namespace: namespace.name, name: &missing.name };
            let found = self.snapshot.get(&storage.key(name)).and_then(|entry| Metadata::read(&entry.value));
            found.is_some_and(|metadata| metadata.uid == missing.uid.as_str())
        })
    }
}

impl From<&OwnerReference<'_>> for Missing {
    fn from(reference: &OwnerReference<'_>) -> Self {
        let [api_version, kind, name, uid] =
            [&reference.api_version, &reference.kind, &reference.name, &reference.uid]
                .map(|text| text.clone().into_owned());
        Self { api_version, kind, name, uid }
    }
}

fn absent(proof: Compare) -> Found {
    Found { owner: Owner::Absent, proof: Some(proof), is_missing: false }
}

/// There is another object of that name. An object keeps its uid for as long as it exists.
fn replaced(entry: &Entry) -> Found {
    absent(Compare::create_revision(entry.key.clone(), entry.create_revision))
}

fn is(entry: &Entry, reference: &OwnerReference<'_>) -> bool {
    Metadata::read(&entry.value).is_some_and(|metadata| metadata.uid == reference.uid)
}

/// What an object is that stands where the reference says.
fn there(entry: &Entry, reference: &OwnerReference<'_>) -> Found {
    let Some(metadata) = Metadata::read(&entry.value) else { return Owner::Unknown.into() };
    if metadata.uid != reference.uid {
        return replaced(entry);
    }
    let owner = match (metadata.is_orphaning(), metadata.is_waiting()) {
        (true, _) => Owner::Orphaning,
        (_, true) => Owner::Waiting,
        _ => return Owner::Solid.into(),
    };
    let proof = Some(Compare::mod_revision(entry.key.clone(), entry.mod_revision));
    Found { owner, proof, is_missing: false }
}

fn dependents(known: &Known, item: &Metadata<'_>) -> Dependents {
    let (graph, uid) = (&known.graph, Uid::from(item.uid.as_ref()));
    let (any, blocking) = (graph.has_dependents(&uid), graph.is_blocked(&uid));
    Dependents {
        any,
        blocking,
        waiting: any && !item.is_deleting && graph.has_waiting_dependent(&uid),
        circular: blocking && item.is_waiting() && graph.waits_for_itself(&uid),
    }
}

/// Whether a decision would be another one if the owner at this position were not what it is.
fn rests_on(decision: &Decision, at: usize) -> bool {
    match decision {
        Decision::Delete(_) => true,
        Decision::Disown(references) => references.contains(&at),
        Decision::Keep | Decision::Ask | Decision::Unblock | Decision::Release(_) => false,
    }
}
