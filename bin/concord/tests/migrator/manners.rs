//! An admission that a test tells what to answer.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{Admission, Attributes, Object, Operation};
use parking_lot::Mutex;
use tokio::sync::watch;

/// What an object's n-th change is answered with.
type Judge = Arc<dyn Fn(&str, usize) -> Option<Status> + Send + Sync>;

/// Judges changes of ConfigMaps.
#[derive(Default)]
pub(crate) struct Manners {
    judge: Mutex<Option<Judge>>,
    asked: Mutex<BTreeMap<String, usize>>,
    pause: Mutex<Duration>,
    /// How many are being judged, and how many were at most since somebody asked.
    now: AtomicUsize,
    most: AtomicUsize,
    /// From which name on those that are allowed have to wait, if any do; and how many wait now.
    shut: watch::Sender<Option<String>>,
    kept: AtomicUsize,
}

impl Manners {
    /// An object's n-th change, counted from 1, is answered with this; it is allowed if that is nothing.
    pub(crate) fn judge(&self, judge: impl Fn(&str, usize) -> Option<Status> + Send + Sync + 'static) {
        *self.judge.lock() = Some(Arc::new(judge));
    }

    /// Takes its time.
    pub(crate) fn pause(&self, pause: Duration) {
        *self.pause.lock() = pause;
    }

    /// Nothing from this name on is answered that is allowed, until somebody says otherwise.
    pub(crate) fn shut(&self, from: Option<&str>) {
        self.shut.send_replace(from.map(str::to_owned));
    }

    /// How many wait for that.
    pub(crate) fn kept(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    /// How often it was asked about objects whose names begin like this.
    pub(crate) fn asked(&self, prefix: &str) -> usize {
        let asked = self.asked.lock();
        asked.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, count)| count).sum()
    }

    /// The most that were judged at once since this was asked last.
    pub(crate) fn take_most(&self) -> usize {
        self.most.swap(0, Ordering::Relaxed)
    }
}

#[async_trait]
impl Admission for Manners {
    fn name(&self) -> &'static str {
        "Manners"
    }

    async fn validate(&self, attributes: &Attributes<'_>, _object: Option<&Object>) -> Result<(), Status> {
        let is_map = attributes.resource.names.plural == "configmaps";
        if !is_map || attributes.operation != Operation::Update {
            return Ok(());
        }
        let count = {
            let mut asked = self.asked.lock();
            let count = asked.entry(attributes.name.to_owned()).or_default();
            *count += 1;
            *count
        };
        let (pause, judge) = (*self.pause.lock(), self.judge.lock().clone());
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        tokio::time::sleep(pause).await;
        let refusal = judge.and_then(|judge| judge(attributes.name, count));
        let is_open =
            |from: &Option<String>| from.as_ref().is_none_or(|from| attributes.name < from.as_str());
        let mut shut = self.shut.subscribe();
        if refusal.is_none() && !is_open(&shut.borrow()) {
            self.kept.fetch_add(1, Ordering::Relaxed);
            // A test that is over opens everything.
            shut.wait_for(is_open).await.ok();
            self.kept.fetch_sub(1, Ordering::Relaxed);
        }
        self.now.fetch_sub(1, Ordering::Relaxed);
        refusal.map_or(Ok(()), Err)
    }
}
