//! A checker that accepts everything would be worthless: each rule is shown to catch its violation.

use concord_store::CompareFailed;

use super::*;
use crate::history::{PREFIX, signed};

const START: Revision = 10;

fn key(name: &str) -> Bytes {
    format!("{PREFIX}r/{name}").into()
}

fn record(times: (u64, u64), action: Action, outcome: Outcome) -> Record {
    Record { invoked: times.0, returned: times.1, action, outcome }
}

fn put(id: u64, name: &str) -> Action {
    signed(id, 0, Txn::new().put(key(name), id.to_string()))
}

fn read(name: &str) -> Action {
    Action::Read { range: KeyRange::key(key(name)) }
}

/// The log that these actions make, one after another.
fn log_of(actions: &[Action]) -> Vec<Commit> {
    let mut state = State::new();
    let mut log = Vec::new();
    for (revision, action) in (START + 1..).zip(actions) {
        let Action::Write { txn, .. } = action else { panic!("only writes make a log") };
        let changes = txn.writes.iter().filter_map(|write| effect(&state, write, revision)).collect();
        let commit = Commit { revision, changes };
        apply(&mut state, &commit);
        log.push(commit);
    }
    log
}

fn entry(name: &str, id: u64, create_revision: Revision, mod_revision: Revision) -> KeyValue {
    KeyValue { key: key(name), value: id.to_string().into(), create_revision, mod_revision }
}

fn caught(log: &[Commit], records: &[Record], complaint: &str) {
    let error = check(START, log, records).expect_err(complaint);
    assert!(error.contains(complaint), "{error:?} should mention {complaint:?}");
}

#[test]
fn an_honest_history_passes() {
    let actions = [put(1, "a"), put(2, "a"), put(3, "b")];
    let cas = signed(4, 1, Txn::new().compare(Compare::mod_revision(key("a"), 11)).read_on_failure(key("a")));
    let failed = CompareFailed { revision: 12, current: vec![Some(entry("a", 2, 11, 12))] };
    let records = [
        record((0, 10), actions[0].clone(), Outcome::Committed(11)),
        record((5, 30), actions[1].clone(), Outcome::Unknown),
        record((5, 8), read("a"), Outcome::Entries(10, vec![])),
        record((12, 20), read("a"), Outcome::Entries(11, vec![entry("a", 1, 11, 11)])),
        record((21, 22), cas, Outcome::CompareFailed(Box::new(failed))),
        record((23, 40), actions[2].clone(), Outcome::Committed(13)),
        record((50, 60), put(5, "c"), Outcome::Unknown),
        record((50, 60), put(6, "c"), Outcome::NotDone),
    ];
    assert_eq!(check(START, &log_of(&actions), &records), Ok(()));
}

#[test]
fn lost_repeated_and_invented_writes_are_caught() {
    let (first, second) = (put(1, "a"), put(2, "a"));
    let told = |action: &Action, outcome| record((0, 10), action.clone(), outcome);
    let log = log_of(std::slice::from_ref(&first));
    caught(&[], &[told(&first, Outcome::Committed(11))], "is lost");
    caught(&log, &[], "unknown 1");
    caught(&log, &[told(&first, Outcome::NotDone)], "was told NotDone");
    caught(&log, &[told(&first, Outcome::Committed(12))], "was told Committed(12)");
    let twice = log_of(&[first.clone(), first.clone()]);
    caught(&twice, &[told(&first, Outcome::Unknown)], "happened twice");
    let gap = &log_of(&[first.clone(), second.clone()])[1..];
    caught(gap, &[told(&second, Outcome::Committed(12))], "where 11 should be");
    let mut torn = log.clone();
    torn[0].changes.remove(0);
    caught(&torn, &[told(&first, Outcome::Unknown)], "should be");
}

#[test]
fn wrong_reads_and_comparisons_are_caught() {
    let first = put(1, "a");
    let log = log_of(std::slice::from_ref(&first));
    let with = |action, outcome| {
        [record((0, 10), first.clone(), Outcome::Committed(11)), record((5, 10), action, outcome)]
    };
    caught(&log, &with(read("a"), Outcome::Entries(11, vec![])), "was [KeyValue");
    caught(&log, &with(read("a"), Outcome::Entries(99, vec![])), "does not exist");
    let cas = signed(2, 1, Txn::new().compare(Compare::absent(key("b"))));
    let failed = Box::new(CompareFailed { revision: 11, current: vec![] });
    caught(&log, &with(cas.clone(), Outcome::CompareFailed(failed.clone())), "without reason");
    let cas = signed(2, 1, Txn::new().compare(Compare::absent(key("a"))).read_on_failure(key("a")));
    caught(&log, &with(cas.clone(), Outcome::CompareFailed(failed)), "was shown");
    let broken = log_of(&[first.clone(), cas.clone()]);
    caught(&broken, &with(cas, Outcome::Committed(12)), "did not hold");
}

#[test]
fn answers_older_than_what_was_known_are_caught() {
    let actions = [put(1, "a"), put(2, "a")];
    let log = log_of(&actions);
    let stale = [
        record((0, 10), actions[0].clone(), Outcome::Committed(11)),
        record((0, 10), actions[1].clone(), Outcome::Committed(12)),
        record((20, 30), read("a"), Outcome::Entries(11, vec![entry("a", 1, 11, 11)])),
    ];
    caught(&log, &stale, "had been seen before");
    let reordered = [
        record((20, 30), actions[0].clone(), Outcome::Committed(11)),
        record((0, 10), actions[1].clone(), Outcome::Committed(12)),
    ];
    caught(&log, &reordered, "had been seen before");
    let read_then_older_write = [
        record((0, 10), actions[0].clone(), Outcome::Committed(11)),
        record((20, 30), actions[1].clone(), Outcome::Unknown),
        record((5, 12), read("a"), Outcome::Entries(12, vec![entry("a", 2, 11, 12)])),
    ];
    caught(&log, &read_then_older_write, "had been seen before");
}
