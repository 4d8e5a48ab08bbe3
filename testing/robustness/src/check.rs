use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use concord_store::{Change, Commit, Compare, Condition, KeyRange, KeyValue, Revision, Txn, Write};

use crate::history::{Action, Outcome, Record, signature};

type State = BTreeMap<Bytes, KeyValue>;

/// Judges the records of a run that began with no keys at revision `start`, given the whole log since.
///
/// # Errors
///
/// The first thing that no linearizable store could have answered, in words.
pub fn check(start: Revision, log: &[Commit], records: &[Record]) -> Result<(), String> {
    check_contiguous(start, log)?;
    let authors = check_authors(log, records)?;
    replay(start, log, records, &authors)?;
    check_real_time(records, &authors)
}

fn check_contiguous(start: Revision, log: &[Commit]) -> Result<(), String> {
    match (start + 1..).zip(log).find(|(expected, commit)| commit.revision != *expected) {
        Some((expected, commit)) => {
            Err(format!("the log has revision {} where {expected} should be", commit.revision))
        }
        None => Ok(()),
    }
}

/// Which revision each transaction made. Every commit has exactly one author, which was told this
/// revision or nothing, and every acknowledged transaction is the author of the commit it was told.
fn check_authors(log: &[Commit], records: &[Record]) -> Result<HashMap<u64, Revision>, String> {
    let writes: HashMap<u64, &Record> = records
        .iter()
        .filter_map(|record| match &record.action {
            Action::Write { id, .. } => Some((*id, record)),
            Action::Read { .. } => None,
        })
        .collect();
    let mut authors = HashMap::new();
    for commit in log {
        let revision = commit.revision;
        let id = signature(commit).ok_or(format!("revision {revision} was made by nobody"))?;
        let record = writes.get(&id).ok_or(format!("revision {revision} was made by unknown {id}"))?;
        if let Some(other) = authors.insert(id, revision) {
            return Err(format!("transaction {id} happened twice, at {other} and {revision}"));
        }
        match &record.outcome {
            Outcome::Unknown => {}
            Outcome::Committed(told) if *told == revision => {}
            told => return Err(format!("transaction {id} made revision {revision} but was told {told:?}")),
        }
    }
    for (id, record) in &writes {
        if let Outcome::Committed(revision) = record.outcome
            && !authors.contains_key(id)
        {
            return Err(format!("transaction {id} was acknowledged at {revision} and is lost"));
        }
    }
    Ok(authors)
}

/// Runs the log and compares each answer with the state at the revision it speaks of.
fn replay(
    start: Revision,
    log: &[Commit],
    records: &[Record],
    authors: &HashMap<u64, Revision>,
) -> Result<(), String> {
    let mut answers: BTreeMap<Revision, Vec<&Record>> = BTreeMap::new();
    let mut txns: HashMap<Revision, &Txn> = HashMap::new();
    for record in records {
        match (&record.action, &record.outcome) {
            (_, Outcome::Entries(revision, _)) => answers.entry(*revision).or_default().push(record),
            (_, Outcome::CompareFailed(failed)) => answers.entry(failed.revision).or_default().push(record),
            (Action::Write { id, txn }, _) => {
                if let Some(revision) = authors.get(id) {
                    txns.insert(*revision, txn);
                }
            }
            (Action::Read { .. }, _) => {}
        }
    }
    let mut state = State::new();
    check_answers(&state, answers.remove(&start))?;
    for commit in log {
        let txn = txns.get(&commit.revision).ok_or("every commit has an author by now")?;
        check_commit(&state, txn, commit)?;
        apply(&mut state, commit);
        check_answers(&state, answers.remove(&commit.revision))?;
    }
    match answers.keys().next() {
        Some(revision) => Err(format!("an answer speaks of revision {revision}, which does not exist")),
        None => Ok(()),
    }
}

/// The commit is what its transaction does to the state before it.
fn check_commit(before: &State, txn: &Txn, commit: &Commit) -> Result<(), String> {
    let revision = commit.revision;
    if let Some(compare) = txn.compares.iter().find(|compare| !holds(before, compare)) {
        return Err(format!("revision {revision} was committed though {compare:?} did not hold"));
    }
    let mut expected: Vec<Change> = txn.writes.iter().filter_map(|w| effect(before, w, revision)).collect();
    let mut changes = commit.changes.clone();
    expected.sort_by(|a, b| a.key().cmp(b.key()));
    changes.sort_by(|a, b| a.key().cmp(b.key()));
    if changes != expected {
        return Err(format!("revision {revision} should be {expected:?} and is {changes:?}"));
    }
    Ok(())
}

fn effect(before: &State, write: &Write, revision: Revision) -> Option<Change> {
    match write {
        Write::Put { key, value, .. } => Some(Change::Put(KeyValue {
            key: key.clone(),
            value: value.clone(),
            create_revision: before.get(key).map_or(revision, |kv| kv.create_revision),
            mod_revision: revision,
        })),
        Write::Delete { key } => before.get(key).map(|_| Change::Delete { key: key.clone() }),
    }
}

fn check_answers(state: &State, records: Option<Vec<&Record>>) -> Result<(), String> {
    for record in records.into_iter().flatten() {
        match (&record.action, &record.outcome) {
            (Action::Read { range }, Outcome::Entries(revision, entries)) => {
                let expected: Vec<_> = within(state, range).cloned().collect();
                if *entries != expected {
                    return Err(format!(
                        "at revision {revision}, {range:?} was {expected:?}, not {entries:?}"
                    ));
                }
            }
            (Action::Write { id, txn }, Outcome::CompareFailed(failed)) => {
                if txn.compares.iter().all(|compare| holds(state, compare)) {
                    return Err(format!(
                        "transaction {id} was refused at {} without reason",
                        failed.revision
                    ));
                }
                let expected: Vec<_> =
                    txn.reads_on_failure.iter().map(|key| state.get(key).cloned()).collect();
                if failed.current != expected {
                    return Err(format!("transaction {id} was shown {:?}, not {expected:?}", failed.current));
                }
            }
            _ => return Err(format!("an answer that does not fit its question: {record:?}")),
        }
    }
    Ok(())
}

/// What was answered before a call began has happened before it.
fn check_real_time(records: &[Record], authors: &HashMap<u64, Revision>) -> Result<(), String> {
    let mut placed: Vec<Placed<'_>> = records.iter().filter_map(|record| place(record, authors)).collect();
    let mut by_return = placed.clone();
    placed.sort_by_key(|placed| placed.record.invoked);
    by_return.sort_by_key(|placed| placed.returned());
    let mut returned = by_return.iter().peekable();
    let mut floor = 0;
    for call in &placed {
        while let Some(earlier) = returned.next_if(|earlier| earlier.returned() < call.record.invoked) {
            floor = floor.max(earlier.revision);
        }
        let late_enough = if call.is_commit { call.revision > floor } else { call.revision >= floor };
        if !late_enough {
            return Err(format!(
                "{:?} is at revision {} though {floor} had been seen before it began",
                call.record, call.revision
            ));
        }
    }
    Ok(())
}

/// A call and its place in the sequence: the commit of this revision, or just after it.
#[derive(Clone, Copy)]
struct Placed<'a> {
    record: &'a Record,
    revision: Revision,
    is_commit: bool,
}

impl Placed<'_> {
    /// Nobody was told when a transaction without an answer happened.
    fn returned(&self) -> u64 {
        if self.record.outcome == Outcome::Unknown { u64::MAX } else { self.record.returned }
    }
}

fn place<'a>(record: &'a Record, authors: &HashMap<u64, Revision>) -> Option<Placed<'a>> {
    let (revision, is_commit) = match (&record.action, &record.outcome) {
        (_, Outcome::Entries(revision, _)) => (*revision, false),
        (_, Outcome::CompareFailed(failed)) => (failed.revision, false),
        (Action::Write { id, .. }, _) => (*authors.get(id)?, true),
        (Action::Read { .. }, _) => return None,
    };
    Some(Placed { record, revision, is_commit })
}

fn within<'a>(state: &'a State, range: &'a KeyRange) -> impl Iterator<Item = &'a KeyValue> {
    state.values().filter(|kv| range.contains(&kv.key))
}

fn holds(state: &State, compare: &Compare) -> bool {
    match (compare.condition, state.get(&compare.key)) {
        (Condition::Absent, kv) => kv.is_none(),
        (Condition::ModRevision(revision), Some(kv)) => kv.mod_revision == revision,
        (Condition::CreateRevision(revision), Some(kv)) => kv.create_revision == revision,
        (_, None) => false,
    }
}

fn apply(state: &mut State, commit: &Commit) {
    for change in &commit.changes {
        match change {
            Change::Put(kv) => state.insert(kv.key.clone(), kv.clone()),
            Change::Delete { key } => state.remove(key),
        };
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
