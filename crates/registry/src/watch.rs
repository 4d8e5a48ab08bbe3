mod start;

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use concord_codec::{EventType, TypeFields};
use concord_meta::{Status, options::ListOptions};
use concord_replica::{Batch, Closed, Entry, Event, Subscription};
use concord_store::Revision;
use tokio_util::task::AbortOnDropHandle;

use crate::{Resource, Selection, Storage, remote::BATCH_OBJECTS};

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
    /// The stream just ends: the client is too slow, the resource is defined in another way now, or the server stops.
    Closed,
}

/// The changes of a collection.
pub struct Watch {
    storage: Arc<Storage>,
    selection: Selection,
    subscription: Subscription,
    /// Changes up to here are not said, since the client asked for what comes later; but for those of this very revision, if
    /// they are several.
    after: Revision,
    initial: VecDeque<Entry>,
    /// The revision to say once the initial state has been.
    initial_end: Option<Revision>,
    pending: VecDeque<WatchEvent>,
    /// What comes next, where somebody has to be asked what objects are in this version. It is a task of its own: other
    /// watches wait until it is done, also if nobody reads this one.
    translation: Option<Translation>,
    /// Whether there is more, which is not of what is watched any more.
    is_past_end: bool,
}

type Translation = AbortOnDropHandle<Result<Vec<WatchEvent>, Status>>;

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
            if self.translates() {
                self.translated().await?;
                continue;
            }
            if self.is_past_end {
                return Err(WatchEnd::Closed);
            }
            let Some(lifetime) = &self.storage.lifetime else {
                let batch = self.subscription.next().await.map_err(end)?;
                self.take(&batch);
                continue;
            };
            tokio::select! {
                biased;
                batch = self.subscription.next() => {
                    let batch = batch.map_err(end)?;
                    self.take(&batch);
                }
                // All that happened before has been told.
                () = lifetime.over() => return Err(WatchEnd::Closed),
            }
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
            if self.translates() {
                return Ok(None);
            }
            if self.is_past_end {
                return Err(WatchEnd::Closed);
            }
            match self.subscription.try_next().map_err(end)? {
                Some(batch) => self.take(&batch),
                None if self.storage.is_over() => return Err(WatchEnd::Closed),
                None => return Ok(None),
            }
        }
    }

    fn ready(&mut self) -> Option<WatchEvent> {
        if let Some(event) = self.pending.pop_front() {
            return Some(event);
        }
        if self.translates() {
            return None;
        }
        if let Some(entry) = self.initial.pop_front() {
            return Some(added(&entry));
        }
        self.initial_end.take().map(WatchEvent::InitialEventsEnd)
    }

    fn take(&mut self, batch: &Batch) {
        let mut changes = self.changes(batch);
        if changes.is_empty() {
            // Of the revision that the watch goes on from, as a rule: nobody has to be asked.
            return;
        }
        if !self.storage.is_translated() {
            let seen =
                changes.into_iter().filter_map(|change| change.seen_through(&self.storage, &self.selection));
            self.pending.extend(seen);
            return;
        }
        // All that happened while somebody was being asked is asked for at once. That there is no more comes up again.
        while changes.len() < BATCH_OBJECTS
            && let Ok(Some(batch)) = self.subscription.try_next()
        {
            changes.extend(self.changes(&batch));
        }
        let (storage, selection) = (Arc::clone(&self.storage), self.selection.clone());
        self.translation =
            Some(AbortOnDropHandle::new(tokio::spawn(translate_changes(storage, selection, changes))));
    }

    fn changes(&mut self, batch: &Batch) -> Vec<Change> {
        let lifetime = self.storage.lifetime.as_ref();
        let is_over = |event: &&Event| lifetime.is_some_and(|lifetime| lifetime.was_over_at(event.revision));
        // A batch is one revision.
        let is_told =
            |event: &&Event| event.revision > self.after || (event.revision == self.after && batch.len() > 1);
        let told = batch.iter().filter(is_told).filter(|event| !is_over(event));
        let told = told.map(Change::from).collect();
        self.is_past_end |= batch.iter().any(|event| is_over(&event));
        told
    }

    /// Whether something is being translated; what there was in the beginning comes first, many objects at once.
    fn translates(&mut self) -> bool {
        if self.translation.is_none() && self.storage.is_translated() && !self.initial.is_empty() {
            let first = self.initial.drain(..self.initial.len().min(BATCH_OBJECTS)).collect();
            let (storage, selection) = (Arc::clone(&self.storage), self.selection.clone());
            self.translation =
                Some(AbortOnDropHandle::new(tokio::spawn(translate_state(storage, selection, first))));
        }
        self.translation.is_some()
    }

    async fn translated(&mut self) -> Result<(), WatchEnd> {
        let Some(translation) = &mut self.translation else { return Ok(()) };
        let translated = translation.await.unwrap_or_else(|error| Err(Status::internal_error(error)));
        self.translation = None;
        self.pending.extend(translated.map_err(|status| WatchEnd::Error(Box::new(status)))?);
        Ok(())
    }

    /// Up to which revision everything has been said: what a bookmark tells the client. `None` while there is something
    /// that was not said yet: who begins again at a bookmark would never learn of it.
    pub fn bookmark(&mut self) -> Option<Revision> {
        let is_behind = !self.initial.is_empty()
            || self.initial_end.is_some()
            || !self.pending.is_empty()
            || self.translation.is_some();
        (!is_behind).then(|| self.subscription.bookmark().max(self.after))
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

fn added(entry: &Entry) -> WatchEvent {
    WatchEvent::Object { event: EventType::Added, value: entry.value.clone(), revision: entry.mod_revision }
}

/// A change of an object.
struct Change {
    before: Option<Entry>,
    now: Option<Entry>,
    revision: Revision,
}

impl From<&Event> for Change {
    fn from(event: &Event) -> Self {
        Self { before: event.previous().cloned(), now: event.current().cloned(), revision: event.revision }
    }
}

impl Change {
    /// What it looks like to somebody who only sees the objects that are selected.
    fn seen_through(self, storage: &Storage, selection: &Selection) -> Option<WatchEvent> {
        let meant = |entry: &Entry| selection.matches(storage, entry);
        let (event, entry) = match (self.before.filter(meant), self.now.filter(meant)) {
            (None, Some(now)) => (EventType::Added, now),
            (Some(_), Some(now)) => (EventType::Modified, now),
            (Some(before), None) => (EventType::Deleted, before),
            (None, None) => return None,
        };
        Some(WatchEvent::Object { event, value: entry.value.clone(), revision: self.revision })
    }

    /// The entries of which somebody has to know what they say: both if what they say matters, else the one that is told.
    fn told(&mut self, selection: &Selection) -> impl Iterator<Item = &mut Entry> {
        let before = self.before.as_mut().filter(|_| self.now.is_none() || selection.reads_objects());
        before.into_iter().chain(self.now.as_mut())
    }
}

async fn translate_changes(
    storage: Arc<Storage>,
    selection: Selection,
    mut changes: Vec<Change>,
) -> Result<Vec<WatchEvent>, Status> {
    let _turn = storage.turn().await;
    let mut entries: Vec<&mut Entry> =
        changes.iter_mut().flat_map(|change| change.told(&selection)).collect();
    storage.translate_entries(&mut entries).await?;
    Ok(changes.into_iter().filter_map(|change| change.seen_through(&storage, &selection)).collect())
}

async fn translate_state(
    storage: Arc<Storage>,
    selection: Selection,
    mut entries: Vec<Entry>,
) -> Result<Vec<WatchEvent>, Status> {
    let _turn = storage.turn().await;
    storage.translate_entries(&mut entries.iter_mut().collect::<Vec<_>>()).await?;
    Ok(entries.iter().filter(|entry| selection.matches(&storage, entry)).map(added).collect())
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
