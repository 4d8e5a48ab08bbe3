//! A walk of a worker, and what is told of it meanwhile.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use concord_meta::{GroupResource, Status};
use concord_registry::{Resource, Storage};
use concord_store::Revision;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{LEAST_PAUSE, Worker};
use crate::{
    decide::{Next, Orders, Run, Stage, next},
    meter::Meter,
    migration::Condition,
    pace::Pace,
    progress::Progress,
    shared::{Found, Shared},
    status::Which,
    walk::{Walk, Walked},
};

/// How long objects that cannot be written for now are tried again before they count as failed.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// How often at most it is said how far a migration is.
const SHOW: Duration = Duration::from_secs(1);

/// How often it is decided anew whether to go on, also if nothing seems to have changed: a definition may have.
const LOOK: Duration = Duration::from_millis(500);

/// Whether a walk is still wanted: its owner wants nothing else, and the servers say what they said when it began. Leases
/// are written all the time, and that alone is no reason to stop.
struct Wanted {
    shared: Arc<Shared>,
    resource: GroupResource,
    run: Run,
    orders: watch::Receiver<Orders>,
    state: Mutex<State>,
}

struct State {
    changes: Option<watch::Receiver<Revision>>,
    /// When it was last decided, and what.
    decided: (Instant, bool),
}

impl Wanted {
    fn is_so(&self) -> bool {
        if self.orders.has_changed().unwrap_or(true) {
            return false;
        }
        let mut state = self.state.lock();
        let State { changes, decided: (at, is_wanted) } = &mut *state;
        let has_changed = changes.as_ref().is_some_and(|changes| changes.has_changed().unwrap_or(true));
        // Whoever was told to stop once does not go on.
        if *is_wanted && (has_changed || at.elapsed() >= LOOK) {
            if let Some(changes) = changes {
                changes.mark_unchanged();
            }
            (*at, *is_wanted) = (Instant::now(), self.decide());
        }
        *is_wanted
    }

    fn decide(&self) -> bool {
        let Found::Stored(resource) = self.shared.find(&self.resource) else { return false };
        let Some(storage) = resource.storage() else { return false };
        next(*self.orders.borrow(), &self.shared.writers(storage), Some(&self.run)) == Next::Walk
    }
}

/// Passes on how far a walk is, now and then.
struct Teller {
    told: watch::Sender<Progress>,
    /// When that was last done, and how fast the walk is.
    last: Mutex<(Instant, Meter)>,
}

impl Teller {
    fn tell(&self, progress: &Progress) {
        let mut last = self.last.lock();
        let (at, meter) = &mut *last;
        if at.elapsed() >= SHOW {
            *at = Instant::now();
            let mut progress = progress.clone();
            progress.goes_at(meter.read(*at, progress.seen()));
            self.told.send_replace(progress);
        }
    }
}

impl Worker {
    pub(super) async fn walk(&mut self, resource: &Resource, storage: &Storage) -> Result<(), Status> {
        let Some(run) = self.run.clone() else { return Ok(()) };
        self.pace.set_rate(self.orders.borrow().rate);
        let (shared, which, name) = (self.shared.clone(), self.which.clone(), resource.group_resource());
        let wanted = self.wanted(&run);
        let (told, heard) = watch::channel(Progress::default());
        self.meter.skip(Instant::now(), self.progress.seen());
        let teller = Teller { told, last: Mutex::new((self.shown, self.meter)) };
        let walk = Walk {
            shared: &shared,
            resource,
            name: &name,
            storage,
            target: &run.target,
            is_wanted: &|| wanted.is_so(),
            tell: &|progress| teller.tell(progress),
        };
        let before = self.progress.migrated;
        // It is told while objects are written: nothing waits for that.
        let walked = tokio::select! {
            walked = pages(&walk, &mut self.progress, &mut self.pace) => walked,
            () = shared.tell_all(&which, &name, heard) => Walked::Interrupted,
        };
        (self.shown, self.meter) = *teller.last.lock();
        let seen = self.progress.seen();
        self.progress.goes_at(self.meter.read(Instant::now(), seen));
        if self.progress.migrated > before {
            self.pause = LEAST_PAUSE;
        }
        match walked {
            Walked::Page | Walked::Interrupted => {}
            Walked::Unreadable(error) => return Err(Status::internal_error(error)),
            Walked::Everything => self.walked(),
        }
        self.show().await
    }

    fn wanted(&self, run: &Run) -> Wanted {
        let decided = (Instant::now(), true);
        Wanted {
            shared: self.shared.clone(),
            resource: self.resource.clone(),
            run: run.clone(),
            orders: self.orders.clone(),
            state: Mutex::new(State { changes: self.changes.clone(), decided }),
        }
    }

    /// All objects have been looked at.
    fn walked(&mut self) {
        let Progress { mut failed, mut deferred, .. } = self.progress;
        match deferred {
            0 => self.deferred = None,
            _ if self.deferred.get_or_insert_with(Instant::now).elapsed() < PATIENCE => {}
            _ => (failed, deferred) = (failed + deferred, 0),
        }
        if let Some(run) = &mut self.run {
            run.stage = Stage::Walked { failed, deferred };
        }
    }

    /// Says how far it is, now and then.
    pub(super) async fn show(&mut self) -> Result<(), Status> {
        if self.shown.elapsed() < SHOW {
            return Ok(());
        }
        self.shown = Instant::now();
        self.shared.tell_of(&self.which, &self.resource, &self.progress).await
    }
}

/// Page after page.
async fn pages(walk: &Walk<'_>, progress: &mut Progress, pace: &mut Pace) -> Walked {
    let mut ahead = None;
    loop {
        match walk.page(progress, pace, &mut ahead).await {
            Walked::Page if (walk.is_wanted)() => (walk.tell)(progress),
            walked => return walked,
        }
    }
}

impl Shared {
    /// Says how far a migration is, whenever that is told.
    async fn tell_all(&self, which: &Which, resource: &GroupResource, mut heard: watch::Receiver<Progress>) {
        while heard.changed().await.is_ok() {
            let progress = heard.borrow_and_update().clone();
            if let Err(error) = self.tell_of(which, resource, &progress).await {
                tracing::debug!(error = error.message, "How far a migration is could not be written.");
            }
        }
    }

    /// Says how far a migration is.
    async fn tell_of(
        &self,
        which: &Which,
        resource: &GroupResource,
        progress: &Progress,
    ) -> Result<(), Status> {
        let left = progress.total.saturating_sub(progress.seen());
        self.config.metrics.migration().set_remaining(&resource.to_string(), left);
        let mut message =
            format!("The migration is running, {left}/{} objects not yet migrated", progress.total);
        if !progress.last_error.is_empty() {
            message += &format!("; transient error: {}", progress.last_error);
        }
        self.tell(which, &[Condition::running(true, "MigrationRunning", &message)], None).await?;
        self.show(which, progress).await
    }
}
