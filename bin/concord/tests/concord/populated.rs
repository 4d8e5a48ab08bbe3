//! The published objects of the release, which have a value in every field, through a real server: none is lost.

use std::{fs, path::PathBuf};

use concord_builtins::{Catalog, ResourceFacts};
use concord_server::test_client::{Protocol, TestClient};
use concord_store::{Store as _, Txn};
use concord_testing::etcd::Cluster;
use http::Method;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::{
    encryption::etcd_store,
    support::{Program, send},
};

/// Everything that the release has is on, so that no field is dropped; nobody collects what has no owner.
const FLAGS: [&str; 3] = [
    "--runtime-config=api/all=true",
    "--feature-gates=AllAlpha=true,AllBeta=true",
    "--enable-garbage-collector=false",
];

/// An object of a resource that is stored, as it is published in both forms.
struct Published {
    facts: &'static ResourceFacts,
    object: Value,
    protobuf: Vec<u8>,
}

impl Published {
    /// The path of all objects of its kind in a namespace.
    fn path(&self, namespace: &str) -> String {
        let ResourceFacts { group, version, plural, .. } = self.facts;
        let root =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        match self.facts.namespaced {
            true => format!("{root}/namespaces/{namespace}/{plural}"),
            false => format!("{root}/{plural}"),
        }
    }

    fn key(&self) -> String {
        let prefix = self.facts.storage.expect("only such are read").key;
        let metadata = &self.object["metadata"];
        let [namespace, name] =
            ["namespace", "name"].map(|part| metadata[part].as_str().expect("it has one"));
        match self.facts.namespaced {
            true => format!("/registry/{prefix}/{namespace}/{name}"),
            false => format!("/registry/{prefix}/{name}"),
        }
    }

    fn title(&self) -> String {
        format!("{} {}", self.facts.api_version(), self.facts.kind)
    }
}

/// The published objects that this release stores, in every version that it serves.
fn published() -> Vec<Published> {
    let data =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/kubernetes-v1.36/api-testdata");
    let served = Catalog::latest().versions().flat_map(|version| &version.resources);
    let stored = served.filter(|facts| facts.storage.is_some());
    let read = |facts: &'static ResourceFacts| {
        let group = if facts.group.is_empty() { "core" } else { facts.group };
        let file = data.join(format!("{group}.{}.{}.json", facts.version, facts.kind));
        let object = serde_json::from_slice(&fs::read(&file).ok()?).expect("JSON");
        Some(Published { facts, object, protobuf: fs::read(file.with_extension("pb")).expect("both forms") })
    };
    let published: Vec<_> = stored.filter_map(read).collect();
    if published.is_empty() {
        eprintln!("skipped: the published objects are not here");
    }
    published
}

/// The paths of what is in one value and not the same in the other.
fn lost(path: &str, expected: &Value, actual: &Value) -> Vec<String> {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => expected
            .iter()
            .flat_map(|(name, value)| {
                lost(&format!("{path}.{name}"), value, actual.get(name).unwrap_or(&Value::Null))
            })
            .collect(),
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => expected
            .iter()
            .zip(actual)
            .flat_map(|(one, other)| lost(&format!("{path}[]"), one, other))
            .collect(),
        (one, other) if one == other => Vec::new(),
        (one, other) => vec![format!("{path}: {one} became {other}")],
    }
}

/// Without what is the server's to say, or is said once for a whole list.
fn comparable(mut object: Value) -> Value {
    for name in ["kind", "apiVersion"] {
        object.as_object_mut().expect("an object").remove(name);
    }
    object["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
    object
}

/// What the server shows of an object in the very state that it was stored in, whoever changes it then.
async fn read_at(client: &mut TestClient, published: &Published, revision: u64) -> Value {
    let path = published.path("namespaceValue");
    let path = format!("{path}?resourceVersion={revision}&resourceVersionMatch=Exact");
    let (status, list, _) = send(client, Method::GET, &path, &Value::Null).await;
    assert_eq!(status, 200, "{}: {list}", published.title());
    let items = list["items"].as_array().expect("a list").iter();
    let mut items = items.filter(|item| item["metadata"]["name"] == "nameValue");
    items.next().unwrap_or_else(|| panic!("{} is not listed", published.title())).clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_field_that_is_stored_is_returned() {
    let all = published();
    if all.is_empty() {
        return;
    }
    let etcd = Cluster::single().await.expect("an etcd");
    let store = etcd_store(&etcd).await;
    let data = tempdir().expect("a directory");
    let servers = format!("--etcd-servers={}", etcd.endpoints().join(","));
    let server = Program::start_with(data.path(), &[&[servers.as_str()], &FLAGS[..]].concat()).await;
    server.ready(200).await;
    let mut client = server.admin(Protocol::Http2).await;
    let mut complaints = Vec::new();
    for published in &all {
        // As this server stores objects, and as a kube-apiserver does.
        for (form, bytes) in
            [("JSON", published.object.to_string().into_bytes()), ("protobuf", published.protobuf.clone())]
        {
            let key = published.key();
            let revision = store.transact(Txn::new().put(key.clone(), bytes)).await.expect("stored").revision;
            let read = comparable(read_at(&mut client, published, revision).await);
            let expected = comparable(published.object.clone());
            let title = published.title();
            complaints.extend(
                lost("", &expected, &read).into_iter().map(|lost| format!("{title} in {form}: {lost}")),
            );
            store.transact(Txn::new().delete(key)).await.expect("deleted");
        }
    }
    assert!(complaints.is_empty(), "{} fields are lost:\n{}", complaints.len(), complaints.join("\n"));
    assert!(all.len() > 80, "only {} objects", all.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_object_is_accepted_structurally_and_what_is_valid_keeps_every_field() {
    let all = published();
    if all.is_empty() {
        return;
    }
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &FLAGS).await;
    server.ready(200).await;
    let mut client = server.admin(Protocol::Http2).await;
    let (mut made, mut with_status, mut complaints) = (0, 0, Vec::new());
    for (index, published) in all.iter().enumerate() {
        let name = format!("name-{index}");
        let mut object = published.object.clone();
        let labels = object["metadata"]["labels"].clone();
        object["metadata"] = json!({"name": name, "labels": labels});
        let path = published.path("default");
        let strict = format!("{path}?fieldValidation=Strict");
        let (status, answer, _) = send(&mut client, Method::POST, &strict, &object).await;
        // Its values are texts like "typeValue", which the rules of most kinds refuse.
        if status == 422 || status == 403 {
            continue;
        }
        assert_eq!(status, 201, "{}: {answer}", published.title());
        made += 1;
        let path = format!("{path}/{name}");
        if published.facts.has_status() {
            let (status, answer, _) =
                send(&mut client, Method::PUT, &format!("{path}/status"), &object).await;
            assert!([200, 422].contains(&status), "{}: {answer}", published.title());
            if status == 422 {
                object.as_object_mut().expect("an object").remove("status");
            } else {
                with_status += 1;
            }
        }
        let (_, read, _) = send(&mut client, Method::GET, &path, &Value::Null).await;
        // It is only written: its values become data.
        object.as_object_mut().expect("an object").remove("stringData");
        // Secrets of accounts are known by their names alone.
        for secret in object.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten() {
            *secret = json!({"name": secret["name"]});
        }
        let title = published.title();
        complaints.extend(lost("", &object, &read).into_iter().map(|lost| format!("{title}: {lost}")));
    }
    assert!(complaints.is_empty(), "{} fields are lost:\n{}", complaints.len(), complaints.join("\n"));
    assert!((made, with_status) > (5, 0), "only {made} were valid, {with_status} of them with their status");
}
