//! What a replica costs: changes applied per second, scans, subscribers, memory, fan-out, load.
//!
//! A plain program, because most of it measures one long run rather than a repeated call:
//! `cargo bench -p concord-replica`, or with a part: `-- memory`, `apply`, `scan`, `subscribe` or
//! `large`. Numbers
//! of one run may be compared with each other.

#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::{
    alloc::{GlobalAlloc, Layout},
    collections::BTreeMap,
    hint::black_box,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bytes::Bytes;
use concord_replica::{Config, Replica, Scope, Subscription};
use concord_store::{
    Change, Commit, CommitStream, Committed, Error, KeyRange, KeyValue, Revision, Scan, ScanPage, Store, Txn,
};
use futures_util::stream;
use mimalloc::MiMalloc;
use parking_lot::Mutex;

const ENTRIES: u64 = 100_000;
const VALUE: usize = 1024;
const LOADED: Revision = 1_000;
const PATIENCE: Duration = Duration::from_secs(300);

/// Counts the bytes that are allocated, as the allocator hands them out.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls go to the allocator of the product unchanged.
#[allow(unsafe_code, reason = "a global allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { MiMalloc.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn key(n: u64) -> Bytes {
    // About as long, and with as long a common beginning, as a pod's key.
    format!("/registry/pods/namespace-{:03}/deployment-{:08}-x7k2p", n % 100, n / 100).into()
}

fn entry(n: u64, revision: Revision) -> KeyValue {
    KeyValue { key: key(n), value: vec![b'v'; VALUE].into(), create_revision: 2, mod_revision: revision }
}

/// A store that serves [`ENTRIES`] entries and then the runs it is given.
struct Prepared {
    keys: Vec<u64>,
    runs: Mutex<Option<tokio::sync::mpsc::Receiver<Vec<Commit>>>>,
}

impl Prepared {
    fn new() -> (Arc<Self>, tokio::sync::mpsc::Sender<Vec<Commit>>) {
        let (sender, receiver) = tokio::sync::mpsc::channel(1 << 20);
        let mut keys: Vec<u64> = (0..ENTRIES).collect();
        keys.sort_by_cached_key(|n| key(*n));
        (Arc::new(Self { keys, runs: Mutex::new(Some(receiver)) }), sender)
    }
}

#[async_trait]
impl Store for Prepared {
    async fn transact(&self, _: Txn) -> Result<Committed, Error> {
        Err(Error::invalid("read only"))
    }

    async fn scan(&self, scan: Scan) -> Result<ScanPage, Error> {
        let start = self.keys.partition_point(|n| key(*n) < scan.range.start);
        let page = &self.keys[start..self.keys.len().min(start + scan.limit)];
        let entries = page.iter().map(|n| entry(*n, LOADED)).collect();
        let resume = self.keys.get(start + page.len()).map(|n| key(*n));
        Ok(ScanPage { revision: LOADED, entries, resume })
    }

    fn follow(&self, _: Revision) -> CommitStream {
        let runs = self.runs.lock().take().expect("followed once");
        Box::pin(stream::unfold(runs, async |mut runs| Some((Ok(runs.recv().await?), runs))))
    }

    async fn current_revision(&self) -> Result<Revision, Error> {
        Ok(LOADED)
    }

    async fn compact(&self, _: Revision) -> Result<(), Error> {
        Ok(())
    }

    async fn health(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// `count` updates of `keys` keys all over the place, one per commit, in runs of `run`.
fn updates(count: u64, run: u64, keys: u64, first: Revision) -> Vec<Vec<Commit>> {
    let commit = |n: u64| {
        let revision = first + n;
        // A prime step visits every key once before any of them again, far from the last one.
        let change = Change::Put(entry(revision * 61_681 % keys, revision));
        Commit { revision, changes: vec![change] }
    };
    (0..count / run).map(|r| (r * run..(r + 1) * run).map(commit).collect()).collect()
}

struct World {
    replica: Replica,
    runs: tokio::sync::mpsc::Sender<Vec<Commit>>,
    next: Revision,
}

impl World {
    async fn new(config: Config) -> Self {
        let (store, runs) = Prepared::new();
        let replica = Replica::start(store, config, Vec::new());
        replica.not_older_than(LOADED, PATIENCE).await.expect("loads");
        Self { replica, runs, next: LOADED + 1 }
    }

    /// Applies prepared updates and returns changes per second.
    async fn apply(&mut self, count: u64, run: u64, keys: u64) -> f64 {
        self.feed(updates(count, run, keys, self.next)).await
    }

    /// Applies runs of one change per commit and returns changes per second.
    async fn feed(&mut self, runs: Vec<Vec<Commit>>) -> f64 {
        let count = runs.iter().map(Vec::len).sum::<usize>() as u64;
        self.next += count;
        let begin = Instant::now();
        for run in runs {
            self.runs.try_send(run).expect("the queue is long enough");
        }
        self.replica.not_older_than(self.next - 1, PATIENCE).await.expect("applies");
        count as f64 / begin.elapsed().as_secs_f64()
    }
}

/// A value of about 20 KB, as a definition has: names and descriptions of fields, which are those of `text`.
fn definition(text: u64, revision: Revision) -> Bytes {
    let words = "the of a pod that is set by an object when its name or value can not be used for this field to list \
                 all secrets in same namespace as spec volume status resource condition defaults must controller";
    let words: Vec<&str> = words.split_whitespace().collect();
    let next =
        |n: &u64| Some(n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    let mut numbers = std::iter::successors(Some(text), next).map(|number| (number >> 33) as usize);
    let mut text = format!("{{\"revision\":{revision}");
    while text.len() < 20_000 {
        let description: Vec<&str> = numbers.by_ref().take(40).map(|n| words[n % words.len()]).collect();
        text += &format!(",\"field{}\":{{\"description\":\"{}\"}}", text.len(), description.join(" "));
    }
    text.into()
}

/// How many large values there are.
const LARGE: u64 = 500;

/// Values that the history packs; `text` says what is in them at a revision.
async fn large(how: &str, text: impl Fn(Revision) -> u64) {
    let (mut world, count, keys) = (World::new(Config::default()).await, 2_000, LARGE);
    let value = |revision| definition(text(revision), revision);
    let change = |revision| KeyValue { value: value(revision), ..entry(revision % keys, revision) };
    let commit = |revision| Commit { revision, changes: vec![Change::Put(change(revision))] };
    let runs = |first| (first..first + count).map(|revision| vec![commit(revision)]).collect();
    // The first ones supersede what is small.
    world.feed(runs(world.next)).await;
    let before = world.replica.status().window_bytes;
    let rate = world.feed(runs(world.next)).await;
    row(&format!("a change of a value of 20 KB, {how}, one per run"), &format!("{:.0} µs", 1e6 / rate));
    let grown = world.replica.status().window_bytes - before;
    row("what the history takes for it", &format!("{} bytes", grown / count as usize));
    let past = world.replica.at(world.next - 1 - keys).expect("in the window");
    let begin = Instant::now();
    let bytes: usize = past.scan(&KeyRange::all()).map(|entry| entry.value.len()).sum();
    assert!(black_box(bytes) > ENTRIES as usize * VALUE);
    let elapsed = begin.elapsed().as_secs_f64() * 1e3;
    row("scan of the past that unpacks 500 of them", &format!("{elapsed:.1} ms"));
}

fn row(what: &str, value: &str) {
    println!("{what:<72} {value:>16}");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn load_and_memory() {
    let before = ALLOCATED.load(Ordering::Relaxed);
    let (store, _runs) = Prepared::new();
    let own = ALLOCATED.load(Ordering::Relaxed) - before;
    let begin = Instant::now();
    let replica = Replica::start(store, Config::default(), Vec::new());
    let snapshot = replica.not_older_than(LOADED, PATIENCE).await.expect("loads");
    row(
        "load of 100,000 entries of 1 KiB from memory, made up on the way",
        &format!("{:.0} ms", begin.elapsed().as_secs_f64() * 1e3),
    );
    let data: usize = snapshot.scan(&KeyRange::all()).map(|entry| entry.key.len() + entry.value.len()).sum();
    let used = ALLOCATED.load(Ordering::Relaxed) - before - own;
    row(
        "memory per entry beyond key and value, loaded",
        &format!("{} bytes", (used - data) / ENTRIES as usize),
    );
}

async fn memory_after_churn() {
    let before = ALLOCATED.load(Ordering::Relaxed);
    let (store, _) = Prepared::new();
    let own = ALLOCATED.load(Ordering::Relaxed) - before;
    drop(store);
    let mut world = World::new(Config { window_bytes: 1 << 20, ..Config::default() }).await;
    world.apply(400_000, 100, ENTRIES).await;
    let snapshot = world.replica.newest().expect("loaded");
    let data: usize = snapshot.scan(&KeyRange::all()).map(|entry| entry.key.len() + entry.value.len()).sum();
    drop(snapshot);
    // The queue of runs has kept its blocks; it is not the replica's.
    let used = ALLOCATED.load(Ordering::Relaxed) - before - own - world.replica.status().window_bytes;
    row(
        "the same after each entry was replaced four times, window not counted",
        &format!("{} bytes", (used - data) / ENTRIES as usize),
    );
}

/// What the same updates cost without snapshots, history or anything else.
fn applying_to_a_plain_map() {
    let mut map: BTreeMap<Bytes, Arc<KeyValue>> =
        (0..ENTRIES).map(|n| (key(n), Arc::new(entry(n, LOADED)))).collect();
    let rates = (0..3).map(|round| {
        let commits: Vec<Commit> = updates(100_000, 100, ENTRIES, LOADED + round).concat();
        let begin = Instant::now();
        for change in commits.into_iter().flat_map(|commit| commit.changes) {
            let Change::Put(entry) = change else { continue };
            black_box(map.insert(entry.key.clone(), Arc::new(entry)));
        }
        100_000.0 / begin.elapsed().as_secs_f64()
    });
    row(
        "for comparison: a std::collections::BTreeMap, nothing else",
        &format!("{:.0} /s", median(rates.collect())),
    );
}

async fn applying() {
    applying_to_a_plain_map();
    for (keys, which) in [(ENTRIES, "each of the 100,000 in turn"), (5_000, "5,000 of the 100,000")] {
        for run in [1, 10, 100, 1000] {
            let mut world = World::new(Config::default()).await;
            // Fills the window first, so that each change also evicts one.
            world.apply(100_000, run, keys).await;
            let mut rates = Vec::new();
            for _ in 0..3 {
                rates.push(world.apply(100_000, run, keys).await);
            }
            row(
                &format!("changes applied to {which}, in runs of {run}"),
                &format!("{:.0} /s", median(rates)),
            );
        }
    }
}

async fn scanning() {
    let mut world = World::new(Config::default()).await;
    let past = world.replica.newest().expect("loaded").revision();
    world.apply(20_000, 100, ENTRIES).await;
    let newest = world.replica.newest().expect("loaded");
    let past = newest.at(past).expect("in the window");
    for (what, snapshot) in [("newest revision", &newest), ("revision 20,000 changes ago", &past)] {
        let times = (0..9).map(|_| {
            let begin = Instant::now();
            let bytes: usize = snapshot.scan(&KeyRange::all()).map(|entry| entry.value.len()).sum();
            assert_eq!(black_box(bytes), ENTRIES as usize * VALUE);
            begin.elapsed().as_secs_f64() * 1e3
        });
        row(
            &format!("scan of 100,000 entries of 1 KiB, {what}"),
            &format!("{:.1} ms", median(times.collect())),
        );
    }
    let times = (0..9).map(|_| {
        let begin = Instant::now();
        let mut body = Vec::with_capacity(ENTRIES as usize * VALUE);
        newest.scan(&KeyRange::all()).for_each(|entry| body.extend_from_slice(&entry.value));
        assert_eq!(black_box(body).len(), ENTRIES as usize * VALUE);
        begin.elapsed().as_secs_f64() * 1e3
    });
    row("the same with all values copied into one buffer", &format!("{:.1} ms", median(times.collect())));
    let begin = Instant::now();
    for n in 0..ENTRIES {
        black_box(newest.get(&key(n * 61_681 % ENTRIES)).expect("exists"));
    }
    row(
        "get, key made up on the way",
        &format!("{:.0} ns", begin.elapsed().as_secs_f64() * 1e9 / ENTRIES as f64),
    );
    let begin = Instant::now();
    for _ in 0..1_000_000 {
        black_box(world.replica.newest().expect("loaded"));
    }
    row("taking the newest snapshot", &format!("{:.0} ns", begin.elapsed().as_secs_f64() * 1e3));
}

/// Alternates between a world without and one with subscribers elsewhere, so that both see the same
/// noise.
async fn others_subscribers() {
    let (mut without, mut with) = (World::new(Config::default()).await, World::new(Config::default()).await);
    let revision = with.replica.newest().expect("loaded").revision();
    let _subscriptions: Vec<Subscription> = (0..1000)
        .map(|n| Scope::prefix(format!("/registry/pods/other-{n:04}/")))
        .map(|scope| with.replica.subscribe(scope, revision).expect("in the window"))
        .collect();
    let mut ratios = Vec::new();
    for _ in 0..7 {
        let plain = without.apply(50_000, 100, ENTRIES).await;
        ratios.push(with.apply(50_000, 100, ENTRIES).await / plain);
    }
    row(
        "rate with 1,000 subscribers on other prefixes, to that with none",
        &format!("{:.2}", median(ratios)),
    );
}

async fn fan_out() {
    let config =
        Config { subscription_buffer: NonZeroUsize::new(1 << 16).expect("not zero"), ..Config::default() };
    let mut world = World::new(config).await;
    let revision = world.replica.newest().expect("loaded").revision();
    let (count, subscribers) = (10_000, 500);
    let begin = Instant::now();
    let readers: Vec<_> = (0..subscribers)
        .map(|_| {
            let mut subscription =
                world.replica.subscribe(Scope::prefix("/registry/pods/"), revision).expect("now");
            tokio::spawn(async move {
                for _ in 0..count {
                    black_box(subscription.next().await.expect("keeps up"));
                }
            })
        })
        .collect();
    world.apply(count, 10, ENTRIES).await;
    for reader in readers {
        reader.await.expect("no panic");
    }
    let rate = count as f64 * subscribers as f64 / begin.elapsed().as_secs_f64();
    row("events delivered to 500 subscribers of one prefix, all together", &format!("{rate:.0} /s"));
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().expect("a runtime");
    // Cargo passes options of its own; what is no option names a part.
    let part = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let wanted = |name: &str| part.as_ref().is_none_or(|part| part == name);
    runtime.block_on(async {
        if wanted("memory") {
            load_and_memory().await;
            memory_after_churn().await;
        }
        if wanted("apply") {
            applying().await;
        }
        if wanted("scan") {
            scanning().await;
        }
        if wanted("subscribe") {
            others_subscribers().await;
            fan_out().await;
        }
        if wanted("large") {
            large("of a few bytes", |revision| revision % LARGE).await;
            large("of all of it", |revision| revision).await;
        }
    });
}
