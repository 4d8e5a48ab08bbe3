use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use bytes::Bytes;
use concord_store::Revision;

use crate::{Error, Event, Snapshot, prefix::PrefixMap};

/// State derived from some keys, kept up to date by the stream that feeds the replica.
///
/// The methods are called one at a time and hold up the stream, so they must be quick; what takes
/// long belongs in a task with a [`crate::Subscription`]. A view publishes its result itself, in a way
/// its readers can take without a lock. When the replica publishes a revision, every view has seen it.
///
/// A view that panics stops the replica, see [`Error::Failed`]: derived state that stays behind
/// unnoticed, such as permissions that were revoked, is worse than a server that must be restarted.
pub trait View: Send + 'static {
    /// What to call it in logs and errors.
    fn name(&self) -> &str;

    /// The keys it is derived from, by prefix. Asked once; no bytes mean every key.
    fn prefixes(&self) -> Vec<Bytes>;

    /// Starts over from `snapshot`: after loading, and whenever the replica had to load again.
    fn reset(&mut self, snapshot: &Snapshot);

    /// Applies the events of one revision under its prefixes, in the order they were written; never
    /// none.
    fn apply(&mut self, revision: Revision, events: &[Event]);
}

/// All views, and which of them a key concerns.
pub(crate) struct Views {
    views: Vec<Slot>,
    /// The positions in `views` by prefix.
    index: PrefixMap<Vec<usize>>,
    /// The positions that have pending events.
    touched: Vec<usize>,
}

struct Slot {
    view: Box<dyn View>,
    /// The events of the revision at hand; empty between revisions.
    pending: Vec<Event>,
}

impl Views {
    pub(crate) fn new(views: Vec<Box<dyn View>>) -> Self {
        let mut index: PrefixMap<Vec<usize>> = PrefixMap::default();
        for (position, view) in views.iter().enumerate() {
            for prefix in view.prefixes() {
                let positions = index.get_or_insert_with(&prefix, Vec::new);
                if positions.last() != Some(&position) {
                    positions.push(position);
                }
            }
        }
        let views = views.into_iter().map(|view| Slot { view, pending: Vec::new() }).collect();
        Self { views, index, touched: Vec::new() }
    }

    pub(crate) fn reset(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        self.views.iter_mut().try_for_each(|slot| slot.guard(|view, _| view.reset(snapshot)))
    }

    /// Feeds whole revisions, in order.
    pub(crate) fn apply(&mut self, events: &[Event]) -> Result<(), Error> {
        if self.views.is_empty() {
            return Ok(());
        }
        for commit in events.chunk_by(|a, b| a.revision == b.revision) {
            self.apply_commit(commit)?;
        }
        Ok(())
    }

    fn apply_commit(&mut self, commit: &[Event]) -> Result<(), Error> {
        for event in commit {
            self.index.each_prefix_of(event.key(), |positions| {
                for position in positions.iter() {
                    self.views[*position].collect(event, || self.touched.push(*position));
                }
            });
        }
        for position in self.touched.drain(..) {
            let slot = &mut self.views[position];
            slot.guard(|view, events| view.apply(events[0].revision, events))?;
            slot.pending.clear();
        }
        Ok(())
    }
}

impl Slot {
    /// Adds an event once, also when several prefixes of the view cover its key.
    fn collect(&mut self, event: &Event, first: impl FnOnce()) {
        if self.pending.is_empty() {
            first();
        }
        // Each event of a revision has another key.
        if self.pending.last().is_none_or(|last| last.key() != event.key()) {
            self.pending.push(event.clone());
        }
    }

    fn guard(&mut self, call: impl FnOnce(&mut dyn View, &[Event])) -> Result<(), Error> {
        let Self { view, pending } = self;
        // The view is never called again after a panic, so nobody sees what it left half done.
        catch_unwind(AssertUnwindSafe(|| call(view.as_mut(), pending))).map_err(|panic| {
            let message = message_of(panic.as_ref());
            Error::Failed { reason: format!("view {} panicked: {message}", view.name()) }
        })
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("not a text").to_owned()
}
