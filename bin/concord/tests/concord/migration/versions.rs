//! One StorageVersionMigration in every version, encoding and by every way of changing it.

use bytes::Bytes;
use concord_server::test_client::{Protocol, TestClient};
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{Program, send};

const GROUP: &str = "/apis/storagemigration.k8s.io";

/// Where a migration is, in a version.
fn place(version: &str, name: &str) -> String {
    format!("{GROUP}/{version}/storageversionmigrations/{name}")
}

async fn get(admin: &mut TestClient, path: &str) -> Value {
    let answer = admin.get(path).await.expect("an answer");
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    serde_json::from_str(&answer.body).expect("JSON")
}

/// Reads an object and writes it with a change, again if somebody else was faster: the migrator tells why it waits.
async fn put(admin: &mut TestClient, path: &str, change: impl Fn(&mut Value)) -> (u16, Value) {
    for _ in 0..50 {
        let mut object = get(admin, path).await;
        change(&mut object);
        let (code, answer, _) = send(admin, Method::PUT, path, &object).await;
        if code != 409 {
            return (code, answer);
        }
    }
    panic!("{path} never stays as it is");
}

async fn patch(admin: &mut TestClient, path: &str, kind: &str, body: &Value) -> (u16, Value) {
    let headers = [("content-type", kind)];
    let answer = admin.exchange(Method::PATCH, path, &headers, body.to_string().into()).await;
    let answer = answer.expect("an answer");
    (answer.status, serde_json::from_str(&answer.body).expect("JSON"))
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "R",
        "message": "m"})
}

/// Waits until the migrator has said that there is nothing to migrate, and says nothing more for a while.
async fn until_told(admin: &mut TestClient, path: &str) -> Value {
    for _ in 0..600 {
        let object = get(admin, path).await;
        if object["status"]["conditions"][0]["reason"] == "WaitingForResource" {
            return object;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("nobody looks at {path}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_is_the_same_whichever_way_it_is_looked_at() {
    let data = tempdir().expect("a directory");
    let flags = ["--storage-migration-delay=0s", "--runtime-config=storagemigration.k8s.io/v1=true"];
    let server = Program::start_with(data.path(), &flags).await;
    server.ready(200).await;
    let mut admin = server.admin(Protocol::Http2).await;
    let group = get(&mut admin, GROUP).await;
    let versions: Vec<&Value> =
        group["versions"].as_array().expect("a list").iter().map(|known| &known["version"]).collect();
    assert_eq!(versions, ["v1", "v1beta1"]);
    let new = json!({"metadata": {"name": "a"},
        "spec": {"resource": {"group": "example.com", "resource": "nothings"}}});
    let (code, made, _) = send(&mut admin, Method::POST, &place("v1", ""), &new).await;
    assert_eq!((code, &made["apiVersion"]), (201, &json!("storagemigration.k8s.io/v1")), "{made}");
    let told = until_told(&mut admin, &place("v1", "a")).await;
    let mut beta = get(&mut admin, &place("v1beta1", "a")).await;
    assert_eq!(beta["apiVersion"].take(), "storagemigration.k8s.io/v1beta1");
    for part in ["spec", "status"] {
        assert_eq!(beta[part], told[part]);
    }
    encodings(&mut admin).await;
    endpoints(&mut admin).await;
    applied(&mut admin).await;
    ends(&mut admin).await;
}

/// What is read is what can be written, in every encoding: nothing changes.
async fn encodings(admin: &mut TestClient) {
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    for path in [place("v1", "a"), place("v1beta1", "a")] {
        for kind in ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"] {
            let before = version(&get(admin, &path).await);
            let read = admin.send(Method::GET, &path, &[("accept", kind)], Bytes::new()).await;
            let read = read.expect("an answer");
            assert_eq!(read.headers()["content-type"], kind);
            let body = read.into_body().collect().await.expect("a body").to_bytes();
            let written = admin.exchange(Method::PUT, &path, &[("content-type", kind)], body).await;
            let written = written.expect("an answer");
            let object: Value = serde_json::from_str(&written.body).expect("JSON");
            assert_eq!((written.status, version(&object)), (200, before), "{path} {kind}: {}", written.body);
        }
    }
    // Upstream's is alpha and off.
    let cbor = "application/cbor";
    let read = admin.exchange(Method::GET, &place("v1", "a"), &[("accept", cbor)], Bytes::new()).await;
    assert_eq!(read.expect("an answer").status, 406);
    let empty = Bytes::from_static(b"\xd9\xd9\xf7\xa0");
    let written = admin.exchange(Method::PUT, &place("v1", "a"), &[("content-type", cbor)], empty).await;
    assert_eq!(written.expect("an answer").status, 415);
    let accept = ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let table = admin.exchange(Method::GET, &place("v1", "a"), &[accept], Bytes::new()).await;
    let table: Value = serde_json::from_str(&table.expect("an answer").body).expect("JSON");
    assert_eq!(table["rows"][0]["cells"], json!(["a", "nothings.example.com", "Unknown"]));
}

/// Each endpoint changes its own part.
async fn endpoints(admin: &mut TestClient) {
    let (main, status) = (place("v1", "a"), place("v1beta1", "a/status"));
    let (code, after) = put(admin, &main, |object| {
        object["metadata"]["labels"] = json!({"a": "b"});
        object["status"] = json!({"resourceVersion": "7"});
    })
    .await;
    assert_eq!((code, &after["metadata"]["labels"]), (200, &json!({"a": "b"})));
    assert_eq!(after["status"]["resourceVersion"], Value::Null, "the status stays: {after}");
    let (code, after) = put(admin, &status, |object| {
        object["metadata"]["labels"] = json!({"c": "d"});
        object["spec"]["resource"]["resource"] = "others".into();
        object["status"]["conditions"].as_array_mut().expect("told").push(condition("TestCondition", "True"));
    })
    .await;
    assert_eq!((code, &after["metadata"]["labels"]), (200, &json!({"a": "b"})), "{after}");
    assert_eq!(after["spec"]["resource"]["resource"], "nothings");
    let kinds = after["status"]["conditions"].as_array().expect("a list");
    assert!(kinds.iter().any(|known| known["type"] == "TestCondition"), "{after}");
}

/// The same by server-side apply, which does not own what an endpoint does not change.
async fn applied(admin: &mut TestClient) {
    let apply = "application/apply-patch+yaml";
    let config = json!({
        "apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
        "metadata": {"name": "a", "labels": {"e": "f"}},
        "spec": {"resource": {"group": "example.com", "resource": "nothings"}},
        "status": {"resourceVersion": "7", "conditions": [condition("Applied", "True")]},
    });
    let owned = |object: &Value| {
        let entries = object["metadata"]["managedFields"].as_array().expect("a list").iter();
        let mut own = entries.filter(|entry| entry["manager"] == "me").map(|entry| entry["fieldsV1"].clone());
        own.next().unwrap_or_default()
    };
    let path = format!("{}?fieldManager=me&force=true", place("v1", "a"));
    let (code, after) = patch(admin, &path, apply, &config).await;
    assert_eq!((code, &after["metadata"]["labels"]["e"]), (200, &json!("f")), "{after}");
    assert_eq!(
        (&after["status"]["resourceVersion"], &owned(&after)["f:status"]),
        (&Value::Null, &Value::Null)
    );
    let path = format!("{}?fieldManager=me&force=true", place("v1", "a/status"));
    let mut config = config;
    config["metadata"]["labels"] = json!({"e": "g"});
    let (code, after) = patch(admin, &path, apply, &config).await;
    assert_eq!((code, &after["metadata"]["labels"]["e"]), (200, &json!("f")), "{after}");
    assert_eq!(after["status"]["resourceVersion"], "7");
    let entries = after["metadata"]["managedFields"].as_array().expect("a list").iter();
    let mut own = entries.filter(|entry| entry["manager"] == "me" && entry["subresource"] == "status");
    let fields = &own.next().expect("it applied something")["fieldsV1"];
    assert!(fields["f:status"].is_object(), "{fields}");
    assert_eq!((&fields["f:metadata"], &fields["f:spec"]), (&Value::Null, &Value::Null));
}

/// What has ended stays so, however somebody tries.
async fn ends(admin: &mut TestClient) {
    let status = place("v1", "a/status");
    let (code, _) = put(admin, &status, |object| {
        object["status"]["conditions"].as_array_mut().expect("told").push(condition("Succeeded", "True"));
    })
    .await;
    assert_eq!(code, 200);
    let not = |conditions: &Value| -> Value {
        let all = conditions.as_array().expect("a list").iter();
        all.filter(|known| known["type"] != "Succeeded").cloned().collect()
    };
    let mut answers = vec![
        put(admin, &status, |object| object["status"]["conditions"] = not(&object["status"]["conditions"]))
            .await,
    ];
    let all = get(admin, &status).await["status"]["conditions"].clone();
    let place_of = all.as_array().expect("a list").iter().position(|known| known["type"] == "Succeeded");
    let place_of = place_of.expect("it has ended");
    let merge = json!({"status": {"conditions": not(&all)}});
    answers.push(patch(admin, &status, "application/merge-patch+json", &merge).await);
    let path = format!("/status/conditions/{place_of}/status");
    let json_patch = json!([{"op": "test", "path": &path, "value": "True"},
        {"op": "replace", "path": path, "value": "False"}]);
    answers.push(patch(admin, &status, "application/json-patch+json", &json_patch).await);
    let config = json!({"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
        "metadata": {"name": "a"}, "status": {"conditions": [condition("Succeeded", "False")]}});
    let forced = format!("{status}?fieldManager=other&force=true");
    answers.push(patch(admin, &forced, "application/apply-patch+yaml", &config).await);
    for (code, answer) in answers {
        let message = answer["message"].as_str().unwrap_or_default();
        let complaint = "Success condition cannot be set to false once it is true";
        assert!(code == 422 && message.contains(complaint), "{code} {message}");
    }
}
