//! How fast dependents follow their owner, and what the graph costs.
//!
//! `cargo bench -p concord-garbagecollector` makes 10,000 ConfigMaps of one owner, deletes the owner in each of the three
//! ways and waits until the collector is done, on the embedded store and on a real etcd. Then it fills a graph with objects
//! that have one owner each and says what they take.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::{fmt::Write as _, fs, sync::Arc, time::Instant};

use concord_garbagecollector::{Change, Graph, Metadata};
use concord_meta::options::PropagationPolicy::{self, Background, Foreground, Orphan};
use concord_store::Store;
use concord_store_embedded::{EmbeddedStore, Options};
use concord_store_etcd::{Config, EtcdStore};
use concord_testing::etcd::Cluster;
use tokio::task::JoinSet;

#[allow(dead_code, reason = "the benchmark uses a part")]
#[path = "../tests/garbage/support.rs"]
mod support;

use support::{Server, blocked};

/// How many are created at once.
const AT_ONCE: usize = 64;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    // `cargo test --benches` only asks whether it runs.
    let quick = !std::env::args().any(|arg| arg == "--bench");
    let (dependents, entries) = if quick { (100, 1_000) } else { (10_000, 50_000) };
    let directory = tempfile::tempdir().expect("a directory");
    let embedded = EmbeddedStore::open(&Options::new(directory.path().join("db"))).expect("a store");
    cascades("embedded", Arc::new(embedded), dependents).await;
    let cluster = Cluster::single().await.expect("an etcd");
    let etcd = EtcdStore::open(Config::new(cluster.endpoints())).await.expect("a store");
    cascades("etcd", Arc::new(etcd), dependents).await;
    println!("{:.0} bytes for each of {entries} objects with an owner", bytes_per_entry(entries));
}

async fn cascades(engine: &str, store: Arc<dyn Store>, dependents: usize) {
    let server = Arc::new(Server::of(store).await);
    let running = server.start();
    for policy in [Background, Foreground, Orphan] {
        let seconds = cascade(&server, policy, dependents).await;
        let rate = f64::from(u32::try_from(dependents).expect("few")) / seconds;
        println!("{engine}, {policy:?}: {dependents} dependents in {seconds:.2} s, {rate:.0} a second");
    }
    running.stop().await;
}

/// How long it takes until all is done.
async fn cascade(server: &Arc<Server>, policy: PropagationPolicy, dependents: usize) -> f64 {
    let root = server.map(&format!("root-{policy:?}").to_lowercase(), &[]).await;
    let owner = blocked(&root);
    let mut creates = JoinSet::new();
    for at in 0..dependents {
        if creates.len() == AT_ONCE {
            creates.join_next().await;
        }
        let (server, owner) = (server.clone(), owner.clone());
        let name = format!("map-{policy:?}-{at}").to_lowercase();
        creates.spawn(async move { drop(server.map(&name, &[owner]).await) });
    }
    creates.join_all().await;
    let begin = Instant::now();
    let path = format!("/configmaps/ns/root-{policy:?}").to_lowercase();
    server.delete(&path, policy).await.expect("deleted");
    server.until_free().await;
    server.until(&path, |root| root.is_none()).await;
    begin.elapsed().as_secs_f64()
}

/// What the graph takes, by what the process does.
fn bytes_per_entry(entries: usize) -> f64 {
    // Many times as many, so that what else there is does not count.
    let many = entries * 20;
    let before = resident();
    let mut graph = Graph::default();
    let mut key = String::new();
    for at in 0..many {
        let (owner, uid) = (uid(at / 100), uid(many + at));
        let value = format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"ownerReferences":[{{"blockOwnerDeletion":true,"uid":"{owner}"}}],"uid":"{uid}"}}}}"#
        );
        key.clear();
        write!(key, "/registry/pods/production/frontend-6d4cf56db6-{at:07}").expect("a text");
        let now = Metadata::read(value.as_bytes());
        graph.apply(Change { key: key.as_bytes(), before: None, now: now.as_ref() }, &mut |_| {});
    }
    assert_eq!(graph.len(), many);
    let bytes = resident().saturating_sub(before);
    f64::from(u32::try_from(bytes / 1024).expect("few")) * 1024.0
        / f64::from(u32::try_from(many).expect("few"))
}

fn uid(number: usize) -> String {
    // Spread over the whole range, as random ones are.
    let spread = (number as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let hex = format!("{spread:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap_or_default() * 1024
}
