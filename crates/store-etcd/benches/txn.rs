//! Transactions through the engine against a bare loop over the generated client, in one run.
//!
//! `cargo bench -p concord-store-etcd` starts a real etcd. Both sides send the same transactions, a compare
//! and a put of 1 KiB, with the same concurrency over one connection each; the bare side's requests are built
//! beforehand. Rounds alternate and the median of the ratios of neighbours counts, so that a machine that
//! gets slower or faster meanwhile does not decide. Then the same of transactions that may share a revision, and what each
//! costs etcd in processor time.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use concord_store::{Compare, Store, Txn};
use concord_store_etcd::{Config, EtcdStore};
use concord_testing::{etcd::Cluster, process::processor_time};
use tonic::transport::{Channel, Endpoint};

#[allow(dead_code, reason = "the benchmark uses one call")]
#[path = "../src/pb.rs"]
mod pb;

use pb::etcdserverpb::{
    Compare as PbCompare, PutRequest, RequestOp, TxnRequest,
    compare::{CompareTarget, TargetUnion},
    kv_client::KvClient,
    request_op::Request,
};

const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_secs(2);
const VALUE: Bytes = Bytes::from_static(&[b'x'; 1024]);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    // `cargo test --benches` only asks whether it runs.
    let quick = !std::env::args().any(|arg| arg == "--bench");
    let (rounds, length) = if quick { (1, Duration::from_millis(100)) } else { (ROUNDS, ROUND) };
    let cluster = Cluster::single().await.expect("an etcd");
    let url = cluster.endpoints().remove(0);
    let mut config = Config::new([url.clone()]);
    config.compaction_interval = Duration::ZERO;
    let store = Arc::new(EtcdStore::open(config).await.expect("a store"));
    let channel =
        Endpoint::from_shared(url).expect("a URL").tcp_nodelay(true).connect().await.expect("a connection");
    let bare = KvClient::new(channel);
    for concurrency in [1, 16, 64] {
        // Not measured: connections, caches.
        bare_round(&bare, concurrency, length / 4).await;
        store_round(&store, concurrency, length / 4, false).await;
        let mut runs = Vec::new();
        for _ in 0..rounds {
            let bare = bare_round(&bare, concurrency, length).await;
            let store = store_round(&store, concurrency, length, false).await;
            runs.push((store / bare, bare, store));
        }
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (ratio, bare, store) = runs[runs.len() / 2];
        println!("{concurrency:>3} concurrent: bare {bare:>6.0}/s, store {store:>6.0}/s, ratio {ratio:.3}");
    }
    for concurrency in [16, 64] {
        for together in [false, true] {
            let before = processor_time(cluster.pid(0));
            let rate = store_round(&store, concurrency, length, together).await;
            let cost =
                (processor_time(cluster.pid(0)) - before).as_secs_f64() * 1e6 / (rate * length.as_secs_f64());
            let how = if together { "together" } else { "alone" };
            println!("{concurrency:>3} concurrent, {how}: {rate:>6.0}/s, {cost:.0} µs of etcd's time each");
        }
    }
}

/// Transactions per second of `concurrency` tasks that each issue one after another.
async fn rate<F>(concurrency: usize, length: Duration, mut task: impl FnMut(usize, Instant) -> F) -> f64
where
    F: Future<Output = u64> + Send + 'static,
{
    let start = Instant::now();
    let tasks: Vec<_> = (0..concurrency).map(|n| tokio::spawn(task(n, start + length))).collect();
    let mut done = 0;
    for task in tasks {
        done += task.await.expect("a task that ends");
    }
    done as f64 / start.elapsed().as_secs_f64()
}

async fn bare_round(client: &KvClient<Channel>, concurrency: usize, length: Duration) -> f64 {
    rate(concurrency, length, |n, end| {
        let (mut client, request) = (client.clone(), bare_request(n));
        async move {
            let mut done = 0;
            while Instant::now() < end {
                let response = client.txn(request.clone()).await.expect("an answer");
                assert!(response.get_ref().succeeded);
                done += 1;
            }
            done
        }
    })
    .await
}

async fn store_round(store: &Arc<EtcdStore>, concurrency: usize, length: Duration, together: bool) -> f64 {
    rate(concurrency, length, |n, end| {
        let txn = Txn { together, ..Txn::new() };
        let (store, txn) = (Arc::clone(store), txn.compare(Compare::absent("absent")).put(key(n), VALUE));
        async move {
            let mut done = 0;
            while Instant::now() < end {
                store.transact(txn.clone()).await.expect("a commit");
                done += 1;
            }
            done
        }
    })
    .await
}

fn bare_request(n: usize) -> TxnRequest {
    let put = PutRequest { key: key(n), value: VALUE, lease: 0 };
    TxnRequest {
        compare: vec![PbCompare {
            target: CompareTarget::Mod.into(),
            key: "absent".into(),
            target_union: Some(TargetUnion::ModRevision(0)),
            ..Default::default()
        }],
        success: vec![RequestOp { request: Some(Request::RequestPut(put)) }],
        failure: Vec::new(),
    }
}

fn key(n: usize) -> Bytes {
    format!("/registry/bench/{n}").into()
}
