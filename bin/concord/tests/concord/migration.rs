//! Migration of what is stored: upstream's scenarios, its defects absent, and what it cannot do.
//!
//! Which test here and elsewhere shows what stands in `docs/migration-tests.md`.

mod api;
mod chaos;
mod clocks;
mod command;
mod control;
mod definitions;
mod faults;
mod fleet;
mod flips;
mod odd;
mod orders;
mod outages;
mod outside;
mod secrets;
mod trouble;
mod upgrades;
mod versions;

use std::time::{Duration, Instant};

use bytes::Bytes;
use concord_store::{KeyRange, Scan, Store};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::support::SOON;

/// A progress annotation and all others begin like this.
const ANNOTATIONS: &str = "storagemigration.concord.dev";

fn kind(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

fn migrations(client: &Client) -> Api<DynamicObject> {
    let kind = kind("storagemigration.k8s.io", "v1beta1", "StorageVersionMigration");
    Api::all_with(client.clone(), &kind)
}

fn migration(name: &str, group: &str, resource: &str, annotations: &[(&str, &str)]) -> DynamicObject {
    let annotations: Value =
        annotations.iter().map(|(name, value)| (format!("{ANNOTATIONS}/{name}"), json!(value))).collect();
    let object = json!({
        "apiVersion": "storagemigration.k8s.io/v1beta1", "kind": "StorageVersionMigration",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"resource": {"group": group, "resource": resource}},
    });
    serde_json::from_value(object).expect("an object")
}

async fn ask(client: &Client, name: &str, group: &str, resource: &str) {
    let made =
        migrations(client).create(&PostParams::default(), &migration(name, group, resource, &[])).await;
    made.expect("created");
}

/// The reason of a condition and its message, if it has this status.
fn condition(migration: &DynamicObject, kind: &str, status: &str) -> Option<(String, String)> {
    let conditions = migration.data["status"]["conditions"].as_array().into_iter().flatten();
    let mut found = conditions.filter(|known| known["type"] == kind && known["status"] == status);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    found.next().map(|known| (text(&known["reason"]), text(&known["message"])))
}

fn progress(migration: &DynamicObject) -> Value {
    let annotations = migration.metadata.annotations.clone().unwrap_or_default();
    let text = annotations.get(&format!("{ANNOTATIONS}/progress")).cloned().unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Looks at a migration until it is as it is awaited.
async fn until(
    client: &Client,
    name: &str,
    what: &str,
    is_so: impl Fn(&DynamicObject) -> bool,
) -> DynamicObject {
    let begin = Instant::now();
    loop {
        // A server that is killed in the meantime does not answer.
        if let Ok(migration) = migrations(client).get(name).await {
            if is_so(&migration) {
                return migration;
            }
            let status = &migration.data["status"];
            assert!(
                begin.elapsed() < SOON,
                "not in time: {what} of {name}: {status} {}",
                progress(&migration)
            );
        }
        assert!(begin.elapsed() < SOON, "not in time: {what} of {name}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits for the end, which has to be a success.
async fn succeeds(client: &Client, name: &str) -> DynamicObject {
    let ended = until(client, name, "the end", |migration| {
        ["Succeeded", "Failed"].iter().any(|kind| condition(migration, kind, "True").is_some())
            && condition(migration, "Running", "True").is_none()
    });
    let ended = ended.await;
    let status = &ended.data["status"];
    assert!(condition(&ended, "Succeeded", "True").is_some(), "{status}");
    ended
}

/// What is kept under keys that begin like this: the name, and how the value begins.
async fn kept(store: &dyn Store, prefix: &str) -> Vec<(String, Bytes)> {
    let mut scan = Scan::new(KeyRange::prefix(prefix.to_owned()), 1000);
    let mut all = Vec::new();
    loop {
        let page = store.scan(scan.clone()).await.expect("a page");
        for entry in page.entries {
            let name = String::from_utf8_lossy(&entry.key[prefix.len()..]).into_owned();
            all.push((name, entry.value));
        }
        let Some(resume) = page.resume else { return all };
        scan = Scan { range: scan.range.starting_at(resume), revision: Some(page.revision), ..scan };
    }
}

const FOOS: &str = "foos.example.com";

/// A definition of a custom resource that stores one of these versions.
fn definition(versions: &[&str], stored: &str) -> Value {
    let version = |name: &&str| {
        json!({"name": name, "served": true, "storage": *name == stored,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let versions: Vec<Value> = versions.iter().map(version).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": FOOS},
        "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "foos", "kind": "Foo"},
            "versions": versions},
    })
}

fn definitions(client: &Client) -> Api<DynamicObject> {
    let kind = kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Api::all_with(client.clone(), &kind)
}

fn foos(client: &Client, version: &str) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &kind("example.com", version, "Foo"))
}

/// Makes a definition, or changes its versions.
async fn define(client: &Client, versions: &[&str], stored: &str) -> DynamicObject {
    let definition = definition(versions, stored);
    let spec = json!({"spec": {"versions": definition["spec"]["versions"]}});
    let changed = definitions(client).patch(FOOS, &PatchParams::default(), &Patch::Merge(spec)).await;
    match changed {
        Ok(changed) => changed,
        Err(kube::Error::Api(status)) if status.code == 404 => {
            let new = serde_json::from_value(definition).expect("an object");
            definitions(client).create(&PostParams::default(), &new).await.expect("created")
        }
        Err(error) => panic!("{error}"),
    }
}

async fn stored_versions(client: &Client) -> Value {
    definitions(client).get(FOOS).await.expect("there").data["status"]["storedVersions"].clone()
}

/// Makes an object, as soon as that version is served.
async fn create_foo(client: &Client, version: &str, name: &str) -> DynamicObject {
    let object = json!({"apiVersion": format!("example.com/{version}"), "kind": "Foo",
        "metadata": {"name": name}, "spec": {"word": name}});
    let object: DynamicObject = serde_json::from_value(object).expect("an object");
    let begin = Instant::now();
    loop {
        match foos(client, version).create(&PostParams::default(), &object).await {
            Ok(made) => return made,
            Err(error) => assert!(begin.elapsed() < SOON, "not in time: {name} is made: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
