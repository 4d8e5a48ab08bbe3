//! One pass over all objects.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Answer, Ask, Server, Standalone, Stop, good, said, target::Target};
use crate::{
    Progress,
    limit::{Bounds, Limit},
    meter::Meter,
    migration::Migration,
    pace::Pace,
    shared::MANAGER,
};

/// How many objects are listed at once.
const PAGE: usize = 500;

/// How often one object is tried before the others go first.
const TRIES: u32 = 6;

/// The first pause after a failure, and the longest that a server may ask for.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);

/// How often its owner is asked for other orders.
const LOOK: Duration = Duration::from_millis(500);

/// How a pass ended.
pub(crate) enum Ended {
    /// All objects were written, or needed nothing.
    Everything,
    /// Some cannot be written.
    Failures,
    /// Some could not be written for now.
    Deferred,
}

/// What became of an object.
enum Outcome {
    Written(Duration),
    /// It was as it should be, or somebody else wrote it meanwhile.
    Current,
    Gone,
    Failed(String),
    Deferred(String),
}

pub(crate) struct Pass<'a, S> {
    migrator: &'a Standalone<S>,
    migration: &'a Migration,
    target: &'a Target,
    progress: &'a mut Progress,
    limit: Arc<Mutex<Limit>>,
    pace: Pace,
}

impl<'a, S: Server> Pass<'a, S> {
    pub(crate) fn new(
        migrator: &'a Standalone<S>,
        migration: &'a Migration,
        target: &'a Target,
        progress: &'a mut Progress,
    ) -> Self {
        "Migrating".clone_into(&mut progress.phase);
        let limit = Arc::new(Mutex::new(Limit::new(Bounds::ALONE)));
        Self { migrator, migration, target, progress, limit, pace: Pace::default() }
    }

    pub(crate) async fn run(&mut self) -> Result<Ended, Stop> {
        let mut meter = Meter::new(Instant::now(), self.progress.seen());
        let mut resume = self.progress.cursor.clone();
        loop {
            let rate = self.migrator.orders(self.migration).await?;
            self.pace.set_rate(rate);
            let page = self.page(&resume).await?;
            let left = page["metadata"]["remainingItemCount"].as_u64().unwrap_or_default();
            let items = page["items"].as_array().cloned().unwrap_or_default();
            self.progress.total = self.progress.seen() + items.len() as u64 + left;
            let mut items = VecDeque::from(items);
            while !items.is_empty() {
                self.write_all(&mut items).await?;
                let rate = self.migrator.orders(self.migration).await?;
                self.pace.set_rate(rate);
            }
            page["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut self.progress.cursor);
            self.progress.goes_at(meter.read(Instant::now(), self.progress.seen()));
            self.migrator.show(self.migration, self.progress).await?;
            self.progress.cursor.clone_into(&mut resume);
            if resume.is_empty() {
                break;
            }
        }
        Ok(match (self.progress.deferred, self.progress.failed) {
            (0, 0) => Ended::Everything,
            (0, _) => Ended::Failures,
            _ => Ended::Deferred,
        })
    }

    /// The next objects. If what was being listed is too old by now, the rest is listed as it is now: what is missed by that
    /// is new, and so it has the right form.
    async fn page(&self, resume: &str) -> Result<Value, Stop> {
        let path = |resume: &str| match resume {
            "" => format!("{}?limit={PAGE}", self.target.path),
            resume => format!("{}?limit={PAGE}&continue={}", self.target.path, escaped(resume)),
        };
        let answer = self.migrator.server.ask(Ask::GetMetadata, &path(resume)).await;
        if let Ok(Answer { code: 410, body, .. }) = &answer {
            let token = body["metadata"]["continue"].as_str().unwrap_or_default();
            return good(self.migrator.server.ask(Ask::GetMetadata, &path(token)).await);
        }
        match answer {
            Ok(answer) if answer.code == 404 => Err(Stop::Later(said(&answer))),
            answer => good(answer),
        }
    }

    /// Writes objects until none is left, or until its owner wants something else: those that were not written are left.
    async fn write_all(&mut self, items: &mut VecDeque<Value>) -> Result<(), Stop> {
        let mut under_way = FuturesUnordered::new();
        let mut open: BTreeMap<usize, Value> = BTreeMap::new();
        let mut look = tokio::time::interval_at(tokio::time::Instant::now() + LOOK, LOOK);
        let mut begun = 0_usize;
        loop {
            while under_way.len() < self.limit.lock().get() && self.pace.wait(Instant::now()).is_zero() {
                let Some(item) = items.pop_front() else { break };
                self.pace.begin(Instant::now());
                let place = begun;
                begun += 1;
                open.insert(place, item.clone());
                let written = write(self.migrator, self.target, item, self.limit.clone());
                under_way.push(written.map(move |written| (place, written)));
            }
            if items.is_empty() && under_way.is_empty() {
                return Ok(());
            }
            let waits = !items.is_empty() && under_way.len() < self.limit.lock().get();
            let wait = self.pace.wait(Instant::now());
            tokio::select! {
                Some((place, (object, outcome))) = under_way.next(), if !under_way.is_empty() => {
                    open.remove(&place);
                    count(self.progress, &self.limit, object, outcome);
                }
                _ = look.tick() => match self.migrator.may_go_on(self.migration).await? {
                    Some(rate) => self.pace.set_rate(rate),
                    None => {
                        // What is under way is not waited for: it is written again later.
                        open.into_values().rev().for_each(|item| items.push_front(item));
                        return Ok(());
                    }
                },
                () = tokio::time::sleep(wait), if waits => {}
            }
        }
    }
}

fn count(progress: &mut Progress, limit: &Mutex<Limit>, object: String, outcome: Outcome) {
    match outcome {
        Outcome::Written(took) => {
            progress.migrated += 1;
            limit.lock().went_well(took);
        }
        Outcome::Current => progress.current += 1,
        Outcome::Gone => {}
        Outcome::Failed(message) => progress.fail(object, message),
        Outcome::Deferred(message) => {
            progress.deferred += 1;
            progress.last_error = message;
        }
    }
}

/// Writes one object again, by a patch that changes nothing.
async fn write<S: Server>(
    migrator: &Standalone<S>,
    target: &Target,
    item: Value,
    limit: Arc<Mutex<Limit>>,
) -> (String, Outcome) {
    let text = |name: &str| item["metadata"][name].as_str().unwrap_or_default().to_owned();
    let (namespace, name, revision) = (text("namespace"), text("name"), text("resourceVersion"));
    let object = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
    let path = format!("{}?fieldManager={MANAGER}", target.object(&namespace, &name));
    let patch = json!({"metadata": {"uid": text("uid"), "resourceVersion": revision}});
    let mut last = String::new();
    for tries in 0..TRIES {
        let begin = Instant::now();
        let answer = migrator.server.ask(Ask::Patch(patch.clone()), &path).await;
        let pause = match answer {
            Ok(answer) if answer.code < 300 => {
                let is_same = answer.body["metadata"]["resourceVersion"] == *revision;
                let outcome = if is_same { Outcome::Current } else { Outcome::Written(begin.elapsed()) };
                return (object, outcome);
            }
            Ok(answer) if answer.code == 404 => return (object, Outcome::Gone),
            // Somebody else wrote it, and so it has the form that this server writes.
            Ok(answer) if answer.code == 409 => return (object, Outcome::Current),
            Ok(answer) if answer.code == 429 || answer.code >= 500 => {
                if matches!(answer.code, 429 | 503) {
                    limit.lock().was_too_much(Instant::now());
                }
                last = said(&answer);
                answer.retry_after.map(Duration::from_secs)
            }
            Ok(answer) => return (object, Outcome::Failed(said(&answer))),
            Err(error) => {
                last = error;
                None
            }
        };
        let pause = pause.unwrap_or_default().max(PAUSE * 2_u32.pow(tries)).min(LONGEST);
        tokio::time::sleep(pause).await;
    }
    (object, Outcome::Deferred(last))
}

/// Fit for a query.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(escape).collect()
}
