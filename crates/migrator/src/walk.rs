//! All objects, in the order of their keys.

use std::{
    collections::{BTreeSet, VecDeque},
    pin::pin,
    time::{Duration, Instant},
};

use bytes::Bytes;
use concord_meta::GroupResource;
use concord_registry::{Resource, Storage};
use concord_store::{Error, KeyRange, KeyValue, Scan, ScanPage};
use futures_util::{
    StreamExt as _,
    future::{Either, select},
    stream::FuturesUnordered,
};
use tokio::sync::Notify;

use crate::{
    Row,
    census::form,
    load::{UnderWay, give_way},
    pace::Pace,
    progress::Progress,
    read::{PAGE, read_kept},
    rewrite::Outcome,
    shared::Shared,
};

/// With how many of them left the next ones are read. Not with more: all of them are in memory, and what is read long before
/// it is written may have changed by then, which takes one more attempt.
const FEW_LEFT: usize = 50;

/// How often to look at least whether a walk is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// How long writes that were begun may take after it was told to stop. One that takes longer, since a webhook does, is not
/// waited for: what becomes of it is seen when it is looked at again.
const GRACE: Duration = Duration::from_millis(400);

/// How a part of a walk ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Walked {
    /// All objects have been looked at.
    Everything,
    /// There are more.
    Page,
    /// It was told to stop.
    Interrupted,
    /// The store could not be read.
    Unreadable(String),
}

/// A walk over the objects of a resource.
pub(crate) struct Walk<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) resource: &'a Resource,
    /// What it is called.
    pub(crate) name: &'a GroupResource,
    pub(crate) storage: &'a Storage,
    pub(crate) target: &'a Row,
    /// Asked before every write whether it is still wanted.
    pub(crate) is_wanted: &'a (dyn Fn() -> bool + Send + Sync),
    /// Told how far it is, ten times a second at least.
    pub(crate) tell: &'a (dyn Fn(&Progress) + Send + Sync),
}

impl Walk<'_> {
    /// Looks at the next page, and writes what has another form. Afterwards everything before the cursor has been looked
    /// at, and nothing is under way. `ahead` is that page, if it was read already, and the one after it then.
    pub(crate) async fn page(
        &self,
        progress: &mut Progress,
        pace: &mut Pace,
        ahead: &mut Option<ScanPage>,
    ) -> Walked {
        let page = match ahead.take() {
            Some(page) => page,
            None => {
                let start = [self.storage.prefix.as_ref(), progress.cursor.as_bytes()].concat();
                match self.read(start.into()).await {
                    Ok(page) => page,
                    Err(error) => return Walked::Unreadable(error.to_string()),
                }
            }
        };
        let keyring = self.shared.config.keyring.as_deref();
        let is_current = |entry: &KeyValue| {
            give_way();
            form(keyring, &entry.key, &entry.value) == *self.target
        };
        let (current, stale): (Vec<KeyValue>, Vec<KeyValue>) = page.entries.into_iter().partition(is_current);
        let current: Vec<Bytes> = current.into_iter().map(|entry| entry.key).collect();
        if !stale.is_empty() {
            self.shared.load(self.storage).prepare().await;
        }
        let written = self.write_and_read_on(stale.into(), progress, pace, page.resume.as_ref()).await;
        *ahead = match written {
            Ok(next) => next,
            Err(unwritten) => {
                progress.current += current.iter().filter(|key| **key < unwritten).count() as u64;
                progress.cursor = self.cursor(&unwritten);
                return Walked::Interrupted;
            }
        };
        progress.current += current.len() as u64;
        match page.resume {
            Some(resume) => {
                progress.cursor = self.cursor(&resume);
                Walked::Page
            }
            None => Walked::Everything,
        }
    }

    async fn read(&self, start: Bytes) -> Result<ScanPage, Error> {
        let range = KeyRange::prefix(self.storage.prefix.clone()).starting_at(start);
        let registry = self.shared.registry();
        read_kept(registry.store().as_ref(), registry.replica(), Scan::new(range, PAGE)).await
    }

    /// Writes objects, and reads the next page when few of them are left: otherwise nothing would be written meanwhile.
    /// The first key that was not written, if it was told to stop.
    async fn write_and_read_on(
        &self,
        stale: VecDeque<KeyValue>,
        progress: &mut Progress,
        pace: &mut Pace,
        next: Option<&Bytes>,
    ) -> Result<Option<ScanPage>, Bytes> {
        let few_left = Notify::new();
        let writing = pin!(self.write_all(stale, progress, pace, &few_left));
        let reading = pin!(async {
            few_left.notified().await;
            // What cannot be read now is read again when it is its turn.
            match next {
                Some(next) => self.read(next.clone()).await.ok(),
                None => None,
            }
        });
        match select(writing, reading).await {
            Either::Left((Some(unwritten), _)) => Err(unwritten),
            Either::Left((None, reading)) => Ok(reading.await),
            Either::Right((page, writing)) => writing.await.map_or(Ok(page), Err),
        }
    }

    fn cursor(&self, key: &[u8]) -> String {
        String::from_utf8_lossy(key.strip_prefix(self.storage.prefix.as_ref()).unwrap_or_default())
            .into_owned()
    }

    /// Writes objects, several at once, begun in their order, and says when few are left. The first key that was not written,
    /// if it was told to stop.
    async fn write_all(
        &self,
        mut stale: VecDeque<KeyValue>,
        progress: &mut Progress,
        pace: &mut Pace,
        few_left: &Notify,
    ) -> Option<Bytes> {
        let mut under_way = FuturesUnordered::new();
        // Those that were begun and have not ended, and those that have.
        let (mut open, mut done) = (BTreeSet::new(), Vec::new());
        let mut stopped: Option<Instant> = None;
        loop {
            let is_wanted = (stale.is_empty() && under_way.is_empty()) || (self.is_wanted)();
            (self.tell)(progress);
            if stale.len() <= FEW_LEFT {
                few_left.notify_one();
            }
            if !is_wanted && stopped.get_or_insert_with(Instant::now).elapsed() >= GRACE {
                break;
            }
            let mut is_enough = false;
            while is_wanted && !stale.is_empty() && pace.wait(Instant::now()).is_zero() {
                let begun = self.shared.load(self.storage).begin(under_way.len());
                is_enough = begun.is_none();
                let Some((entry, begun)) = begun.and_then(|begun| Some((stale.pop_front()?, begun))) else {
                    break;
                };
                pace.begin(Instant::now());
                open.insert(entry.key.clone());
                under_way.push(self.write(entry, begun));
            }
            let waits = is_wanted && !is_enough && !stale.is_empty();
            // Not too long without looking whether it is still wanted.
            let wait = if waits { pace.wait(Instant::now()).min(LOOK) } else { LOOK };
            tokio::select! {
                Some((key, outcome)) = under_way.next(), if !under_way.is_empty() => {
                    if outcome != Outcome::Unwanted {
                        open.remove(&key);
                    }
                    self.count(&key, &outcome, progress);
                    done.push((key, outcome));
                }
                () = tokio::time::sleep(wait), if waits || !under_way.is_empty() => {}
                else => break,
            }
        }
        let first = open.pop_first().into_iter().chain(stale.pop_front().map(|entry| entry.key)).min()?;
        self.take_back(&first, &done, progress);
        Some(first)
    }

    /// What comes after a key will be looked at again.
    fn take_back(&self, first: &Bytes, done: &[(Bytes, Outcome)], progress: &mut Progress) {
        let again = done.iter().filter(|(key, _)| key > first);
        again.for_each(|(key, outcome)| progress.take_back(&self.cursor(key), outcome));
    }

    async fn write(&self, entry: KeyValue, _begun: UnderWay) -> (Bytes, Outcome) {
        give_way();
        let key = entry.key.clone();
        let outcome = self.shared.rewrite(self.resource, entry, self.target, self.is_wanted).await;
        (key, outcome)
    }

    fn count(&self, key: &Bytes, outcome: &Outcome, progress: &mut Progress) {
        if let Some(result) = outcome.name() {
            self.shared.config.metrics.migration().object(&self.name.to_string(), result);
        }
        match outcome {
            Outcome::Written(took) => {
                progress.migrated += 1;
                self.shared.load(self.storage).went_well(*took);
            }
            Outcome::Current => progress.current += 1,
            Outcome::Gone | Outcome::Unwanted => {}
            Outcome::Failed(message) => {
                let object = self.cursor(key);
                tracing::warn!(resource = %self.name, object, message, "An object cannot be migrated.");
                progress.fail(object, message.clone());
            }
            Outcome::Deferred(message) => {
                progress.deferred += 1;
                progress.last_error.clone_from(message);
            }
        }
    }
}
