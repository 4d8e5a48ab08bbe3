//! What quotas allow is never exceeded, whoever writes when, and what they say is used comes to be true.

mod support;

use std::sync::Arc;

use concord_controllers::QuotaController;
use concord_registry::Part;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::{Cluster, Server, refused};

const QUOTA: &str = "/resourcequotas/ns/q";

/// Somebody who counts, until this is dropped.
fn count(server: &Server) -> DropGuard {
    let controller = QuotaController::new(server.registry.clone(), &server.resources).expect("quotas");
    let cancel = CancellationToken::new();
    tokio::spawn(Arc::new(controller).run(cancel.clone()));
    cancel.drop_guard()
}

async fn limit(server: &Server, hard: Value) {
    server.create(QUOTA, json!({"spec": {"hard": hard}})).await.expect("a quota");
}

async fn until_used(server: &Server, used: Value) {
    server.until(QUOTA, |quota| quota.is_some_and(|quota| quota["status"]["used"] == used)).await;
}

fn creating(server: &Arc<Server>, path: &str) -> JoinHandle<bool> {
    let (server, path) = (server.clone(), path.to_owned());
    tokio::spawn(async move { server.create(&path, json!({})).await.is_ok() })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_create_at_once_exceed_nothing() {
    let cluster = Cluster::new();
    let servers = [Arc::new(cluster.server().await), Arc::new(cluster.server().await)];
    let first = &servers[0];
    first.create("/namespaces//ns", json!({})).await.expect("a namespace");
    limit(first, json!({"configmaps": "5", "count/deployments.apps": "1"})).await;
    let _counting = count(first);
    let creates: Vec<JoinHandle<bool>> =
        (0..16).map(|at| creating(&servers[at % 2], &format!("/configmaps/ns/c{at}"))).collect();
    let mut made = Vec::new();
    for (at, create) in creates.into_iter().enumerate() {
        if create.await.expect("no panic") {
            made.push(at);
        }
    }
    assert_eq!(made.len(), 5, "{made:?}");
    until_used(first, json!({"configmaps": "5", "count/deployments.apps": "0"})).await;
    for at in &made[..2] {
        servers[1].delete(&format!("/configmaps/ns/c{at}")).await.expect("deleted");
    }
    until_used(first, json!({"configmaps": "3", "count/deployments.apps": "0"})).await;
    servers[1].create("/configmaps/ns/more", json!({})).await.expect("there is room again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_counts_what_was_decided_before_there_was_one() {
    let cluster = Cluster::new();
    let (gate, slow) = cluster.gated("/registry/configmaps/").await;
    let slow = Arc::new(slow);
    let server = cluster.server().await;
    server.create("/namespaces//ns", json!({})).await.expect("a namespace");
    slow.until("/namespaces//ns", |found| found.is_some()).await;
    let create = creating(&slow, "/configmaps/ns/early");
    gate.arrived.notified().await;
    let _counting = count(&server);
    limit(&server, json!({"configmaps": "1"})).await;
    until_used(&server, json!({"configmaps": "0"})).await;
    // It was decided without the quota and is decided again.
    gate.open.notify_one();
    gate.arrived.notified().await;
    gate.open.notify_one();
    assert!(create.await.expect("no panic"));
    until_used(&server, json!({"configmaps": "1"})).await;
    let why = "configmaps \"late\" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=1";
    assert_eq!(refused(server.create("/configmaps/ns/late", json!({})).await), (403, why.to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_that_was_decided_before_there_was_a_quota_is_decided_again() {
    let cluster = Cluster::new();
    let (gate, slow) = cluster.gated("/registry/services/specs/").await;
    let server = cluster.server().await;
    server.create("/namespaces//ns", json!({})).await.expect("a namespace");
    let spec = json!({"spec": {"type": "ClusterIP", "ports": [{"port": 80}]}});
    server.create("/services/ns/s", spec).await.expect("a service");
    slow.until("/services/ns/s", |found| found.is_some()).await;
    let update = tokio::spawn(async move {
        slow.merge("/services/ns/s", Part::Main, json!({"spec": {"type": "NodePort"}})).await
    });
    gate.arrived.notified().await;
    limit(&server, json!({"services.nodeports": "0"})).await;
    gate.open.notify_one();
    let why = "services \"s\" is forbidden: exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=0, limited: services.nodeports=0";
    assert_eq!(refused(update.await.expect("no panic")), (403, why.to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_leaves_a_scope_counts_no_longer() {
    let cluster = Cluster::new();
    let server = cluster.server().await;
    server.create("/namespaces//ns", json!({})).await.expect("a namespace");
    let spec = json!({"hard": {"pods": "1"}, "scopes": ["NotTerminating"]});
    server.create(QUOTA, json!({"spec": spec})).await.expect("a quota");
    let _counting = count(&server);
    server.create("/pods/ns/p", json!({"spec": {}})).await.expect("a pod");
    until_used(&server, json!({"pods": "1"})).await;
    let ends = json!({"spec": {"activeDeadlineSeconds": 5}});
    server.merge("/pods/ns/p", Part::Main, ends).await.expect("changed");
    until_used(&server, json!({"pods": "0"})).await;
}
