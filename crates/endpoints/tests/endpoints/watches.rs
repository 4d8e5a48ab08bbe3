//! Watches over HTTP.

use std::time::Duration;

use concord_server::Body;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{Server, WIDGETS, widget};

/// Reads the events of a watch.
struct Events {
    body: Body,
    read: Vec<u8>,
}

impl Events {
    async fn of(server: &Server, query: &str, accept: &str) -> Self {
        let uri = format!("{WIDGETS}?watch=1&{query}");
        let response = server.send("GET", &uri, &[("accept", accept)], b"").await;
        assert_eq!(
            (response.status(), &response.headers()["content-type"]),
            (200.try_into().expect("a code"), &"application/json".parse().expect("text"))
        );
        Self { body: response.into_body(), read: Vec::new() }
    }

    /// The next event; `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("JSON"));
            }
            let frame = timeout(Duration::from_secs(20), self.body.frame()).await.expect("in time")?;
            self.read.extend_from_slice(&frame.expect("no errors").into_data().expect("data"));
        }
    }

    /// Type and name of the next event.
    async fn brief(&mut self) -> (String, String) {
        let event = self.next().await.expect("an event");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }
}

fn brief(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

#[tokio::test]
async fn a_watch_tells_the_state_and_what_happens_to_it() {
    let server = Server::new().await;
    let created = server.create("a", "one").await;
    let mut events = Events::of(&server, "allowWatchBookmarks=true", "").await;
    assert_eq!(events.next().await, Some(json!({"type": "ADDED", "object": created})));
    let end = events.next().await.expect("a bookmark");
    assert_eq!((&end["type"], &end["object"]["kind"]), (&json!("BOOKMARK"), &json!("Widget")));
    assert_eq!(end["object"]["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));

    server.create("b", "x").await;
    assert_eq!(events.brief().await, brief("ADDED", "b"));
    let mut changed = created.clone();
    changed["spec"]["text"] = "two".into();
    server.json("PUT", &format!("{WIDGETS}/a"), &changed).await;
    assert_eq!(events.brief().await, brief("MODIFIED", "a"));
    server.ask("DELETE", &format!("{WIDGETS}/a"), &[], b"").await;
    assert_eq!(events.brief().await, brief("DELETED", "a"));
}

#[tokio::test]
async fn a_watch_from_a_version_tells_what_came_later_and_ends_in_time() {
    let server = Server::new().await;
    let created = server.create("a", "one").await;
    server.create("b", "x").await;
    let version = created["metadata"]["resourceVersion"].as_str().expect("a version");
    let query = format!("resourceVersion={version}&timeoutSeconds=1&fieldSelector=metadata.name!%3Dz");
    let mut events = Events::of(&server, &query, "application/json;stream=watch").await;
    assert_eq!(events.brief().await, brief("ADDED", "b"));
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn events_that_are_there_come_together() {
    let server = Server::new().await;
    for n in 0..50 {
        server.create(&format!("w{n:02}"), "x").await;
    }
    let response = server.send("GET", &format!("{WIDGETS}?watch=1"), &[], b"").await;
    let mut body = response.into_body();
    let first = body.frame().await.expect("a frame").expect("no errors").into_data().expect("data");
    let lines = first.iter().filter(|byte| **byte == b'\n').count();
    assert!(lines > 10 && first.ends_with(b"}\n"), "{lines} events in {} bytes", first.len());
    assert!(first.len() < 64 * 1024);
}

#[tokio::test]
async fn the_deprecated_paths_still_work() {
    let server = Server::new().await;
    server.create("a", "one").await;
    server.create("b", "x").await;
    for (path, names) in [
        ("namespaces/ns/widgets", vec!["a", "b"]),
        ("widgets", vec!["a", "b"]),
        ("namespaces/ns/widgets/b", vec!["b"]),
    ] {
        let uri = format!("/apis/example.com/v1/watch/{path}?timeoutSeconds=1&allowWatchBookmarks=1");
        let answer = server.get(&uri).await;
        let events: Vec<Value> =
            answer.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let seen: Vec<_> = events.iter().map(|event| &event["object"]["metadata"]["name"]).collect();
        assert_eq!(seen, names, "{path}");
    }
    let uri = "/apis/example.com/v1/watch/namespaces/ns/widgets/b?fieldSelector=metadata.name%3Da";
    assert_eq!(server.get(uri).await.message(), "fieldSelector metadata.name doesn't match requested name");
}

#[tokio::test]
async fn errors_of_the_state_are_events_and_those_of_the_request_are_answers() {
    let server = Server::new().await;
    let mut events = Events::of(
        &server,
        "resourceVersion=99999999&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        "",
    )
    .await;
    let error = events.next().await.expect("an event");
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(504)));
    assert_eq!(error["object"]["kind"], "Status");
    assert_eq!(events.next().await, None);
    for (query, accept, code) in [
        ("resourceVersion=x", "", 500),
        ("labelSelector==", "", 400),
        ("fieldSelector=spec.text=a", "", 400),
        ("sendInitialEvents=true", "", 422),
        ("", "application/yaml", 406),
        ("includeObject=x", "application/json;as=Table;g=meta.k8s.io;v=v1", 400),
    ] {
        let uri = format!("{WIDGETS}?watch=1&{query}");
        let answer = server.ask("GET", &uri, &[("accept", accept)], b"").await;
        assert_eq!(answer.code, code, "{query} {accept}: {}", answer.text());
    }
}

#[tokio::test]
async fn events_come_in_the_form_the_client_wants() {
    let server = Server::new().await;
    server.create("a", "one").await;
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let mut events = Events::of(&server, "allowWatchBookmarks=1", table).await;
    let first = events.next().await.expect("an event");
    assert_eq!((&first["type"], &first["object"]["kind"]), (&json!("ADDED"), &json!("Table")));
    assert_eq!(first["object"]["columnDefinitions"][0]["name"], "Name");
    assert_eq!(first["object"]["rows"][0]["cells"][0], "a");
    let bookmark = events.next().await.expect("a bookmark");
    assert_eq!(
        (&bookmark["type"], &bookmark["object"]["columnDefinitions"]),
        (&json!("BOOKMARK"), &json!(null))
    );
    assert_eq!(
        bookmark["object"]["rows"][0]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    let partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let mut events = Events::of(&server, "", partial).await;
    let first = events.next().await.expect("an event");
    assert_eq!(first["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(first["object"]["spec"], json!(null));
}

#[tokio::test]
async fn a_websocket_without_a_connection_is_refused() {
    let server = Server::new().await;
    let headers = [("connection", "Upgrade"), ("upgrade", "websocket"), ("sec-websocket-version", "13")];
    let answer = server.ask("GET", &format!("{WIDGETS}?watch=1"), &headers, b"").await;
    assert_eq!(answer.code, 400);
    let list = server.ask("GET", WIDGETS, &headers, widget("a", "").to_string().as_bytes()).await;
    assert_eq!(list.code, 200, "only watches go over websockets");
}

/// Nobody misses anything, and nobody is told anything twice or in another order, however many there are and whatever
/// form they want.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_watcher_is_told_everything_in_order() {
    const WATCHERS: usize = 200;
    const CHANGES: usize = 40;
    let server = Server::new().await;
    let start = server.create("first", "x").await["metadata"]["resourceVersion"].clone();
    let start = start.as_str().expect("a version");
    let accepts = [
        "application/json",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/json;as=Table;g=meta.k8s.io;v=v1",
    ];
    let mut watchers = Vec::new();
    for number in 0..WATCHERS {
        let accept = accepts[number % accepts.len()];
        watchers.push(Events::of(&server, &format!("resourceVersion={start}"), accept).await);
    }
    let reading = tokio::spawn(async move {
        let mut told = Vec::new();
        for mut watcher in watchers {
            let mut names = Vec::new();
            while names.len() < CHANGES {
                let event = watcher.next().await.expect("an event");
                assert_eq!(event["type"], "ADDED");
                let object = &event["object"];
                let metadata = object.get("metadata").filter(|metadata| metadata.get("name").is_some());
                let metadata = metadata.unwrap_or(&object["rows"][0]["object"]["metadata"]);
                names.push(metadata["name"].as_str().expect("a name").to_owned());
            }
            told.push(names);
        }
        told
    });
    let made: Vec<String> = (0..CHANGES).map(|number| format!("w{number}")).collect();
    for name in &made {
        server.create(name, "x").await;
    }
    for told in reading.await.expect("all are told") {
        assert_eq!(told, made);
    }
}
