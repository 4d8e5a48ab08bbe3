//! Clients that ask random things and write down what they are told.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use concord_store::{Committed, Compare, Error, KeyRange, KeyValue, Scan, Store, Txn};
use futures_util::future::join_all;
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::history::{Action, Outcome, PREFIX, Record, signed};

/// How much to ask.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Clients that ask at the same time, one thing each.
    pub clients: usize,
    /// For how long they do.
    pub duration: Duration,
    /// Keys they fight over; few, so that they collide.
    pub keys: u64,
    /// The longest a client rests between two calls.
    pub rest: Duration,
    /// Decides what is asked.
    pub seed: u64,
}

/// Runs the clients and returns what they wrote down.
///
/// # Panics
///
/// When a client is told something the trait does not allow.
pub async fn run(store: Arc<dyn Store>, load: Load) -> Vec<Record> {
    let (ids, clock) = (Arc::new(AtomicU64::new(1)), Instant::now());
    let clients = (0..load.clients).map(|number| {
        let rng = StdRng::seed_from_u64(load.seed.wrapping_add(number as u64));
        let client = Client {
            number,
            store: store.clone(),
            rng,
            load,
            ids: ids.clone(),
            clock,
            seen: Vec::new(),
            records: Vec::new(),
        };
        tokio::spawn(client.run())
    });
    let mut records = Vec::new();
    for client in join_all(clients).await {
        records.extend(client.expect("no client panics"));
    }
    records
}

struct Client {
    number: usize,
    store: Arc<dyn Store>,
    rng: StdRng,
    load: Load,
    ids: Arc<AtomicU64>,
    clock: Instant,
    /// What it believes to be there, perhaps wrongly by now.
    seen: Vec<KeyValue>,
    records: Vec<Record>,
}

impl Client {
    async fn run(mut self) -> Vec<Record> {
        while self.clock.elapsed() < self.load.duration {
            let action = self.choose();
            let invoked = self.now();
            let outcome = self.ask(&action).await;
            let returned = self.now();
            self.learn(&outcome);
            self.records.push(Record { invoked, returned, action, outcome });
            let rest = self.rng.random_range(0..=self.load.rest.as_micros());
            tokio::time::sleep(Duration::from_micros(u64::try_from(rest).unwrap_or(0))).await;
        }
        self.records
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn key(&mut self) -> Bytes {
        let n = self.rng.random_range(0..self.load.keys);
        format!("{PREFIX}r/{n}").into()
    }

    fn choose(&mut self) -> Action {
        let dice = self.rng.random_range(0..100);
        if dice < 15 {
            return Action::Read { range: KeyRange::prefix(format!("{PREFIX}r/")) };
        }
        let key = self.key();
        if dice < 35 {
            return Action::Read { range: KeyRange::key(key) };
        }
        let id = self.ids.fetch_add(1, Ordering::SeqCst);
        let txn = Txn::new();
        let txn = match dice {
            35..55 => txn.put(key, id.to_string()),
            55..80 => txn.compare(self.belief(&key)).put(key.clone(), id.to_string()).read_on_failure(key),
            80..90 => txn.compare(self.belief(&key)).delete(key.clone()).read_on_failure(key),
            _ => self.two_keys(id, &key),
        };
        signed(id, self.number, txn)
    }

    fn two_keys(&mut self, id: u64, key: &Bytes) -> Txn {
        let other = self.key();
        let txn = Txn::new().compare(self.belief(&other)).read_on_failure(other.clone());
        let txn = txn.put(key.clone(), id.to_string());
        if other == *key { txn } else { txn.delete(other) }
    }

    fn belief(&self, key: &Bytes) -> Compare {
        match self.seen.iter().find(|kv| kv.key == key) {
            Some(kv) if kv.mod_revision % 3 == 0 => Compare::create_revision(key.clone(), kv.create_revision),
            Some(kv) => Compare::mod_revision(key.clone(), kv.mod_revision),
            None => Compare::absent(key.clone()),
        }
    }

    async fn ask(&self, action: &Action) -> Outcome {
        match action {
            Action::Write { txn, .. } => match self.store.transact(txn.clone()).await {
                Ok(Committed { revision }) => Outcome::Committed(revision),
                Err(Error::CompareFailed(failed)) => Outcome::CompareFailed(failed),
                Err(Error::OutcomeUnknown { .. }) => Outcome::Unknown,
                Err(Error::Unavailable { .. }) => Outcome::NotDone,
                Err(other) => panic!("a sensible transaction was answered with {other}"),
            },
            Action::Read { range } => match self.store.scan(Scan::new(range.clone(), 1000)).await {
                Ok(page) => Outcome::Entries(page.revision, page.entries),
                Err(Error::Unavailable { .. }) => Outcome::NotDone,
                Err(other) => panic!("a sensible read was answered with {other}"),
            },
        }
    }

    fn learn(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Entries(_, entries) => {
                self.seen.retain(|old| !entries.iter().any(|new| new.key == old.key));
                self.seen.extend(entries.iter().cloned());
            }
            Outcome::CompareFailed(failed) => {
                for kv in failed.current.iter().flatten() {
                    self.seen.retain(|old| old.key != kv.key);
                    self.seen.push(kv.clone());
                }
                if failed.current.iter().any(Option::is_none) {
                    self.seen.clear();
                }
            }
            Outcome::Committed(_) | Outcome::NotDone | Outcome::Unknown => {}
        }
    }
}
