//! The garbage collector on a real store, with the built-in kinds.

use concord_meta::options::PropagationPolicy::{Background, Foreground, Orphan};
use serde_json::{Value, json};

use crate::support::{Fixture, Server, blocked, owner};

pub(crate) fn references(object: Option<&Value>) -> usize {
    object.and_then(|object| object["metadata"]["ownerReferences"].as_array()).map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dependents_go_with_their_owner_in_the_background() {
    let Fixture { server, .. } = &Fixture::new().await;
    let running = server.start();
    let root = server.map("root", &[]).await;
    let other = server.map("other", &[]).await;
    let child = server.map("child", &[owner("v1", "ConfigMap", &root)]).await;
    server.map("grandchild", &[owner("v1", "ConfigMap", &child)]).await;
    server.map("shared", &[owner("v1", "ConfigMap", &root), owner("v1", "ConfigMap", &other)]).await;
    server.delete("/configmaps/ns/root", Background).await.expect("deleted");
    server.until_left(&["other", "shared"]).await;
    server.until("/configmaps/ns/shared", |shared| references(shared) == 1).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_waits_for_those_that_hold_it() {
    let Fixture { server, .. } = &Fixture::new().await;
    let running = server.start();
    let root = server.map("root", &[]).await;
    let child = server.map("child", &[blocked(&root)]).await;
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    server.create("/configmaps/ns/grandchild", held, &[blocked(&child)]).await;
    server.map("loose", &[owner("v1", "ConfigMap", &root)]).await;
    server.delete("/configmaps/ns/root", Foreground).await.expect("begun");
    server.until("/configmaps/ns/loose", |loose| loose.is_none()).await;
    let waits = |object: Option<&Value>| {
        object.is_some_and(|object| object["metadata"]["finalizers"] == json!(["foregroundDeletion"]))
    };
    server.until("/configmaps/ns/child", waits).await;
    assert!(waits(server.get("/configmaps/ns/root").await.as_ref()));
    // Whoever holds the last one lets it go.
    server.delete("/configmaps/ns/grandchild", Background).await.expect("begun");
    server.release("grandchild").await;
    server.until_left(&[]).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dependents_that_are_let_go_stay() {
    let Fixture { server, .. } = &Fixture::new().await;
    let running = server.start();
    let root = server.map("root", &[]).await;
    let other = server.map("other", &[]).await;
    let names: Vec<String> = (0..30).map(|at| format!("child-{at:02}")).collect();
    for name in &names {
        server.map(name, &[blocked(&root), owner("v1", "ConfigMap", &other)]).await;
    }
    server.delete("/configmaps/ns/root", Orphan).await.expect("begun");
    server.until("/configmaps/ns/root", |root| root.is_none()).await;
    for name in &names {
        let child = server.get(&format!("/configmaps/ns/{name}")).await;
        assert_eq!(references(child.as_ref()), 1, "{child:?}");
    }
    server.delete("/configmaps/ns/other", Orphan).await.expect("begun");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    server.until_left(&names).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn circles_come_to_an_end() {
    let Fixture { server, .. } = &Fixture::new().await;
    for at_once in [false, true] {
        let maps = [server.map("a", &[]).await, server.map("b", &[]).await, server.map("c", &[]).await];
        for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
            server.own(name, &blocked(&maps[(at + 1) % 3])).await;
        }
        let names = if at_once { &["a", "b", "c"][..] } else { &["a"] };
        let running = if at_once { None } else { Some(server.start()) };
        for name in names {
            server.delete(&format!("/configmaps/ns/{name}"), Foreground).await.expect("begun");
        }
        let running = running.unwrap_or_else(|| server.start());
        server.until_left(&[]).await;
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_are_looked_for_where_the_reference_says() {
    let Fixture { server, .. } = &Fixture::new().await;
    let running = server.start();
    let root = server.map("root", &[]).await;
    let namespace = json!({"metadata": {"name": "ns"}});
    server.create("/namespaces//ns", namespace.clone(), &[]).await;
    server.create("/namespaces//far", namespace, &[]).await;
    let node = server.create("/nodes//node", json!({}), &[]).await;
    // The same uid, but another kind, another name, or another namespace.
    server.map("kind", &[owner("v1", "Secret", &root)]).await;
    let mut other = root.clone();
    other["metadata"]["name"] = "other".into();
    server.map("name", &[owner("v1", "ConfigMap", &other)]).await;
    server.create("/configmaps/far/place", json!({}), &[owner("v1", "ConfigMap", &root)]).await;
    server.map("cluster", &[owner("v1", "Node", &node)]).await;
    server.create("/nodes//lost", json!({}), &[owner("v1", "ConfigMap", &root)]).await;
    server.until_left(&["cluster", "root"]).await;
    let uid = root["metadata"]["uid"].as_str().expect("a uid");
    for (name, place, namespace) in [("place", "far", "far"), ("lost", "default", "")] {
        let event = server.event(place, name).await;
        assert_eq!(
            (&event["type"], &event["reason"]),
            (&json!("Warning"), &json!("OwnerRefInvalidNamespace"))
        );
        let reference = format!("[v1/ConfigMap, namespace: {namespace}, name: root, uid: {uid}]");
        let text = format!("ownerRef {reference} does not exist in namespace {namespace:?}");
        assert_eq!(event["message"], text);
        assert_eq!(event["source"]["component"], "garbage-collector-controller");
    }
    server.pass().await;
    let told = server.events("ns").await;
    assert!(told.is_empty(), "what is nowhere is not in another namespace: {told:?}");
    assert!(server.get("/nodes//lost").await.is_some(), "such a reference says nothing");
    server.delete("/nodes//node", Background).await.expect("deleted");
    server.until_left(&["root"]).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_decided_about_kinds_that_are_not_served_here() {
    let Fixture { server, .. } = &Fixture::new().await;
    let secret = server.create("/secrets/ns/secret", json!({}), &[]).await;
    let unknown = json!({"metadata": {"name": "x", "uid": "x"}});
    server.map("by-secret", &[owner("v1", "Secret", &secret)]).await;
    server.map("by-unknown", &[owner("example.com/v1", "Widget", &unknown)]).await;
    server
        .create(
            "/services/ns/service",
            json!({"spec": {"ports": [{"port": 1}]}}),
            &[owner("v1", "Secret", &unknown)],
        )
        .await;
    server.delete("/secrets/ns/secret", Background).await.expect("deleted");
    server.kinds.hide("secrets");
    server.kinds.hide("services");
    // What it saw go is not needed to know of what went before it began: make it anew.
    let later = Server::on_same(server).await;
    later.kinds.hide("secrets");
    later.kinds.hide("services");
    let running = later.start();
    let nobody = json!({"metadata": {"name": "nobody", "uid": "nobody"}});
    later.map("canary", &[owner("v1", "ConfigMap", &nobody)]).await;
    later.until_left(&["by-secret", "by-unknown"]).await;
    assert!(later.get("/services/ns/service").await.is_some());
    later.kinds.show("secrets");
    later.until_left(&["by-unknown"]).await;
    later.kinds.show("services");
    later.until("/services/ns/service", |service| service.is_none()).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_seen_to_go_is_gone_whether_its_kind_is_served_or_not() {
    let Fixture { server, .. } = &Fixture::new().await;
    server.kinds.hide("secrets");
    let running = server.start();
    let secret = server.create("/secrets/ns/secret", json!({}), &[]).await;
    server.map("child", &[owner("v1", "Secret", &secret)]).await;
    server.delete("/secrets/ns/secret", Background).await.expect("deleted");
    server.until_left(&[]).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_servers_do_the_work_of_one() {
    let fixture = Fixture::new().await;
    let servers = [&fixture.server, &Server::on(&fixture.store).await];
    let root = servers[0].map("root", &[]).await;
    for at in 0..100 {
        servers[at % 2].map(&format!("child-{at}"), &[owner("v1", "ConfigMap", &root)]).await;
    }
    let running = servers.map(Server::start);
    servers[1].delete("/configmaps/ns/root", Foreground).await.expect("begun");
    servers[0].until_left(&[]).await;
    for running in running {
        running.stop().await;
    }
    servers[0].until_free().await;
}
