//! Many definitions, which many read for the first time at once, and which come and go: work and memory follow from what
//! changed and from what there is. How fast that is at scale is measured, see `docs/benchmarks.md`.

use std::{fs, sync::Arc};

use bytes::Bytes;
use concord_server::test_client::{Protocol, TestClient};
use http::Method;
use serde_json::{Value, json};
use tempfile::tempdir;
use tokio::{task::JoinSet, time::timeout};

use crate::support::{Program, SOON, send};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MANY: usize = 50;
const READERS: usize = 200;
/// Definitions that come and go: until memory is what it stays, and from then on.
const WARM: usize = 100;
const CYCLES: usize = 200;
/// How much memory may differ between two moments of the same state. If each cycle left its definition behind, and the
/// documents about it, they would be 20 MB; the log keeps some of them for a while.
const ALLOWED: usize = 16 << 20;

fn group(number: usize) -> String {
    format!("g{number}.many.example.com")
}

/// A definition of some 10 KB.
fn definition(number: usize, description: &str) -> Value {
    let field =
        |field: usize| (format!("field{field}"), json!({"type": "string", "description": "d".repeat(150)}));
    let schema = json!({
        "type": "object", "description": description,
        "properties": {"spec": {"type": "object", "properties": (0..50).map(field).collect::<Value>()}},
    });
    json!({
        "metadata": {"name": format!("things.{}", group(number))},
        "spec": {
            "group": group(number), "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

async fn create(admin: &mut TestClient, number: usize) {
    let made = async {
        // One of the same name may be going.
        while send(admin, Method::POST, DEFINITIONS, &definition(number, "First.")).await.0 != 201 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, made).await.expect("it is defined");
}

/// The addresses of all documents, once they are as they should be.
async fn index(admin: &mut TestClient, is_so: impl Fn(&Value) -> bool) -> Value {
    let found = async {
        loop {
            let body = admin.get("/openapi/v3").await.expect("an answer").body;
            let index: Value = serde_json::from_str(&body).expect("JSON");
            if is_so(&index["paths"]) {
                return index["paths"].clone();
            }
        }
    };
    timeout(SOON, found).await.expect("the index as it should be")
}

/// Whether there is a document about a definition.
fn tells_of(number: usize) -> impl Fn(&Value) -> bool {
    move |paths| paths.get(format!("apis/{}/v1", group(number))).is_some()
}

/// Everybody asks for the same at once, over connections of their own; all answers are the same.
async fn read_at_once(server: &Arc<Program>, path: &str) -> String {
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let (server, path) = (server.clone(), path.to_owned());
        readers.spawn(async move {
            let mut client = server.admin(Protocol::Http2).await;
            let answer =
                client.exchange(Method::GET, &path, &[("accept", "application/json")], Bytes::new()).await;
            let answer = answer.expect("an answer");
            assert_eq!(answer.status, 200, "{}", answer.body);
            answer.body
        });
    }
    let mut bodies = timeout(SOON, readers.join_all()).await.expect("all are answered");
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{path} differs");
    bodies.remove(0)
}

fn resident(program: &Program) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", program.pid())).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).expect("a number") * 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_definitions_are_read_by_many_and_come_and_go() {
    let data = tempdir().expect("a directory");
    let server = Arc::new(Program::start(data.path()).await);
    server.ready(200).await;
    let mut admin = server.admin(Protocol::Http2).await;
    for number in 0..MANY {
        create(&mut admin, number).await;
    }
    let before = index(&mut admin, tells_of(MANY - 1)).await;
    let path = format!("{DEFINITIONS}/things.{}", group(0));
    let change = json!({"spec": {"versions": definition(0, "Second.")["spec"]["versions"]}});
    assert_eq!(send(&mut admin, Method::PATCH, &path, &change).await.0, 200);
    // Nobody has asked for them since: they are made for all who ask.
    let leaf = format!("/openapi/v3/apis/{}/v1", group(0));
    assert!(read_at_once(&server, &leaf).await.contains("Second."));
    let after = index(&mut admin, tells_of(0)).await;
    let changed = before.as_object().expect("paths").iter().filter(|(key, url)| after[*key] != **url);
    assert_eq!(changed.map(|(key, _)| key.as_str()).collect::<Vec<_>>(), [format!("apis/{}/v1", group(0))]);

    let mut usual = 0;
    for cycle in 0..WARM + CYCLES {
        let number = MANY + cycle % 10;
        create(&mut admin, number).await;
        if cycle % 10 == 0 {
            index(&mut admin, tells_of(number)).await;
        }
        let path = format!("{DEFINITIONS}/things.{}", group(number));
        assert_eq!(send(&mut admin, Method::DELETE, &path, &Value::Null).await.0, 200);
        if cycle == WARM {
            usual = resident(&server);
        }
    }
    // Nothing is left of those that went.
    index(&mut admin, |paths| *paths == after).await;
    let grown = resident(&server).saturating_sub(usual);
    assert!(
        grown < ALLOWED,
        "{CYCLES} definitions that came and went left {} KB each",
        grown / CYCLES / 1024
    );
}
