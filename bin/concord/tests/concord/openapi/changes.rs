//! Documents while their definitions change.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA512, digest};
use bytes::Bytes;
use concord_server::test_client::{Protocol, TestClient};
use http::Method;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{Program, SOON, send};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(group: &str, plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        },
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [version("v1", "0", &json!("string"))],
        },
    })
}

fn version(name: &str, description: &str, of: &Value) -> Value {
    let schema = json!({"type": "object", "description": description, "properties": {"spec": {"type": of}}});
    json!({"name": name, "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}})
}

async fn get(client: &mut TestClient, path: &str) -> (u16, String, String) {
    let answer = client.exchange(Method::GET, path, &[("accept", "application/json")], Bytes::new()).await;
    let answer = answer.expect("an answer");
    let caching = answer.headers.get("cache-control").and_then(|text| text.to_str().ok()).unwrap_or_default();
    (answer.status, caching.to_owned(), answer.body)
}

async fn url(client: &mut TestClient, key: &str) -> Option<String> {
    let index: Value = serde_json::from_str(&get(client, "/openapi/v3").await.2).expect("JSON");
    index["paths"][key]["serverRelativeURL"].as_str().map(ToOwned::to_owned)
}

/// The document of a key, once it is there and is as it should be.
async fn document(client: &mut TestClient, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let found = async {
        loop {
            let (status, _, body) = get(client, path).await;
            let document = serde_json::from_str(&body).unwrap_or_default();
            if status == 200 && wanted(&document) {
                return document;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, found).await.expect("the document as it should be")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_be_kept_for_ever_is_what_its_hash_is_of() {
    let data = tempdir().expect("a directory");
    let server = Arc::new(Program::start(data.path()).await);
    server.ready(200).await;
    let mut admin = server.admin(Protocol::Http2).await;
    let made = send(&mut admin, Method::POST, DEFINITIONS, &definition("race.io", "cars", "Car")).await;
    assert_eq!(made.0, 201, "{}", made.1);
    document(&mut admin, "/openapi/v3/apis/race.io/v1", |_| true).await;

    let writer = server.clone();
    let writing = tokio::spawn(async move {
        let mut client = writer.admin(Protocol::Http2).await;
        for n in 0..30 {
            let change = json!({"spec": {"versions": [version("v1", &n.to_string(), &json!("string"))]}});
            let path = format!("{DEFINITIONS}/cars.race.io");
            assert_eq!(send(&mut client, Method::PATCH, &path, &change).await.0, 200);
            // Time to read something between two changes, at times.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    });
    let mut kept = 0;
    while !writing.is_finished() {
        let Some(url) = url(&mut admin, "apis/race.io/v1").await else { continue };
        let (status, caching, body) = get(&mut admin, &url).await;
        if status == 200 && caching.contains("immutable") {
            let hash: String =
                digest(&SHA512, body.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
            assert!(url.ends_with(&hash), "{url} has {body}");
            kept += 1;
        }
    }
    writing.await.expect("it ends");
    assert!(kept > 0, "there was nothing to keep");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_are_taken_versions_that_are_renamed_and_kinds_that_come_back() {
    let data = tempdir().expect("a directory");
    let server = Program::start(data.path()).await;
    server.ready(200).await;
    let mut admin = server.admin(Protocol::Http2).await;
    let own = document(&mut admin, "/openapi/v2", |_| true).await;
    let deployments = definition("apps.api.k8s.io", "deployments", "Deployment");
    let made = send(&mut admin, Method::POST, DEFINITIONS, &deployments).await;
    assert_eq!(made.0, 201, "{}", made.1);
    let taken = "io.k8s.api.apps.v1.DeploymentList";
    let both = document(&mut admin, "/openapi/v2", |document| {
        document["definitions"].get(format!("{taken}_v2")).is_some()
    });
    let both = both.await;
    assert_eq!(both["definitions"][taken], own["definitions"][taken]);
    let theirs = &both["definitions"][format!("{taken}_v2")]["properties"]["items"]["items"];
    assert_eq!(theirs["$ref"], "#/definitions/io.k8s.api.apps.v1.Deployment_v2");

    // Over HTTP/1.1, which has the same documents.
    let mut old = server.admin(Protocol::Http1).await;
    let made = send(&mut admin, Method::POST, DEFINITIONS, &definition("race.io", "cars", "Car")).await;
    assert_eq!(made.0, 201, "{}", made.1);
    let first = document(&mut old, "/openapi/v3/apis/race.io/v1", |_| true).await;
    assert_eq!(document(&mut admin, "/openapi/v3/apis/race.io/v1", |_| true).await, first);
    let path = format!("{DEFINITIONS}/cars.race.io");
    let mut before = version("v1", "0", &json!("string"));
    (before["served"], before["storage"]) = (false.into(), false.into());
    let change = json!({"spec": {"versions": [version("v2", "0", &json!("string")), before]}});
    assert_eq!(send(&mut admin, Method::PATCH, &path, &change).await.0, 200);
    document(&mut old, "/openapi/v3/apis/race.io/v2", |_| true).await;
    assert_eq!(get(&mut old, "/openapi/v3/apis/race.io/v1").await.0, 404);

    // Gone, and back with other fields.
    assert_eq!(send(&mut admin, Method::DELETE, &path, &Value::Null).await.0, 200);
    let again = async {
        let mut again = definition("race.io", "cars", "Car");
        again["spec"]["versions"] = json!([version("v1", "1", &json!("integer"))]);
        while send(&mut admin, Method::POST, DEFINITIONS, &again).await.0 != 201 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, again).await.expect("it can be defined again");
    let of = |document: &Value| {
        document["components"]["schemas"]["io.race.v1.Car"]["properties"]["spec"]["type"].clone()
    };
    assert_eq!(of(&first), "string");
    document(&mut old, "/openapi/v3/apis/race.io/v1", |document| of(document) == "integer").await;
}
