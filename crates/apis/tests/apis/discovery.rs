//! Discovery of each release, compared with what Kubernetes publishes, where that is at hand.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use concord_apis::Release;
use serde_json::Value;

use crate::support::Server;

/// The published documents: one file per path, with slashes written as two underscores.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn published(release: Release) -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let directory = data.join(format!("kubernetes-v{release}/discovery"));
    if directory.is_dir() {
        return Some(directory);
    }
    println!("skipped: the published discovery documents of {release} are not here");
    None
}

fn document(directory: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(directory.join(name)).expect("readable")).expect("JSON")
}

/// Without what differs from server to server, and without the null that 1.33 wrote for a group's missing time of
/// creation: encoding it is no matter of the APIs, and what emulates a release does not do it either.
fn comparable(mut document: Value) -> Value {
    if let Some(document) = document.as_object_mut() {
        document.remove("serverAddressByClientCIDRs");
    }
    if let Some(groups) = document.get_mut("items").and_then(Value::as_array_mut) {
        let metadata = groups.iter_mut().filter_map(|group| group.get_mut("metadata")?.as_object_mut());
        metadata.for_each(|metadata| metadata.retain(|_, value| !value.is_null()));
    }
    document
}

fn is_stable(version: &str) -> bool {
    !version.contains("alpha") && !version.contains("beta")
}

/// A published document as a server tells it that serves only what is on by default: the stable versions.
fn by_default(mut document: Value) -> Value {
    match document["kind"].as_str() {
        Some("APIGroupList") => keep(&mut document["groups"], group_by_default),
        Some("APIGroup") => drop(group_by_default(&mut document)),
        Some("APIGroupDiscoveryList") => keep(&mut document["items"], |group| {
            keep(&mut group["versions"], |version| version["version"].as_str().is_some_and(is_stable));
            group["versions"] != Value::Array(Vec::new())
        }),
        _ => {}
    }
    document
}

fn group_by_default(group: &mut Value) -> bool {
    keep(&mut group["versions"], |version| version["version"].as_str().is_some_and(is_stable));
    let first = group["versions"][0].clone();
    let some = !first.is_null();
    group["preferredVersion"] = first;
    some
}

fn keep(list: &mut Value, wanted: impl Fn(&mut Value) -> bool) {
    if let Some(items) = list.as_array_mut() {
        items.retain_mut(wanted);
    }
}

async fn aggregated(server: &Server, path: &str, version: &str) -> Value {
    let accept = format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
    server.ask("GET", path, &[("accept", &accept)], None).await.body
}

/// What a server tells at a path, given what is published; nothing if it is not served by default.
fn expected(document: Value, path: &str, everything: bool) -> Option<Value> {
    if everything {
        return Some(comparable(document));
    }
    let version = path.rsplit('/').next().unwrap_or_default();
    let off = document["kind"] == "APIResourceList" && !is_stable(version);
    let document = by_default(document);
    let empty = document["kind"] == "APIGroup" && document["preferredVersion"].is_null();
    (!off && !empty).then(|| comparable(document))
}

/// Compares every published document; returns how many there were.
async fn compare(server: &Server, directory: &Path, everything: bool) -> usize {
    let names: BTreeSet<String> = fs::read_dir(directory)
        .expect("a directory")
        .map(|file| file.expect("a file").file_name().to_string_lossy().into_owned())
        .collect();
    for name in &names {
        let path = format!("/{}", name.trim_end_matches(".json").replace("__", "/"));
        let expected = expected(document(directory, name), &path, everything);
        if name == "aggregated_v2.json" {
            let expected = expected.expect("served");
            assert_eq!(aggregated(server, "/apis", "v2").await, expected, "{name}");
            let mut beta = expected;
            beta["apiVersion"] = "apidiscovery.k8s.io/v2beta1".into();
            assert_eq!(aggregated(server, "/apis", "v2beta1").await, beta, "{name} in v2beta1");
            continue;
        }
        let answer = server.ask("GET", &path, &[], None).await;
        match expected {
            Some(expected) => assert_eq!(comparable(answer.body), expected, "{path}"),
            None => assert_eq!(answer.code, 404, "{path}"),
        }
    }
    names.len()
}

#[tokio::test]
async fn with_everything_on_each_release_is_the_published_one() {
    for release in Release::all() {
        let Some(directory) = published(release) else { continue };
        let server = Server::new(release, &["api/all=true"]).await;
        let compared = compare(&server, &directory, true).await;
        assert!(compared > 50, "only {compared} documents of {release}");
    }
}

#[tokio::test]
async fn by_default_each_release_serves_its_stable_versions() {
    for release in Release::all() {
        let Some(directory) = published(release) else { continue };
        let server = Server::new(release, &[]).await;
        let compared = compare(&server, &directory, false).await;
        assert!(compared > 50, "only {compared} documents of {release}");
    }
}

#[tokio::test]
async fn a_release_serves_what_it_had() {
    for (release, groups) in [("1.33", 19), ("1.36", 20)] {
        let server = Server::new(release.parse().expect("a release"), &[]).await;
        let list = server.get("/apis").await;
        assert_eq!(list["groups"].as_array().map(Vec::len), Some(groups), "{release}");
    }
}
