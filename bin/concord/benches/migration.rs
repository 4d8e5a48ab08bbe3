//! How fast objects get another form on a real etcd, beside what that etcd can write at all, and what clients feel of it.
//!
//! `cargo bench -p concord --bench migration` starts an etcd and `concord serve`, makes 20,000 ConfigMaps of 1 KiB
//! (`CONCORD_MIGRATED_MAPS`), has them encrypted and decrypted by migrations and measures, all in one run: how many writes a
//! second the etcd takes from one client, with 8, 16 and 32 at once, before there is a server and before each migration, since
//! few machines are the same for minutes; how many each migration did; what a get takes before and meanwhile; what it takes beside a client that writes as much to the etcd without
//! any server, in groups as migrations do and each alone, and beside one that writes 60 % of what the etcd takes; who uses the
//! processors; and the memory of the server.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use concord_server::test_client::Protocol;
use concord_store::{Store as _, Txn};
use concord_store_etcd::{Config, EtcdStore};
use concord_testing::{etcd::Cluster, process::processor_time};
use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams, WatchEvent, WatchParams},
};
use rand::RngExt as _;
use serde_json::json;
use tokio::task::JoinHandle;

#[allow(dead_code, unused_imports, reason = "the benchmark uses a part")]
#[path = "../tests/concord/support/mod.rs"]
mod support;

use support::{Program, client};

/// How many objects are made at once.
const AT_ONCE: usize = 16;

/// What the etcd is asked for at once when nothing else happens.
const WRITERS: [usize; 3] = [8, 16, 32];

/// As many as migrations have under way.
const IN_GROUPS: usize = 64;

/// The part of what the etcd takes that a migration should reach.
const WANTED: f64 = 0.6;

/// Bytes of data in an object.
const SIZE: usize = 1024;

/// Between two gets of one client.
const PACE: Duration = Duration::from_millis(5);

/// How many migrations, there and back. What a get takes at the 99th percentile is that of about ten in one of them.
const ROUNDS: usize = 4;

const PLAIN_FIRST: &str = "{identity: {}}, <key>";
const KEY_FIRST: &str = "<key>, {identity: {}}";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    // `cargo test --benches` only asks whether it runs.
    let quick = !std::env::args().any(|arg| arg == "--bench");
    let asked = std::env::var("CONCORD_MIGRATED_MAPS").ok().and_then(|asked| asked.parse().ok());
    let count: usize = asked.unwrap_or(if quick { 50 } else { 20_000 });
    let while_idle = Duration::from_secs(if quick { 1 } else { 5 });
    let how_often = if quick { 1 } else { ROUNDS };
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("encryption.yaml");
    encrypt(&file, PLAIN_FIRST);
    let etcd = Cluster::single().await.expect("an etcd");
    let mut alone = vec![raw(&etcd, while_idle / 2).await];
    let server = serve(&etcd, directory.path(), &file).await;
    let client = client(directory.path()).await;
    create(&client, count).await;
    let empty = migrate(&client, "empty", "podtemplates").await;
    let all = [("etcd", etcd.pid(0)), ("server", server.pid()), ("clients", std::process::id())];
    let mut rounds = Vec::new();
    for number in 0..how_often {
        alone.push(raw(&etcd, while_idle / 2).await);
        let before = gets(&client, count, while_idle).await;
        encrypt(&file, [KEY_FIRST, PLAIN_FIRST][number % 2]);
        reloaded(&server, number + 1).await;
        rounds.push(Round::run(&client, count, number, before, &all).await);
    }
    let rate = rate(count, &rounds);
    let mut beside = Vec::new();
    for (rate, together) in [(rate, true), (rate, false), (WANTED * mean(&alone)[0], false)] {
        let writes = Writes { rate, together };
        let (usage, begin) = (all.map(|(_, pid)| processor_time(pid)), Instant::now());
        let (rate, took) = gets_beside_writes(&etcd, &client, count, writes, while_idle).await;
        beside.push((Writes { rate, together }, took, shares(&all, &usage, begin.elapsed())));
    }
    rounds.iter().for_each(|round| round.report(count));
    report(count, &rounds, &alone, &beside);
    println!("a migration with nothing to do: {:.3} s", empty.as_secs_f64());
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

/// What all migrations together did, beside the etcd alone and clients that write as much to it.
fn report(count: usize, rounds: &[Round], alone: &[Vec<f64>], beside: &[(Writes, Vec<Duration>, String)]) {
    let rate = rate(count, rounds);
    println!("all of them: {rate:.0} a second");
    let before: Vec<Duration> = rounds.iter().flat_map(|round| round.before.iter().copied()).collect();
    let meanwhile: Vec<Duration> = rounds.iter().flat_map(|round| round.meanwhile.iter().copied()).collect();
    compare(&before, &meanwhile);
    for (at, mean) in WRITERS.iter().zip(mean(alone)) {
        let share = 100.0 * rate / mean;
        println!("etcd alone, {at} at once: {mean:.0} a second; all of them: {share:.0} %");
    }
    for (Writes { rate, together }, took, usage) in beside {
        let how = if *together { "in groups" } else { "each alone" };
        println!("a client that writes {rate:.0} a second to the etcd instead, {how}; processors: {usage}");
        compare(&before, took);
    }
}

/// What a client writes to the etcd without any server.
#[derive(Clone, Copy)]
struct Writes {
    /// In a second.
    rate: f64,
    /// As migrations do.
    together: bool,
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
        all: &[(&str, u32); 3],
    ) -> Self {
        let (stop, memory) = (Arc::new(AtomicBool::new(false)), resident(all[1].1));
        let largest = watch_memory(all[1].1, stop.clone());
        let meanwhile = tokio::spawn(gets_until(client.clone(), count, stop.clone()));
        let (usage, begin) = (all.map(|(_, pid)| processor_time(pid)), Instant::now());
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

/// In milliseconds.
fn percentile(took: &[Duration], percent: usize) -> f64 {
    let mut sorted = took.to_vec();
    sorted.sort_unstable();
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(f64::NAN, |took| took.as_secs_f64() * 1000.0)
}

fn encrypt(file: &Path, providers: &str) {
    let key = "{aesgcm: {keys: [{name: key1, secret: MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=}]}}";
    let providers = providers.replace("<key>", key);
    let text = format!(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n\
         - resources: [configmaps]\n  providers: [{providers}]\n"
    );
    let new = file.with_extension("new");
    fs::write(&new, text).expect("written");
    fs::rename(&new, file).expect("replaced");
}

async fn serve(etcd: &Cluster, data: &Path, file: &Path) -> Program {
    let flags = [
        format!("--etcd-servers={}", etcd.endpoints()[0]),
        format!("--encryption-provider-config={}", file.display()),
        "--encryption-provider-config-automatic-reload=true".to_owned(),
        "--storage-migration-delay=0s".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Program::start_with(data, &flags).await;
    server.ready(200).await;
    server
}

/// Waits until the file is in force that was written as the `times`th.
async fn reloaded(server: &Program, times: usize) {
    let mut admin = server.admin(Protocol::Http2).await;
    loop {
        let metrics = admin.get("/metrics").await.expect("an answer").body;
        let counted = "apiserver_encryption_config_controller_automatic_reloads_total{";
        let is_success = |line: &str| line.starts_with(counted) && line.contains("status=\"success\"");
        let count = metrics.lines().find(|line| is_success(line)).and_then(|line| line.rsplit_once(' '));
        if count.is_some_and(|(_, count)| count.parse().is_ok_and(|count: f64| count as usize >= times)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn name(number: usize) -> String {
    format!("map-{number:06}")
}

async fn create(client: &Client, count: usize) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let create = |number: usize| {
        let maps = maps.clone();
        async move {
            let map = json!({"metadata": {"name": name(number)}, "data": {"word": "x".repeat(SIZE)}});
            let map = serde_json::from_value(map).expect("a ConfigMap");
            maps.create(&PostParams::default(), &map).await.expect("created");
        }
    };
    stream::iter(0..count).for_each_concurrent(AT_ONCE, create).await;
}

/// How long a migration takes, from asking for it until it has succeeded.
async fn migrate(client: &Client, name: &str, resource: &str) -> Duration {
    let kind = GroupVersionKind::gvk("storagemigration.k8s.io", "v1beta1", "StorageVersionMigration");
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let new = json!({"apiVersion": "storagemigration.k8s.io/v1beta1", "kind": "StorageVersionMigration",
        "metadata": {"name": name}, "spec": {"resource": {"group": "", "resource": resource}}});
    let begin = Instant::now();
    let new = serde_json::from_value(new).expect("an object");
    all.create(&PostParams::default(), &new).await.expect("created");
    // Nobody asks for it again and again: that would be what the gets beside it wait for.
    let only = WatchParams::default().fields(&format!("metadata.name={name}"));
    let mut changes = all.watch(&only, "0").await.expect("a watch").boxed();
    loop {
        let (WatchEvent::Added(migration) | WatchEvent::Modified(migration)) =
            changes.next().await.expect("it has not ended").expect("a change")
        else {
            continue;
        };
        let conditions = migration.data["status"]["conditions"].as_array().into_iter().flatten();
        let mut ends = conditions.filter(|known| known["type"] != "Running" && known["status"] == "True");
        if let Some(end) = ends.next() {
            assert_eq!(end["type"], "Succeeded", "{end}");
            return begin.elapsed();
        }
    }
}

async fn gets(client: &Client, count: usize, time: Duration) -> Vec<Duration> {
    let stop = Arc::new(AtomicBool::new(false));
    let gets = tokio::spawn(gets_until(client.clone(), count, stop.clone()));
    tokio::time::sleep(time).await;
    stop.store(true, Ordering::Relaxed);
    gets.await.expect("no panic")
}

/// What gets of any of the objects take, one after the other.
async fn gets_until(client: Client, count: usize, stop: Arc<AtomicBool>) -> Vec<Duration> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut took = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let name = name(rand::rng().random_range(0..count));
        let begin = Instant::now();
        maps.get(&name).await.expect("there");
        took.push(begin.elapsed());
        tokio::time::sleep(PACE).await;
    }
    took
}

/// How many values as large as the objects the etcd takes in a second, with so many at once each.
async fn raw(etcd: &Cluster, time: Duration) -> Vec<f64> {
    let config = Config { prefix: "/raw/".into(), ..Config::new(etcd.endpoints().iter().cloned()) };
    let store = Arc::new(EtcdStore::open(config).await.expect("a store"));
    let mut rates = Vec::new();
    for at_once in WRITERS {
        let (begin, written) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
        let write = |writer: usize| {
            let (store, written) = (store.clone(), written.clone());
            async move {
                while begin.elapsed() < time {
                    let number = written.fetch_add(1, Ordering::Relaxed);
                    let key = format!("/raw/{writer:02}-{:03}", number % 1000);
                    store.transact(Txn::new().put(key, vec![b'x'; SIZE + 300])).await.expect("written");
                }
            }
        };
        stream::iter(0..at_once).for_each_concurrent(None, write).await;
        rates.push(written.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64());
    }
    store.shutdown().await;
    rates
}

/// What gets take while a client writes to the etcd so many times a second, 8 at once at most or in groups, and how many times a
/// second it really did. It has a thread of its own, so that gets do not wait for it in this process.
async fn gets_beside_writes(
    etcd: &Cluster,
    client: &Client,
    count: usize,
    writes: Writes,
    time: Duration,
) -> (f64, Vec<Duration>) {
    let config = Config { prefix: "/raw/".into(), ..Config::new(etcd.endpoints().iter().cloned()) };
    let writing = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(write_at(config, writes, time))
    });
    let took = gets(client, count, time).await;
    let written = tokio::task::spawn_blocking(move || writing.join().expect("no panic"));
    (written.await.expect("no panic"), took)
}

async fn write_at(config: Config, Writes { rate, together }: Writes, time: Duration) -> f64 {
    let store = EtcdStore::open(config).await.expect("a store");
    let (begin, begun) = (Instant::now(), AtomicUsize::new(0));
    let write = |writer: usize| {
        let (store, begun) = (&store, &begun);
        async move {
            while begin.elapsed() < time {
                let number = begun.fetch_add(1, Ordering::Relaxed);
                let due = begin + Duration::from_secs_f64(number as f64 / rate);
                tokio::time::sleep_until(due.into()).await;
                let key = format!("/raw/{writer:02}-{:03}", number % 1000);
                let txn = Txn::new().put(key, vec![b'x'; SIZE + 300]);
                store.transact(Txn { together, ..txn }).await.expect("written");
            }
        }
    };
    let at_once = if together { IN_GROUPS } else { WRITERS[0] };
    stream::iter(0..at_once).for_each_concurrent(None, write).await;
    let rate = begun.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64();
    store.shutdown().await;
    rate
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
