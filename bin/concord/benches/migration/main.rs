//! How fast objects get another form, beside what the store can write at all, and what clients feel of it.
//!
//! `cargo bench -p concord --bench migration` starts `concord serve` on a real etcd and then on the embedded store (or only on
//! the one that is named: `-- etcd`, `-- embedded`), makes 20,000 ConfigMaps of 1 KiB (`CONCORD_MIGRATED_MAPS`), has them
//! encrypted and decrypted by migrations and measures, all in one run: how many writes a second the store takes from one
//! client without a server, with 8, 16 and 32 at once, before each migration, since few machines are the same for minutes; how
//! many each migration did; what a get takes before and meanwhile; who uses the processors; and the memory of the server. On
//! etcd also what a get takes beside a client that writes as much without any server, in groups as migrations do and each
//! alone, and beside one that writes 60 % of what the etcd takes.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

mod clients;
mod engine;

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use concord_testing::process::processor_time;
use kube::Client;
use tokio::task::JoinHandle;

#[allow(dead_code, unused_imports, reason = "the benchmark uses a part")]
#[path = "../../tests/concord/support/mod.rs"]
mod support;

use clients::{create, encrypt, gets, gets_until, migrate, percentile, reloaded};
use engine::{Engine, WRITERS, Writes};
use support::{Program, client};

/// The part of what the store takes that a migration should reach.
const WANTED: f64 = 0.6;

/// Bytes of data in an object.
const SIZE: usize = 1024;

/// How many migrations, there and back. What a get takes at the 99th percentile is that of about ten in one of them on etcd, and
/// of two on the embedded store, which is faster.
const ROUNDS: usize = 4;
const ROUNDS_EMBEDDED: usize = 8;

const PLAIN_FIRST: &str = "{identity: {}}, <key>";
const KEY_FIRST: &str = "<key>, {identity: {}}";

/// How much is measured.
struct Plan {
    count: usize,
    while_idle: Duration,
    rounds: usize,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted =
        |name: &str| args.iter().all(|arg| arg.starts_with('-')) || args.iter().any(|arg| arg == name);
    // `cargo test --benches` only asks whether it runs.
    let quick = !args.iter().any(|arg| arg == "--bench");
    let asked = std::env::var("CONCORD_MIGRATED_MAPS").ok().and_then(|asked| asked.parse().ok());
    let plan = |rounds: usize| Plan {
        count: asked.unwrap_or(if quick { 50 } else { 20_000 }),
        while_idle: Duration::from_secs(if quick { 1 } else { 5 }),
        rounds: if quick { 1 } else { rounds },
    };
    if is_wanted("etcd") {
        measure(&Engine::etcd().await, &plan(ROUNDS)).await;
    }
    if is_wanted("embedded") {
        measure(&Engine::embedded(), &plan(ROUNDS_EMBEDDED)).await;
    }
}

async fn measure(engine: &Engine, plan: &Plan) {
    let &Plan { count, while_idle, rounds: how_often } = plan;
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("encryption.yaml");
    encrypt(&file, PLAIN_FIRST);
    let server = serve(engine, directory.path(), &file).await;
    let client = client(directory.path()).await;
    create(&client, count).await;
    let empty = migrate(&client, "empty", "podtemplates").await;
    let own = [("server", server.pid()), ("clients", std::process::id())];
    let all: Vec<_> = engine.pid().map(|pid| ("etcd", pid)).into_iter().chain(own).collect();
    let (mut alone, mut rounds) = (Vec::new(), Vec::new());
    for number in 0..how_often {
        alone.push(engine.raw(while_idle / 4).await);
        let before = gets(&client, count, while_idle).await;
        encrypt(&file, [KEY_FIRST, PLAIN_FIRST][number % 2]);
        reloaded(&server, number + 1).await;
        rounds.push(Round::run(&client, count, number, before, (server.pid(), &all)).await);
    }
    println!("on {}", engine.name());
    rounds.iter().for_each(|round| round.report(count));
    report(count, &rounds, &alone);
    if engine.pid().is_some() {
        let (rate, wanted) = (rate(count, &rounds), WANTED * mean(&alone)[0]);
        let before: Vec<Duration> = rounds.iter().flat_map(|round| round.before.iter().copied()).collect();
        for (rate, together) in [(rate, true), (rate, false), (wanted, false)] {
            beside(engine, Writes { rate, together }, (&client, plan), (&all, &before)).await;
        }
    }
    println!("a migration with nothing to do: {:.3} s", empty.as_secs_f64());
}

/// What gets take while a client writes without any server.
async fn beside(
    engine: &Engine,
    writes: Writes,
    (client, plan): (&Client, &Plan),
    (all, before): (&[(&str, u32)], &[Duration]),
) {
    let (usage, begin) = (used(all), Instant::now());
    let gets = gets(client, plan.count, plan.while_idle);
    let (rate, took) = tokio::join!(engine.write(writes, plan.while_idle), gets);
    let how = if writes.together { "in groups" } else { "each alone" };
    let usage = shares(all, &usage, begin.elapsed());
    println!("a client that writes {rate:.0} a second to the etcd instead, {how}; processors: {usage}");
    compare(before, &took);
}

/// How many objects a second, in all migrations.
fn rate(count: usize, rounds: &[Round]) -> f64 {
    let took: f64 = rounds.iter().map(|round| round.took.as_secs_f64()).sum();
    (count * rounds.len()) as f64 / took
}

/// How many writes a second, for each number of them at once.
fn mean(alone: &[Vec<f64>]) -> Vec<f64> {
    let of = |at: usize| alone.iter().map(|rates| rates[at]).sum::<f64>() / alone.len() as f64;
    (0..WRITERS.len()).map(of).collect()
}

/// What all migrations together did, beside the store alone.
fn report(count: usize, rounds: &[Round], alone: &[Vec<f64>]) {
    let rate = rate(count, rounds);
    println!("all of them: {rate:.0} a second");
    let before: Vec<Duration> = rounds.iter().flat_map(|round| round.before.iter().copied()).collect();
    let meanwhile: Vec<Duration> = rounds.iter().flat_map(|round| round.meanwhile.iter().copied()).collect();
    compare(&before, &meanwhile);
    for (at, mean) in WRITERS.iter().zip(mean(alone)) {
        let share = 100.0 * rate / mean;
        println!("the store alone, {at} at once: {mean:.0} a second; all of them: {share:.0} %");
    }
}

/// One migration of everything, and what clients felt of it.
struct Round {
    before: Vec<Duration>,
    meanwhile: Vec<Duration>,
    took: Duration,
    processors: String,
    /// Of the server, before it and at most.
    memory: (usize, usize),
}

impl Round {
    async fn run(
        client: &Client,
        count: usize,
        number: usize,
        before: Vec<Duration>,
        (server, all): (u32, &[(&str, u32)]),
    ) -> Self {
        let (stop, memory) = (Arc::new(AtomicBool::new(false)), resident(server));
        let largest = watch_memory(server, stop.clone());
        let meanwhile = tokio::spawn(gets_until(client.clone(), count, stop.clone()));
        let (usage, begin) = (used(all), Instant::now());
        let took = migrate(client, &format!("all-{number}"), "configmaps").await;
        let processors = shares(all, &usage, begin.elapsed());
        stop.store(true, Ordering::Relaxed);
        let meanwhile = meanwhile.await.expect("no panic");
        let memory = (memory, largest.await.expect("no panic"));
        Self { before, meanwhile, took, processors, memory }
    }

    fn report(&self, count: usize) {
        let Self { before, meanwhile, took, processors, memory } = self;
        let rate = count as f64 / took.as_secs_f64();
        println!("{count} objects of {SIZE} bytes in {:.2} s: {rate:.0} a second", took.as_secs_f64());
        println!(
            "  processors: {processors}; memory: {} MiB, {} MiB at most",
            memory.0 >> 20,
            memory.1 >> 20
        );
        compare(before, meanwhile);
    }
}

/// What gets take, and take meanwhile.
fn compare(before: &[Duration], meanwhile: &[Duration]) {
    for percent in [50, 90, 99] {
        let (before, meanwhile) = (percentile(before, percent), percentile(meanwhile, percent));
        let times = meanwhile / before;
        println!(
            "  get, {percent}th percentile: {before:.2} ms, meanwhile {meanwhile:.2} ms: {times:.2} times"
        );
    }
}

async fn serve(engine: &Engine, data: &Path, file: &Path) -> Program {
    let flags = [
        format!("--encryption-provider-config={}", file.display()),
        "--encryption-provider-config-automatic-reload=true".to_owned(),
        "--storage-migration-delay=0s".to_owned(),
    ];
    let flags: Vec<String> = flags.into_iter().chain(engine.flag()).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Program::start_with(data, &flags).await;
    server.ready(200).await;
    server
}

fn used(all: &[(&str, u32)]) -> Vec<Duration> {
    all.iter().map(|(_, pid)| processor_time(*pid)).collect()
}

/// How much of one processor each process used since `before`.
fn shares(all: &[(&str, u32)], before: &[Duration], time: Duration) -> String {
    let share = |((name, pid), before): (&(&str, u32), &Duration)| {
        let share = (processor_time(*pid) - *before).as_secs_f64() / time.as_secs_f64();
        format!("{name} {:.0} %", 100.0 * share)
    };
    all.iter().zip(before).map(share).collect::<Vec<_>>().join(", ")
}

fn watch_memory(pid: u32, stop: Arc<AtomicBool>) -> JoinHandle<usize> {
    tokio::spawn(async move {
        let mut most = 0;
        while !stop.load(Ordering::Relaxed) {
            most = most.max(resident(pid));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        most
    })
}

/// The memory of a process, in bytes.
fn resident(pid: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap_or_default() * 1024
}
