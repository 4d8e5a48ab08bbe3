//! Who depends on whom, as far as it takes to know whom a change concerns.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ops::Bound,
    sync::Arc,
};

use bytes::Bytes;

use crate::{Metadata, Uid};

/// Where an object is stored.
pub type Key = Arc<[u8]>;

/// One owner reference, seen from the owner. The order puts those first that the owner has to wait for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    owner: Uid,
    is_loose: bool,
    dependent: Key,
}

/// The owner references of all objects, by owner.
///
/// The graph says where to look, never what is so: every decision is made on the stored objects themselves. It is exact all
/// the same, since it is fed every change before anybody can read it. Objects that have no owners take no room in it.
#[derive(Debug, Default)]
pub struct Graph {
    edges: BTreeSet<Edge>,
    /// Objects that wait until their dependents are gone.
    waiting: Ending,
    /// Objects that wait until their dependents have been let go.
    orphaning: Ending,
    /// Objects that were seen to go while others referred to them, and where they were. No uid is ever given twice, so
    /// that what is in here is gone for good, whether its kind is still served or not.
    gone: HashMap<Uid, Bytes>,
}

/// Objects whose end is under way.
#[derive(Debug, Default)]
struct Ending {
    by_uid: HashMap<Uid, Key>,
    by_key: HashMap<Key, Uid>,
}

impl Ending {
    fn set(&mut self, uid: &Uid, key: &Key, is_in: bool) {
        if is_in {
            self.by_uid.insert(uid.clone(), key.clone());
            self.by_key.insert(key.clone(), uid.clone());
        } else if self.by_uid.remove(uid).is_some() {
            self.by_key.remove(key);
        }
    }
}

/// What an object was and is.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// Where.
    pub key: &'a [u8],
    /// Before; `None` if it did not exist, or could not be read.
    pub before: Option<&'a Metadata<'a>>,
    /// Now.
    pub now: Option<&'a Metadata<'a>>,
}

impl Graph {
    /// Takes in a change, and names every object that has to be looked at because of it.
    pub fn apply(&mut self, change: Change<'_>, look_at: &mut dyn FnMut(&Key)) {
        let Change { key, before, now } = change;
        let key: Key = key.into();
        self.connect(&key, before, now, look_at);
        let same = matches!((before, now), (Some(before), Some(now)) if before.uid == now.uid);
        if let Some(before) = before.filter(|_| !same) {
            self.remove(&Uid::from(before.uid.as_ref()), &key, look_at);
        }
        if let Some(now) = now {
            self.notice(&key, before.filter(|_| same), now, look_at);
        }
    }

    /// Whatever may have been missed: everything that has an owner or whose end is under way.
    pub fn all(&self) -> impl Iterator<Item = &Key> {
        let dependents = self.edges.iter().map(|edge| &edge.dependent);
        dependents.chain(self.waiting.by_key.keys()).chain(self.orphaning.by_key.keys())
    }

    /// How many owner references there are.
    pub fn len(&self) -> usize {
        self.edges.len()
    }

    /// Whether nothing has an owner.
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// The objects that refer to this one, first those that it has to wait for.
    pub fn dependents(&self, owner: &Uid) -> impl Iterator<Item = &Key> {
        self.edges_of(owner).map(|edge| &edge.dependent)
    }

    /// Whether anything refers to the object.
    pub fn has_dependents(&self, owner: &Uid) -> bool {
        self.edges_of(owner).next().is_some()
    }

    /// Whether the object has to wait for a dependent.
    pub fn is_blocked(&self, owner: &Uid) -> bool {
        self.blocking(owner).next().is_some()
    }

    /// Whether a dependent of the object waits for dependents of its own.
    pub fn has_waiting_dependent(&self, owner: &Uid) -> bool {
        let waits = |key| self.waiting.by_key.contains_key(key);
        !self.waiting.by_key.is_empty() && self.dependents(owner).any(waits)
    }

    /// Whether an object that waits for its dependents waits for itself in the end. The last one to begin closes the circle,
    /// and it is looked at then.
    pub fn waits_for_itself(&self, uid: &Uid) -> bool {
        let (mut seen, mut open) = (HashSet::new(), vec![uid]);
        while let Some(next) = open.pop() {
            for key in self.blocking(next) {
                match self.waiting.by_key.get(key) {
                    Some(dependent) if dependent == uid => return true,
                    Some(dependent) if seen.insert(dependent) => open.push(dependent),
                    _ => {}
                }
            }
        }
        false
    }

    /// Where an object is that waits until its dependents have been let go.
    pub fn orphaning(&self, uid: &Uid) -> Option<&Key> {
        self.orphaning.by_uid.get(uid)
    }

    /// Where an object was that is known to be gone.
    pub fn tombstone(&self, uid: &Uid) -> Option<&Bytes> {
        self.gone.get(uid)
    }

    /// Keeps what is still needed of what another graph knew to be gone: this one was made anew from a later state.
    pub fn inherit(&mut self, older: Self) {
        let gone = older.gone.into_iter().filter(|(uid, _)| self.edges_of(uid).next().is_some());
        let gone: Vec<(Uid, Bytes)> = gone.collect();
        self.gone.extend(gone);
    }

    fn edges_of(&self, owner: &Uid) -> impl Iterator<Item = &Edge> {
        let first = Edge { owner: owner.clone(), is_loose: false, dependent: Arc::default() };
        let edges = self.edges.range((Bound::Included(first), Bound::Unbounded));
        let owner = owner.clone();
        edges.take_while(move |edge| edge.owner == owner)
    }

    fn blocking(&self, owner: &Uid) -> impl Iterator<Item = &Key> {
        self.edges_of(owner).take_while(|edge| !edge.is_loose).map(|edge| &edge.dependent)
    }

    fn connect(
        &mut self,
        key: &Key,
        before: Option<&Metadata<'_>>,
        now: Option<&Metadata<'_>>,
        look_at: &mut dyn FnMut(&Key),
    ) {
        let owners = |metadata: Option<&Metadata<'_>>| metadata.map(edges).unwrap_or_default();
        if before.map(|before| &before.owner_references) == now.map(|now| &now.owner_references) {
            return;
        }
        let (left, right) = (owners(before), owners(now));
        // First what comes and then what goes: a tombstone that is needed after the change must not be lost in it.
        for (owner, is_loose) in right.difference(&left) {
            self.edges.insert(Edge { owner: owner.clone(), is_loose: *is_loose, dependent: key.clone() });
        }
        for (owner, is_loose) in left.difference(&right) {
            self.disconnect(owner, *is_loose, key, look_at);
        }
    }

    /// Takes out a reference. Whoever waited for it may go on.
    fn disconnect(&mut self, owner: &Uid, is_loose: bool, key: &Key, look_at: &mut dyn FnMut(&Key)) {
        self.edges.remove(&Edge { owner: owner.clone(), is_loose, dependent: key.clone() });
        if let Some(waiting) = self.waiting.by_uid.get(owner).filter(|_| !self.is_blocked(owner)) {
            look_at(waiting);
        }
        if self.has_dependents(owner) {
            return;
        }
        self.gone.remove(owner);
        if let Some(orphaning) = self.orphaning.by_uid.get(owner) {
            look_at(orphaning);
        }
    }

    /// An object is gone: whoever referred to it may have to follow.
    fn remove(&mut self, uid: &Uid, key: &Key, look_at: &mut dyn FnMut(&Key)) {
        self.waiting.set(uid, key, false);
        self.orphaning.set(uid, key, false);
        if self.has_dependents(uid) {
            self.gone.insert(uid.clone(), Bytes::copy_from_slice(key));
            self.dependents(uid).for_each(look_at);
        }
    }

    /// An object is new or has changed.
    fn notice(
        &mut self,
        key: &Key,
        before: Option<&Metadata<'_>>,
        now: &Metadata<'_>,
        look_at: &mut dyn FnMut(&Key),
    ) {
        let uid = Uid::from(now.uid.as_ref());
        let begins_to_wait = now.is_waiting() && !before.is_some_and(|before| before.is_waiting());
        let begins_to_orphan = now.is_orphaning() && !before.is_some_and(|before| before.is_orphaning());
        self.waiting.set(&uid, key, now.is_waiting());
        self.orphaning.set(&uid, key, now.is_orphaning());
        let has_other_owners = before.map_or(!now.owner_references.is_empty(), |before| {
            before.owner_references != now.owner_references
        });
        if has_other_owners || begins_to_wait || begins_to_orphan {
            look_at(key);
        }
        if begins_to_wait || begins_to_orphan {
            self.dependents(&uid).for_each(look_at);
        }
    }
}

/// The owners of an object and whether they need not wait for it. Who is named twice has to wait if one of them says so.
fn edges(metadata: &Metadata<'_>) -> BTreeSet<(Uid, bool)> {
    let mut found: HashMap<Uid, bool> = HashMap::new();
    for reference in &metadata.owner_references {
        let is_loose = found.entry(Uid::from(reference.uid.as_ref())).or_insert(true);
        *is_loose &= !reference.is_blocking();
    }
    found.into_iter().collect()
}

#[cfg(test)]
#[path = "graph/tests.rs"]
mod tests;
