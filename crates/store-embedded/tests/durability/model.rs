//! What may be in the store, given what the child reported.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use concord_store::{Change, Commit, Error, KeyRange, KeyValue, Revision, Scan, Store};
use concord_store_embedded::{EmbeddedStore, Options};
use futures_util::StreamExt as _;

use crate::workload::{COUNTER, Op, Run, Tag, WRITERS, parse_counter};

/// What a key may hold: `None` is nothing; the revision is known of what was acknowledged.
type Candidate = Option<(Vec<u8>, Option<Revision>)>;

/// Everything the reports so far allow.
#[derive(Debug, Default)]
pub(crate) struct Model {
    keys: BTreeMap<String, Vec<Candidate>>,
    /// How often the counter was counted up at least and at most.
    counted: (u64, u64),
    /// Acknowledged since the last verification.
    acknowledged: BTreeMap<Revision, (Run, Tag)>,
    seed: u64,
}

/// What a child said about one write.
enum Outcome {
    Acknowledged(Revision),
    Refused,
    Unknown,
}

impl Model {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// How many acknowledgements were taken in since the last verification.
    pub(crate) fn acknowledged(&self) -> usize {
        self.acknowledged.len()
    }

    /// Takes in the reports of one child, whatever their number.
    pub(crate) fn absorb<'a>(
        &mut self,
        run: Run,
        lines: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), String> {
        let mut next = [0; WRITERS as usize];
        for line in lines {
            let Some((tag, outcome)) = parse(line) else { continue };
            let number = &mut next[usize::try_from(tag.writer).map_err(|e| e.to_string())?];
            if tag.number != *number {
                return Err(format!("{line:?} came when write {number} was next"));
            }
            *number += 1;
            self.apply(run, tag, &outcome)?;
        }
        // Whatever was under way when the child ended may have happened.
        for (writer, number) in (0..).zip(next) {
            self.apply(run, Tag { round: run.round, writer, number }, &Outcome::Unknown)?;
        }
        Ok(())
    }

    fn apply(&mut self, run: Run, tag: Tag, outcome: &Outcome) -> Result<(), String> {
        let op = run.op(tag.writer, tag.number);
        let revision = match outcome {
            Outcome::Refused => return Ok(()),
            Outcome::Acknowledged(revision) => Some(*revision),
            Outcome::Unknown => None,
        };
        if let Some(revision) = revision
            && !matches!(op, Op::Delete { .. })
            && let Some((_, other)) = self.acknowledged.insert(revision, (run, tag))
        {
            return Err(format!("{tag} and {other} were both acknowledged at revision {revision}"));
        }
        match op {
            Op::Increment => {
                self.counted.0 += u64::from(revision.is_some());
                self.counted.1 += 1;
            }
            Op::Delete { key } => self.allow(key, None, revision.is_some()),
            Op::Put { keys, value, ttl } => {
                for key in keys {
                    self.allow(key.clone(), Some((value.clone(), revision)), revision.is_some());
                    if ttl.is_some() {
                        self.allow(key, None, false);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds a possibility, or makes it the only one.
    fn allow(&mut self, key: String, candidate: Candidate, certain: bool) {
        let candidates = self.keys.entry(key).or_insert_with(|| vec![None]);
        if certain {
            candidates.clear();
        }
        candidates.push(candidate);
    }

    /// Opens the store and compares. Afterwards the model knows exactly what is in it.
    pub(crate) fn verify(&mut self, path: &std::path::Path) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| e.to_string())?;
        runtime.block_on(async {
            let options = Options { retention: None, ..Options::new(path) };
            let store =
                EmbeddedStore::open(&options).map_err(|error| format!("it does not open: {error}"))?;
            let found =
                Found::read(&store).await.map_err(|error| format!("it cannot be read: {error}"))??;
            store.close().await;
            self.check_history(&found)?;
            self.check_keys(&found)?;
            self.settle(&found);
            Ok(())
        })
    }

    fn check_history(&self, found: &Found) -> Result<(), String> {
        for (revision, (run, tag)) in &self.acknowledged {
            if *revision > found.current {
                return Err(format!(
                    "{tag} was acknowledged at {revision}, but the store ends at {}",
                    found.current
                ));
            }
            let Some(commit) = found.commit(*revision) else { continue };
            let written: Vec<&KeyValue> = commit.changes.iter().filter_map(put).collect();
            let expected = match run.op(tag.writer, tag.number) {
                Op::Put { keys, .. } => keys.len(),
                Op::Increment | Op::Delete { .. } => 1,
            };
            if written.len() != expected || written.iter().any(|kv| self.tag_of(kv) != Ok(*tag)) {
                return Err(format!("{tag} was acknowledged at {revision}, where {commit:?} stands"));
            }
        }
        let mut once = BTreeSet::new();
        for commit in &found.commits {
            let tags: BTreeSet<Tag> =
                commit.changes.iter().filter_map(put).map(|kv| self.tag_of(kv)).collect::<Result<_, _>>()?;
            if let Some(tag) = tags.into_iter().find(|tag| !once.insert(*tag)) {
                return Err(format!("{tag} was written a second time at {}", commit.revision));
            }
        }
        Ok(())
    }

    /// Who wrote this; an error if it is not exactly what they wrote.
    fn tag_of(&self, kv: &KeyValue) -> Result<Tag, String> {
        let run = Run { seed: self.seed, round: 0 };
        let tag = if kv.key == COUNTER {
            parse_counter(&kv.value).map(|(_, tag)| tag)
        } else {
            run.whole(&kv.value)
        };
        tag.ok_or_else(|| format!("the value of {:?} at {} is torn", kv.key, kv.mod_revision))
    }

    fn check_keys(&self, found: &Found) -> Result<(), String> {
        for (key, kv) in &found.latest {
            if key != COUNTER && !self.keys.contains_key(key) {
                return Err(format!("nobody wrote {key}"));
            }
            self.tag_of(kv)?;
        }
        for (key, candidates) in &self.keys {
            let there = found.latest.get(key);
            let fits = |candidate: &Candidate| match (candidate, there) {
                (None, None) => true,
                (Some((value, revision)), Some(kv)) => {
                    *value == kv.value && revision.is_none_or(|revision| revision == kv.mod_revision)
                }
                _ => false,
            };
            if !candidates.iter().any(fits) {
                let there = there.map(|kv| (self.tag_of(kv), kv.mod_revision));
                return Err(format!("{key} holds {there:?}, which is none of {}", self.describe(candidates)));
            }
        }
        let count = found.count();
        if count < self.counted.0 || count > self.counted.1 {
            return Err(format!("the counter is {count}, but it was counted {:?} times", self.counted));
        }
        Ok(())
    }

    fn describe(&self, candidates: &[Candidate]) -> String {
        let run = Run { seed: self.seed, round: 0 };
        let one = |candidate: &Candidate| match candidate {
            None => "nothing".to_owned(),
            Some((value, revision)) => format!("{:?} at {revision:?}", run.whole(value)),
        };
        candidates.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    fn settle(&mut self, found: &Found) {
        self.acknowledged.clear();
        self.counted = (found.count(), found.count());
        let expires = |key: &str| key.starts_with("ttl/");
        for (key, candidates) in &mut self.keys {
            *candidates = match found.latest.get(key) {
                None => vec![None],
                Some(kv) => vec![Some((kv.value.to_vec(), Some(kv.mod_revision)))],
            };
            if expires(key) {
                candidates.push(None);
            }
        }
    }
}

fn put(change: &Change) -> Option<&KeyValue> {
    match change {
        Change::Put(kv) => Some(kv),
        Change::Delete { .. } => None,
    }
}

fn parse(line: &str) -> Option<(Tag, Outcome)> {
    let mut words = line.split(' ');
    let outcome = words.next()?;
    let tag = Tag::parse(words.next()?)?;
    match outcome {
        "ack" => Some((tag, Outcome::Acknowledged(words.next()?.parse().ok()?))),
        "no" => Some((tag, Outcome::Refused)),
        "unknown" => Some((tag, Outcome::Unknown)),
        _ => None,
    }
}

/// All that a store holds.
struct Found {
    current: Revision,
    oldest: Revision,
    /// Everything after `oldest`.
    commits: Vec<Commit>,
    latest: BTreeMap<String, KeyValue>,
}

impl Found {
    /// Reads it in every way there is, and checks that the ways agree.
    async fn read(store: &EmbeddedStore) -> Result<Result<Self, String>, Error> {
        let current = store.current_revision().await?;
        let oldest = oldest(store, current).await?;
        let commits = follow(store, oldest, current).await?;
        let mut replayed = scan(store, oldest).await?;
        // Not simply the latest: keys go on expiring while they are read.
        let latest = scan(store, current).await?;
        for (commit, expected) in commits.iter().zip(oldest + 1..) {
            if commit.revision != expected || commit.changes.is_empty() {
                return Ok(Err(format!("where revision {expected} should be there is {commit:?}")));
            }
            for change in &commit.changes {
                let key = name(change.key());
                match change {
                    Change::Put(kv) => replayed.insert(key, kv.clone()),
                    Change::Delete { .. } => replayed.remove(&key),
                };
            }
        }
        if replayed != latest {
            return Ok(Err("the history does not lead to the latest state".to_owned()));
        }
        Ok(Ok(Self { current, oldest, commits, latest }))
    }

    fn commit(&self, revision: Revision) -> Option<&Commit> {
        let at = usize::try_from(revision.checked_sub(self.oldest + 1)?).ok()?;
        self.commits.get(at)
    }

    fn count(&self) -> u64 {
        self.latest.get(COUNTER).and_then(|kv| parse_counter(&kv.value)).map_or(0, |(count, _)| count)
    }
}

async fn oldest(store: &EmbeddedStore, current: Revision) -> Result<Revision, Error> {
    if current == 1 {
        return Ok(1);
    }
    match store.follow(1).next().await {
        Some(Err(Error::Compacted { oldest })) => Ok(oldest),
        Some(Err(error)) => Err(error),
        _ => Ok(1),
    }
}

async fn follow(store: &EmbeddedStore, after: Revision, current: Revision) -> Result<Vec<Commit>, Error> {
    let mut commits = Vec::new();
    let mut stream = store.follow(after);
    while commits.last().map_or(after, |commit: &Commit| commit.revision) < current {
        match stream.next().await {
            Some(run) => commits.extend(run?),
            None => break,
        }
    }
    commits.retain(|commit| commit.revision <= current);
    Ok(commits)
}

async fn scan(store: &EmbeddedStore, at: Revision) -> Result<BTreeMap<String, KeyValue>, Error> {
    let page = store.scan(Scan::new(KeyRange::all(), 100_000).at(at)).await?;
    Ok(page.entries.into_iter().map(|kv| (name(&kv.key), kv)).collect())
}

fn name(key: &Bytes) -> String {
    String::from_utf8_lossy(key).into_owned()
}
