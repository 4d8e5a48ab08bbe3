//! Namespaces come to an end, with everything in them and with nothing left behind.

mod support;

use std::sync::Arc;

use concord_registry::Part;
use concord_store::{Store as _, Txn};
use serde_json::{Value, json};

use crate::support::{Cluster, Server, refused};

async fn namespace(server: &Server, name: &str) {
    server.create(&format!("/namespaces//{name}"), json!({})).await.expect("a namespace");
}

#[tokio::test]
async fn nothing_is_created_in_a_namespace_that_is_missing_or_ends() {
    let cluster = Cluster::new();
    let server = cluster.server().await;
    let outcome = server.create("/configmaps/nowhere/a", json!({})).await;
    assert_eq!(refused(outcome), (404, "namespaces \"nowhere\" not found".to_owned()));
    namespace(&server, "ns").await;
    server.create("/configmaps/ns/a", json!({})).await.expect("a live namespace");
    server.delete("/namespaces//ns").await.expect("begins to end");
    let status = server.create("/configmaps/ns/b", json!({})).await.expect_err("it ends");
    assert_eq!(status.code, 403);
    assert_eq!(
        status.message,
        "configmaps \"b\" is forbidden: unable to create new content in namespace ns because it is being terminated"
    );
    server.update("/configmaps/ns/a", Part::Main, json!({"data": {"x": "y"}})).await.expect("updates go on");
    server.delete("/configmaps/ns/a").await.expect("deletes go on");
}

#[tokio::test]
async fn a_namespace_goes_with_its_content() {
    let cluster = Cluster::new();
    let server = cluster.server().await;
    let controllers = server.start();
    namespace(&server, "ns").await;
    namespace(&server, "other").await;
    for index in 0..50 {
        server.create(&format!("/configmaps/ns/c{index}"), json!({})).await.expect("created");
    }
    server.create("apps/deployments/ns/d", json!({})).await.expect("created");
    server.create("/pods/ns/p", json!({})).await.expect("created");
    server.create("/configmaps/other/stays", json!({})).await.expect("created");
    server.delete("/namespaces//ns").await.expect("begins to end");
    server.until("/namespaces//ns", |namespace| namespace.is_none()).await;
    for prefix in ["/registry/configmaps/ns/", "/registry/deployments/ns/", "/registry/pods/ns/"] {
        assert_eq!(cluster.keys(prefix).await, Vec::<String>::new());
    }
    assert!(server.get("/configmaps/other/stays").await.is_some());
    controllers.shutdown().await;
}

fn condition<'a>(namespace: &'a Value, name: &str) -> [&'a str; 3] {
    let conditions = namespace["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == name);
    ["status", "reason", "message"]
        .map(|part| found.and_then(|found| found[part].as_str()).unwrap_or_default())
}

#[tokio::test]
async fn finalizers_of_the_content_are_waited_for_and_told() {
    let cluster = Cluster::new();
    let server = cluster.server().await;
    let controllers = server.start();
    namespace(&server, "ns").await;
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    server.create("/configmaps/ns/held", held).await.expect("created");
    server.create("/configmaps/ns/free", json!({})).await.expect("created");
    server.delete("/namespaces//ns").await.expect("begins to end");
    let namespace = server
        .until("/namespaces//ns", |namespace| {
            namespace.is_some_and(|namespace| condition(namespace, "NamespaceContentRemaining")[0] == "True")
        })
        .await
        .expect("it waits");
    assert_eq!(
        condition(&namespace, "NamespaceContentRemaining"),
        ["True", "SomeResourcesRemain", "Some resources are remaining: configmaps. has 1 resource instances"]
    );
    assert_eq!(
        condition(&namespace, "NamespaceFinalizersRemaining"),
        [
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
        ]
    );
    assert_eq!(condition(&namespace, "NamespaceDeletionContentFailure")[1], "ContentDeleted");
    assert_eq!(namespace["status"]["phase"], "Terminating");
    server
        .merge("/configmaps/ns/held", Part::Main, json!({"metadata": {"finalizers": null}}))
        .await
        .expect("let go");
    server.until("/namespaces//ns", |namespace| namespace.is_none()).await;
    controllers.shutdown().await;
}

#[tokio::test]
async fn pods_go_before_what_they_may_use() {
    let cluster = Cluster::new();
    let server = cluster.server().await;
    let controllers = server.start();
    namespace(&server, "ns").await;
    server
        .create("/pods/ns/slow", json!({"spec": {"terminationGracePeriodSeconds": 3600}}))
        .await
        .expect("created");
    server.create("/configmaps/ns/used", json!({})).await.expect("created");
    server.delete("/namespaces//ns").await.expect("begins to end");
    server
        .until("/namespaces//ns", |namespace| {
            namespace.is_some_and(|namespace| condition(namespace, "NamespaceContentRemaining")[0] == "True")
        })
        .await;
    assert!(
        server.get("/pods/ns/slow").await.is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    );
    let used = server.get("/configmaps/ns/used").await.expect("still there");
    assert!(used["metadata"]["deletionTimestamp"].is_null(), "nobody touched it");
    // What a kubelet does in the end.
    let now = concord_meta::options::DeleteOptions { grace_period_seconds: Some(0), ..Default::default() };
    let name = concord_registry::ObjectName { namespace: "ns", name: "slow" };
    server
        .registry
        .delete(&support::context(), &server.resource("", "pods"), name, &now)
        .await
        .expect("gone");
    server.until("/namespaces//ns", |namespace| namespace.is_none()).await;
    controllers.shutdown().await;
}

#[tokio::test]
async fn finalizers_of_the_namespace_itself_are_respected() {
    let cluster = Cluster::new();
    let server = cluster.server().await;
    let controllers = server.start();
    server
        .create("/namespaces//ns", json!({"metadata": {"finalizers": ["example.com/hold"]}}))
        .await
        .expect("a namespace");
    server.delete("/namespaces//ns").await.expect("begins to end");
    let finalized = |namespace: Option<&Value>| {
        namespace
            .is_some_and(|namespace| namespace["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty))
    };
    server.until("/namespaces//ns", finalized).await;
    server
        .merge("/namespaces//ns", Part::Main, json!({"metadata": {"finalizers": null}}))
        .await
        .expect("let go");
    assert!(server.get("/namespaces//ns").await.is_none());
    controllers.shutdown().await;
}

/// A server of another release may store what this one does not know: it is not this one's to delete, nor to forget.
#[tokio::test]
async fn what_another_server_serves_is_waited_for() {
    let cluster = Cluster::new();
    let server = cluster.server().await;
    let controllers = server.start();
    namespace(&server, "ns").await;
    let put = async |key: &str, namespace: &str| {
        let metadata = json!({"namespace": namespace});
        let value = format!(r#"{{"kind":"New","apiVersion":"example.com/v1","metadata":{metadata}}}"#);
        cluster.store.transact(Txn::new().put(key.to_owned(), value)).await.expect("stored");
    };
    let keys = ["/registry/example.com/news/ns/a", "/registry/olds/ns/b"];
    for key in keys {
        put(key, "ns").await;
    }
    // Others, in no namespace or in another one.
    for (key, namespace) in [
        ("/registry/example.com/ns/a", ""),
        ("/registry/example.com/news/other/ns", "other"),
        ("/registry/ns", ""),
        ("/registry/olds/ns-b", ""),
    ] {
        put(key, namespace).await;
    }
    server.delete("/namespaces//ns").await.expect("begins to end");
    let told = |namespace: Option<&Value>| {
        let text = namespace.map(|namespace| condition(namespace, "NamespaceDeletionDiscoveryFailure")[2]);
        text.is_some_and(|text| text.ends_with("example.com/v1: 2 resource instances are not served here"))
    };
    server.until("/namespaces//ns", told).await;
    for key in keys {
        cluster.store.transact(Txn::new().delete(key)).await.expect("deleted");
    }
    server.until("/namespaces//ns", |namespace| namespace.is_none()).await;
    controllers.shutdown().await;
}

/// A create that was decided while the namespace was alive is committed only after it is gone, or would be.
#[tokio::test]
async fn a_create_that_comes_too_late_is_refused_by_its_own_transaction() {
    let cluster = Cluster::new();
    let (gate, late) = cluster.gated("/registry/configmaps/").await;
    let server = cluster.server().await;
    let controllers = server.start();
    namespace(&server, "ns").await;
    late.until("/namespaces//ns", |namespace| namespace.is_some()).await;
    let create = tokio::spawn(async move { late.create("/configmaps/ns/late", json!({})).await });
    gate.arrived.notified().await;
    server.delete("/namespaces//ns").await.expect("begins to end");
    server.until("/namespaces//ns", |namespace| namespace.is_none()).await;
    gate.open.notify_one();
    let outcome = create.await.expect("no panic");
    assert_eq!(refused(outcome), (404, "namespaces \"ns\" not found".to_owned()));
    assert_eq!(cluster.keys("/registry/configmaps/").await, Vec::<String>::new());
    controllers.shutdown().await;
}

/// Creates race with the end of their namespace on two servers, whose controllers race with each other. Whoever is told
/// that an object was created may be wrong about it still being there, but nothing may stay in a namespace that is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_stays_behind_however_the_servers_race() {
    let cluster = Cluster::new();
    let (one, two) = (Arc::new(cluster.server().await), Arc::new(cluster.server().await));
    let controllers = [one.start(), two.start()];
    for round in 0..10 {
        let name = format!("ns{round}");
        namespace(&one, &name).await;
        let mut writers = tokio::task::JoinSet::new();
        for (writer, server) in [&one, &two, &one, &two].into_iter().enumerate() {
            let (server, name) = (Arc::clone(server), name.clone());
            writers.spawn(async move {
                for index in 0..1_000 {
                    let outcome =
                        server.create(&format!("/configmaps/{name}/w{writer}-{index}"), json!({})).await;
                    match outcome.map_err(|status| status.code) {
                        Ok(_) => {}
                        Err(403 | 404) => return,
                        Err(code) => panic!("{code}"),
                    }
                }
            });
        }
        tokio::time::sleep(std::time::Duration::from_millis(5 * round)).await;
        two.delete(&format!("/namespaces//{name}")).await.expect("begins to end");
        while let Some(writer) = writers.join_next().await {
            writer.expect("no panic");
        }
        one.until(&format!("/namespaces//{name}"), |namespace| namespace.is_none()).await;
        assert_eq!(cluster.keys(&format!("/registry/configmaps/{name}/")).await, Vec::<String>::new());
    }
    for controllers in controllers {
        controllers.shutdown().await;
    }
}
