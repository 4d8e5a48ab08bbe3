//! How much the migrations of this process write at once, and what everybody else feels of it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use concord_registry::Registry;
use parking_lot::Mutex;

use crate::limit::{Bounds, Limit};

/// How often it is looked what a read takes while objects are written.
const LOOK: Duration = Duration::from_millis(50);

/// How many reads show what they usually take, and the pause between them.
const READS: usize = 9;
const PAUSE: Duration = Duration::from_millis(5);

/// How long that is believed while nothing is written.
const BELIEVED: Duration = Duration::from_secs(10);

/// A read that takes longer is not waited for.
const LONGEST: Duration = Duration::from_secs(1);

/// Lets those go first who wait for this processor. Linux protects a thread from whoever wakes while it runs, for milliseconds and
/// also if it is a nice one: so whoever goes over many objects asks between one and the next.
pub(crate) fn give_way() {
    std::thread::yield_now();
}

/// What is shared by all migrations of a process that write in the same way. Reads are those that any client makes: of the newest state there is,
/// which includes waiting for the store, and for a processor.
#[derive(Clone)]
pub(crate) struct Load {
    registry: Arc<Registry>,
    state: Arc<Mutex<State>>,
}

struct State {
    limit: Limit,
    under_way: usize,
    /// When it was last found out what reads usually take.
    measured: Option<Instant>,
    /// When the last read began that shows what they take now.
    looked: Instant,
}

/// A write that is under way, until it is dropped.
pub(crate) struct UnderWay(Arc<Mutex<State>>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.lock().under_way -= 1;
    }
}

impl Load {
    pub(crate) fn new(registry: Arc<Registry>, bounds: Bounds) -> Self {
        let state = State { limit: Limit::new(bounds), under_way: 0, measured: None, looked: Instant::now() };
        Self { registry, state: Arc::new(Mutex::new(state)) }
    }

    /// Finds out what reads take while nothing is written, if nothing is.
    pub(crate) async fn prepare(&self) {
        let is_known = |at: Instant| at.elapsed() < BELIEVED;
        let is_needed = |state: &State| state.under_way == 0 && !state.measured.is_some_and(is_known);
        if !is_needed(&self.state.lock()) {
            return;
        }
        let mut took = Vec::with_capacity(READS);
        for _ in 0..READS {
            took.extend(read(&self.registry).await);
            tokio::time::sleep(PAUSE).await;
        }
        took.sort_unstable();
        let mut state = self.state.lock();
        // Another migration may have begun to write in the meantime.
        if let Some(median) = took.get(took.len() / 2)
            && is_needed(&state)
        {
            state.limit.set_usual(*median);
            state.measured = Some(Instant::now());
        }
    }

    /// Begins a write for a migration that has so many under way. `None` if there are enough; but no migration is kept from
    /// writing by others alone.
    pub(crate) fn begin(&self, own: usize) -> Option<UnderWay> {
        let mut state = self.state.lock();
        if own > 0 && state.under_way >= state.limit.get() {
            return None;
        }
        state.under_way += 1;
        // As long as something is written, there is nothing to find out.
        state.measured = state.measured.map(|_| Instant::now());
        if state.looked.elapsed() >= LOOK {
            state.looked = Instant::now();
            tokio::spawn(look(self.clone()));
        }
        Some(UnderWay(self.state.clone()))
    }

    /// A write went well and took so long.
    pub(crate) fn went_well(&self, took: Duration) {
        self.state.lock().limit.went_well(took);
    }

    /// The server cannot do so much.
    pub(crate) fn was_too_much(&self) {
        self.state.lock().limit.was_too_much(Instant::now());
    }
}

async fn look(load: Load) {
    let took = read(&load.registry).await.unwrap_or(LONGEST);
    load.state.lock().limit.read_took(took);
}

/// What a read takes; `None` if there was no answer.
async fn read(registry: &Registry) -> Option<Duration> {
    let begin = Instant::now();
    registry.replica().consistent(LONGEST).await.ok().map(|_| begin.elapsed())
}
