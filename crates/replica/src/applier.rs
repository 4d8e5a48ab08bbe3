use std::sync::{Arc, atomic::Ordering};

use concord_store::{Commit, CommitStream, Error as StoreError, KeyRange, Scan, Store};
use futures_util::{FutureExt, StreamExt};
use tokio::time::Instant;

use crate::{
    Closed, Config, Error, Event, Phase, Snapshot, backoff::Backoff, kept::is_large, live::Live, ring::Ring,
    shared::Shared, state::State, view::Views, window::Window,
};

/// How many changes are applied before a snapshot is published and others get the processor. More
/// per run is faster, because a tree node is copied at most once per run; fewer are fresher.
const RUN_CHANGES: usize = 512;
/// Packing so many bytes that were superseded takes as long as applying one change, or a little longer.
/// So a run takes a few milliseconds at most, also if all its values are large.
const CHANGE_BYTES: usize = 1 << 10;

/// The one task that changes anything: it loads, follows, applies, feeds and publishes.
pub(crate) struct Applier {
    store: Arc<dyn Store>,
    config: Config,
    shared: Arc<Shared>,
    views: Views,
    backoff: Backoff,
    window: Window,
    /// Emptied and filled again for each run.
    events: Vec<Event>,
    /// What the run has cost so far, in changes.
    cost: usize,
    touched: Vec<Arc<Ring>>,
}

/// Why following ended.
enum End {
    /// The stream broke; its position is still good.
    Interrupted(String),
    /// What is here cannot be continued.
    Reload(String),
    /// A view panicked.
    Failed(Error),
}

impl Applier {
    pub(crate) fn new(store: Arc<dyn Store>, config: Config, shared: Arc<Shared>, views: Views) -> Self {
        let backoff = Backoff::new(config.backoff_min, config.backoff_max);
        let window = Window::new(config.window_bytes, config.window_age);
        let (events, touched) = (Vec::new(), Vec::new());
        Self { store, config, shared, views, backoff, window, events, cost: 0, touched }
    }

    /// Runs until a view panics. May be dropped at any point: nothing is done by halves across an
    /// await.
    pub(crate) async fn run(mut self) {
        loop {
            self.shared.enter(Phase::Loading, None);
            let mut state = self.load_patiently().await;
            if let Err(error) = self.install(&state) {
                return self.fail(error);
            }
            loop {
                let began = Instant::now();
                let end = self.follow(&mut state).await;
                if began.elapsed() > self.config.backoff_max {
                    // It held for a while, though perhaps nothing was committed: not the same trouble.
                    self.backoff.reset();
                }
                match end {
                    End::Interrupted(error) => self.pause(Phase::Interrupted, error).await,
                    End::Reload(error) => {
                        self.pause(Phase::Loading, error).await;
                        break;
                    }
                    End::Failed(error) => return self.fail(error),
                }
            }
        }
    }

    fn fail(&self, error: Error) {
        tracing::error!(%error, "The replica stops");
        self.shared.fail(error);
    }

    async fn pause(&mut self, phase: Phase, error: String) {
        let pause = self.backoff.pause();
        tracing::warn!(error, ?phase, ?pause, "The replica will turn to its store again");
        self.shared.enter(phase, Some(error));
        tokio::time::sleep(pause).await;
    }

    async fn load_patiently(&mut self) -> State {
        loop {
            match load(self.store.as_ref(), self.config.load_page.get()).await {
                Ok(state) => {
                    self.backoff.reset();
                    tracing::info!(revision = state.revision, keys = state.len(), "The replica has loaded");
                    return state;
                }
                Err(error) => self.pause(Phase::Loading, error.to_string()).await,
            }
        }
    }

    /// Replaces everything by a state that was just loaded.
    fn install(&mut self, state: &State) -> Result<(), Error> {
        let snapshot = Snapshot::new(state.clone());
        self.views.reset(&snapshot)?;
        self.events.clear();
        self.cost = 0;
        self.window = Window::new(self.config.window_bytes, self.config.window_age);
        let replaced = {
            let mut feed = self.shared.feed.lock();
            feed.groups.close(Closed::Compacted);
            self.shared.publish(snapshot)
        };
        drop(replaced);
        // Who noticed that the store went back did so before this load.
        self.shared.went_back.notified().now_or_never();
        self.shared.wake();
        Ok(())
    }

    async fn follow(&mut self, state: &mut State) -> End {
        let mut stream: CommitStream = self.store.follow(state.revision);
        let shared = Arc::clone(&self.shared);
        shared.enter(Phase::Following, None);
        loop {
            let expiry = self.window.expiry();
            tokio::select! {
                received = stream.next() => match received {
                    Some(Ok(commits)) => {
                        if let Err(end) = self.apply(state, commits).await {
                            return end;
                        }
                    }
                    Some(Err(error)) => return end_of(&error),
                    None => return End::Interrupted("the stream of commits ended".to_owned()),
                },
                () = tokio::time::sleep_until(expiry.unwrap_or_else(Instant::now)), if expiry.is_some() => {
                    self.expire(state);
                }
                () = shared.went_back.notified() => {
                    return End::Reload("the store went back to an older revision".to_owned());
                }
            }
        }
    }

    /// Applies what the stream brought, in runs of bounded size.
    async fn apply(&mut self, state: &mut State, commits: Vec<Commit>) -> Result<(), End> {
        for commit in commits {
            let expected = state.revision + 1;
            if commit.revision != expected {
                return Err(End::Reload(format!("revision {} came for {expected}", commit.revision)));
            }
            for event in commit.changes.into_iter().filter_map(|change| state.apply(expected, change)) {
                self.cost += cost(&event);
                self.events.push(event);
            }
            state.revision = expected;
            if self.cost >= RUN_CHANGES {
                self.finish_run(state).map_err(End::Failed)?;
                tokio::task::yield_now().await;
            }
        }
        self.backoff.reset();
        self.finish_run(state).map_err(End::Failed)
    }

    /// Feeds views and subscriptions with the applied events, then publishes: in this order, see the
    /// crate's documentation.
    fn finish_run(&mut self, state: &mut State) -> Result<(), Error> {
        self.views.apply(&self.events)?;
        let now = Instant::now();
        self.window.push(&mut state.history, &self.events, now);
        self.evict(state, now);
        let replaced = {
            let mut feed = self.shared.feed.lock();
            feed.groups.dispatch(&self.events, &mut self.touched);
            self.shared.publish(Snapshot::new(state.clone()))
        };
        self.events.clear();
        self.cost = 0;
        // Only now, so that a run of many commits wakes everyone once.
        self.touched.drain(..).for_each(|ring| ring.wake());
        self.shared.wake();
        drop(replaced);
        Ok(())
    }

    /// Drops what is too old although nothing new came.
    fn expire(&mut self, state: &mut State) {
        self.evict(state, Instant::now());
        let feed = self.shared.feed.lock();
        let replaced = self.shared.publish(Snapshot::new(state.clone()));
        drop(feed);
        drop(replaced);
    }

    fn evict(&mut self, state: &mut State, now: Instant) {
        state.oldest = self.window.evict(&mut state.history, now).unwrap_or(state.oldest);
        self.shared.window_bytes.store(self.window.bytes(), Ordering::Relaxed);
    }
}

/// How long an event takes to be applied, in changes that supersede nothing large.
fn cost(event: &Event) -> usize {
    let packed = event.previous().filter(|entry| is_large(entry));
    1 + packed.map_or(0, |entry| entry.value.len() / CHANGE_BYTES)
}

/// Reads all keys, page by page, at the revision of the first page. If that is compacted before the
/// last page, the caller starts over.
async fn load(store: &dyn Store, limit: usize) -> Result<State, StoreError> {
    let mut live = Live::default();
    let mut scan = Scan::new(KeyRange::all(), limit);
    loop {
        let page = store.scan(scan.clone()).await?;
        for entry in page.entries {
            live.put(Arc::new(entry));
        }
        let Some(resume) = page.resume else {
            return Ok(State::loaded(live, page.revision));
        };
        scan.range = scan.range.starting_at(resume);
        scan.revision = Some(page.revision);
    }
}

impl Drop for Applier {
    /// A panic of the replica itself must not look like a quiet store.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.fail(Error::Failed { reason: "its own task panicked".to_owned() });
        }
    }
}

fn end_of(error: &StoreError) -> End {
    match error {
        StoreError::Compacted { .. } => End::Reload(error.to_string()),
        StoreError::FutureRevision { .. } => {
            tracing::error!(%error, "The store is older than what it showed before: was it restored from a backup?");
            End::Reload(error.to_string())
        }
        _ => End::Interrupted(error.to_string()),
    }
}
