use std::{collections::VecDeque, sync::Arc};

use concord_store::Revision;

use crate::{
    Batch, Closed, Error, Scope, Snapshot, history::Chunk, record::Record, ring::Ring, shared::Shared,
};

/// Every change in one [`Scope`], from a revision on, in revision order and without gap or duplicate.
///
/// The buffer is bounded ([`crate::Config::subscription_buffer`]): a subscriber that does not keep up
/// is closed with [`Closed::Lagged`], and neither the stream nor other subscribers notice.
#[derive(Debug)]
pub struct Subscription {
    shared: Arc<Shared>,
    scope: Scope,
    ring: Arc<Ring>,
    cursor: u64,
    replay: Replay,
    /// Everything up to here has been given out.
    delivered: Revision,
    closed: Option<Closed>,
}

impl Subscription {
    /// Subscribes to the changes after `after`, or after the newest snapshot, which is returned.
    pub(crate) fn begin(
        shared: &Arc<Shared>,
        scope: Scope,
        after: Option<Revision>,
    ) -> Result<(Snapshot, Self), Error> {
        let mut feed = shared.feed.lock();
        // Published under the same lock, so it is exactly what has been dispatched.
        let snapshot = shared.newest()?;
        if feed.ended.is_some() {
            return Err(Error::Shutdown);
        }
        let after = after.unwrap_or(snapshot.revision());
        snapshot.at(after)?;
        let (ring, cursor) = feed.groups.join(&scope);
        drop(feed);
        let replay = Replay { chunks: snapshot.history().after(after), next: 0, after };
        let shared = Arc::clone(shared);
        Ok((snapshot, Self { shared, scope, ring, cursor, replay, delivered: after, closed: None }))
    }

    /// What this subscription is about.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The events of the next revision that changed something in the scope.
    ///
    /// # Errors
    ///
    /// Why there will be no more events; from then on always the same.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: events are taken only when they are returned.
    pub async fn next(&mut self) -> Result<Batch, Closed> {
        if let Some(reason) = self.closed {
            return Err(reason);
        }
        while self.replay.is_pending() {
            if let Some(batch) = self.replay.step(&self.scope) {
                return Ok(self.deliver(batch));
            }
            // A long replay of other scopes' events must not keep a worker from its other tasks.
            tokio::task::yield_now().await;
        }
        match self.ring.next(&mut self.cursor).await {
            Ok(batch) => Ok(self.deliver(batch)),
            Err(reason) => Err(*self.closed.insert(reason)),
        }
    }

    /// Like [`Subscription::next`], but `None` instead of waiting.
    ///
    /// # Errors
    ///
    /// As [`Subscription::next`].
    pub fn try_next(&mut self) -> Result<Option<Batch>, Closed> {
        if let Some(reason) = self.closed {
            return Err(reason);
        }
        while self.replay.is_pending() {
            if let Some(batch) = self.replay.step(&self.scope) {
                return Ok(Some(self.deliver(batch)));
            }
        }
        match self.ring.try_next(&mut self.cursor) {
            Ok(batch) => Ok(batch.map(|batch| self.deliver(batch))),
            Err(reason) => Err(*self.closed.insert(reason)),
        }
    }

    fn deliver(&mut self, batch: Batch) -> Batch {
        self.delivered = batch.first().map_or(self.delivered, |event| event.revision);
        // A subscriber that is awake may take a batch in the moment before it is published, and would look for its
        // events in a snapshot that does not have them.
        self.shared.until_published(self.delivered);
        batch
    }

    /// The revision up to which this subscriber has been given everything in its scope. It grows also
    /// while nothing in the scope changes, as long as nothing is pending.
    pub fn bookmark(&mut self) -> Revision {
        // In this order: what is published was dispatched before, so if nothing is pending now, then
        // nothing up to that revision is.
        let published = self.shared.newest().map_or(0, |snapshot| snapshot.revision());
        if self.closed.is_none() && !self.replay.is_pending() && self.ring.is_drained(self.cursor) {
            self.delivered = self.delivered.max(published);
        }
        self.delivered
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.shared.feed.lock().groups.leave(&self.scope, &self.ring, self.cursor);
    }
}

/// The part of the history window between the revision a subscription begins after and the one that
/// was published when it began.
#[derive(Debug)]
struct Replay {
    chunks: VecDeque<Arc<Chunk>>,
    /// The next event of the first chunk.
    next: usize,
    after: Revision,
}

impl Replay {
    fn is_pending(&self) -> bool {
        !self.chunks.is_empty()
    }

    /// Looks for the next revision in `scope`, in one chunk at most.
    fn step(&mut self, scope: &Scope) -> Option<Batch> {
        let chunk = self.chunks.front()?;
        let after = self.after;
        let wanted = |event: &Record| event.revision > after && scope.contains(event.key());
        let rest = &chunk.events[self.next..];
        let Some(start) = rest.iter().position(wanted) else {
            self.chunks.pop_front();
            self.next = 0;
            return None;
        };
        let revision = rest[start].revision;
        let commit = rest[start..].iter().take_while(|event| event.revision == revision);
        self.next += start + commit.clone().count();
        Some(commit.filter(|event| wanted(event)).map(Record::event).collect())
    }
}
