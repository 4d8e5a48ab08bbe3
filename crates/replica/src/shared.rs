use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use arc_swap::ArcSwap;
use concord_store::Revision;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::{
    Closed, Config, Error, Snapshot,
    feed::{Feed, Groups},
};

/// What the handle, the applier and the subscriptions have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    published: ArcSwap<Published>,
    /// Counts publications, for those who wait for one.
    pub(crate) publications: watch::Sender<u64>,
    pub(crate) feed: Mutex<Feed>,
    health: Mutex<Health>,
    /// What the history window takes, for the status.
    pub(crate) window_bytes: AtomicUsize,
    /// Asks the applier to load again.
    pub(crate) went_back: Notify,
}

/// What reads are answered from.
#[derive(Debug)]
pub(crate) enum Published {
    Loading,
    Ready(Snapshot),
    Failed(Error),
}

#[derive(Debug, Clone)]
struct Health {
    phase: Phase,
    last_error: Option<String>,
}

/// What a replica is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It reads all keys of the store. When it has done so before, it still answers with what it had.
    Loading,
    /// It follows the log.
    Following,
    /// The stream broke and is about to be resumed. Reads go on with what is there.
    Interrupted,
    /// It has stopped, see [`Error::Failed`].
    Failed,
    /// It was shut down.
    Stopped,
}

/// How a replica is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// What it is doing.
    pub phase: Phase,
    /// The newest revision it answers; `None` before the first load. Together with the phase this
    /// makes a readiness check: loaded, and neither failed nor stopped.
    pub revision: Option<Revision>,
    /// The oldest revision it answers.
    pub oldest: Option<Revision>,
    /// The number of keys.
    pub keys: usize,
    /// What the history window takes.
    pub window_bytes: usize,
    /// How many different scopes have subscriptions.
    pub scopes: usize,
    /// What last went wrong, also if it is over; for people.
    pub last_error: Option<String>,
}

impl Status {
    /// Whether reads are answered and nothing keeps them from becoming newer, other than the store.
    pub fn is_ready(&self) -> bool {
        self.revision.is_some() && !matches!(self.phase, Phase::Failed | Phase::Stopped)
    }
}

impl Shared {
    pub(crate) fn new(config: &Config) -> Self {
        let feed = Feed { groups: Groups::new(config.subscription_buffer.get()), ended: None };
        Self {
            published: ArcSwap::from_pointee(Published::Loading),
            publications: watch::Sender::new(0),
            feed: Mutex::new(feed),
            health: Mutex::new(Health { phase: Phase::Loading, last_error: None }),
            window_bytes: AtomicUsize::new(0),
            went_back: Notify::new(),
        }
    }

    pub(crate) fn newest(&self) -> Result<Snapshot, Error> {
        match &**self.published.load() {
            Published::Loading => Err(Error::NotLoaded),
            Published::Ready(snapshot) => Ok(snapshot.clone()),
            Published::Failed(error) => Err(error.clone()),
        }
    }

    /// Waits for the moment in which what was dispatched is published, too.
    pub(crate) fn until_published(&self, revision: Revision) {
        let is_published = match &**self.published.load() {
            Published::Ready(snapshot) => snapshot.revision() >= revision,
            Published::Loading | Published::Failed(_) => true,
        };
        if !is_published {
            // Whoever dispatches holds the lock until it has published.
            drop(self.feed.lock());
        }
    }

    /// The caller holds the lock of `feed`. When it has released it, it drops what is returned, which
    /// may be the last of many tree nodes, and wakes those who wait with [`Shared::wake`].
    #[must_use]
    pub(crate) fn publish(&self, snapshot: Snapshot) -> Arc<Published> {
        self.published.swap(Arc::new(Published::Ready(snapshot)))
    }

    pub(crate) fn wake(&self) {
        self.publications.send_modify(|count| *count += 1);
    }

    /// Ends everything because something panicked.
    pub(crate) fn fail(&self, error: Error) {
        self.enter(Phase::Failed, Some(error.to_string()));
        {
            let mut feed = self.feed.lock();
            feed.ended.get_or_insert(Closed::Failed);
            feed.groups.close(Closed::Failed);
            self.published.store(Arc::new(Published::Failed(error)));
        }
        self.wake();
    }

    /// Ends all subscriptions because the replica goes away; reads of what is there go on.
    pub(crate) fn stop(&self) {
        let mut feed = self.feed.lock();
        if feed.ended.is_none() {
            feed.ended = Some(Closed::Shutdown);
            feed.groups.close(Closed::Shutdown);
            self.health.lock().phase = Phase::Stopped;
        }
    }

    /// Notes what the replica is doing from now on, and what made it do so.
    pub(crate) fn enter(&self, phase: Phase, error: Option<String>) {
        let mut health = self.health.lock();
        health.phase = phase;
        if error.is_some() {
            health.last_error = error;
        }
    }

    pub(crate) fn status(&self) -> Status {
        let Health { phase, last_error } = self.health.lock().clone();
        let snapshot = self.newest().ok();
        Status {
            phase,
            revision: snapshot.as_ref().map(Snapshot::revision),
            oldest: snapshot.as_ref().map(Snapshot::oldest),
            keys: snapshot.as_ref().map_or(0, Snapshot::len),
            window_bytes: self.window_bytes.load(Ordering::Relaxed),
            scopes: self.feed.lock().groups.len(),
            last_error,
        }
    }
}
