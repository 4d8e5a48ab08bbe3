use std::{collections::HashSet, mem, sync::Arc};

use bytes::Bytes;
use concord_replica::{Entry, Event, EventKind, Snapshot, View};
use concord_store::{KeyRange, Revision};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use tokio::sync::Notify;

use crate::{
    Metadata,
    graph::{Change, Graph, Key},
};

/// Keeps the [`Graph`] up to date, fed by the replica.
pub struct GraphView {
    prefix: Bytes,
    /// Events own nothing and are owned by nobody that matters: upstream does not look at them either.
    events: Bytes,
    shared: Arc<Shared>,
}

/// What a [`GraphView`] knows, for those who read it.
#[derive(Clone)]
pub struct GraphState(Arc<Shared>);

struct Shared {
    known: RwLock<Known>,
    /// What has to be looked at; `None` while nobody does. Bounded by the number of objects.
    inbox: Mutex<Option<HashSet<Key>>>,
    news: Notify,
}

/// The graph at a revision.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) graph: Graph,
    pub(crate) revision: Revision,
}

impl GraphView {
    /// A view of all objects under keys that begin with `prefix`, such as `/registry/`; empty until it is fed.
    pub fn new(prefix: &str) -> Self {
        let shared = Shared { known: RwLock::default(), inbox: Mutex::new(None), news: Notify::new() };
        let events = format!("{prefix}events/").into();
        Self { prefix: prefix.to_owned().into(), events, shared: Arc::new(shared) }
    }

    /// Where to read what it knows: the view itself belongs to the replica.
    pub fn state(&self) -> GraphState {
        GraphState(self.shared.clone())
    }

    fn take_in(&self, graph: &mut Graph, event: &Event, look_at: &mut dyn FnMut(&Key)) {
        let (key, before, now) = (event.key(), event.previous(), event.current());
        if key.starts_with(&self.events) {
            return;
        }
        let matters = |entry: Option<&Entry>| entry.is_some_and(|entry| Metadata::may_matter(&entry.value));
        let goes = matches!(event.kind, EventKind::Deleted { .. }) && !graph.is_empty();
        if !goes && !matters(before) && !matters(now) {
            return;
        }
        let read = |entry: Option<&'_ Entry>| entry.map(|entry| entry.value.clone());
        let (before, now) = (read(before), read(now));
        let before = before.as_deref().and_then(Metadata::read);
        let now = now.as_deref().and_then(Metadata::read);
        graph.apply(Change { key, before: before.as_ref(), now: now.as_ref() }, look_at);
    }
}

impl View for GraphView {
    fn name(&self) -> &str {
        "garbage collector"
    }

    fn prefixes(&self) -> Vec<Bytes> {
        vec![self.prefix.clone()]
    }

    fn reset(&mut self, snapshot: &Snapshot) {
        let mut graph = Graph::default();
        let range = KeyRange::prefix(self.prefix.clone());
        let entries = snapshot.scan(&range).filter(|entry| !entry.key.starts_with(&self.events));
        for entry in entries.filter(|entry| Metadata::may_matter(&entry.value)) {
            let now = Metadata::read(&entry.value);
            graph.apply(Change { key: &entry.key, before: None, now: now.as_ref() }, &mut |_| {});
        }
        let mut known = self.shared.known.write();
        graph.inherit(mem::take(&mut known.graph));
        *known = Known { graph, revision: snapshot.revision() };
        // Nobody knows what happened in between.
        if let Some(inbox) = self.shared.inbox.lock().as_mut() {
            inbox.extend(known.graph.all().cloned());
        }
        drop(known);
        self.shared.news.notify_one();
    }

    fn apply(&mut self, revision: Revision, events: &[Event]) {
        let mut found = Vec::new();
        let mut known = self.shared.known.write();
        for event in events {
            self.take_in(&mut known.graph, event, &mut |key| found.push(key.clone()));
        }
        known.revision = revision;
        drop(known);
        if found.is_empty() {
            return;
        }
        if let Some(inbox) = self.shared.inbox.lock().as_mut() {
            inbox.extend(found);
            self.shared.news.notify_one();
        }
    }
}

impl GraphState {
    pub(crate) fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.0.known.read()
    }

    /// How many owner references there are.
    pub fn references(&self) -> usize {
        self.known().graph.len()
    }

    /// From here on what has to be looked at is collected, first of all everything that there is.
    pub(crate) fn begin(&self) {
        let known = self.known();
        *self.0.inbox.lock() = Some(known.graph.all().cloned().collect());
        self.0.news.notify_one();
    }

    /// Nothing is collected any more.
    pub(crate) fn end(&self) {
        *self.0.inbox.lock() = None;
    }

    /// What has to be looked at since this was asked last.
    pub(crate) fn take(&self) -> HashSet<Key> {
        self.0.inbox.lock().as_mut().map(mem::take).unwrap_or_default()
    }

    /// Returns when there may be something to look at.
    pub(crate) async fn news(&self) {
        self.0.news.notified().await;
    }
}
