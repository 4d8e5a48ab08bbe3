//! A migrator that is a client like any other, for servers that have none, such as a kube-apiserver alone.
//!
//! It sees neither what the other servers of a fleet write nor what is stored. So it can write every object again, and say
//! which ones it could not; but it proves nothing, and says that, too: `AgreementUnknown` is True on what it migrates, and
//! `storedVersions` of a definition are left to their owner.

mod pass;
mod persistent;
mod target;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use concord_meta::GroupResource;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use self::{
    pass::{Ended, Pass},
    persistent::Persistent,
    target::{Found, Target},
};
use crate::{
    PROGRESS_ANNOTATION, Progress,
    choose::choose,
    migration::{Condition, Migration, Transition, set},
    shared::{MANAGER, now},
    survive::{AFTER_PANIC, survives},
};

/// How often to look what is to be done.
const LOOK: Duration = Duration::from_secs(1);

/// How long a resource may be missing before a migration of it has failed.
const GRACE: Duration = Duration::from_secs(60);

/// The bounds of the pauses while a server cannot do what it is asked for.
const LEAST_PAUSE: Duration = Duration::from_millis(500);
const MOST_PAUSE: Duration = Duration::from_secs(30);

/// How often a change of a status is tried that somebody else was faster than.
const TRIES: usize = 10;

/// An answer of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The status of HTTP.
    pub code: u16,
    /// The object, the list, or what is wrong.
    pub body: Value,
    /// When to ask again, in seconds, if the server said so.
    pub retry_after: Option<u64>,
}

/// What a server is asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// To show something.
    Get,
    /// To show only the metadata of what is there.
    GetMetadata,
    /// To replace an object.
    Put(Value),
    /// To change an object, by a merge patch.
    Patch(Value),
}

/// A server, through its API.
#[async_trait]
pub trait Server: Send + Sync + 'static {
    /// Its answer to a request for a path.
    ///
    /// # Errors
    ///
    /// Why there is none.
    async fn ask(&self, ask: Ask, path: &str) -> Result<Answer, String>;
}

/// Carries out the StorageVersionMigrations of a server from outside.
pub struct Standalone<S> {
    server: Persistent<S>,
    /// What it is called that migrations are in, with its group and version.
    migrations: String,
}

/// Why nothing more can be done now.
pub(crate) enum Stop {
    /// It may go better later.
    Later(String),
    /// The migration is gone.
    Gone,
    /// Its owner has had enough.
    Cancelled,
    /// Its owner wants to know something that cannot be known from outside.
    DryRun,
}

impl Stop {
    /// How a migration ends by it, if it does.
    fn end(&self) -> Option<Condition> {
        match self {
            Self::Later(_) | Self::Gone => None,
            Self::Cancelled => {
                Some(ended("Failed", "MigrationCancelled", "The migration was cancelled".to_owned()))
            }
            Self::DryRun => {
                let message = "What is stored cannot be counted from outside; nothing was written".to_owned();
                Some(ended("Failed", "DryRunNotPossible", message))
            }
        }
    }
}

impl<S: Server> Standalone<S> {
    /// For a server that serves migrations in this version of their API.
    pub fn new(server: Arc<S>, version: &str) -> Self {
        let migrations = format!("/apis/storagemigration.k8s.io/{version}/storageversionmigrations");
        Self { server: Persistent(server), migrations }
    }

    /// Works until it is cancelled. One process at a time should: two do everything twice, and nothing wrong.
    pub async fn run(self, cancel: CancellationToken) {
        let this = Arc::new(self);
        let mut workers: JoinSet<GroupResource> = JoinSet::new();
        let mut active = Vec::new();
        let work = async {
            loop {
                for migration in this.chosen().await {
                    if !active.contains(&migration.resource) {
                        active.push(migration.resource.clone());
                        let this = this.clone();
                        workers.spawn(async move {
                            let resource = migration.resource.clone();
                            let work = async move { this.carry_out(&migration).await };
                            if !survives(&resource, work).await {
                                tokio::time::sleep(AFTER_PANIC).await;
                            }
                            resource
                        });
                    }
                }
                tokio::select! {
                    Some(Ok(ended)) = workers.join_next() => active.retain(|resource| *resource != ended),
                    () = tokio::time::sleep(LOOK) => {}
                }
            }
        };
        cancel.run_until_cancelled(work).await;
    }

    /// The migration to run of each resource.
    async fn chosen(&self) -> Vec<Migration> {
        let listed = match self.server.ask(Ask::Get, &self.migrations).await {
            Ok(answer) if answer.code == 200 => answer.body,
            Ok(answer) => {
                tracing::warn!(code = answer.code, message = %answer.body["message"], "Migrations cannot be listed.");
                return Vec::new();
            }
            Err(error) => {
                tracing::warn!(error, "The server cannot be reached.");
                return Vec::new();
            }
        };
        let items = listed["items"].as_array().into_iter().flatten();
        let all: Vec<Migration> = items.filter_map(Value::as_object).map(Migration::read).collect();
        let mut by_resource: BTreeMap<&GroupResource, Vec<&Migration>> = BTreeMap::new();
        all.iter().for_each(|migration| by_resource.entry(&migration.resource).or_default().push(migration));
        by_resource.into_values().filter_map(choose).cloned().collect()
    }

    async fn carry_out(&self, migration: &Migration) {
        tracing::info!(name = migration.name, resource = %migration.resource, "A migration begins.");
        let (begin, mut pause) = (Instant::now(), LEAST_PAUSE);
        let mut progress = migration.progress.clone().unwrap_or_default();
        if progress.started_at.is_empty() {
            progress.started_at = now().to_string();
        }
        loop {
            let why = match self.attempt(migration, begin, &mut progress).await {
                Ok(()) | Err(Stop::Gone) => return,
                Err(Stop::Later(why)) => why,
                Err(stop) => {
                    let how: Vec<Condition> = std::iter::once(done()).chain(stop.end()).collect();
                    match self.tell(migration, &how, None).await {
                        Ok(()) | Err(Stop::Gone) => return,
                        Err(_) => "the end could not be written".to_owned(),
                    }
                }
            };
            tracing::warn!(name = migration.name, why, "A migration is held up.");
            progress.last_error = why;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MOST_PAUSE);
        }
    }

    /// Goes over all objects once, and says what came of it.
    async fn attempt(
        &self,
        migration: &Migration,
        begin: Instant,
        progress: &mut Progress,
    ) -> Result<(), Stop> {
        self.orders(migration).await?;
        let target = match Target::find(&self.server, &migration.resource).await? {
            Found::Fit(target) => target,
            Found::Unfit(why) => return self.fail(migration, why).await,
            Found::Nothing if begin.elapsed() < GRACE => {
                let why = "The resource is not served yet";
                self.tell(migration, &[Condition::running(false, "WaitingForResource", why)], None).await?;
                return Err(Stop::Later("the resource is not served yet".to_owned()));
            }
            Found::Nothing => {
                return self.fail(migration, "resource does not exist in discovery".to_owned()).await;
            }
        };
        let checkpoint = target.revision(&self.server).await?;
        if !is_comparable(&checkpoint) {
            let message = format!(
                "latest resourceVersion for {} is not valid: resource version is not well formed: {checkpoint}",
                migration.resource
            );
            return self.fail(migration, message).await;
        }
        self.tell(migration, &[running("The migration is running"), unknown()], Some(&checkpoint)).await?;
        // Where another process was, if what is stored is still the same.
        let is_same = !target.hash.is_empty() && progress.agreement == target.hash;
        if !is_same || progress.cursor.is_empty() || progress.deferred > 0 {
            progress.restart();
        }
        progress.agreement.clone_from(&target.hash);
        let mut pass = Pass::new(self, migration, &target, progress);
        match pass.run().await? {
            Ended::Everything => {
                "Done".clone_into(&mut progress.phase);
                self.show(migration, progress).await?;
                let Progress { migrated, current, .. } = progress;
                let message = format!(
                    "{migrated} objects were written again and {current} needed nothing. What is stored was not counted: the \
                     server does not show it."
                );
                let how = ended("Succeeded", "StorageVersionMigrationSucceeded", message);
                self.tell(migration, &[done(), how], None).await
            }
            Ended::Failures => {
                self.show(migration, progress).await?;
                let mut message = format!("{} objects could not be migrated", progress.failed);
                for failure in &progress.failures {
                    message += &format!("; {}: {}", failure.object, failure.message);
                }
                self.fail(migration, message).await
            }
            Ended::Deferred => Err(Stop::Later(progress.last_error.clone())),
        }
    }

    /// Whether to go on; waits as long as the owner says so.
    pub(crate) async fn orders(&self, migration: &Migration) -> Result<Option<f64>, Stop> {
        let mut was_paused = false;
        loop {
            let now = self.read(migration).await?;
            let orders = now.1.orders;
            if orders.is_cancelled {
                return Err(Stop::Cancelled);
            }
            if orders.is_dry_run {
                return Err(Stop::DryRun);
            }
            if !orders.is_paused {
                if was_paused {
                    self.tell(migration, &[running("The migration is running")], None).await?;
                }
                return Ok(orders.rate);
            }
            was_paused = true;
            let paused = Condition::running(false, "Paused", "The migration is paused");
            self.tell(migration, &[paused], None).await?;
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Whether nothing has been ordered that stops it, and how fast it may be. A server that does not answer orders nothing.
    pub(crate) async fn may_go_on(&self, migration: &Migration) -> Result<Option<Option<f64>>, Stop> {
        match self.read(migration).await {
            Ok((_, now)) if now.orders.is_paused || now.orders.is_cancelled || now.orders.is_dry_run => {
                Ok(None)
            }
            Ok((_, now)) => Ok(Some(now.orders.rate)),
            Err(Stop::Gone) => Err(Stop::Gone),
            Err(_) => Ok(Some(migration.orders.rate)),
        }
    }

    /// A migration as it is now.
    async fn read(&self, migration: &Migration) -> Result<(Value, Migration), Stop> {
        let path = format!("{}/{}", self.migrations, migration.name);
        let body = good(self.server.ask(Ask::Get, &path).await)?;
        let read = body.as_object().map(Migration::read);
        let same = read.filter(|read| read.uid == migration.uid && !read.is_terminal()).ok_or(Stop::Gone)?;
        Ok((body, same))
    }

    async fn fail(&self, migration: &Migration, message: String) -> Result<(), Stop> {
        tracing::warn!(name = migration.name, message, "A migration has failed.");
        self.tell(migration, &[done(), ended("Failed", "StorageVersionMigrationFailed", message)], None).await
    }

    /// Sets conditions, and the checkpoint if there is none yet.
    async fn tell(
        &self,
        migration: &Migration,
        conditions: &[Condition],
        checkpoint: Option<&str>,
    ) -> Result<(), Stop> {
        let path = format!("{}/{}/status", self.migrations, migration.name);
        for _ in 0..TRIES {
            let (mut object, _) = self.read(migration).await?;
            let status = &mut object["status"];
            let mut all = status["conditions"].as_array().cloned().unwrap_or_default();
            let now = now().to_string();
            let at = Transition { member: "lastTransitionTime", now: &now };
            let changed = conditions.iter().filter(|condition| set(&mut all, condition, &at)).count();
            status["conditions"] = all.into();
            let is_new = status["resourceVersion"].as_str().is_none_or(str::is_empty);
            match checkpoint.filter(|_| is_new) {
                Some(revision) => status["resourceVersion"] = revision.into(),
                None if changed == 0 => return Ok(()),
                None => {}
            }
            match self.server.ask(Ask::Put(object), &path).await {
                Ok(answer) if answer.code == 409 => {}
                answer => return good(answer).map(drop),
            }
        }
        Err(Stop::Later("the status could not be written: somebody else does so all the time".to_owned()))
    }

    /// Says how far it is.
    pub(crate) async fn show(&self, migration: &Migration, progress: &Progress) -> Result<(), Stop> {
        let text = serde_json::to_string(progress).unwrap_or_default();
        let patch = json!({"metadata": {"uid": migration.uid, "annotations": {PROGRESS_ANNOTATION: text}}});
        let path = format!("{}/{}?fieldManager={MANAGER}", self.migrations, migration.name);
        good(self.server.ask(Ask::Patch(patch), &path).await).map(drop)
    }
}

/// What a server answered, if it did what it was asked for.
pub(crate) fn good(answer: Result<Answer, String>) -> Result<Value, Stop> {
    match answer {
        Ok(answer) if answer.code < 300 => Ok(answer.body),
        Ok(answer) if answer.code == 404 => Err(Stop::Gone),
        Ok(answer) => Err(Stop::Later(said(&answer))),
        Err(error) => Err(Stop::Later(error)),
    }
}

/// Whether a resource version can be told from a later one: digits of any number that begin with none.
fn is_comparable(version: &str) -> bool {
    !version.is_empty() && !version.starts_with('0') && version.bytes().all(|byte| byte.is_ascii_digit())
}

/// What a server said that is wrong.
pub(crate) fn said(answer: &Answer) -> String {
    let message = answer.body["message"].as_str().map(str::to_owned);
    message.unwrap_or_else(|| format!("the server answered with {}", answer.code))
}

fn running(message: &str) -> Condition {
    Condition::running(true, "MigrationRunning", message)
}

fn done() -> Condition {
    let message = "Migration completed".to_owned();
    Condition { kind: "Running", holds: false, reason: "MigrationCompleted", message }
}

fn ended(kind: &'static str, reason: &'static str, message: String) -> Condition {
    Condition { kind, holds: true, reason, message }
}

fn unknown() -> Condition {
    let message = "This migrator is a client of the server: how other servers write is not known to it, and what is stored \
                   cannot be counted. storedVersions are left as they are";
    Condition {
        kind: "AgreementUnknown",
        holds: true,
        reason: "MigratedFromOutside",
        message: message.to_owned(),
    }
}
