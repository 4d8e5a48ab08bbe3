//! Servers on one store tell the same of it, in the same bytes.

use std::time::{Duration, Instant};

use bytes::Bytes;
use concord_server::test_client::Protocol;
use concord_testing::etcd::Cluster;
use http::Method;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use tokio::time::timeout;

use crate::support::{Program, SOON, send};

const ONE: &str = "--server-id=one";
pub(super) const GROUP: &str = "twice.example.com";
pub(super) const LEAF: &str = "apis/twice.example.com/v1";
pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(super) fn version(description: &str, served: bool) -> Value {
    let schema = json!({
        "type": "object", "description": description,
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 0}}}},
    });
    json!({"name": "v1", "served": served, "storage": true, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}})
}

pub(super) fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [version("First.", true)],
        },
    })
}

async fn start(etcd: &Cluster, data: &TempDir, id: &str) -> Program {
    let servers = format!("--etcd-servers={}", etcd.endpoints().join(","));
    let program = Program::start_with(data.path(), &[&servers, id]).await;
    program.ready(200).await;
    program
}

pub(super) async fn write(server: &Program, method: Method, path: &str, body: &Value) -> Value {
    let (status, answer, _) = send(&mut server.admin(Protocol::Http2).await, method, path, body).await;
    assert!(status < 300, "{path}: {answer}");
    answer
}

/// The status, the new place, and the body, over a connection that is new each time.
pub(super) async fn read(server: &Program, path: &str) -> (u16, String, String) {
    let mut client = server.admin(Protocol::Http2).await;
    let answer = client.exchange(Method::GET, path, &[("accept", "application/json")], Bytes::new()).await;
    let answer = answer.expect("an answer");
    let location = answer.headers.get("location").and_then(|place| place.to_str().ok()).unwrap_or_default();
    (answer.status, location.to_owned(), answer.body)
}

/// The address of our document, once all servers have the same index and it is as it should be.
pub(super) async fn agreed(servers: [&Program; 2], wanted: impl Fn(Option<&str>) -> bool) -> Option<String> {
    let agree = async {
        loop {
            let (one, other) =
                (read(servers[0], "/openapi/v3").await.2, read(servers[1], "/openapi/v3").await.2);
            let index: Value = serde_json::from_str(&one).expect("JSON");
            let url = index["paths"][LEAF]["serverRelativeURL"].as_str();
            if one == other && wanted(url) {
                return url.map(ToOwned::to_owned);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, agree).await.expect("they agree")
}

/// What all servers say at an address.
pub(super) async fn told(servers: [&Program; 2], path: &str) -> String {
    let (one, other) = (read(servers[0], path).await, read(servers[1], path).await);
    assert_eq!((one.0, other.0), (200, 200), "{path}");
    assert!(one.2 == other.2, "{path} differs");
    one.2
}

async fn define(servers: [&Program; 2], order: [(&str, &str); 2]) -> String {
    for (server, (plural, kind)) in servers.into_iter().zip(order) {
        write(server, Method::POST, DEFINITIONS, &definition(plural, kind)).await;
    }
    let both = async {
        loop {
            let url = agreed(servers, |url| url.is_some()).await.expect("an address");
            // The second kind may come between the two, and then the address is another one.
            let (_, _, document) = read(servers[0], &url).await;
            if order.iter().all(|(plural, _)| document.contains(&format!("/{plural}/"))) {
                return url;
            }
        }
    };
    timeout(SOON, both).await.expect("both are told of")
}

/// How long after a definition was deleted the last server still told of it.
async fn gone_after(servers: [&Program; 2]) -> Duration {
    write(servers[0], Method::POST, DEFINITIONS, &definition("cups", "Cup")).await;
    let url = agreed(servers, |url| url.is_some()).await.expect("an address");
    write(servers[1], Method::DELETE, &format!("{DEFINITIONS}/cups.{GROUP}"), &Value::Null).await;
    let begin = Instant::now();
    for server in servers {
        while read(server, &url).await.0 != 404 {
            assert!(begin.elapsed() < SOON, "not in time: the document is gone");
        }
    }
    let took = begin.elapsed();
    agreed(servers, |url| url.is_none()).await;
    took
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_go_with_their_definition_at_once() {
    let etcd = Cluster::single().await.expect("an etcd");
    let data = [tempdir().expect("a directory"), tempdir().expect("a directory")];
    let (one, other) = (start(&etcd, &data[0], ONE).await, start(&etcd, &data[1], "--server-id=other").await);
    // A machine that is busy may be late, but not each time.
    let mut fastest = SOON;
    for _ in 0..5 {
        fastest = fastest.min(gone_after([&one, &other]).await);
        if fastest < Duration::from_secs(1) {
            return;
        }
    }
    panic!("documents of what is gone are told for {fastest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_tell_the_same() {
    let etcd = Cluster::single().await.expect("an etcd");
    let data = [tempdir().expect("a directory"), tempdir().expect("a directory")];
    let (one, other) = (start(&etcd, &data[0], ONE).await, start(&etcd, &data[1], "--server-id=other").await);
    let servers = [&one, &other];
    let (cups, lamps) = (("cups", "Cup"), ("lamps", "Lamp"));
    let first = define(servers, [cups, lamps]).await;
    let document = told(servers, &first).await;

    // In the other order, and after they were gone.
    for (plural, _) in [cups, lamps] {
        write(&other, Method::DELETE, &format!("{DEFINITIONS}/{plural}.{GROUP}"), &Value::Null).await;
    }
    agreed(servers, |url| url.is_none()).await;
    for server in servers {
        for path in [first.as_str(), &format!("/openapi/v3/{LEAF}")] {
            assert_eq!(read(server, path).await.0, 404, "{path}");
        }
    }
    assert_eq!(define(servers, [lamps, cups]).await, first);
    assert!(told(servers, &first).await == document, "the order does not matter");

    // What only the status says is told of nowhere.
    let path = format!("{DEFINITIONS}/cups.{GROUP}");
    let mut cups = write(&one, Method::GET, &path, &Value::Null).await;
    let condition = json!({"type": "Own", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-02T03:04:05Z"});
    cups["status"]["conditions"].as_array_mut().expect("conditions").push(condition);
    write(&one, Method::PUT, &format!("{path}/status"), &cups).await;
    assert_eq!(agreed(servers, |_| true).await.as_deref(), Some(first.as_str()));

    let change = |version: Value| json!({"spec": {"versions": [version]}});
    write(&one, Method::PATCH, &path, &change(version("First.", false))).await;
    let unserved =
        agreed(servers, |url| url.is_some_and(|url| url != first)).await.expect("the other kind is left");
    assert!(!told(servers, &unserved).await.contains("Cup"));
    write(&other, Method::PATCH, &path, &change(version("First.", true))).await;
    assert_eq!(agreed(servers, |url| url != Some(&unserved)).await.as_deref(), Some(first.as_str()));

    write(&other, Method::PATCH, &path, &change(version("Second.", true))).await;
    let second = agreed(servers, |url| url.is_some_and(|url| url != first)).await.expect("an address");
    // Whoever has read an index before it changed is sent on once at most, wherever the next request goes.
    for from in servers {
        let (status, location, body) = read(from, &first).await;
        assert!(
            status == 200 && body == document || status == 301 && location == second,
            "{status} {location}"
        );
    }
    // As conformance tests want it: ten times in a row, over new connections, whichever server answers.
    for server in servers.into_iter().cycle().take(10) {
        for path in [second.as_str(), &format!("/openapi/v3/{LEAF}"), "/openapi/v2"] {
            let (status, _, body) = read(server, path).await;
            assert!(status == 200 && body.contains("Second.") && body.contains("Lamp"), "{status} {path}");
        }
    }
    told(servers, "/openapi/v2").await;

    drop(one);
    let one = start(&etcd, &data[0], ONE).await;
    assert_eq!(agreed([&one, &other], |_| true).await, Some(second), "a server that was started again");
}
