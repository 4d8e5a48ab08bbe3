//! StorageVersionMigrations as an API: upstream's answers.

use bytes::Bytes;
use concord_server::test_client::{Protocol, TestClient};
use http::Method;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{Program, send};

const ALL: &str = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations";

fn new(name: &str, group: &str, resource: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"resource": {"group": group, "resource": resource}}})
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "R",
        "message": "m"})
}

/// Sends a new status, and answers with what is complained about.
async fn tell(admin: &mut TestClient, name: &str, status: Value) -> String {
    let (code, answer, _) =
        send(admin, Method::PATCH, &format!("{ALL}/{name}/status"), &json!({"status": status})).await;
    match code {
        200 => String::new(),
        422 => answer["message"].as_str().unwrap_or_default().to_owned(),
        other => panic!("{other}: {answer}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrations_are_validated_as_upstream_does() {
    let data = tempdir().expect("a directory");
    // Nobody carries them out: the API is served by a release whose migrations wait for their resource.
    let server = Program::start_with(data.path(), &["--storage-migration-delay=0s"]).await;
    server.ready(200).await;
    let mut admin = server.admin(Protocol::Http2).await;
    for (resource, complaint) in [
        (new("a", "", ""), "spec.resource.resource: Required value: resource is required to be set"),
        (
            new("a", "", "Pods"),
            "spec.resource.resource: Invalid value: \"Pods\": a DNS-1035 label must consist of lower case",
        ),
        (
            new("a", "Apps", "pods"),
            "spec.resource.group: Invalid value: \"Apps\": a lowercase RFC 1123 subdomain must consist of",
        ),
        (new("a", "", "pods/status"), "spec.resource.resource: Invalid value: \"pods/status\""),
    ] {
        let (code, answer, _) = send(&mut admin, Method::POST, ALL, &resource).await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(code == 422 && message.contains(complaint), "{code} {message}");
    }
    let mut with_status = new("a", "example.com", "nothings");
    with_status["status"] = json!({"resourceVersion": "7"});
    let (code, made, _) = send(&mut admin, Method::POST, ALL, &with_status).await;
    assert_eq!((code, &made["status"]["resourceVersion"]), (201, &Value::Null), "{made}");
    assert_eq!(made["metadata"]["generation"], Value::Null);
    let core = new("core", "", "nothings");
    let (_, made, _) = send(&mut admin, Method::POST, ALL, &core).await;
    assert_eq!(made["spec"], json!({"resource": {"group": "", "resource": "nothings"}}));
    let change = json!({"spec": {"resource": {"group": "", "resource": "pods"}}});
    let (code, answer, _) = send(&mut admin, Method::PATCH, &format!("{ALL}/a"), &change).await;
    assert_eq!(code, 422);
    let complaint =
        "spec: Invalid value: {\"Resource\":{\"group\":\"\",\"resource\":\"pods\"}}: field is immutable";
    assert!(answer["message"].as_str().unwrap_or_default().ends_with(complaint), "{answer}");
    statuses(&mut admin).await;
    conditions(&mut admin).await;
    replacements(&mut admin).await;
    table(&mut admin).await;
}

/// Each rule of conditions, and that a failure stays one.
async fn conditions(admin: &mut TestClient) {
    let with = |name: &str, value: Value| {
        let mut condition = condition("Other", "True");
        condition[name] = value;
        json!({"conditions": [condition]})
    };
    let twice = json!({"conditions": [condition("Other", "True"), condition("Other", "False")]});
    let at = "status.conditions[0]";
    for (status, complaint) in [
        (twice, "status.conditions[1]".to_owned()),
        (with("status", json!("Maybe")), format!("{at}.status: Unsupported value: \"Maybe\"")),
        (with("lastTransitionTime", Value::Null), format!("{at}.lastTransitionTime: Required value")),
        (with("reason", json!("")), format!("{at}.reason: Required value")),
        (with("reason", json!("not camels")), format!("{at}.reason: Invalid value: \"not camels\"")),
        (
            with("reason", json!("R".repeat(1025))),
            format!("{at}.reason: Too long: may not be more than 1024"),
        ),
        (
            with("message", json!("m".repeat(32769))),
            format!("{at}.message: Too long: may not be more than 32768"),
        ),
        (with("observedGeneration", json!(-1)), format!("{at}.observedGeneration: Invalid value: -1")),
        (json!({"conditions": [condition("Failed", "True")]}), String::new()),
        (
            json!({"conditions": [condition("Failed", "False")]}),
            "Failed condition cannot be set to false once it is true".to_owned(),
        ),
        (json!({"conditions": []}), "Failed condition cannot be set to false once it is true".to_owned()),
    ] {
        let said = tell(admin, "core", status.clone()).await;
        assert!(said.contains(&complaint) && said.is_empty() == complaint.is_empty(), "{status}: {said}");
    }
}

/// A name has to be one; nothing is made by an update, nor replaced without saying what.
async fn replacements(admin: &mut TestClient) {
    let (code, answer, _) = send(admin, Method::POST, ALL, &new("No_Name", "", "pods")).await;
    let message = answer["message"].as_str().unwrap_or_default();
    assert!(code == 422 && message.contains("metadata.name: Invalid value: \"No_Name\""), "{code} {message}");
    let (code, ..) = send(admin, Method::PUT, &format!("{ALL}/nobody"), &new("nobody", "", "pods")).await;
    assert_eq!(code, 404);
    let same = new("a", "example.com", "nothings");
    let (code, answer, _) = send(admin, Method::PUT, &format!("{ALL}/a"), &same).await;
    let complaint = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    let message = answer["message"].as_str().unwrap_or_default();
    assert!(code == 422 && message.contains(complaint), "{code} {message}");
}

async fn statuses(admin: &mut TestClient) {
    let mut check = async |status: Value, complaint: &str| {
        let said = tell(admin, "a", status.clone()).await;
        assert!(said.contains(complaint) && said.is_empty() == complaint.is_empty(), "{status}: {said}");
    };
    check(
        json!({"resourceVersion": "007"}),
        "status.resourceVersion: Invalid value: \"007\": resource version is not well formed: 007",
    )
    .await;
    // More than any number that a client has.
    check(json!({"resourceVersion": "18446744073709551617"}), "").await;
    check(
        json!({"resourceVersion": "8"}),
        "status.resourceVersion: Invalid value: \"8\": field is immutable",
    )
    .await;
    let both = json!({"conditions": [condition("Succeeded", "True"), condition("Failed", "True")]});
    let shown = "status.conditions: Invalid value: [{\"type\":\"Succeeded\",\"status\":\"True\",\
        \"lastTransitionTime\":\"2026-01-01T00:00:00Z\",\"reason\":\"R\",\"message\":\"m\"},{\"type\":\"Failed\"";
    check(both.clone(), shown).await;
    check(both, "Both success and failed conditions cannot be true at the same time").await;
    check(json!({"conditions": [condition("Succeeded", "True")]}), "").await;
    check(
        json!({"conditions": [condition("Succeeded", "False")]}),
        "Success condition cannot be set to false once it is true",
    )
    .await;
    let bad = json!({"conditions": [condition("Succeeded", "True"), condition("Other", "Maybe")]});
    check(bad, "status.conditions[1].status: Unsupported value: \"Maybe\"").await;
}

async fn table(admin: &mut TestClient) {
    let accept = ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let path = format!("{ALL}/a");
    let answer = admin.exchange(Method::GET, &path, &[accept], Bytes::new()).await.expect("an answer");
    let table: Value = serde_json::from_str(&answer.body).expect("JSON");
    assert_eq!(table["rows"][0]["cells"], json!(["a", "nothings.example.com", "Succeeded"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_feature_there_are_no_migrations() {
    let data = tempdir().expect("a directory");
    let flags = [
        "--feature-gates=StorageVersionMigrator=false",
        "--runtime-config=storagemigration.k8s.io/v1beta1=true",
    ];
    let server = Program::start_with(data.path(), &flags).await;
    server.ready(200).await;
    let mut admin = server.admin(Protocol::Http2).await;
    let answer = admin.get("/apis/storagemigration.k8s.io").await.expect("an answer");
    assert_eq!(answer.status, 404, "{}", answer.body);
}
