//! All objects, in the order of their keys.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use bytes::Bytes;
use concord_meta::GroupResource;
use concord_registry::Storage;
use concord_store::{KeyRange, KeyValue, Scan};
use futures_util::{StreamExt as _, stream::FuturesUnordered};

use crate::{
    Row,
    census::{PAGE, form},
    pace::Pace,
    progress::Progress,
    rewrite::Outcome,
    shared::Shared,
};

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
    pub(crate) name: &'a GroupResource,
    pub(crate) storage: &'a Storage,
    pub(crate) target: &'a Row,
    /// Asked before every write whether it is still wanted.
    pub(crate) is_wanted: &'a (dyn Fn() -> bool + Send + Sync),
}

impl Walk<'_> {
    /// Looks at the next page, and writes what has another form. Afterwards everything before the cursor has been looked
    /// at, and nothing is under way.
    pub(crate) async fn page(&self, progress: &mut Progress, pace: &mut Pace) -> Walked {
        let prefix = &self.storage.prefix;
        let start: Bytes = [prefix.as_ref(), progress.cursor.as_bytes()].concat().into();
        let scan = Scan::new(KeyRange::prefix(prefix.clone()).starting_at(start), PAGE);
        let page = match self.shared.registry().store().scan_kept(scan).await {
            Ok(page) => page,
            Err(error) => return Walked::Unreadable(error.to_string()),
        };
        let keyring = self.shared.config.keyring.as_deref();
        let (mut stale, mut current) = (VecDeque::new(), 0);
        for entry in page.entries {
            match form(keyring, &entry.key, &entry.value) == *self.target {
                true => current += 1,
                false => stale.push_back(entry),
            }
        }
        if let Some(unwritten) = self.write_all(stale, progress, pace).await {
            progress.cursor = self.cursor(&unwritten);
            return Walked::Interrupted;
        }
        progress.current += current;
        match page.resume {
            Some(resume) => {
                progress.cursor = self.cursor(&resume);
                Walked::Page
            }
            None => Walked::Everything,
        }
    }

    fn cursor(&self, key: &[u8]) -> String {
        String::from_utf8_lossy(key.strip_prefix(self.storage.prefix.as_ref()).unwrap_or_default())
            .into_owned()
    }

    /// Writes objects, several at once, begun in their order. The first key that was not, if it was told to stop.
    async fn write_all(
        &self,
        mut stale: VecDeque<KeyValue>,
        progress: &mut Progress,
        pace: &mut Pace,
    ) -> Option<Bytes> {
        let mut under_way = FuturesUnordered::new();
        let mut unwritten = None;
        loop {
            while unwritten.is_none() && under_way.len() < pace.limit() {
                let Some(entry) = stale.pop_front() else { break };
                if !(self.is_wanted)() {
                    unwritten = Some(entry.key);
                    break;
                }
                let wait = pace.reserve(Instant::now());
                under_way.push(self.write(entry, wait));
            }
            let Some((key, outcome)) = under_way.next().await else { return unwritten };
            self.count(&key, outcome, progress, pace);
        }
    }

    async fn write(&self, entry: KeyValue, wait: Duration) -> (Bytes, Outcome) {
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let outcome = self.shared.rewrite(self.name, &entry.key, entry.mod_revision, self.target).await;
        (entry.key, outcome)
    }

    fn count(&self, key: &Bytes, outcome: Outcome, progress: &mut Progress, pace: &mut Pace) {
        match outcome {
            Outcome::Written(took) => {
                progress.migrated += 1;
                self.shared.config.metrics.object_migrated(&self.name.to_string());
                pace.went_well(took);
            }
            Outcome::Current => progress.current += 1,
            Outcome::Gone => {}
            Outcome::Failed(message) => {
                let object = self.cursor(key);
                tracing::warn!(resource = %self.name, object, message, "An object cannot be migrated.");
                progress.fail(object, message);
            }
            Outcome::Deferred(message) => {
                pace.was_too_much();
                progress.deferred += 1;
                progress.last_error = message;
            }
        }
    }
}
