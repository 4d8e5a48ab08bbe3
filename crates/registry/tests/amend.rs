//! What the server changes itself, on a real store.

#[allow(dead_code, reason = "the verbs are tested elsewhere")]
mod support;

use std::sync::Arc;

use concord_registry::{Object, Part};
use serde_json::json;
use support::{Fixture, context, named, widget};

#[tokio::test]
async fn what_the_server_amends_is_owned_by_nobody() {
    let fixture = Fixture::new().await;
    let created = fixture.create(widget("a", json!({"text": "one"}))).await.expect("created");
    let amend = |object: &mut Object| {
        object["spec"]["text"] = "two".into();
        object.insert("status".to_owned(), json!({"replicas": 1}));
        Ok(())
    };
    let mut dry = context("server");
    dry.dry_run = true;
    let registry = &fixture.registry;
    registry.amend(&dry, &fixture.widgets, named("a"), &amend).await.expect("a dry run");
    assert_eq!(fixture.get("a").await.expect("there"), created);
    let item =
        registry.amend(&context("server"), &fixture.widgets, named("a"), &amend).await.expect("amended");
    let mut expected = created.clone();
    expected["spec"]["text"] = "two".into();
    expected["status"] = json!({"replicas": 1});
    expected["metadata"]["resourceVersion"] = item.revision.expect("stored").to_string().into();
    assert_eq!(fixture.get("a").await.expect("there"), expected, "neither a generation nor an owner");
    let none = registry.amend(&context("server"), &fixture.widgets, named("b"), &amend).await;
    assert_eq!(none.expect_err("not there").message, r#"widgets.example.com "b" not found"#);
}

#[tokio::test]
async fn nobody_comes_between_a_revision_and_what_it_was_made_from() {
    let fixture = Arc::new(Fixture::new().await);
    fixture.create(widget("a", json!({"replicas": 1}))).await.expect("created");
    let more = (0..8).map(|_| {
        let fixture = fixture.clone();
        tokio::spawn(async move {
            let add = |object: &mut Object| {
                let count = object.get("status").and_then(|status| status["replicas"].as_i64());
                object.insert("status".to_owned(), json!({"replicas": count.unwrap_or_default() + 1}));
                Ok(())
            };
            let on = (named("a"), Part::Sub("status"));
            fixture.registry.revise(&context("server"), &fixture.widgets, on, &add).await.expect("revised");
        })
    });
    for task in more.collect::<Vec<_>>() {
        task.await.expect("ends");
    }
    let object = fixture.get("a").await.expect("there");
    assert_eq!(object["status"], json!({"replicas": 8}));
    let entries = object["metadata"]["managedFields"].as_array().expect("entries");
    assert!(entries.iter().any(|entry| entry["manager"] == "server" && entry["subresource"] == "status"));
}
