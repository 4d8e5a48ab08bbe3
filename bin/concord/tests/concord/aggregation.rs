//! Servers behind this one: the example of the documentation, and servers that do everything wrong.

pub(crate) mod bookshelf;
mod cluster;
mod documents;
mod faults;

use std::time::{Duration, Instant};

use concord_server::test_client::TestClient;
use http::Method;
use serde_json::{Value, json};

use crate::support::{SOON, send};

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

/// Looks again and again until the answer is as it should be.
pub(crate) async fn until(
    client: &mut TestClient,
    path: &str,
    what: &str,
    is_so: impl Fn(u16, &str) -> bool,
) -> String {
    let begin = Instant::now();
    loop {
        let answer = client.get(path).await.expect("an answer");
        if is_so(answer.status, &answer.body) {
            return answer.body;
        }
        assert!(begin.elapsed() < SOON, "not in time: {what}, but {} {}", answer.status, answer.body);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until the condition of an APIService has this status and reason, and answers with its message.
async fn condition(client: &mut TestClient, name: &str, status: &str, reason: &str) -> String {
    let path = format!("{API_SERVICES}/{name}");
    let available = |body: &str| -> Value {
        let object: Value = serde_json::from_str(body).unwrap_or_default();
        object["status"]["conditions"][0].clone()
    };
    let what = format!("{name} is {status} because of {reason}");
    let is_so = |_: u16, body: &str| {
        let condition = available(body);
        condition["status"] == status && condition["reason"] == reason
    };
    let body = until(client, &path, &what, is_so).await;
    available(&body)["message"].as_str().unwrap_or_default().to_owned()
}

fn parse(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

/// Local APIServices exist by themselves, and custom resources have theirs.
#[tokio::test]
async fn what_this_server_serves_has_its_api_services() {
    let data = tempfile::tempdir().expect("a directory");
    let program = crate::support::Program::start(data.path()).await;
    let mut admin = program.admin(concord_server::test_client::Protocol::Http2).await;
    let apps = format!("{API_SERVICES}/v1.apps");
    let apps = parse(&until(&mut admin, &apps, "v1.apps is there", |status, _| status == 200).await);
    assert_eq!(
        apps["spec"],
        json!({"group": "apps", "version": "v1", "groupPriorityMinimum": 17800, "versionPriority": 15})
    );
    assert_eq!(apps["metadata"]["labels"], json!({"kube-aggregator.kubernetes.io/automanaged": "onstart"}));
    assert_eq!(apps["status"]["conditions"][0]["reason"], "Local");
    until(&mut admin, &format!("{API_SERVICES}/v1."), "the core group has one", |status, _| status == 200)
        .await;

    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(send(&mut admin, Method::POST, definitions, &definition).await.0, 201);
    let widgets = format!("{API_SERVICES}/v1.example.com");
    let made = parse(&until(&mut admin, &widgets, "it is made", |status, _| status == 200).await);
    assert_eq!(made["metadata"]["labels"], json!({"kube-aggregator.kubernetes.io/automanaged": "true"}));
    assert_eq!(made["spec"]["groupPriorityMinimum"], 1000);
    // It is made again, and goes when its definition goes.
    send(&mut admin, Method::DELETE, &widgets, &Value::Null).await;
    let uid = &made["metadata"]["uid"];
    let is_new = |status, body: &str| status == 200 && parse(body)["metadata"]["uid"] != *uid;
    until(&mut admin, &widgets, "it is made again", is_new).await;
    let definition = format!("{definitions}/widgets.example.com");
    send(&mut admin, Method::DELETE, &definition, &Value::Null).await;
    until(&mut admin, &widgets, "it is gone", |status, _| status == 404).await;
}
