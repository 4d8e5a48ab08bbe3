//! A three-member etcd cluster under concurrent clients, while connections are delayed, swallowed and cut
//! and members are paused, killed and restarted, the leader above all.

mod support;

use std::{sync::Arc, time::Duration};

use concord_robustness::traffic::{self, Load};
use concord_store::Store;
use concord_store_etcd::{Config, EtcdStore};
use concord_testing::{
    etcd::{Cluster, Options},
    proxy::{Fault, Proxy},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use support::Observers;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_through_faults_are_linearizable() {
    let seed = concord_robustness::seed();
    let mut cluster = Cluster::start(Options { members: 3, ..Options::default() }).await.expect("etcd runs");
    let mut proxies = Vec::new();
    for member in 0..cluster.size() {
        let target = cluster.client_address(member);
        proxies.push(Proxy::start(target, seed + member as u64).await.expect("a proxy starts"));
    }
    let config = Config {
        request_timeout: Duration::from_secs(3),
        dial_timeout: Duration::from_millis(500),
        compaction_interval: Duration::ZERO,
        prefix: "/registry/".into(),
        ..Config::new(proxies.iter().map(Proxy::url))
    };
    let store: Arc<dyn Store> = Arc::new(EtcdStore::open(config).await.expect("the configuration is right"));
    let start = store.current_revision().await.expect("the cluster is up");
    let observers = Observers::start(store.clone(), start).await;
    let load = Load {
        clients: 8,
        duration: Duration::from_secs(25),
        keys: 5,
        rest: Duration::from_millis(10),
        seed,
    };
    let clients = tokio::spawn(traffic::run(store.clone(), load));

    let mut rng = StdRng::seed_from_u64(seed);
    while !clients.is_finished() {
        tokio::time::sleep(Duration::from_millis(rng.random_range(200..800))).await;
        break_something(&mut cluster, &proxies, &mut rng).await;
    }
    let records = clients.await.expect("the clients end");
    observers.judge(start, records).await;
}

/// One fault, for a moment.
#[allow(clippy::print_stdout, reason = "test output: what was broken before a failure")]
async fn break_something(cluster: &mut Cluster, proxies: &[Proxy], rng: &mut StdRng) {
    let moment = Duration::from_millis(rng.random_range(100..1500));
    let member = rng.random_range(0..proxies.len());
    match rng.random_range(0..6) {
        0 => {
            println!("cut the connections to {member}");
            proxies[member].cut();
        }
        1 => {
            println!("delay everything for {moment:?}");
            proxies.iter().for_each(|proxy| proxy.set(Fault::Delay(Duration::from_millis(50))));
            tokio::time::sleep(moment).await;
        }
        2 => {
            println!("swallow what goes to {member} for {moment:?}, then cut it");
            proxies[member].set(Fault::BlackHole);
            tokio::time::sleep(moment).await;
            proxies[member].cut();
        }
        3 => {
            println!("nobody listens for {moment:?}");
            proxies.iter().for_each(|proxy| proxy.set(Fault::Refuse));
            proxies.iter().for_each(Proxy::cut);
            tokio::time::sleep(moment).await;
        }
        fault => {
            let leader = cluster.leader().await.unwrap_or(member);
            if fault == 4 {
                println!("kill the leader {leader}, restart it after {moment:?}");
                cluster.kill(leader).expect("it runs");
                tokio::time::sleep(moment).await;
                cluster.restart(leader).expect("it starts again");
                cluster.ready().await.expect("the cluster recovers");
            } else {
                println!("pause the leader {leader} for {moment:?}");
                cluster.pause(leader).expect("it runs");
                tokio::time::sleep(moment).await;
                cluster.resume(leader).expect("it was paused");
            }
        }
    }
    proxies.iter().for_each(|proxy| proxy.set(Fault::None));
}
