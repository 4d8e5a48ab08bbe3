use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;

use crate::{Batch, Closed, Event, Scope, prefix::PrefixMap, ring::Ring};

/// What the applier feeds and subscriptions start from. Behind one lock, which is held only while a
/// run is handed out, a subscription begins or one ends. Lock order: this before a [`Ring`].
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) groups: Groups,
    /// Set once no more events can come.
    pub(crate) ended: Option<Closed>,
}

/// The subscriptions, grouped by scope. A change costs one append per group it is in and nothing for
/// all others.
#[derive(Debug)]
pub(crate) struct Groups {
    prefixes: PrefixMap<Group>,
    keys: HashMap<Bytes, Group>,
    capacity: usize,
    /// The events of the revision at hand, by group; empty between revisions.
    pending: Vec<Pending>,
}

#[derive(Debug)]
struct Group {
    ring: Arc<Ring>,
    /// Where in `pending` this group's events are, if they are there at all.
    slot: usize,
}

#[derive(Debug)]
struct Pending {
    ring: Arc<Ring>,
    events: Vec<Event>,
}

impl Group {
    fn new(capacity: usize) -> Self {
        Self { ring: Arc::new(Ring::new(capacity)), slot: 0 }
    }

    fn collect(&mut self, pending: &mut Vec<Pending>, event: &Event) {
        match pending.get_mut(self.slot).filter(|pending| Arc::ptr_eq(&pending.ring, &self.ring)) {
            Some(pending) => pending.events.push(event.clone()),
            None => {
                self.slot = pending.len();
                pending.push(Pending { ring: Arc::clone(&self.ring), events: vec![event.clone()] });
            }
        }
    }
}

impl Groups {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { prefixes: PrefixMap::default(), keys: HashMap::new(), capacity, pending: Vec::new() }
    }

    /// Adds a subscription to everything dispatched from now on.
    pub(crate) fn join(&mut self, scope: &Scope) -> (Arc<Ring>, u64) {
        let new = || Group::new(self.capacity);
        let group = match scope {
            Scope::Prefix(prefix) => self.prefixes.get_or_insert_with(prefix, new),
            Scope::Key(key) => self.keys.entry(key.clone()).or_insert_with(new),
        };
        (Arc::clone(&group.ring), group.ring.join())
    }

    /// Removes a subscription, and its group with the last one.
    pub(crate) fn leave(&mut self, scope: &Scope, ring: &Arc<Ring>, cursor: u64) {
        if ring.leave(cursor) > 0 {
            return;
        }
        // After a reload the scope may have a new group, which is not ours to remove.
        let ours = |group: Option<&Group>| group.is_some_and(|group| Arc::ptr_eq(&group.ring, ring));
        match scope {
            Scope::Prefix(prefix) if ours(self.prefixes.get(prefix)) => drop(self.prefixes.remove(prefix)),
            Scope::Key(key) if ours(self.keys.get(key)) => drop(self.keys.remove(key)),
            _ => {}
        }
    }

    /// Puts the events of whole revisions, in order, into the buffers they belong to, and adds these
    /// to `touched`: the caller wakes them when the snapshot is published.
    pub(crate) fn dispatch(&mut self, events: &[Event], touched: &mut Vec<Arc<Ring>>) {
        if self.is_empty() {
            return;
        }
        for commit in events.chunk_by(|a, b| a.revision == b.revision) {
            for event in commit {
                self.prefixes.each_prefix_of(event.key(), |group| group.collect(&mut self.pending, event));
                if let Some(group) = self.keys.get_mut(event.key()) {
                    group.collect(&mut self.pending, event);
                }
            }
            for Pending { ring, events } in self.pending.drain(..) {
                ring.push(Batch::from(events));
                touched.push(ring);
            }
        }
    }

    /// Closes all subscriptions.
    pub(crate) fn close(&mut self, reason: Closed) {
        for group in self.prefixes.drain().chain(std::mem::take(&mut self.keys).into_values()) {
            group.ring.close(reason);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.prefixes.len() + self.keys.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
