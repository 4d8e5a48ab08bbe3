//! The objects that every cluster has are there, and stay what users made of them.

mod support;

use std::time::{Duration, Instant};

use concord_controllers::{Bootstrap, Config};
use concord_registry::Part;
use concord_store::{Compare, Store as _, Txn};
use serde_json::{Value, json};

use crate::support::{Cluster, PATIENCE, Server, config};

async fn is_there(server: &Server, path: &str) -> Value {
    server.until(path, |object| object.is_some()).await.expect("it is there")
}

#[tokio::test]
async fn an_empty_store_gets_what_every_cluster_has() {
    let cluster = Cluster::new();
    let server = cluster.server().await;
    let controllers = server.start();
    assert!(controllers.essentials().await);
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        assert!(server.get(&format!("/namespaces//{name}")).await.is_some(), "{name}");
    }
    let service = is_there(&server, "/services/default/kubernetes").await;
    assert_eq!(service["metadata"]["labels"], json!({"component": "apiserver", "provider": "kubernetes"}));
    assert_eq!(
        service["spec"],
        json!({
            "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            "sessionAffinity": "None", "type": "ClusterIP",
        })
    );
    let endpoints = is_there(&server, "/endpoints/default/kubernetes").await;
    assert_eq!(endpoints["metadata"]["labels"], json!({"endpointslice.kubernetes.io/skip-mirror": "true"}));
    let ports = json!([{"name": "https", "port": 6443, "protocol": "TCP"}]);
    assert_eq!(endpoints["subsets"], json!([{"addresses": [{"ip": "192.0.2.1"}], "ports": ports}]));
    let slice = is_there(&server, "discovery.k8s.io/endpointslices/default/kubernetes").await;
    assert_eq!((&slice["addressType"], &slice["ports"]), (&json!("IPv4"), &ports));
    assert_eq!(slice["endpoints"], json!([{"addresses": ["192.0.2.1"], "conditions": {"ready": true}}]));
    let ready =
        |cidr: Option<&Value>| cidr.is_some_and(|cidr| cidr["status"]["conditions"][0]["status"] == "True");
    let cidr = server.until("networking.k8s.io/servicecidrs//kubernetes", ready).await.expect("ready");
    assert_eq!(cidr["spec"], json!({"cidrs": ["10.0.0.0/28"]}));
    is_there(&server, "scheduling.k8s.io/priorityclasses//system-node-critical").await;
    is_there(&server, "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations//catch-all").await;
    let told = |schema: Option<&Value>| {
        schema.is_some_and(|schema| schema["status"]["conditions"][0]["reason"] == "Found")
    };
    server.until("flowcontrol.apiserver.k8s.io/flowschemas//catch-all", told).await;
    controllers.shutdown().await;
}

#[tokio::test]
async fn what_users_changed_stays_and_what_upstream_resets_is_reset() {
    let cluster = Cluster::new();
    let server = cluster.server().await;
    let first = server.start();
    is_there(&server, "/endpoints/default/kubernetes").await;
    let level = "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations//";
    let (kept, reset) = (format!("{level}system"), format!("{level}workload-low"));
    is_there(&server, &kept).await;
    is_there(&server, &reset).await;
    is_there(&server, "/services/default/kubernetes").await;
    first.shutdown().await;
    let shares = json!({"spec": {"limited": {"nominalConcurrencyShares": 7}}});
    server.merge(&reset, Part::Main, shares.clone()).await.expect("changed");
    let mut own = shares;
    own["metadata"] = json!({"annotations": {"apf.kubernetes.io/autoupdate-spec": "false"}});
    server.merge(&kept, Part::Main, own).await.expect("changed");
    let labels = json!({"metadata": {"labels": {"mine": "yes"}}});
    server.merge("/services/default/kubernetes", Part::Main, labels).await.expect("changed");
    let second = server.start_as(Config { secure_port: 7443, ..config() });
    let of_port = |service: Option<&Value>| {
        service.is_some_and(|service| service["spec"]["ports"][0]["targetPort"] == 7443)
    };
    let service = server.until("/services/default/kubernetes", of_port).await.expect("with the new port");
    assert_eq!(service["metadata"]["labels"]["mine"], "yes");
    let of_level = |wanted: i64| {
        move |level: Option<&Value>| {
            level.is_some_and(|level| level["spec"]["limited"]["nominalConcurrencyShares"] == wanted)
        }
    };
    server.until(&reset, of_level(100)).await;
    assert!(of_level(7)(server.get(&kept).await.as_ref()), "the user's");
    second.shutdown().await;
}

#[tokio::test]
async fn a_namespace_that_is_missing_comes_back_and_one_that_is_there_is_left_alone() {
    let cluster = Cluster::new();
    let server = cluster.server().await;
    let bootstrap = Bootstrap::new(server.registry.clone(), server.resources.clone(), config());
    bootstrap.ensure_essentials().await;
    let replica = server.registry.replica();
    let missing = Txn::new().delete("/registry/namespaces/kube-public");
    let deleted = cluster.store.transact(missing).await.expect("deleted").revision;
    replica.not_older_than(deleted, PATIENCE).await.expect("seen");
    for _ in 0..2 {
        bootstrap.ensure_essentials().await;
        assert_eq!(cluster.keys("/registry/namespaces/").await.len(), 4);
        let state = replica.consistent(PATIENCE).await.expect("a state");
        assert_eq!(state.revision(), deleted + 1, "written once, and only what was missing");
    }
}

/// Waits until nothing is written any more.
async fn becomes_quiet(cluster: &Cluster) {
    let started = Instant::now();
    loop {
        let before = cluster.store.current_revision().await.expect("a revision");
        tokio::time::sleep(Duration::from_millis(500)).await;
        if cluster.store.current_revision().await.expect("a revision") == before {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "writes without end");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_a_fleet_are_listed_while_they_are_there() {
    let cluster = Cluster::new();
    let (one, two) = (cluster.server().await, cluster.server().await);
    let shared = Config { shared_store: true, ..config() };
    let other = Config { advertise_address: "192.0.2.2".parse().expect("an address"), ..shared.clone() };
    let (first, second) = (one.start_as(shared), two.start_as(other));
    let listed = |addresses: &'static [&'static str]| {
        move |endpoints: Option<&Value>| {
            let wanted: Vec<Value> = addresses.iter().map(|ip| json!({"ip": ip})).collect();
            endpoints.is_some_and(|endpoints| endpoints["subsets"][0]["addresses"] == json!(wanted))
        }
    };
    one.until("/endpoints/default/kubernetes", listed(&["192.0.2.1", "192.0.2.2"])).await;
    becomes_quiet(&cluster).await;
    second.shutdown().await;
    assert_eq!(
        cluster.keys("/registry/masterleases/").await,
        ["/registry/masterleases/192.0.2.1"],
        "taken back"
    );
    one.until("/endpoints/default/kubernetes", listed(&["192.0.2.1"])).await;
    let ended = tokio::time::timeout(Duration::from_secs(10), first.shutdown()).await;
    assert!(ended.is_ok(), "stops in time");
}

/// A process that another one has superseded says nothing in the name of its server, not even good-bye.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_itself_any_more_neither_keeps_nor_takes_back_its_address() {
    let cluster = Cluster::new();
    let identity = cluster.store.transact(Txn::new().put("/identity", "a")).await.expect("stored").revision;
    let fence = Compare::create_revision("/identity", identity);
    let shared = Config { shared_store: true, ..config() };
    let server = cluster.server().await.fenced(fence.clone());
    let first = server.start_as(shared.clone());
    let address = "/registry/masterleases/192.0.2.1";
    let started = Instant::now();
    while cluster.keys("/registry/masterleases/").await != [address] {
        assert!(started.elapsed() < PATIENCE, "it never says where it is");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    cluster.store.transact(Txn::new().delete("/identity")).await.expect("deleted");
    first.shutdown().await;
    assert_eq!(cluster.keys("/registry/masterleases/").await, [address], "it is another one's by now");
    cluster.store.transact(Txn::new().delete(address)).await.expect("deleted");
    let late = cluster.server().await.fenced(fence).start_as(shared);
    becomes_quiet(&cluster).await;
    assert_eq!(cluster.keys("/registry/masterleases/").await, [""; 0]);
    late.shutdown().await;
}
