//! Lists.

use std::io::Read as _;

use flate2::read::GzDecoder;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::support::{Server, WIDGETS};

#[tokio::test]
async fn lists_are_written_as_upstream_writes_them() {
    let server = Server::new().await;
    let empty = server.get(WIDGETS).await;
    let revision = empty.json()["metadata"]["resourceVersion"].as_str().expect("a revision").to_owned();
    let expected = format!(
        "{{\"kind\":\"WidgetList\",\"apiVersion\":\"example.com/v1\",\"metadata\":{{\"resourceVersion\":\"{revision}\"}},\"items\":[]}}\n"
    );
    assert_eq!(empty.text(), expected);
    let mut created = server.create("a", "one").await;
    server.create("b", "two").await;
    created
        .as_object_mut()
        .expect("an object")
        .retain(|name, _| !["kind", "apiVersion"].contains(&name.as_str()));
    let list = server.get(WIDGETS).await.json();
    assert_eq!(list["items"][0], created);
    assert_eq!(list["items"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn pages_selectors_and_errors() {
    let server = Server::new().await;
    for name in ["a", "b", "c"] {
        server.create(name, "x").await;
    }
    let page = server.get(&format!("{WIDGETS}?limit=2")).await.json();
    assert_eq!(page["metadata"]["remainingItemCount"], 1);
    let token = page["metadata"]["continue"].as_str().expect("a token");
    let rest = server.get(&format!("{WIDGETS}?limit=2&continue={token}")).await.json();
    assert_eq!(rest["items"][0]["metadata"]["name"], "c");
    let one = server.get(&format!("{WIDGETS}?fieldSelector=metadata.name%3Db")).await.json();
    assert_eq!(one["items"][0]["metadata"]["name"], "b");
    assert_eq!(one["items"].as_array().map(Vec::len), Some(1));
    for (query, code) in [
        ("limit=x", 400),
        ("labelSelector==", 400),
        ("fieldSelector=spec.text=a", 400),
        ("continue=x", 400),
        ("resourceVersion=x", 400),
        ("resourceVersionMatch=Exact", 422),
        ("sendInitialEvents=true", 422),
    ] {
        assert_eq!(server.get(&format!("{WIDGETS}?{query}")).await.code, code, "{query}");
    }
}

#[tokio::test]
async fn lists_come_in_the_form_the_client_wants() {
    let server = Server::new().await;
    let partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let empty = server.accept(WIDGETS, partial).await;
    assert!(empty.text().ends_with("},\"items\":null}\n"), "{}", empty.text());
    let created = server.create("a", "one").await;
    let list = server.accept(WIDGETS, partial).await.json();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    let item = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": created["metadata"]});
    assert_eq!(list["items"], json!([item]));

    let table = server.accept(WIDGETS, "application/json;as=Table;g=meta.k8s.io;v=v1").await.json();
    assert_eq!((&table["kind"], &table["rows"][0]["cells"][0]), (&json!("Table"), &json!("a")));
    let yaml = server.accept(WIDGETS, "application/yaml").await;
    assert!(yaml.text().starts_with("apiVersion: example.com/v1\nitems:\n- metadata:\n"), "{}", yaml.text());
    let pretty = server.get(&format!("{WIDGETS}?pretty=1")).await;
    assert!(pretty.text().starts_with("{\n  \"kind\": \"WidgetList\",\n"), "{}", pretty.text());

    for (accept, message) in [
        (
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            "you requested PartialObjectMetadata, but the requested object is a list (*example.WidgetList)",
        ),
        (
            "application/json;as=Other;g=meta.k8s.io;v=v1",
            "only the following media types are accepted: application/json, application/yaml",
        ),
        (
            "text/html",
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/json;stream=watch",
        ),
    ] {
        let refused = server.accept(WIDGETS, accept).await;
        assert_eq!((refused.code, refused.message().as_str()), (406, message));
        assert!(refused.text().starts_with("{\n  \"kind\": \"Status\""), "errors are indented then");
    }
    let single = server.accept(&format!("{WIDGETS}/a"), partial).await;
    assert_eq!(
        single.message(),
        "you requested PartialObjectMetadataList, but the requested object is not a list (*example.Widget)"
    );
}

#[tokio::test]
async fn custom_resources_are_listed_with_all_their_fields() {
    let server = Server::new().await;
    let uri = "/apis/custom.io/v1/namespaces/ns/gadgets";
    let gadget = json!({"kind": "Gadget", "apiVersion": "custom.io/v1", "metadata": {"name": "g"}});
    assert_eq!(server.json("POST", uri, &gadget).await.code, 201);
    let list = server.get(uri).await;
    assert!(list.text().starts_with(r#"{"apiVersion":"custom.io/v1","items":[{"#), "{}", list.text());
    assert_eq!(list.json()["items"][0]["kind"], "Gadget");
    assert_eq!(list.json()["metadata"]["continue"], "");
    assert_eq!(server.ask("HEAD", uri, &[], b"").await.code, 200);
    assert_eq!(server.accept(uri, "application/*").await.code, 200, "no router in between");
}

/// More than is sent at once.
async fn fill(server: &Server) -> Vec<String> {
    let text = "x".repeat(3000);
    let names: Vec<String> = (0..120).map(|n| format!("w{n:03}")).collect();
    for name in &names {
        server.create(name, &text).await;
    }
    names
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().expect("items").iter();
    items.map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test]
async fn large_lists_are_sent_in_chunks() {
    let server = Server::new().await;
    let expected = fill(&server).await;
    let mut body = server.send("GET", WIDGETS, &[], b"").await.into_body();
    let mut all = Vec::new();
    let mut chunks = 0;
    while let Some(frame) = body.frame().await {
        let data = frame.expect("no errors").into_data().expect("data");
        assert!(data.len() < 80 * 1024, "{}", data.len());
        all.extend_from_slice(&data);
        chunks += 1;
    }
    assert!(chunks > 4, "{chunks}");
    assert_eq!(names(&serde_json::from_slice(&all).expect("JSON")), expected);

    let zipped = server.ask("GET", WIDGETS, &[("accept-encoding", "gzip")], b"").await;
    assert_eq!((zipped.header("content-encoding"), zipped.header("vary")), ("gzip", "Accept-Encoding"));
    let mut plain = Vec::new();
    GzDecoder::new(&zipped.body[..]).read_to_end(&mut plain).expect("gzip");
    assert_eq!(plain, all);
    let small = server.ask("GET", &format!("{WIDGETS}?limit=3"), &[("accept-encoding", "gzip")], b"").await;
    assert_eq!(small.header("content-encoding"), "");
}

#[tokio::test]
async fn whoever_asks_gets_the_state_that_there_is_whatever_others_are_being_sent() {
    let server = Server::new().await;
    let mut expected = fill(&server).await;
    let first = server.send("GET", WIDGETS, &[], b"").await;
    let second = server.get(WIDGETS).await;
    assert_eq!(names(&second.json()), expected);
    for (uri, header) in [
        (format!("{WIDGETS}?limit=60"), ("accept", "application/json")),
        (WIDGETS.to_owned(), ("accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")),
        (WIDGETS.to_owned(), ("accept-encoding", "gzip")),
    ] {
        assert_ne!(server.ask("GET", &uri, &[header], b"").await.body, second.body, "{uri} {header:?}");
    }

    server.create("w120", &"x".repeat(3000)).await;
    let begun = first.into_body().collect().await.expect("no errors").to_bytes();
    assert_eq!(begun, second.body, "it began before");
    expected.push("w120".to_owned());
    assert_eq!(names(&server.get(WIDGETS).await.json()), expected);
}

#[tokio::test]
async fn a_collection_is_deleted_and_shown() {
    let server = Server::new().await;
    for name in ["a", "b"] {
        server.create(name, "x").await;
    }
    let dry = server.ask("DELETE", &format!("{WIDGETS}?dryRun=All"), &[], b"").await;
    assert_eq!(names(&dry.json()), ["a", "b"]);
    let one = server.ask("DELETE", &format!("{WIDGETS}?fieldSelector=metadata.name%3Da"), &[], b"").await;
    assert_eq!((one.code, names(&one.json())), (200, vec!["a".to_owned()]));
    assert_eq!(names(&server.get(WIDGETS).await.json()), ["b"]);
}
