//! A store with the rules of the server about deletes and finalizers, as simple as can be.

use std::{borrow::Cow, collections::BTreeMap};

use concord_garbagecollector::{Metadata, OwnerReference};

pub(crate) type Name = usize;
pub(crate) type Uid = u32;

pub(crate) const ORPHAN: &str = "orphan";
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// A finalizer of somebody else.
pub(crate) const HELD: &str = "example.com/held";

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    pub(crate) name: Name,
    pub(crate) uid: Uid,
    pub(crate) blocks: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) uid: Uid,
    pub(crate) owners: Vec<Reference>,
    pub(crate) finalizers: Vec<&'static str>,
    pub(crate) is_deleting: bool,
    pub(crate) revision: u64,
}

impl Object {
    fn is(&self, finalizer: &str) -> bool {
        self.is_deleting && self.finalizers.contains(&finalizer)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.is(FOREGROUND)
    }

    pub(crate) fn is_orphaning(&self) -> bool {
        self.is(ORPHAN)
    }

    pub(crate) fn metadata(&self) -> Metadata<'static> {
        let reference = |reference: &Reference| OwnerReference {
            name: Cow::Owned(reference.name.to_string()),
            uid: Cow::Owned(reference.uid.to_string()),
            block_owner_deletion: reference.blocks.then_some(true),
            ..OwnerReference::default()
        };
        Metadata {
            uid: Cow::Owned(self.uid.to_string()),
            owner_references: self.owners.iter().map(reference).collect(),
            finalizers: self.finalizers.iter().map(|name| (*name).to_owned()).collect(),
            is_deleting: self.is_deleting,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    pub(crate) objects: BTreeMap<Name, Object>,
    pub(crate) revision: u64,
    pub(crate) next_uid: Uid,
}

impl World {
    /// The owner that a reference leads to.
    pub(crate) fn owner(&self, reference: &Reference) -> Option<&Object> {
        self.objects.get(&reference.name).filter(|object| object.uid == reference.uid)
    }

    /// Whether an object with this uid lets its dependents go.
    pub(crate) fn is_orphaning(&self, uid: Uid) -> bool {
        self.objects.values().any(|object| object.uid == uid && object.is_orphaning())
    }

    pub(crate) fn create(&mut self, name: Name, owners: Vec<Reference>, finalizers: Vec<&'static str>) {
        if self.objects.contains_key(&name) {
            return;
        }
        self.next_uid += 1;
        self.revision += 1;
        let (uid, revision) = (self.next_uid, self.revision);
        self.objects.insert(name, Object { uid, owners, finalizers, is_deleting: false, revision });
    }

    /// Changes an object. If nothing keeps it any more, it goes.
    pub(crate) fn change(&mut self, name: Name, change: impl FnOnce(&mut Object)) {
        let Some(object) = self.objects.get_mut(&name) else { return };
        change(object);
        self.revision += 1;
        object.revision = self.revision;
        if object.is_deleting && object.finalizers.is_empty() {
            self.objects.remove(&name);
        }
    }

    /// What a delete does: the finalizer of its policy replaces that of another one.
    pub(crate) fn delete(&mut self, name: Name, finalizer: Option<&'static str>) {
        self.change(name, |object| {
            object.finalizers.retain(|name| ![ORPHAN, FOREGROUND].contains(name));
            object.finalizers.extend(finalizer);
            object.is_deleting = true;
        });
    }
}

/// The garbage collector as one would write it without a thought for how long it takes: looks at everything again and
/// again until nothing is left to do.
pub(crate) fn collect(world: &mut World) {
    let mut goes_on = true;
    while goes_on {
        assert!(world.revision < 100_000, "no end is in sight: {world:?}");
        let names: Vec<Name> = world.objects.keys().copied().collect();
        goes_on = names.into_iter().any(|name| world.objects.contains_key(&name) && step(world, name));
    }
}

/// Does something about an object. False if there is nothing to do.
fn step(world: &mut World, name: Name) -> bool {
    let object = world.objects[&name].clone();
    let of = |reference: &Reference| world.owner(reference).cloned();
    let orphaning = |reference: &Reference| world.is_orphaning(reference.uid);
    let waiting = |reference: &Reference| of(reference).is_some_and(|owner| owner.is_waiting());
    let refers = |other: &Object, blocks: bool| {
        other.owners.iter().any(|owner| owner.uid == object.uid && (owner.blocks || !blocks))
    };
    let has_dependents = |blocking: bool| world.objects.values().any(|other| refers(other, blocking));
    if object.owners.iter().any(orphaning) {
        let kept = object.owners.iter().filter(|owner| !orphaning(owner)).cloned().collect();
        world.change(name, |object| object.owners = kept);
    } else if object.is_orphaning() && !has_dependents(false) {
        world.change(name, |object| object.finalizers.retain(|name| *name != ORPHAN));
    } else if object.is_waiting() && (!has_dependents(true) || is_circular(world, object.uid)) {
        world.change(name, |object| object.finalizers.retain(|name| *name != FOREGROUND));
    } else if object.is_deleting || object.owners.is_empty() {
        return false;
    } else if object.owners.iter().any(|owner| of(owner).is_some() && !waiting(owner)) {
        let kept = |owner: &&Reference| of(owner).is_some() && !waiting(owner);
        let kept: Vec<Reference> = object.owners.iter().filter(kept).cloned().collect();
        if kept == object.owners {
            return false;
        }
        world.change(name, |object| object.owners = kept);
    } else {
        let foreground = object.owners.iter().any(waiting) && has_dependents(false);
        let own = object.finalizers.iter().find(|name| [ORPHAN, FOREGROUND].contains(name)).copied();
        world.delete(name, if foreground { Some(FOREGROUND) } else { own });
    }
    true
}

/// Whether an object waits for itself, through others that wait.
fn is_circular(world: &World, uid: Uid) -> bool {
    let (mut reached, mut before) = (vec![uid], 0);
    while reached.len() > before {
        before = reached.len();
        for object in world.objects.values().filter(|object| object.is_waiting()) {
            let blocks = object.owners.iter().any(|owner| owner.blocks && reached.contains(&owner.uid));
            if blocks && object.uid == uid {
                return true;
            }
            if blocks && !reached.contains(&object.uid) {
                reached.push(object.uid);
            }
        }
    }
    false
}
