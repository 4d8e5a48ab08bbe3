//! Follows the definitions in the log: what they define is served, and they are told what became of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use concord_endpoints::{Apis, Origin};
use concord_merge::apply::Time;
use concord_meta::Status;
use concord_registry::{Context, Object, ObjectName, Part, Registry, UpdateRequest, metadata};
use concord_replica::{Batch, Closed, Error as ReplicaError, Scope, Snapshot, Subscription};
use concord_store::Revision;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{CustomResources, cleanup, serving::Learned, settled::tell};

/// The pause before something that failed is tried again.
const PAUSE: Duration = Duration::from_millis(500);
/// The pause before something is decided again on a newer state, which may still be on its way.
const SHORT_PAUSE: Duration = Duration::from_millis(10);

/// Serves what is defined, and keeps the status of definitions true. Any number of servers may do so at once: whatever
/// one writes is decided on a state and stored only if that state still holds.
pub struct CustomResourceController {
    pub(crate) registry: Arc<Registry>,
    pub(crate) customs: Arc<CustomResources>,
    apis: Arc<Apis>,
}

/// What definitions wait for. Whatever one of them waits for must not keep another one waiting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Job {
    /// Its names, and what is to be said of the definition of this name.
    Names(String),
    /// The end of the definition of this name, which waits for its objects.
    Cleanup(String),
}

/// The work on definitions that is under way.
#[derive(Default)]
struct Work {
    tasks: JoinSet<()>,
    busy: BTreeMap<Job, Id>,
    /// What came up again while it was being worked on.
    again: BTreeSet<Job>,
}

impl CustomResourceController {
    /// Does nothing yet: [`CustomResourceController::run`] does.
    pub fn new(registry: Arc<Registry>, customs: Arc<CustomResources>, apis: Arc<Apis>) -> Self {
        Self { registry, customs, apis }
    }

    /// Goes on until it is cancelled or the replica ends.
    pub async fn run(self, cancel: CancellationToken) {
        let controller = Arc::new(self);
        let mut work = Work::default();
        cancel.run_until_cancelled(controller.follow(&mut work)).await;
        work.tasks.shutdown().await;
    }

    async fn follow(self: &Arc<Self>, work: &mut Work) {
        loop {
            let scope = Scope::prefix(self.customs.storage.prefix.clone());
            match self.registry.replica().snapshot_and_subscribe(scope) {
                Ok((snapshot, changes)) => {
                    let jobs = self.aside(move |controller| controller.learn_all(&snapshot)).await;
                    jobs.into_iter().for_each(|job| self.begin(job, work));
                    let closed = self.follow_from(changes, work).await;
                    if matches!(closed, Closed::Shutdown | Closed::Failed) {
                        return;
                    }
                }
                Err(ReplicaError::Shutdown | ReplicaError::Failed { .. }) => return,
                Err(_) => {}
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn follow_from(self: &Arc<Self>, mut changes: Subscription, work: &mut Work) -> Closed {
        loop {
            tokio::select! {
                batch = changes.next() => match batch {
                    Ok(batch) => {
                        let jobs = self.aside(move |controller| controller.learn(&batch)).await;
                        jobs.into_iter().for_each(|job| self.begin(job, work));
                    }
                    Err(closed) => return closed,
                },
                Some(ended) = work.tasks.join_next_with_id() => self.ended(ended, work),
            }
        }
    }

    /// Learns something on a thread of its own: to compile schemas takes a while, and nobody else should wait for it.
    async fn aside(
        self: &Arc<Self>,
        learn: impl FnOnce(&Self) -> BTreeSet<Job> + Send + 'static,
    ) -> BTreeSet<Job> {
        let controller = Arc::clone(self);
        let learned = tokio::task::spawn_blocking(move || learn(&controller)).await;
        learned.unwrap_or_else(|error| {
            tracing::error!(%error, "CustomResourceDefinitions could not be learned.");
            BTreeSet::new()
        })
    }

    /// Learns all definitions there are, and forgets those that are gone. Answers what is to be done.
    fn learn_all(&self, snapshot: &Snapshot) -> BTreeSet<Job> {
        let mut gone: BTreeSet<String> = self.customs.names().into_iter().collect();
        let (mut changed, mut all) = (BTreeSet::new(), BTreeSet::new());
        for entry in snapshot.scan(&Scope::prefix(self.customs.storage.prefix.clone()).range()) {
            let Some(name) = self.customs.storage.object_name(&entry.key) else { continue };
            gone.remove(name.name);
            let learned = self.customs.learn(name.name, Some(entry), snapshot.revision());
            all.extend(jobs(name.name, &learned));
            changed.extend(learned.groups);
        }
        for name in &gone {
            let learned = self.customs.learn(name, None, snapshot.revision());
            all.extend(jobs(name, &learned));
            changed.extend(learned.groups);
        }
        self.serve(&changed);
        self.customs.progress.reached(snapshot.revision());
        all
    }

    /// Learns what changed, and answers what is to be done.
    fn learn(&self, batch: &Batch) -> BTreeSet<Job> {
        let (mut changed, mut all) = (BTreeSet::new(), BTreeSet::new());
        for event in batch.iter() {
            let Some(name) = self.customs.storage.object_name(event.key()) else { continue };
            let learned = self.customs.learn(name.name, event.current(), event.revision);
            all.extend(jobs(name.name, &learned));
            changed.extend(learned.groups);
        }
        self.serve(&changed);
        batch.last().into_iter().for_each(|event| self.customs.progress.reached(event.revision));
        all
    }

    /// Whether the server has a group of its own of that name.
    pub(crate) fn is_built_in(&self, group: &str) -> bool {
        self.apis.set().group(group).is_some_and(|group| group.origin() == Origin::BuiltIn)
    }

    fn serve(&self, groups: &BTreeSet<String>) {
        if !groups.is_empty() {
            self.apis.replace(self.customs.serve(&self.apis.set(), groups));
        }
    }

    fn begin(self: &Arc<Self>, job: Job, work: &mut Work) {
        if work.busy.contains_key(&job) {
            work.again.insert(job);
            return;
        }
        let controller = Arc::clone(self);
        let doing = job.clone();
        let task = work.tasks.spawn(async move {
            while let Err(status) = controller.settle(&doing).await {
                // Something changed in between, or went away. That may be an object of the definition, so that no
                // event of a definition brings us here again.
                let raced = status.code == 409 || status.code == 404;
                if !raced {
                    tracing::warn!(%status, job = ?doing, "A CustomResourceDefinition has to wait, trying again.");
                }
                tokio::time::sleep(if raced { SHORT_PAUSE } else { PAUSE }).await;
            }
        });
        work.busy.insert(job, task.id());
    }

    fn ended(self: &Arc<Self>, ended: Result<(Id, ()), JoinError>, work: &mut Work) {
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(%error, "The work on a CustomResourceDefinition did not end well.");
                error.id()
            }
        };
        let job = work.busy.iter().find(|(_, task)| **task == id).map(|(job, _)| job.clone());
        let Some(job) = job else { return };
        work.busy.remove(&job);
        if work.again.remove(&job) {
            self.begin(job, work);
        }
    }

    /// Does what definitions wait for.
    async fn settle(&self, job: &Job) -> Result<(), Status> {
        let (Job::Names(name) | Job::Cleanup(name)) = job;
        let snapshot = self.registry.replica().newest().map_err(Status::internal_error)?;
        let Some(entry) = snapshot.get(&self.customs.key(name)) else { return Ok(()) };
        let Some(definition) = self.customs.object(entry) else { return Ok(()) };
        match (job, metadata(&definition).is_terminating()) {
            (Job::Names(_), false) => self.establish(name, entry.mod_revision, definition).await,
            (Job::Cleanup(_), true) => cleanup::advance(self, name, definition).await,
            _ => Ok(()),
        }
    }

    /// Gives a definition its names, and says that it is served.
    async fn establish(&self, name: &str, revision: Revision, mut definition: Object) -> Result<(), Status> {
        let (names, conflict) = self.customs.give_names(name, revision, &definition);
        match tell(&mut definition, &names, conflict, now()) {
            true => self.write(name, Part::Sub("status"), definition).await,
            false => Ok(()),
        }
    }

    /// Stores a definition that was read before, unless it changed since.
    pub(crate) async fn write(&self, name: &str, part: Part<'_>, object: Object) -> Result<(), Status> {
        let request = UpdateRequest { name: ObjectName { namespace: "", name }, part, object };
        let context = Context::of_the_server(now());
        self.registry.update(&context, &self.customs.resource, request).await.map(drop)
    }
}

/// What a change of a definition calls for.
fn jobs(name: &str, learned: &Learned) -> impl Iterator<Item = Job> + use<> {
    let cleanup = learned.is_terminating.then(|| Job::Cleanup(name.to_owned()));
    learned.open.clone().into_iter().map(Job::Names).chain(cleanup)
}

pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time { unix: i64::try_from(since.as_secs()).unwrap_or(i64::MAX) }
}
