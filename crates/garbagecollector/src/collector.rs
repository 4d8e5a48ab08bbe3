//! Carries out what is decided.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    hash::Hash,
    sync::Arc,
    time::{Duration, Instant},
};

use concord_meta::Status;
use concord_registry::{Condition, Guard, ObjectName, QueueEvent, Registry, Resource, Resources};
use concord_replica::Snapshot;
use parking_lot::Mutex;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    GraphState,
    decide::Decision,
    graph::Key,
    kinds::Kinds,
    look::{Look, Missing, Seen},
    queue::Queue,
    write,
};

/// How many objects are worked on at once: enough for the store to commit them in groups.
const AT_ONCE: usize = 64;

/// How many owners are remembered that are not where they should be.
const MOST_REMEMBERED: usize = 500;

/// How long to wait for a state that is on its way.
const WAIT_FOR_STATE: Duration = Duration::from_secs(10);

/// Deletes what has lost its owners.
///
/// Any number of servers may do so at once: whatever one of them does is committed only if the very state that it was
/// decided on still holds.
pub struct GarbageCollector {
    pub(crate) registry: Arc<Registry>,
    pub(crate) kinds: Kinds,
    state: GraphState,
    /// The owners that were looked for everywhere, of late: many objects may have had the same one.
    nowhere: Mutex<HashSet<Missing>>,
    /// Who was told to have which owner elsewhere, by uid: what failed is looked at again.
    told: Mutex<HashSet<(String, Missing)>>,
}

/// How looking at an object ended.
enum Outcome {
    Done,
    /// It has to be looked at again after a while.
    Later,
}

/// What has to be looked at, and what is.
#[derive(Default)]
struct Work {
    queue: Queue,
    tasks: JoinSet<Outcome>,
    busy: HashMap<Id, Key>,
}

/// That an object still calls for what was decided about it.
struct StillSo {
    collector: Arc<GarbageCollector>,
    key: Key,
    decision: Decision,
}

impl GarbageCollector {
    /// Works on the objects of these resources. `state` is of the view that the replica of the registry feeds. While there
    /// are definitions that are not served yet nothing is decided, see [`Resources::is_current`].
    pub fn new(registry: Arc<Registry>, resources: Arc<dyn Resources>, state: GraphState) -> Self {
        Self {
            registry,
            kinds: Kinds::new(resources),
            state,
            nowhere: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// Goes on until it is cancelled. Whoever begins looks at everything once.
    pub async fn run(self: Arc<Self>, cancel: CancellationToken) {
        let mut work = Work::default();
        self.state.begin();
        cancel.run_until_cancelled(self.go_on(&mut work)).await;
        self.state.end();
        work.tasks.shutdown().await;
    }

    async fn go_on(self: &Arc<Self>, work: &mut Work) {
        loop {
            let news = self.state.take();
            self.tell(QueueEvent::Added(news.len()));
            news.into_iter().for_each(|key| work.queue.add(key));
            let next = work.queue.wake(Instant::now());
            while work.tasks.len() < AT_ONCE
                && let Some(key) = work.queue.take()
            {
                let task = work.tasks.spawn(Arc::clone(self).measured(key.clone()));
                work.busy.insert(task.id(), key);
            }
            self.tell(QueueEvent::Depth(work.queue.ready()));
            tokio::select! {
                () = self.state.news() => {}
                Some(ended) = work.tasks.join_next_with_id() => work.ended(ended),
                () = sleep_until(next), if next.is_some() => {}
            }
        }
    }

    fn tell(&self, event: QueueEvent) {
        self.registry.observe_queue("garbage_collector_attempt_to_delete", event);
    }

    async fn measured(self: Arc<Self>, key: Key) -> Outcome {
        let begun = Instant::now();
        let outcome = Arc::clone(&self).look_at(key).await;
        self.tell(QueueEvent::Done { took: begun.elapsed(), again: matches!(outcome, Outcome::Later) });
        outcome
    }

    async fn look_at(self: Arc<Self>, key: Key) -> Outcome {
        let revision = self.state.known().revision;
        // What the graph has noticed is a moment from being published.
        let state = self.registry.replica().not_older_than(revision, WAIT_FOR_STATE).await;
        let Ok(snapshot) = state else { return Outcome::Later };
        let Some(entry) = snapshot.get(&key) else { return Outcome::Done };
        let look = self.look(&snapshot);
        let Some(resource) = look.resource(entry) else { return Outcome::Later };
        let name = resource.storage().and_then(|storage| storage.object_name(&key));
        let Some(name) = name else { return Outcome::Done };
        let Some(seen) = look.at(entry, name.namespace) else { return Outcome::Done };
        if seen.decision == Decision::Ask {
            return Outcome::Later;
        }
        for stray in seen.missing.iter().filter(|missing| self.is_news(&look, &seen, missing)) {
            write::tell_of_stray(&self, &resource, name, (&seen, stray)).await;
        }
        let done = self.carry_out(&resource, name, key.clone(), &seen).await;
        done.map_or_else(|status| failed(name, &status), |()| Outcome::Done)
    }

    async fn carry_out(
        self: &Arc<Self>,
        resource: &Resource,
        name: ObjectName<'_>,
        key: Key,
        seen: &Seen,
    ) -> Result<(), Status> {
        let condition =
            StillSo { collector: Arc::clone(self), key: key.clone(), decision: seen.decision.clone() };
        let writer = write::Writer { registry: &self.registry, resource, name, seen };
        let condition = Arc::new(condition);
        match &seen.decision {
            Decision::Keep | Decision::Ask => Ok(()),
            Decision::Delete(policy) => writer.delete(*policy, condition).await,
            Decision::Disown(references) => writer.disown(references, condition).await,
            Decision::Unblock => writer.unblock(condition).await,
            Decision::Release(finalizer) => writer.release(finalizer, condition).await,
        }
    }

    /// Whether an owner is in another namespace, and nobody was told.
    fn is_news(&self, look: &Look<'_>, seen: &Seen, missing: &Missing) -> bool {
        if self.nowhere.lock().contains(missing) {
            return false;
        }
        match look.is_elsewhere(missing) {
            true => remember(&mut self.told.lock(), (seen.uid.clone(), missing.clone())),
            false => {
                remember(&mut self.nowhere.lock(), missing.clone());
                false
            }
        }
    }

    fn look<'a>(&'a self, snapshot: &'a Snapshot) -> Look<'a> {
        Look { kinds: &self.kinds, state: &self.state, snapshot }
    }
}

impl Work {
    fn ended(&mut self, ended: Result<(Id, Outcome), JoinError>) {
        let (id, outcome) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                tracing::error!(%error, "Looking at an object did not end well.");
                (error.id(), Outcome::Later)
            }
        };
        let Some(key) = self.busy.remove(&id) else { return };
        match outcome {
            Outcome::Done => self.queue.done(&key),
            Outcome::Later => self.queue.retry(key, Instant::now()),
        }
    }
}

impl Condition for StillSo {
    fn holds(&self, snapshot: &Snapshot) -> Result<Guard, Status> {
        let look = self.collector.look(snapshot);
        let changed = || Status::timeout("what was decided about the object no longer holds", 0);
        let entry = snapshot.get(&self.key).ok_or_else(changed)?;
        let resource = look.resource(entry).ok_or_else(changed)?;
        let name = resource.storage().and_then(|storage| storage.object_name(&self.key));
        let seen = look.at(entry, name.ok_or_else(changed)?.namespace).ok_or_else(changed)?;
        match seen.decision == self.decision {
            true => Ok(Guard { compares: seen.proof, writes: Vec::new() }),
            false => Err(changed()),
        }
    }
}

impl fmt::Debug for StillSo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StillSo").field("decision", &self.decision).finish_non_exhaustive()
    }
}

fn failed(name: ObjectName<'_>, status: &Status) -> Outcome {
    let ObjectName { namespace, name } = name;
    match status.code {
        404 => Outcome::Done,
        // Somebody else changed the object, or one of its owners.
        409 | 504 => Outcome::Later,
        _ => {
            tracing::warn!(namespace, name, error = %status, "An object could not be collected.");
            Outcome::Later
        }
    }
}

/// Whether it is new. What is remembered is forgotten when it becomes too much.
fn remember<T: Hash + Eq>(known: &mut HashSet<T>, new: T) -> bool {
    if known.len() == MOST_REMEMBERED {
        known.clear();
    }
    known.insert(new)
}

async fn sleep_until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at.into()).await;
    }
}
