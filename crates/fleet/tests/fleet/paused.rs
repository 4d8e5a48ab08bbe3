//! Something happens between a decision and the transaction that carries it out.

use concord_registry::Part;
use concord_store::{Condition, Txn, Write};
use serde_json::{Value, json};

use crate::{
    audit::audit,
    collection::{identity, object, says},
    faulty::Faulty,
    support::{Kind, LEASES, Log, STORAGE_VERSIONS, Server, wait_for, wait_said},
};

fn key(name: &str) -> String {
    format!("/registry/storageversions/{name}")
}

/// Whether a transaction takes away what a server said about a resource: no registration compares that a lease is gone.
fn collects(name: &'static str, id: &'static str) -> impl Fn(&Txn) -> bool + Send + Sync {
    move |txn: &Txn| {
        let lease = format!("/registry/leases/kube-system/{id}");
        let is_gone =
            |compare: &concord_store::Compare| compare.key == lease && compare.condition == Condition::Absent;
        let changes = |write: &Write| write.key() == key(name).as_bytes();
        txn.compares.iter().any(is_gone) && txn.writes.iter().any(changes)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_while_it_is_collected_keeps_what_it_said() {
    let log = Log::new();
    let (store, _) = Faulty::new(&log.store, None);
    let a = Server::start_on(&log, store.clone(), &Kind::new("a"));
    a.registered().await;
    Server::ready(&log, &Kind::new("b")).await.kill().await;
    let mut held = store.hold(collects("core.configmaps", "b"));
    a.delete(LEASES, "kube-system", "b").await;
    held.arrived().await;
    let before = a.storage_version("core.configmaps").await.expect("registered");
    // It says what it had said: not a byte changes, so that comparing the object alone would not do.
    let b = Server::ready(&log, &Kind::new("b")).await;
    b.config_map("b--1").await.expect("written");
    assert_eq!(a.storage_version("core.configmaps").await.expect("registered"), before);
    held.release();
    b.config_map("b--2").await.expect("written");
    wait_said(&a, "core.configmaps", "a=v1,b=v1 -> v1").await;
    assert_eq!(audit(&log, &[("configmaps", "core.configmaps")]).await, 2);
    // What was paused did not do it, and nobody does any more: the collector is back at work and finds nothing.
    object(&a, "test.marker", says(&[("nobody", "test/v1")])).await;
    wait_for("the next pass", || async { a.storage_version("test.marker").await.is_none().then_some(()) })
        .await;
    for name in log.names("storageversions").await {
        assert!(a.said(&name).await.contains("b="), "{name}");
    }
    a.stop().await;
    b.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_registers_while_the_object_is_deleted_is_not_lost() {
    let log = Log::new();
    let (store, _) = Faulty::new(&log.store, None);
    let a = Server::start_on(&log, store.clone(), &Kind::new("a"));
    a.registered().await;
    identity(&a, "x", "kube-apiserver").await;
    identity(&a, "y", "kube-apiserver").await;
    object(&a, "test.things", says(&[("x", "test/v1")])).await;
    let mut held = store.hold(collects("test.things", "x"));
    a.delete(LEASES, "kube-system", "x").await;
    held.arrived().await;
    let both: Value = says(&[("x", "test/v1"), ("y", "test/v1")]);
    let set = |object: &mut concord_registry::Object| drop(object.insert("status".to_owned(), both.clone()));
    a.update(STORAGE_VERSIONS, ("", "test.things"), Part::Sub("status"), set).await;
    held.release();
    // Only what is left of the other one goes.
    wait_said(&a, "test.things", "y=test/v1 -> test/v1").await;
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_finishes_what_the_leader_began() {
    let log = Log::new();
    let (store, _) = Faulty::new(&log.store, None);
    let a = Server::start_on(&log, store.clone(), &Kind::new("a"));
    a.fleet.led_by(concord_election::Leadership::alone());
    a.registered().await;
    let b = Server::ready(&log, &Kind::new("b")).await;
    identity(&b, "x", "kube-apiserver").await;
    object(&b, "test.things", says(&[("x", "test/v1")])).await;
    let mut held = store.hold(collects("test.things", "x"));
    b.delete(LEASES, "kube-system", "x").await;
    held.arrived().await;
    let gone = || async { b.storage_version("test.things").await.is_none().then_some(()) };
    wait_for("the end of the object", gone).await;
    // Somebody else says something by now. What the leader had on its way must not touch it.
    identity(&b, "y", "kube-apiserver").await;
    object(&b, "test.things", says(&[("y", "test/v1")])).await;
    held.release();
    object(&a, "test.others", says(&[("x", "test/v1")])).await;
    let gone = || async { a.storage_version("test.others").await.is_none().then_some(()) };
    wait_for("the next pass of the leader", gone).await;
    assert_eq!(b.said("test.things").await, "y=test/v1 -> test/v1");
    a.stop().await;
    b.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_is_on_its_way_while_versions_change_is_decided_anew() {
    let log = Log::new();
    let (store, _) = Faulty::new(&log.store, None);
    let a = Server::start_on(&log, store.clone(), &Kind::new("a"));
    a.registered().await;
    let writes = |txn: &Txn| txn.writes.iter().any(|write| write.key().ends_with(b"/a--1"));
    let mut held = store.hold(writes);
    let (written, ()) = tokio::join!(a.config_map("a--1"), async {
        held.arrived().await;
        // Somebody takes the entry away, and the server puts it back: the object is another one.
        a.delete(STORAGE_VERSIONS, "", "core.configmaps").await;
        wait_said(&a, "core.configmaps", "a=v1 -> v1").await;
        assert_eq!(log.names("configmaps/default").await, [""; 0]);
        held.release();
    });
    written.expect("written in the end");
    assert_eq!(audit(&log, &[("configmaps", "core.configmaps")]).await, 1);
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_old_release_has_on_its_way_ends_with_the_new_one() {
    let log = Log::new();
    let (store, _) = Faulty::new(&log.store, None);
    let old = Kind { release: "1.33", ..Kind::new("a") };
    let old = Server::start_on(&log, store.clone(), &old);
    old.registered().await;
    let writes = |txn: &Txn| txn.writes.iter().any(|write| write.key().ends_with(b"/a--1"));
    let mut held = store.hold(writes);
    let cidr = json!({"metadata": {"name": "a--1"}, "spec": {"cidrs": ["10.9.0.0/24"]}});
    let v1 = ("networking.k8s.io", "v1", "servicecidrs");
    // It is refused after a while, for which nobody has to wait.
    let attempt = async {
        assert!(old.create(v1, "", cidr).await.is_err());
        std::future::pending::<()>().await;
    };
    let upgrade = async {
        held.arrived().await;
        let new = Server::ready(&log, &Kind::new("a")).await;
        let name = "networking.k8s.io.servicecidrs";
        wait_said(&new, name, "a=networking.k8s.io/v1 -> networking.k8s.io/v1").await;
        held.release();
        new.config_map("a--2").await.expect("written");
        new
    };
    let new = tokio::select! {
        () = attempt => unreachable!("it waits for ever"),
        new = upgrade => new,
    };
    assert_eq!(log.names("servicecidrs").await, [""; 0], "the old process has lost its lease");
    old.kill().await;
    new.stop().await;
}
