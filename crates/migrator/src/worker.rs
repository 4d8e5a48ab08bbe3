//! One migration, from its beginning to its end.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use concord_garbagecollector::Index;
use concord_meta::{GroupResource, Status};
use concord_registry::Storage;
use concord_store::Revision;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    Census, StorageState,
    agreement::{Agreed, Writers},
    census::census,
    decide::{Next, Orders, Run, Stage, next},
    definitions::End,
    meter::Meter,
    migration::{Condition, Migration},
    pace::Pace,
    progress::Progress,
    shared::{Found, Shared, now},
    status::Which,
};

mod walking;

/// How long a resource may be missing before a migration of it has failed.
const GRACE: Duration = Duration::from_secs(60);

/// How long to wait for this server to see what the store has.
const SEEN: Duration = Duration::from_secs(30);

/// The bounds of the pauses between passes.
const LEAST_PAUSE: Duration = Duration::from_millis(250);
const MOST_PAUSE: Duration = Duration::from_secs(30);

/// Whoever carries out one migration.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    which: Which,
    resource: GroupResource,
    orders: watch::Receiver<Orders>,
    changes: Option<watch::Receiver<Revision>>,
    progress: Progress,
    run: Option<Run>,
    pace: Pace,
    /// Of the definition, when the pass began.
    generation: Option<i64>,
    /// Since when the resource is not served.
    missing: Option<Instant>,
    /// Since when there are objects that cannot be written for now.
    deferred: Option<Instant>,
    shown: Instant,
    meter: Meter,
    pause: Duration,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, migration: &Migration, orders: watch::Receiver<Orders>) -> Self {
        Self {
            changes: shared.changes(),
            which: Which { name: migration.name.clone(), uid: migration.uid.clone() },
            resource: migration.resource.clone(),
            orders,
            progress: migration.progress.clone().unwrap_or_default(),
            run: None,
            pace: Pace::default(),
            generation: None,
            missing: None,
            deferred: None,
            shown: Instant::now(),
            meter: Meter::new(Instant::now(), 0),
            pause: LEAST_PAUSE,
            shared,
        }
    }

    /// Works until the migration has ended, until it is withdrawn by its owner, or until this server is to stop: then
    /// somebody else will go on with it.
    pub(crate) async fn run(mut self, withdrawn: CancellationToken, stop: CancellationToken) {
        let work = stop.run_until_cancelled(withdrawn.run_until_cancelled(self.work()));
        if let Some(None) = Box::pin(work).await {
            tracing::info!(name = self.which.name, resource = %self.resource, "A migration was deleted.");
            let end = self.unmark(None, End::Cancelled).await;
            end.unwrap_or_else(|error| {
                tracing::warn!(error = error.message, "The definition still says that it is migrated.")
            });
        }
    }

    async fn work(&mut self) {
        tracing::info!(name = self.which.name, resource = %self.resource, "A migration begins.");
        loop {
            match self.step().await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(name = self.which.name, error = error.message, "A migration is held up.");
                    self.progress.last_error = error.message;
                    self.breathe().await;
                }
            }
        }
    }

    /// A pause that gets longer until something goes well.
    async fn breathe(&mut self) {
        let pause = self.pause;
        self.pause = (pause * 2).min(MOST_PAUSE);
        let mut orders = self.orders.clone();
        tokio::time::timeout(pause, orders.changed()).await.ok();
    }

    /// Does what is to be done next. True if the migration has ended.
    async fn step(&mut self) -> Result<bool, Status> {
        self.orders.mark_unchanged();
        if let Some(changes) = &mut self.changes {
            changes.mark_unchanged();
        }
        let orders = *self.orders.borrow();
        let resource = match self.shared.find(&self.resource) {
            Found::Stored(resource) => resource,
            Found::Unfit(why) => return self.fail(why).await,
            Found::Nothing if orders.is_cancelled => return self.cancel().await,
            Found::Nothing => return self.missing().await,
        };
        self.missing = None;
        let Some(storage) = resource.storage().cloned() else { return Ok(false) };
        let writers = self.shared.writers(&storage);
        match next(orders, &writers, self.run.as_ref()) {
            Next::Cancel => return self.cancel().await,
            Next::Pause => self.wait("Paused", "The migration is paused").await?,
            Next::Await(why) => self.wait("WaitingForAgreement", &why).await?,
            Next::Begin => self.begin(&writers, &storage).await?,
            Next::Walk => Box::pin(self.walk(&resource, &storage)).await?,
            Next::Count => self.count(&storage).await?,
            Next::Again => self.again().await,
            Next::Succeed(census) => return self.succeed(&census).await,
            Next::Fail(census) => return self.give_up(&census).await,
            Next::Report(census) => return self.report(&census).await,
        }
        Ok(false)
    }

    async fn missing(&mut self) -> Result<bool, Status> {
        let since = *self.missing.get_or_insert_with(Instant::now);
        if since.elapsed() >= GRACE {
            return self.fail("resource does not exist in discovery".to_owned()).await;
        }
        self.wait("WaitingForResource", "The resource is not served yet").await?;
        Ok(false)
    }

    /// Says why nothing happens, and waits until something may have changed.
    async fn wait(&mut self, reason: &'static str, message: &str) -> Result<(), Status> {
        let phase = if reason == "Paused" { "Paused" } else { "Waiting" };
        if self.progress.phase != phase {
            phase.clone_into(&mut self.progress.phase);
            self.shared.show(&self.which, &self.progress).await?;
            self.shared.event(&self.which, reason, message).await;
        }
        self.say(&[Condition::running(false, reason, message)], None).await?;
        let Self { shared, changes, orders, .. } = self;
        tokio::select! {
            () = shared.servers_changed(changes) => {}
            _ = orders.changed() => {}
            () = tokio::time::sleep(Duration::from_millis(250)) => {}
        }
        Ok(())
    }

    async fn say(&self, conditions: &[Condition], checkpoint: Option<Revision>) -> Result<(), Status> {
        self.shared.tell(&self.which, conditions, checkpoint).await.map(drop)
    }

    /// Begins a pass. The checkpoint is taken after the agreement was seen.
    async fn begin(&mut self, writers: &Writers, storage: &Storage) -> Result<(), Status> {
        let Writers::Agree(agreed) = writers else { return Ok(()) };
        let checkpoint = self.shared.registry().store().current_revision().await;
        let checkpoint = checkpoint.map_err(Status::internal_error)?;
        let is_dry_run = self.orders.borrow().is_dry_run;
        if !is_dry_run {
            self.generation = self.shared.mark(&self.resource, &self.which.name).await?;
        }
        self.prepare(agreed, checkpoint, storage);
        let mut conditions = vec![Condition::running(true, "MigrationRunning", "The migration is running")];
        if !agreed.is_known {
            conditions.push(Condition {
                kind: "AgreementUnknown",
                holds: true,
                reason: "StorageVersionsNotRegistered",
                message: "Servers do not say how they store objects: what others write is not known"
                    .to_owned(),
            });
        }
        self.say(&conditions, Some(checkpoint)).await?;
        let message = format!("All servers write {}, at revision {checkpoint}", agreed.target);
        self.shared.event(&self.which, "Started", &message).await;
        self.pause = LEAST_PAUSE;
        self.run = Some(Run {
            target: agreed.target.clone(),
            fingerprint: agreed.fingerprint,
            checkpoint,
            stage: Stage::Walking,
        });
        Ok(())
    }

    /// Goes on where another process was, if it was there under the same agreement; or else begins anew.
    fn prepare(&mut self, agreed: &Agreed, checkpoint: Revision, storage: &Storage) {
        let agreement = format!("{:016x}", agreed.fingerprint);
        let progress = &mut self.progress;
        let is_same = self.run.is_none()
            && progress.target.as_ref() == Some(&agreed.target)
            && progress.agreement == agreement;
        if !is_same {
            progress.restart();
        }
        progress.target = Some(agreed.target.clone());
        (progress.agreement, progress.checkpoint) = (agreement, checkpoint);
        if progress.started_at.is_empty() {
            progress.started_at = now().to_string();
        }
        let snapshot = self.shared.registry().replica().newest();
        progress.total = snapshot.map_or(0, |snapshot| Index::new(storage, &snapshot).count() as u64);
        "Migrating".clone_into(&mut progress.phase);
        self.meter = Meter::new(Instant::now(), self.progress.seen());
    }

    /// Counts what is stored, and waits until this server has seen that state.
    async fn count(&mut self, storage: &Storage) -> Result<(), Status> {
        "Verifying".clone_into(&mut self.progress.phase);
        let (registry, keyring) = (self.shared.registry(), self.shared.config.keyring.as_deref());
        let counted = census(registry, keyring, &storage.prefix).await;
        let counted = counted.map_err(Status::internal_error)?;
        let seen = registry.replica().not_older_than(counted.revision, SEEN).await;
        seen.map_err(|error| Status::internal_error(error.to_string()))?;
        self.progress.count(&counted);
        self.shared.config.metrics.migration().set_census(&self.resource.to_string(), counted.shown());
        let Some(run) = &mut self.run else { return Ok(()) };
        let (failed, deferred) = match run.stage {
            Stage::Walked { failed, deferred } | Stage::Counted { failed, deferred, .. } => {
                (failed, deferred)
            }
            Stage::Walking => (0, 0),
        };
        run.stage = Stage::Counted { failed, deferred, census: counted };
        Ok(())
    }

    /// Goes over everything again, after a pause.
    async fn again(&mut self) {
        let error = std::mem::take(&mut self.progress.last_error);
        self.progress.restart();
        self.progress.last_error = error;
        "Migrating".clone_into(&mut self.progress.phase);
        // That it is held up is to be seen, but it is no reason to stop.
        self.show().await.unwrap_or_else(|error| self.progress.last_error = error.message);
        self.breathe().await;
        if let Some(run) = &mut self.run {
            run.stage = Stage::Walking;
        }
    }

    /// Says in the definition that it has ended. A dry run has said nothing there, and another migration may have.
    async fn unmark(&self, generation: Option<i64>, end: End<'_>) -> Result<(), Status> {
        if self.orders.borrow().is_dry_run {
            return Ok(());
        }
        self.shared.unmark(&self.resource, generation, end).await
    }

    async fn succeed(&mut self, census: &Census) -> Result<bool, Status> {
        let version = self.run.as_ref().map(|run| run.target.version.clone()).unwrap_or_default();
        self.unmark(self.generation, End::Succeeded(&version)).await?;
        let succeeded = Condition::ended("Succeeded", "StorageVersionMigrationSucceeded", String::new());
        tracing::info!(name = self.which.name, resource = %self.resource, objects = census.total(), "A migration has succeeded.");
        self.end(succeeded).await?;
        self.keep(census).await;
        Ok(true)
    }

    /// Keeps what was found. If nobody comes to that, more is said to be stored than is, until somebody counts.
    async fn keep(&self, census: &Census) {
        let Some(run) = &self.run else { return };
        let state = StorageState::new(&run.target, census);
        self.shared.keep(&[(self.resource.to_string(), state)].into(), None).await;
    }

    async fn report(&mut self, census: &Census) -> Result<bool, Status> {
        let others = self.run.as_ref().map_or(0, |run| census.others(&run.target));
        let message = format!("dry run: {others} of {} objects would be rewritten", census.total());
        self.end(Condition::ended("Succeeded", "DryRunCompleted", message)).await
    }

    async fn give_up(&mut self, census: &Census) -> Result<bool, Status> {
        let others = self.run.as_ref().map_or(0, |run| census.others(&run.target));
        let mut message = format!("{others} of {} objects could not be migrated", census.total());
        for failure in &self.progress.failures {
            message += &format!("; {}: {}", failure.object, failure.message);
        }
        self.fail(message).await?;
        self.keep(census).await;
        Ok(true)
    }

    async fn cancel(&mut self) -> Result<bool, Status> {
        self.unmark(self.generation, End::Cancelled).await?;
        self.end(Condition::ended("Failed", "MigrationCancelled", "The migration was cancelled".to_owned()))
            .await
    }

    async fn fail(&mut self, message: String) -> Result<bool, Status> {
        tracing::warn!(name = self.which.name, resource = %self.resource, message, "A migration has failed.");
        self.unmark(self.generation, End::Failed).await?;
        self.end(Condition::ended("Failed", "StorageVersionMigrationFailed", message)).await
    }

    /// Says that it has ended. What it says about the definition was said before: if this is the last thing that happens,
    /// nothing is left to do.
    async fn end(&mut self, how: Condition) -> Result<bool, Status> {
        "Done".clone_into(&mut self.progress.phase);
        self.progress.eta_seconds = None;
        self.shared.show(&self.which, &self.progress).await?;
        // A name that nothing is served by is whatever a client liked to write.
        let known = self.run.is_some().then(|| self.resource.to_string());
        self.shared.config.metrics.migration().ended(known.as_deref().unwrap_or("unknown"), how.kind);
        let done = Condition::running(false, "MigrationCompleted", "Migration completed");
        let (kind, message) = (how.kind, how.message.clone());
        self.say(&[done, how], None).await?;
        self.shared.event(&self.which, kind, &message).await;
        Ok(true)
    }
}
