//! Who watches while clients write: followers of the store, and a replica with readers and subscribers.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use concord_replica::{Config, Event, Replica, Scope};
use concord_robustness::{
    check,
    history::{Action, Outcome, PREFIX, Record},
};
use concord_store::{Change, Commit, Error, KeyRange, Revision, Store};
use futures_util::StreamExt;
use tokio::task::JoinHandle;

/// Nothing takes this long once the faults have ended.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Observers {
    store: Arc<dyn Store>,
    replica: Arc<Replica>,
    follower: JoinHandle<Vec<Commit>>,
    subscriber: JoinHandle<Vec<Event>>,
    stop: tokio::sync::watch::Sender<Revision>,
}

impl Observers {
    /// Nothing may be written before this returns: what the replica remembers begins where it loads.
    pub(crate) async fn start(store: Arc<dyn Store>, start: Revision) -> Self {
        let replica = Arc::new(Replica::start(store.clone(), Config::default(), Vec::new()));
        replica.not_older_than(start, PATIENCE).await.expect("the replica loads");
        let (stop, until) = tokio::sync::watch::channel(Revision::MAX);
        let follower = tokio::spawn(follow(store.clone(), start, until.clone()));
        let subscriber = tokio::spawn(subscribe(replica.clone(), start, until));
        Self { store, replica, follower, subscriber, stop }
    }

    /// Compares what everybody saw with the log, read once more from its beginning.
    pub(crate) async fn judge(self, start: Revision, records: Vec<Record>) {
        let deadline = Instant::now() + PATIENCE;
        let end = loop {
            match self.store.current_revision().await {
                Ok(revision) => break revision,
                Err(error) => assert!(Instant::now() < deadline, "the store does not come back: {error}"),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        self.stop.send_replace(end);
        let mut log = follow(self.store.clone(), start, self.stop.subscribe()).await;
        sort(&mut log);
        let mut followed = patiently(self.follower).await;
        sort(&mut followed);
        assert_eq!(followed, log, "a follower that lived through the faults saw the log");
        check_events(&log, &patiently(self.subscriber).await);
        let mut records = records;
        records.push(consistent_read(&self.replica, &records).await);
        summarize(&log, &records);
        if let Err(violation) = check(start, &log, &records) {
            panic!("not linearizable: {violation}");
        }
        self.replica.shutdown().await;
    }
}

/// Follows until the revision to stop at is known and reached, over any number of broken streams.
async fn follow(
    store: Arc<dyn Store>,
    start: Revision,
    until: tokio::sync::watch::Receiver<Revision>,
) -> Vec<Commit> {
    let mut until = until;
    let (mut commits, mut at) = (Vec::new(), start);
    let mut stream = store.follow(at);
    loop {
        let stop = *until.borrow_and_update();
        if at >= stop {
            return commits;
        }
        let run = tokio::select! {
            run = stream.next() => run,
            _ = until.changed() => continue,
        };
        match run {
            Some(Ok(run)) => {
                commits.extend(run);
                at = commits.last().map_or(at, |commit| commit.revision);
            }
            Some(Err(Error::Unavailable { .. })) | None => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                stream = store.follow(at);
            }
            Some(Err(other)) => panic!("following after {at} ended with {other}"),
        }
    }
}

async fn subscribe(
    replica: Arc<Replica>,
    start: Revision,
    until: tokio::sync::watch::Receiver<Revision>,
) -> Vec<Event> {
    let mut until = until;
    let mut subscription = replica.subscribe(registers(), start).expect("the start is in the window");
    let mut events = Vec::new();
    loop {
        let stop = *until.borrow_and_update();
        if stop != Revision::MAX && subscription.bookmark() >= stop {
            while let Some(batch) = subscription.try_next().expect("the subscription stays open") {
                events.extend(batch.iter().cloned());
            }
            return events;
        }
        let wait = Duration::from_millis(20);
        if let Ok(batch) = tokio::time::timeout(wait, subscription.next()).await {
            events.extend(batch.expect("the subscription stays open").iter().cloned());
        }
    }
}

fn registers() -> Scope {
    Scope::prefix(format!("{PREFIX}r/"))
}

/// The subscriber saw exactly the changes of its keys, in order, each with the value before.
fn check_events(log: &[Commit], events: &[Event]) {
    let mut state = std::collections::BTreeMap::<Bytes, _>::new();
    let mut events = events.iter();
    for commit in log {
        let mut of_commit = Vec::new();
        for change in commit.changes.iter().filter(|change| registers().contains(change.key())) {
            let event = events.next().expect("the subscriber missed an event");
            assert_eq!(event.revision, commit.revision);
            of_commit.push((event, change));
        }
        // Within one commit both may come in any order.
        for (event, _) in &of_commit {
            let (_, change) = of_commit
                .iter()
                .find(|(_, change)| change.key() == event.key())
                .expect("the event is about a key of the commit");
            let previous = state.get(event.key());
            assert_eq!(event.previous().map(|entry| entry.as_ref()), previous, "previous value");
            match change {
                Change::Put(kv) => {
                    assert_eq!(event.current().map(|entry| entry.as_ref()), Some(kv));
                    state.insert(kv.key.clone(), kv.clone());
                }
                Change::Delete { key } => {
                    assert_eq!(event.current(), None);
                    state.remove(key);
                }
            }
        }
    }
    assert_eq!(events.next(), None, "the subscriber saw more than happened");
}

/// A consistent read of the replica counts as one more client's read, after all others.
async fn consistent_read(replica: &Replica, records: &[Record]) -> Record {
    let invoked = records.iter().map(|record| record.returned).max().unwrap_or(0) + 1;
    let snapshot = replica.consistent(PATIENCE).await.expect("the replica answers");
    let range = KeyRange::prefix(format!("{PREFIX}r/"));
    let entries = snapshot.scan(&range).map(|entry| entry.as_ref().clone()).collect();
    let outcome = Outcome::Entries(snapshot.revision(), entries);
    Record { invoked, returned: invoked + 1, action: Action::Read { range }, outcome }
}

/// Says how much was exercised, and fails if it was too little to mean anything.
#[allow(clippy::print_stdout, reason = "test output")]
fn summarize(log: &[Commit], records: &[Record]) {
    let count = |what: fn(&Outcome) -> bool| records.iter().filter(|r| what(&r.outcome)).count();
    let committed = count(|outcome| matches!(outcome, Outcome::Committed(_)));
    let failed = count(|outcome| matches!(outcome, Outcome::CompareFailed(_)));
    let unknown = count(|outcome| matches!(outcome, Outcome::Unknown));
    let not_done = count(|outcome| matches!(outcome, Outcome::NotDone));
    println!(
        "{} calls: {committed} committed, {failed} compares failed, {unknown} unknown, {not_done} not done, {} revisions",
        records.len(),
        log.len()
    );
    assert!(committed > 50 && failed > 5, "too little happened to judge anything");
}

fn sort(log: &mut [Commit]) {
    for commit in log {
        commit.changes.sort_by(|a, b| a.key().cmp(b.key()));
    }
}

async fn patiently<T>(task: JoinHandle<T>) -> T {
    tokio::time::timeout(PATIENCE, task).await.expect("an observer hangs").expect("an observer failed")
}
