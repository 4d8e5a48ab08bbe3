use std::time::Duration;

use concord_fleet::Settings;
use concord_registry::Part;
use serde_json::json;

use crate::{
    audit::audit,
    faulty::Faulty,
    support::{Kind, LEASES, Log, Server, wait_for, wait_said},
};

const NAMESPACE: &str = "kube-system";

async fn lease(server: &Server, id: &str) -> Option<serde_json::Value> {
    server.get(LEASES, NAMESPACE, id).await.map(serde_json::Value::Object)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_is_upstreams() {
    let log = Log::new();
    let mut kind = Kind::new("a");
    kind.settings.hostname = "h".repeat(64);
    let server = Server::ready(&log, &kind).await;
    let lease = lease(&server, "a").await.expect("a lease");
    let hostname = "h".repeat(63);
    let labels =
        json!({"apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": hostname});
    assert_eq!(lease["metadata"]["labels"], labels);
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 3600);
    let holder = lease["spec"]["holderIdentity"].as_str().expect("a holder");
    assert!(holder.starts_with("a_") && holder.len() == 38, "{holder}");
    let renewed = lease["spec"]["renewTime"].as_str().expect("a time");
    assert_eq!(renewed.len(), "2026-11-16T06:33:06.799965Z".len(), "{renewed}");
    server.stop().await;
    assert_eq!(log.names("leases").await, [""; 0], "it is given back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_renewed_and_restored() {
    let log = Log::new();
    let mut kind = Kind::new("a");
    kind.settings.renew_interval = Duration::from_millis(50);
    let server = Server::ready(&log, &kind).await;
    let first = lease(&server, "a").await.expect("a lease");
    let renewed = |lease: serde_json::Value| {
        (lease["spec"]["renewTime"] != first["spec"]["renewTime"]).then_some(lease)
    };
    let second = wait_for("a renewal", || async { renewed(lease(&server, "a").await?) }).await;
    assert_eq!(second["spec"]["holderIdentity"], first["spec"]["holderIdentity"]);
    assert_eq!(second["metadata"]["uid"], first["metadata"]["uid"]);
    server.delete(LEASES, NAMESPACE, "a").await;
    let third = wait_for("another lease", || lease(&server, "a")).await;
    assert_ne!(third["metadata"]["uid"], first["metadata"]["uid"]);
    server.config_map("a--1").await.expect("writes go on");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_is_taken_away_is_put_back() {
    let log = Log::new();
    let server = Server::ready(&log, &Kind::new("a")).await;
    let strip = |lease: &mut concord_registry::Object| {
        lease["metadata"]["labels"] = json!({"mine": "stays"});
    };
    server.update(LEASES, (NAMESPACE, "a"), Part::Main, strip).await;
    let complete = |lease: serde_json::Value| {
        let labels = lease["metadata"]["labels"].as_object()?;
        (labels.len() == 3 && labels["mine"] == "stays").then_some(())
    };
    wait_for("the labels", || async { complete(lease(&server, "a").await?) }).await;
    server.config_map("a--1").await.expect("writes go on");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_process_of_a_server_supersedes_the_last_one() {
    let log = Log::new();
    let kind = Kind::new("a");
    let first = Server::ready(&log, &kind).await;
    first.config_map("a--1").await.expect("written");
    // The first one is still there: it was not killed, only forgotten.
    let second = Server::ready(&log, &kind).await;
    second.config_map("a--2").await.expect("written");
    let late = tokio::time::timeout(Duration::from_millis(300), first.config_map("a--3"));
    assert!(late.await.is_err(), "it waits for a lease that it does not get");
    assert_eq!(log.names("configmaps/default").await, ["a--1", "a--2"]);
    assert_eq!(audit(&log, &[("configmaps", "core.configmaps")]).await, 2);
    second.stop().await;
    // Now that the other one is gone, there is no reason to yield.
    first.config_map("a--4").await.expect("written");
    first.stop().await;
}

/// Row 41: two servers that were given one ID.
#[tokio::test(flavor = "multi_thread")]
async fn who_lost_its_id_to_another_server_says_what_the_operator_has_to_do() {
    let log = Log::new();
    let first = Server::ready(&log, &Kind::impatient("a")).await;
    let checks = first.fleet.health(concord_server::HealthChecks::new());
    wait_for("health", || async { checks.is_ready().await.then_some(()) }).await;
    let mut other = Kind::new("a");
    other.settings.hostname = "elsewhere".to_owned();
    let second = Server::ready(&log, &other).await;
    wait_for("a red check", || async { (!checks.is_ready().await).then_some(()) }).await;
    let refused = first.config_map("a--1").await.expect_err("it writes nothing any more");
    let lease = lease(&second, "a").await.expect("a lease");
    let holder = lease["spec"]["holderIdentity"].as_str().expect("a holder");
    let expected = format!(
        r#"this server does not hold its identity lease "a": another server with the ID "a" has taken the identity lease (holder "{holder}", host "elsewhere"): give each server an ID of its own with --server-id"#
    );
    assert_eq!((refused.code, refused.message), (503, expected));
    second.stop().await;
    wait_for("health", || async { checks.is_ready().await.then_some(()) }).await;
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_of_servers_that_are_not_heard_of_are_removed() {
    let log = Log::new();
    let settings = Settings {
        lease_duration: Duration::from_secs(4),
        renew_interval: Duration::from_millis(100),
        collect_interval: Duration::from_millis(100),
        hostname: "host".to_owned(),
        ..Settings::default()
    };
    let kind = |id| Kind { settings: settings.clone(), ..Kind::new(id) };
    let (a, b) = (Server::ready(&log, &kind("a")).await, Server::ready(&log, &kind("b")).await);
    let others = [
        ("other-component", json!({"apiserver.kubernetes.io/identity": "other"})),
        ("unlabelled", json!({})),
    ];
    for (name, labels) in others {
        let lease = json!({"metadata": {"name": name, "labels": labels}, "spec": {}});
        a.create(LEASES, NAMESPACE, lease).await.expect("created");
    }
    let forged =
        json!({"metadata": {"name": "b", "labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"}}});
    a.create(LEASES, "default", forged).await.expect("created");
    wait_for("the entries of both", || async { a.said("core.pods").await.contains("b=v1").then_some(()) })
        .await;
    b.kill().await;
    wait_for("the end of the lease", || async { lease(&a, "b").await.is_none().then_some(()) }).await;
    wait_for("the end of its entries", || async {
        (a.said("core.pods").await == "a=v1 -> v1").then_some(())
    })
    .await;
    assert!(lease(&a, "other-component").await.is_some() && lease(&a, "unlabelled").await.is_some());
    assert!(a.get(LEASES, "default", "b").await.is_some(), "only the namespace of identities matters");
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stalls_for_longer_than_its_lease_comes_back_by_itself() {
    let log = Log::new();
    let settings = Settings {
        lease_duration: Duration::from_secs(4),
        renew_interval: Duration::from_millis(100),
        hostname: "host".to_owned(),
        ..Settings::default()
    };
    let kind = |id| Kind { settings: settings.clone(), ..Kind::new(id) };
    let (faulty, _) = Faulty::new(&log.store, None);
    let a = Server::ready(&log, &kind("a")).await;
    let b = Server::start_on(&log, faulty.clone(), &kind("b"));
    b.registered().await;
    b.config_map("b--1").await.expect("written");
    // Its renewal is on its way for so long that everybody takes it for gone.
    let of_b = "/registry/leases/kube-system/b";
    let mut renewal = faulty.hold(move |txn| txn.writes.iter().any(|write| write.key() == of_b));
    renewal.arrived().await;
    wait_for("the end of the lease", || async { lease(&a, "b").await.is_none().then_some(()) }).await;
    wait_said(&a, "core.pods", "a=v1 -> v1").await;
    let (late, ()) = tokio::join!(b.config_map("b--2"), async { renewal.release() });
    late.expect("it waited for the new lease");
    wait_said(&a, "core.pods", "a=v1,b=v1 -> v1").await;
    assert_eq!(audit(&log, &[("configmaps", "core.configmaps")]).await, 2);
    a.stop().await;
    b.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_are_told_where_the_server_is() {
    let log = Log::new();
    let server = Server::start(&log, &Kind::new("a"));
    server.fleet.advertise("192.0.2.1:6443".parse().expect("an address"));
    let told = |lease: serde_json::Value| {
        let told = lease["metadata"]["annotations"]["kubernetes.io/peer-advertise-address"].as_str()?;
        (told == "192.0.2.1:6443").then_some(())
    };
    // Whether the lease was there already or not.
    wait_for("the annotation", || async { told(lease(&server, "a").await?) }).await;
    server.stop().await;
}
