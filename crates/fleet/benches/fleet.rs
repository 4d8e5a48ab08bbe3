//! What taking part in a fleet costs.
//!
//! `cargo bench -p concord-fleet` registers all built-in resources and 200 custom ones, lets three servers start at once,
//! and creates ConfigMaps with and without the gate in turns, on the embedded store and on a real etcd.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use concord_merge::apply::Time;
use concord_registry::{Context, Registry};
use concord_store::Store;
use concord_store_embedded::{EmbeddedStore, Options};
use concord_store_etcd::{Config, EtcdStore};
use concord_testing::etcd::Cluster;
use serde_json::json;

#[allow(dead_code, reason = "the benchmark uses a part")]
#[path = "../tests/fleet/support.rs"]
mod support;

use support::{CONFIG_MAPS, DEFINITIONS, Kind, Server, wait_for};

/// How much is measured.
struct Size {
    definitions: usize,
    starts: usize,
    writes: usize,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    // `cargo test --benches` only asks whether it runs.
    let quick = !std::env::args().any(|arg| arg == "--bench");
    let size = match quick {
        true => Size { definitions: 5, starts: 1, writes: 10 },
        false => Size { definitions: 200, starts: 5, writes: 3_000 },
    };
    let directory = tempfile::tempdir().expect("a directory");
    let embedded = EmbeddedStore::open(&Options::new(directory.path().join("db"))).expect("a store");
    all("embedded", Arc::new(embedded), &size).await;
    let cluster = Cluster::single().await.expect("an etcd");
    let config = Config { prefix: "/registry/".into(), ..Config::new(cluster.endpoints()) };
    all("etcd", Arc::new(EtcdStore::open(config).await.expect("a store")), &size).await;
}

async fn all(engine: &str, store: Arc<dyn Store>, size: &Size) {
    let server = start(&store, "first").await;
    for n in 0..size.definitions {
        define(&server, n).await;
    }
    registration(engine, &store, size).await;
    together(engine, &store, size).await;
    fence(engine, &store, &server, size.writes).await;
    server.stop().await;
}

async fn start(store: &Arc<dyn Store>, id: &'static str) -> Server {
    let server = Server::start_between(store.clone(), store.clone(), &Kind::new(id));
    server.registered().await;
    server
}

async fn define(server: &Server, n: usize) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({
        "metadata": {"name": format!("foos{n}.example.com")},
        "spec": {"group": "example.com", "scope": "Namespaced", "conversion": {"strategy": "None"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
            "names": {"plural": format!("foos{n}"), "singular": format!("foos{n}"), "kind": "Foo", "listKind": "FooList"}},
        "status": {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]},
    });
    server.create(DEFINITIONS, "", definition).await.expect("defined");
}

/// Waits until a server has an entry in every object.
async fn registered(server: &Server, definitions: usize) {
    server.registered().await;
    let id = format!("{}=", server.fleet.id());
    for n in 0..definitions {
        let name = format!("example.com.foos{n}");
        wait_for(&name, || async { server.said(&name).await.contains(&id).then_some(()) }).await;
    }
}

fn milliseconds(times: &mut [Duration]) -> (f64, f64) {
    times.sort();
    let of = |time: Duration| time.as_secs_f64() * 1000.0;
    (of(times[0]), of(times[times.len() / 2]))
}

/// From the start of a server that nobody knows, the reading of the log included.
async fn registration(engine: &str, store: &Arc<dyn Store>, size: &Size) {
    let mut times = Vec::new();
    for _ in 0..size.starts {
        let begin = Instant::now();
        let server = Server::start_between(store.clone(), store.clone(), &Kind::new("next"));
        registered(&server, size.definitions).await;
        times.push(begin.elapsed());
        server.stop().await;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let (best, median) = milliseconds(&mut times);
    let custom = size.definitions;
    println!(
        "{engine}: registration with {custom} custom resources: best {best:.0} ms, median {median:.0} ms"
    );
}

async fn together(engine: &str, store: &Arc<dyn Store>, size: &Size) {
    let mut times = Vec::new();
    for _ in 0..size.starts {
        let begin = Instant::now();
        let start = |id| Server::start_between(store.clone(), store.clone(), &Kind::new(id));
        let servers = ["a", "b", "c"].map(start);
        for server in &servers {
            registered(server, size.definitions).await;
        }
        times.push(begin.elapsed());
        for server in servers {
            server.stop().await;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let (best, median) = milliseconds(&mut times);
    println!("{engine}: three servers at once: best {best:.0} ms, median {median:.0} ms");
}

/// Creates objects one after the other, in turns with and without the gate, so that whatever else the machine does is
/// shared by both. The fastest quarter is what the machine disturbed least.
async fn fence(engine: &str, store: &Arc<dyn Store>, server: &Server, writes: usize) {
    let free = Registry::new(store.clone(), server.replica.clone(), Vec::new());
    let mut times = [Vec::new(), Vec::new()];
    for n in 0..writes {
        let mut both = [(0, &free), (1, &*server.registry)];
        both.rotate_left(n % 2);
        for (kind, registry) in both {
            let begin = Instant::now();
            create(registry, server, &format!("map-{n}-{kind}")).await;
            times[kind].push(begin.elapsed());
        }
    }
    // Both of a pair met the same moment of the machine.
    let pairs = times[0].iter().zip(&times[1]).map(|(free, gated)| gated.as_secs_f64() / free.as_secs_f64());
    let mut pairs: Vec<f64> = pairs.collect();
    pairs.sort_by(f64::total_cmp);
    let more = (pairs[pairs.len() / 2] - 1.0) * 100.0;
    println!("{engine}: of two creates one after the other, that with the fence takes {more:+.1} % (median)");
    let of = |times: &[Duration], part: usize| times[times.len() * part / 4].as_secs_f64() * 1000.0;
    for times in &mut times {
        times.sort();
    }
    for (name, part) in [("quartile", 1), ("median", 2)] {
        let [free, gated] = times.each_ref().map(|times| of(times, part));
        let more = (gated / free - 1.0) * 100.0;
        println!(
            "{engine}: a create takes {free:.3} ms, and {gated:.3} ms with the fence: {more:+.1} % ({name})"
        );
    }
}

async fn create(registry: &Registry, server: &Server, name: &str) {
    let resource = server.resource(CONFIG_MAPS);
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"text": "x".repeat(1024)}});
    let object = object.as_object().expect("an object").clone();
    let context = Context::of_the_server(Time { unix: 1_800_000_000 });
    Box::pin(registry.create(&context, &resource, "default", object)).await.expect("created");
}
