//! Discovery, compared with what Kubernetes 1.36 publishes, where that is at hand.

use std::{fs, path::PathBuf};

use bytes::Bytes;
use concord_server::test_client::{Protocol, TestClient};
use http::Method;
use serde_json::Value;
use tempfile::tempdir;

use crate::support::Program;

/// The published documents: one file per path, with slashes written as two underscores.
fn published() -> Option<PathBuf> {
    let data =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/kubernetes-v1.36/discovery");
    data.is_dir().then_some(data)
}

/// What differs from server to server, and is not about the APIs.
fn comparable(mut document: Value) -> Value {
    if let Some(document) = document.as_object_mut() {
        document.remove("serverAddressByClientCIDRs");
    }
    document
}

#[tokio::test]
async fn every_document_is_the_published_one() {
    let Some(published) = published() else {
        eprintln!("skipped: the published discovery documents are not here");
        return;
    };
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &["--runtime-config=api/all=true"]).await;
    server.ready(200).await;
    let mut client = server.admin(Protocol::Http2).await;
    let mut differing = Vec::new();
    let mut compared = 0;
    for file in fs::read_dir(published).expect("a directory") {
        let file = file.expect("a file").path();
        let name = file.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        let expected: Value = serde_json::from_slice(&fs::read(&file).expect("readable")).expect("JSON");
        let actual = document(&mut client, &name).await;
        compared += 1;
        if comparable(actual) != comparable(expected) {
            differing.push(name);
        }
    }
    assert!(compared > 50, "only {compared} documents");
    assert!(differing.is_empty(), "{} of {compared} documents differ: {differing:?}", differing.len());
}

/// The document that is published under this name. The aggregated one is two: that of /api, and that of /apis.
async fn document(client: &mut TestClient, name: &str) -> Value {
    if name != "aggregated_v2" {
        let answer = client.get(&format!("/{}", name.replace("__", "/"))).await.expect("an answer");
        return serde_json::from_str(&answer.body).unwrap_or_default();
    }
    const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let accept = [("accept", ACCEPT)];
    let answer = client.exchange(Method::GET, "/apis", &accept, Bytes::new()).await.expect("an answer");
    serde_json::from_str(&answer.body).unwrap_or_default()
}

#[tokio::test]
async fn an_older_release_is_emulated() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &["--emulated-version=kube=1.33"]).await;
    server.ready(200).await;
    let mut client = server.admin(Protocol::Http2).await;
    let version = document(&mut client, "version").await;
    assert_eq!(
        [&version["minor"], &version["emulationMinor"], &version["minCompatibilityMinor"]],
        ["36", "33", "33"]
    );
    assert_eq!(document(&mut client, "apis__apps__v1").await["groupVersion"], "apps/v1");
    // It became stable in 1.34.
    let answer = client.get("/apis/resource.k8s.io/v1").await.expect("an answer");
    assert_eq!(answer.status, 404);
}
