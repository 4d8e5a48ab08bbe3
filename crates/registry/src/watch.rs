use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use concord_codec::{EventType, TypeFields};
use concord_meta::{
    ResourceVersion, Status,
    options::{ListOptions, ReadAt},
    parse_resource_version,
};
use concord_replica::{Batch, Closed, Entry, Error, Event, Subscription};
use concord_store::Revision;

use crate::{Registry, Resource, Selection, Storage, failure};

/// A watch that is asked for.
#[derive(Clone, Copy)]
pub struct WatchRequest<'a> {
    /// The namespace; `None` for all of them and for cluster-scoped resources.
    pub namespace: Option<&'a str>,
    /// Everything else.
    pub options: &'a ListOptions,
}

/// What a watch says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// Something happened to an object.
    Object {
        /// What.
        event: EventType,
        /// The stored bytes: of the object as it is now or, when it is gone, as it was.
        value: Bytes,
        /// The revision at which it happened.
        revision: Revision,
    },
    /// Everything that there was in the beginning has been said; this is the revision of that state.
    InitialEventsEnd(Revision),
}

/// Why a watch said its last word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEnd {
    /// The client is told with an ERROR event.
    Error(Box<Status>),
    /// The stream just ends: the client is too slow, or the server stops.
    Closed,
}

/// The changes of a collection.
pub struct Watch {
    storage: Arc<Storage>,
    selection: Selection,
    subscription: Subscription,
    /// Changes up to here are not said: the client asked for what comes later.
    after: Revision,
    initial: VecDeque<Entry>,
    /// The revision to say once the initial state has been.
    initial_end: Option<Revision>,
    pending: VecDeque<WatchEvent>,
}

/// Where a watch starts.
enum Start {
    /// With the state not older than that.
    State(ReadAt),
    /// With what comes now.
    Now,
    /// With what comes after a revision.
    After(Revision),
}

impl Start {
    fn of(options: &ListOptions) -> Result<Self, Status> {
        let version = parse_resource_version(&options.resource_version)
            .map_err(|error| Status::untyped(error.to_string()))?;
        Ok(match (version, options.send_initial_events) {
            (ResourceVersion::Unset, Some(true)) => Self::State(ReadAt::MostRecent),
            (ResourceVersion::Any, Some(true)) => Self::State(ReadAt::Any),
            (ResourceVersion::At(revision), Some(true)) => Self::State(ReadAt::NotOlderThan(revision)),
            (ResourceVersion::At(revision), _) => Self::After(revision),
            (ResourceVersion::Unset | ResourceVersion::Any, _) => Self::Now,
        })
    }
}

impl Registry {
    /// The changes of a collection. A state that is too old or not here yet is not an error of the request: the
    /// watch begins, and ends with it.
    ///
    /// # Errors
    ///
    /// 400 for a selector that the kind does not have, 500 for a resource version that is none.
    pub async fn watch(
        &self,
        storage: &Arc<Storage>,
        request: WatchRequest<'_>,
    ) -> Result<Result<Watch, WatchEnd>, Status> {
        let options = request.options;
        let selection =
            Selection::new(storage, request.namespace, &options.label_selector, &options.field_selector)?;
        let started = match Start::of(options)? {
            Start::State(read_at) => self.watch_state(storage, selection, read_at).await,
            Start::Now => self
                .replica
                .newest()
                .map_err(|error| failure::read_failed(&error))
                .and_then(|snapshot| self.watch_after(storage, selection, snapshot.revision())),
            Start::After(revision) => self.watch_after(storage, selection, revision),
        };
        Ok(started.map_err(|status| WatchEnd::Error(Box::new(status))))
    }

    async fn watch_state(
        &self,
        storage: &Arc<Storage>,
        selection: Selection,
        read_at: ReadAt,
    ) -> Result<Watch, Status> {
        self.snapshot(read_at).await?;
        let scope = selection.scope(storage);
        let range = scope.range();
        let (snapshot, subscription) =
            self.replica.snapshot_and_subscribe(scope).map_err(|error| failure::read_failed(&error))?;
        let entries = snapshot.scan(&range);
        let initial = entries.filter(|entry| selection.matches(storage, &entry.key, &entry.value));
        Ok(Watch {
            initial: initial.cloned().collect(),
            initial_end: Some(snapshot.revision()),
            storage: storage.clone(),
            selection,
            subscription,
            after: 0,
            pending: VecDeque::new(),
        })
    }

    fn watch_after(
        &self,
        storage: &Arc<Storage>,
        selection: Selection,
        after: Revision,
    ) -> Result<Watch, Status> {
        let scope = selection.scope(storage);
        let subscription = match self.replica.subscribe(scope.clone(), after) {
            // A revision of the future is waited for in silence.
            Err(Error::TooNew { .. }) => self.replica.snapshot_and_subscribe(scope).map(|(_, later)| later),
            other => other,
        };
        let subscription = subscription.map_err(|error| match error {
            Error::Expired { requested, oldest } => Status::too_old_resource_version(requested, oldest),
            error => failure::read_failed(&error),
        })?;
        Ok(Watch {
            storage: storage.clone(),
            selection,
            subscription,
            after,
            initial: VecDeque::new(),
            initial_end: None,
            pending: VecDeque::new(),
        })
    }
}

impl Watch {
    /// What comes next.
    ///
    /// # Errors
    ///
    /// Why nothing more comes.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost between two calls.
    pub async fn next(&mut self) -> Result<WatchEvent, WatchEnd> {
        loop {
            if let Some(event) = self.ready() {
                return Ok(event);
            }
            let batch = self.subscription.next().await.map_err(end)?;
            self.take(&batch);
        }
    }

    /// What can be had without waiting.
    ///
    /// # Errors
    ///
    /// As [`Watch::next`].
    pub fn try_next(&mut self) -> Result<Option<WatchEvent>, WatchEnd> {
        loop {
            if let Some(event) = self.ready() {
                return Ok(Some(event));
            }
            let Some(batch) = self.subscription.try_next().map_err(end)? else { return Ok(None) };
            self.take(&batch);
        }
    }

    fn ready(&mut self) -> Option<WatchEvent> {
        if let Some(entry) = self.initial.pop_front() {
            let (value, revision) = (entry.value.clone(), entry.mod_revision);
            return Some(WatchEvent::Object { event: EventType::Added, value, revision });
        }
        if let Some(revision) = self.initial_end.take() {
            return Some(WatchEvent::InitialEventsEnd(revision));
        }
        self.pending.pop_front()
    }

    fn take(&mut self, batch: &Batch) {
        let later = batch.iter().filter(|event| event.revision > self.after);
        let seen = later.filter_map(|event| seen_through(&self.storage, &self.selection, event));
        self.pending.extend(seen);
    }

    /// Up to which revision everything has been said: what a bookmark tells the client.
    pub fn bookmark(&mut self) -> Revision {
        self.subscription.bookmark().max(self.after)
    }

    /// What is watched.
    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }
}

fn end(closed: Closed) -> WatchEnd {
    match closed {
        Closed::Compacted => WatchEnd::Error(Box::new(Status::watch_expired())),
        _ => WatchEnd::Closed,
    }
}

/// What a change looks like to somebody who only sees the objects that are selected.
fn seen_through(storage: &Storage, selection: &Selection, event: &Event) -> Option<WatchEvent> {
    let meant = |entry: &&Entry| selection.matches(storage, &entry.key, &entry.value);
    let now = event.current().filter(meant);
    let before = event.previous().filter(meant);
    let (kind, entry) = match (before, now) {
        (None, Some(now)) => (EventType::Added, now),
        (Some(_), Some(now)) => (EventType::Modified, now),
        (Some(before), None) => (EventType::Deleted, before),
        (None, None) => return None,
    };
    Some(WatchEvent::Object { event: kind, value: entry.value.clone(), revision: event.revision })
}

impl Resource {
    /// The frame of an event in a stream of JSON, with the newline at its end. Written once for all watchers of the
    /// resource.
    ///
    /// # Errors
    ///
    /// 500 when the object cannot be had in the version of this resource.
    pub fn frame(&self, event: EventType, value: &Bytes, revision: Revision) -> Result<Bytes, Status> {
        self.frames.get(event, value, revision, || {
            let mut object = Vec::with_capacity(value.len() + 64);
            self.write_stored(value, Some(revision), TypeFields::Keep, &mut object)?;
            let mut frame = Vec::with_capacity(object.len() + 32);
            concord_codec::write_event(event, &object, &mut frame);
            Ok(frame.into())
        })
    }
}
