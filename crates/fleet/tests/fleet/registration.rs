use std::{collections::BTreeSet, time::Duration};

use concord_meta::GroupResource;
use concord_registry::Part;
use concord_storageversion::{Disagreement, Status};
use concord_store::{Store as _, Txn};
use serde_json::json;

use crate::{
    audit::audit,
    support::{Kind, Log, STORAGE_VERSIONS, Server, wait_for, wait_said},
};

/// What kube-apiserver v1.36.4 registers by default, besides what every core group has.
const SOME: [&str; 8] = [
    "core.events",
    "core.namespaces",
    "coordination.k8s.io.leases",
    "internal.apiserver.k8s.io.storageversions",
    "apiextensions.k8s.io.customresourcedefinitions",
    "rbac.authorization.k8s.io.clusterroles",
    "autoscaling.horizontalpodautoscalers",
    "resource.k8s.io.deviceclasses",
];

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_is_stored_is_registered_before_the_first_write() {
    let log = Log::new();
    let server = Server::ready(&log, &Kind::new("a")).await;
    let names: BTreeSet<String> = log.names("storageversions").await.into_iter().collect();
    for name in SOME {
        assert!(names.contains(name), "{name} of {names:?}");
    }
    for name in ["events.k8s.io.events", "authentication.k8s.io.tokenreviews", "core.bindings"] {
        assert!(!names.contains(name), "{name}");
    }
    let object = server.storage_version("autoscaling.horizontalpodautoscalers").await.expect("registered");
    let status = Status::of(&object);
    let entry = &status.storage_versions[0];
    assert_eq!((entry.api_server_id.as_str(), entry.encoding_version.as_str()), ("a", "autoscaling/v2"));
    assert_eq!(entry.decodable_versions, ["autoscaling/v2", "autoscaling/v1"]);
    assert_eq!(entry.served_versions, ["autoscaling/v1", "autoscaling/v2"]);
    assert_eq!(status.common_encoding_version.as_deref(), Some("autoscaling/v2"));
    assert_eq!((object["spec"].clone(), status.conditions.len()), (json!({}), 1));
    let events = Status::of(&server.storage_version("core.events").await.expect("registered"));
    assert_eq!(events.storage_versions[0].decodable_versions, ["v1", "events.k8s.io/v1"]);
    server.config_map("a--1").await.expect("created");
    let looked_at = audit(
        &log,
        &[
            ("configmaps", "core.configmaps"),
            ("leases", "coordination.k8s.io.leases"),
            ("storageversions", "internal.apiserver.k8s.io.storageversions"),
        ],
    );
    assert!(looked_at.await > names.len(), "no exemption is needed, not even for the first write of all");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_true_already_is_not_written_again() {
    let log = Log::new();
    let kind = Kind::new("a");
    Server::ready(&log, &kind).await.stop().await;
    let before = log.revision().await;
    let server = Server::ready(&log, &kind).await;
    server.config_map("a--1").await.expect("created");
    // The lease is new, and so is the object; nothing else is.
    assert_eq!(log.revision().await, before + 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_start_together_all_end_registered() {
    let log = Log::new();
    let kinds = ["a", "b", "c"].map(Kind::new);
    let servers: Vec<Server> = kinds.iter().map(|kind| Server::start(&log, kind)).collect();
    for server in &servers {
        server.registered().await;
    }
    for name in log.names("storageversions").await {
        let said = servers[0].said(&name).await;
        assert_eq!(said.matches('=').count(), 3, "{name}: {said}");
        assert!(said.contains(" -> "), "{name}: {said}");
    }
    for server in servers {
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_is_seen_as_what_it_is() {
    let log = Log::new();
    let old = |id| Kind { release: "1.33", ..Kind::new(id) };
    let (a, b) = (Server::ready(&log, &old("a")).await, Server::ready(&log, &old("b")).await);
    let (group, resource, name) = ("networking.k8s.io", "servicecidrs", "networking.k8s.io.servicecidrs");
    let (beta, v1) = ("networking.k8s.io/v1beta1", "networking.k8s.io/v1");
    wait_said(&a, name, &format!("a={beta},b={beta} -> {beta}")).await;
    a.stop().await;
    // What the old release stores in a beta version, the new one stores in v1.
    let a = Server::ready(&log, &Kind::new("a")).await;
    wait_said(&a, name, &format!("a={v1},b={beta}")).await;
    let different = Err(Disagreement::Different(vec![format!("a={v1}"), format!("b={beta}")]));
    assert_eq!(a.fleet.agreement(group, resource).map(drop), different);
    // What the old one does not serve at all, it says nothing about.
    let silent = Err(Disagreement::Silent(vec!["b".to_owned()]));
    assert_eq!(a.fleet.agreement("resource.k8s.io", "deviceclasses").map(drop), silent);
    assert_eq!(a.fleet.agreement("", "nothing").map(drop), Err(Disagreement::Unknown));
    b.stop().await;
    let b = Server::ready(&log, &Kind::new("b")).await;
    wait_said(&a, name, &format!("a={v1},b={v1} -> {v1}")).await;
    let agreed = b.fleet.agreement(group, resource).map(|agreed| agreed.agreement.version);
    assert_eq!(agreed.as_deref(), Ok(v1));
    a.stop().await;
    b.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_is_taken_away_is_put_back_at_once() {
    let log = Log::new();
    let server = Server::ready(&log, &Kind::new("a")).await;
    let agreed = server.fleet.agreement("", "configmaps").expect("agreed");
    let strip = |object: &mut concord_registry::Object| {
        object.insert("status".to_owned(), json!({}));
    };
    server.update(STORAGE_VERSIONS, ("", "core.configmaps"), Part::Sub("status"), strip).await;
    server.config_map("a--1").await.expect("written as soon as the entry is back");
    wait_said(&server, "core.configmaps", "a=v1 -> v1").await;
    server.delete(STORAGE_VERSIONS, "", "core.configmaps").await;
    server.config_map("a--2").await.expect("written as soon as the object is back");
    // That it was otherwise in between is not forgotten.
    let again = server.fleet.agreement("", "configmaps").expect("agreed");
    assert_eq!(again.agreement.version, agreed.agreement.version);
    assert!(again.since > agreed.since);
    server.delete(STORAGE_VERSIONS, "", "internal.apiserver.k8s.io.storageversions").await;
    wait_said(
        &server,
        "internal.apiserver.k8s.io.storageversions",
        "a=internal.apiserver.k8s.io/v1alpha1 -> internal.apiserver.k8s.io/v1alpha1",
    )
    .await;
    assert_eq!(audit(&log, &[("configmaps", "core.configmaps")]).await, 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_what_is_not_stored_any_more_are_withdrawn() {
    let log = Log::new();
    let server = Server::ready(&log, &Kind::new("a")).await;
    let own = json!({"storageVersions": [{"apiServerID": "a", "encodingVersion": "v1", "decodableVersions": ["v1"]}],
        "commonEncodingVersion": "v1"});
    server.create(STORAGE_VERSIONS, "", json!({"metadata": {"name": "old.things"}})).await.expect("created");
    let set = |object: &mut concord_registry::Object| drop(object.insert("status".to_owned(), own.clone()));
    server.update(STORAGE_VERSIONS, ("", "old.things"), Part::Sub("status"), set).await;
    wait_for("the withdrawal", || async {
        server.storage_version("old.things").await.is_none().then_some(())
    })
    .await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_fleet_writes_nothing() {
    let log = Log::new();
    let (a, b) = (Server::ready(&log, &Kind::new("a")).await, Server::ready(&log, &Kind::new("b")).await);
    let before = log.revision().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(log.revision().await, before);
    a.stop().await;
    b.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_keeps_its_own_resource_waiting_and_says_why() {
    let log = Log::new();
    let key = "/registry/storageversions/core.configmaps";
    log.store.transact(Txn::new().put(key, "\0not JSON")).await.expect("stored");
    let server = Server::start(&log, &Kind::new("a"));
    wait_said(&server, "core.secrets", "a=v1 -> v1").await;
    let versions = server.fleet.storage_versions().expect("versions are registered");
    let waits = |resource: &str| versions.pending(&GroupResource::new("", resource));
    wait_for("the others", || async { waits("secrets").is_none().then_some(()) }).await;
    let why = "the stored StorageVersion cannot be read".to_owned();
    assert_eq!(waits("configmaps"), Some(Some(why)));
    assert!(!versions.is_completed());
    log.store.transact(Txn::new().delete(key)).await.expect("deleted");
    server.registered().await;
    assert_eq!(waits("configmaps"), None);
    server.config_map("a--1").await.expect("written");
    server.stop().await;
}

/// Without them nobody has an identity, and without an identity nobody could delete them.
#[tokio::test(flavor = "multi_thread")]
async fn essential_objects_that_cannot_be_read_are_replaced_by_whoever_is_alone() {
    for name in ["coordination.k8s.io.leases", "core.namespaces", "internal.apiserver.k8s.io.storageversions"]
    {
        let log = Log::new();
        let key = format!("/registry/storageversions/{name}");
        log.store.transact(Txn::new().put(key, "\0not JSON")).await.expect("stored");
        let server = Server::ready(&log, &Kind::new("a")).await;
        assert!(server.said(name).await.starts_with("a="), "{name}");
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn essential_objects_that_others_may_be_able_to_read_are_left_to_the_operator() {
    let log = Log::new();
    let key = "/registry/storageversions/core.namespaces";
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "b",
        "namespace": "kube-system", "labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"}},
        "spec": {"holderIdentity": "b_1", "leaseDurationSeconds": 3600, "renewTime": "2100-01-01T00:00:00.000000Z"}});
    let lease = ("/registry/leases/kube-system/b", lease.to_string());
    log.store.transact(Txn::new().put(key, "\0not JSON").put(lease.0, lease.1)).await.expect("stored");
    let server = Server::start(&log, &Kind::impatient("a"));
    let refused = server.config_map("a--1").await.expect_err("nobody may write");
    let why = r#"the stored StorageVersion "core.namespaces" cannot be read"#;
    assert!(refused.message.contains(why) && refused.message.contains(r#"["b"]"#), "{refused}");
    let checks = server.fleet.health(concord_server::HealthChecks::new());
    assert!(!checks.is_ready().await);
    assert_eq!(log.names("leases/kube-system").await, ["b"]);
    log.store.transact(Txn::new().delete(key)).await.expect("deleted");
    server.registered().await;
    assert!(checks.is_ready().await);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_server_is_a_member_with_its_own_component() {
    let log = Log::new();
    let kind = Kind::new("a");
    let mut extension = Kind::new("shelf");
    let bookshelf = "bookshelf".to_owned();
    (extension.settings.component, extension.settings.components) = (bookshelf.clone(), vec![bookshelf]);
    let (server, extension) = (Server::ready(&log, &kind).await, Server::ready(&log, &extension).await);
    extension.config_map("shelf--1").await.expect("written");
    wait_said(&server, "core.configmaps", "a=v1,shelf=v1 -> v1").await;
    assert!(server.fleet.agreement("", "configmaps").is_ok());
    let lease = server.get(crate::support::LEASES, "kube-system", "shelf").await.expect("a lease");
    assert_eq!(lease["metadata"]["labels"]["apiserver.kubernetes.io/identity"], "bookshelf");
    // Each kind agrees among its own; but nobody writes anything else in the meantime.
    assert!(extension.fleet.agreement("", "configmaps").is_ok());
    assert_eq!(audit(&log, &[("configmaps", "core.configmaps")]).await, 1);
    extension.stop().await;
    // With its lease, everything that it said is gone.
    wait_said(&server, "core.configmaps", "a=v1 -> v1").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_said_is_not_believed_once_it_says_nothing() {
    let log = Log::new();
    let (a, b) = (Server::ready(&log, &Kind::new("a")).await, Server::ready(&log, &Kind::new("b")).await);
    wait_said(&a, "core.pods", "a=v1,b=v1 -> v1").await;
    assert!(a.fleet.agreement("", "pods").is_ok());
    b.kill().await;
    // The feature is turned off: its old entries stay, as its lease does.
    let mut silent = Kind::new("b");
    silent.settings.register_versions = false;
    let b = Server::start(&log, &silent);
    b.config_map("b--1").await.expect("it writes nevertheless");
    let refused = || async { a.fleet.agreement("", "pods").err() };
    let refused = wait_for("the end of the agreement", refused).await;
    assert_eq!(refused, Disagreement::Silent(vec!["b".to_owned()]));
    b.stop().await;
    wait_for("agreement", || async { a.fleet.agreement("", "pods").ok() }).await;
    a.stop().await;
}
