use concord_registry::{Part, metadata};
use concord_store::Txn;
use serde_json::{Value, json};

use crate::{
    faulty::Faulty,
    support::{DEFINITIONS, Kind, Log, Server, wait_for, wait_said},
};

fn versions(stored: &str, names: &[&str]) -> Value {
    let version = |name: &&str| {
        json!({"name": name, "served": true, "storage": *name == stored,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    names.iter().map(version).collect()
}

async fn define(server: &Server, plural: &str, stored: &str, names: &[&str]) {
    let definition = json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {"group": "example.com", "scope": "Namespaced", "versions": versions(stored, names),
            "conversion": {"strategy": "None"},
            "names": {"plural": plural, "singular": plural, "kind": "Foo", "listKind": "FooList"}},
        "status": {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": []},
    });
    server.create(DEFINITIONS, "", definition).await.expect("defined");
}

async fn store_in(server: &Server, plural: &str, stored: &str, names: &[&str]) {
    let name = format!("{plural}.example.com");
    let flip = |definition: &mut concord_registry::Object| {
        definition["spec"]["versions"] = versions(stored, names);
        definition["status"]["storedVersions"] = json!(names);
    };
    server.update(DEFINITIONS, ("", &name), Part::Main, flip).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_defined_is_registered_with_every_change() {
    let log = Log::new();
    let server = Server::ready(&log, &Kind::new("a")).await;
    define(&server, "foos", "v1", &["v1"]).await;
    wait_said(&server, "example.com.foos", "a=example.com/v1 -> example.com/v1").await;
    let object = server.storage_version("example.com.foos").await.expect("registered");
    let definition = server.get(DEFINITIONS, "", "foos.example.com").await.expect("defined");
    let owner = &object["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], metadata(&definition).uid());
    assert_eq!(owner["name"], "foos.example.com");
    for (round, stored) in ["v2", "v1", "v2", "v1", "v2"].into_iter().enumerate() {
        store_in(&server, "foos", stored, &["v1", "v2"]).await;
        if round % 2 == 0 {
            let said = format!("a=example.com/{stored} -> example.com/{stored}");
            wait_said(&server, "example.com.foos", &said).await;
        }
    }
    let object = server.storage_version("example.com.foos").await.expect("registered");
    let decodable = object["status"]["storageVersions"][0]["decodableVersions"].clone();
    assert_eq!(decodable, json!(["example.com/v1", "example.com/v2"]));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_definitions_are_registered_at_once() {
    let log = Log::new();
    let kind = Kind::new("a");
    let server = Server::ready(&log, &kind).await;
    let names: Vec<String> = (0..200).map(|n| format!("foos{n}")).collect();
    for name in &names {
        define(&server, name, "v1", &["v1"]).await;
    }
    server.stop().await;
    let other = Kind::new("b");
    let before = log.revision().await;
    let started = std::time::Instant::now();
    let server = Server::ready(&log, &other).await;
    for name in &names {
        let said = |said: String| said.contains("b=example.com/v1").then_some(());
        let name = format!("example.com.{name}");
        wait_for(&name, || async { said(server.said(&name).await) }).await;
    }
    let revisions = log.revision().await - before;
    assert!(revisions < 40, "{revisions} commits in {:?}", started.elapsed());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_waits_for_a_custom_resource_is_told_what_keeps_it() {
    let log = Log::new();
    let (store, _) = Faulty::new(&log.store, None);
    let server = Server::start_on(&log, store.clone(), &Kind::impatient("a"));
    server.registered().await;
    let of_foos = "/registry/storageversions/example.com.foos";
    store.refuse(move |txn| txn.writes.iter().any(|write| write.key() == of_foos));
    define(&server, "foos", "v1", &["v1"]).await;
    let object = r#"{"kind":"Foo","apiVersion":"example.com/v1","metadata":{}}"#;
    let mut txn = Txn::new().put("/registry/example.com/foos/default/one", object);
    let refused = server.fleet.gate().pass(&mut txn).await.expect_err("it is not registered");
    assert!(refused.message.contains("refused by the test"), "{refused}");
    store.refuse(|_| false);
    wait_said(&server, "example.com.foos", "a=example.com/v1 -> example.com/v1").await;
    server.fleet.gate().pass(&mut txn).await.expect("it is registered");
    server.stop().await;
}
