//! The verbs on a real store.

mod support;

use concord_codec::{EventType, PatchType};
use concord_meta::options::{DeleteOptions, PropagationPolicy};
use concord_registry::{DeleteOutcome, Part, UpdateRequest, WatchEnd, WatchEvent};
use serde_json::{Value, json};
use support::{Fixture, context, named, revision, widget};

#[tokio::test]
async fn an_object_is_created_read_and_changed() {
    let fixture = Fixture::new().await;
    let created = fixture.create(widget("a", json!({"text": "one"}))).await.expect("created");
    assert_eq!(created["metadata"]["namespace"], "ns");
    assert_eq!(created["metadata"]["generation"], 1);
    assert_eq!(fixture.get("a").await.expect("there"), created);
    let refused = fixture.create(widget("a", json!({}))).await.expect_err("there already");
    assert_eq!(refused.message, r#"widgets.example.com "a" already exists"#);

    let mut changed = created.clone();
    changed["spec"]["text"] = "two".into();
    let updated = fixture.update(Part::Main, changed.clone()).await.expect("updated");
    assert_eq!(updated["metadata"]["generation"], 2);
    assert!(revision(&updated) > revision(&created));
    let refused = fixture.update(Part::Main, changed).await.expect_err("made from an older state");
    assert_eq!((refused.code, refused.reason.as_str()), (409, "Conflict"));
    let mut unconditional = widget("a", json!({"text": "three"}));
    unconditional["metadata"]["labels"] = json!({"l": "v"});
    let updated = fixture.update(Part::Main, unconditional).await.expect("without a version");
    assert_eq!(updated["spec"], json!({"text": "three"}));
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_none() {
    let fixture = Fixture::new().await;
    let created = fixture.create(widget("a", json!({"text": "one"}))).await.expect("created");
    let same = fixture.update(Part::Main, created.clone()).await.expect("no change");
    assert_eq!(same, created);
    let patch = fixture.patch("a", PatchType::Merge, &json!({"spec": {"text": "one"}})).await.expect("none");
    assert_eq!(patch.item.revision, Some(revision(&created)));
}

#[tokio::test]
async fn a_change_back_is_not_taken_for_none() {
    let fixture = Fixture::new().await;
    let mut last = revision(&fixture.create(widget("a", json!({"text": "one"}))).await.expect("created"));
    // Each makes the object what it was before the last one, which the replica may not have seen yet.
    for text in ["two", "one"].into_iter().cycle().take(400) {
        let patch = fixture.patch("a", PatchType::Merge, &json!({"spec": {"text": text}})).await;
        let written = patch.expect("changed").item.revision.expect("stored");
        assert!(written > last, "{text} was taken for no change");
        last = written;
    }
}

#[tokio::test]
async fn each_door_changes_its_part_only() {
    let fixture = Fixture::new().await;
    let mut object = fixture.create(widget("a", json!({"text": "one"}))).await.expect("created");
    object["spec"]["text"] = "two".into();
    object["status"] = json!({"replicas": 3});
    let status = fixture.update(Part::Sub("status"), object).await.expect("updated");
    assert_eq!((&status["spec"]["text"], &status["status"]["replicas"]), (&json!("one"), &json!(3)));
    assert_eq!(status["metadata"]["generation"], 1);
    let entries = status["metadata"]["managedFields"].as_array().expect("entries");
    assert!(entries.iter().any(|entry| entry["subresource"] == "status"), "{entries:?}");
}

#[tokio::test]
async fn names_are_generated() {
    let fixture = Fixture::new().await;
    let mut object = widget("", json!({}));
    object["metadata"] = json!({"generateName": "w-"});
    let one = fixture.create(object.clone()).await.expect("created");
    let other = fixture.create(object).await.expect("created");
    assert!(one["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("w-") && name.len() == 7));
    assert_ne!(one["metadata"]["name"], other["metadata"]["name"]);
    let refused = fixture.create(json!({"metadata": {}})).await.expect_err("no name");
    let text = r#"Widget.example.com "" is invalid: metadata.name: Required value: name or generateName is required"#;
    assert_eq!(refused.message, text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_knows_what_was_just_written() {
    let fixture = Fixture::new().await;
    let mut dry = context("test");
    dry.dry_run = true;
    for number in 0..100 {
        let name = format!("a{number}");
        fixture.create(widget(&name, json!({}))).await.expect("created");
        let again = fixture.decode(&widget(&name, json!({}))).expect("good");
        let refused = fixture.registry.create(&dry, &fixture.widgets, "ns", again).await.expect_err("there");
        assert_eq!(refused.code, 409, "{name}");
    }
}

#[tokio::test]
async fn a_dry_run_stores_nothing() {
    let fixture = Fixture::new().await;
    let mut dry = context("test");
    dry.dry_run = true;
    let object = fixture.decode(&widget("a", json!({"text": "one"}))).expect("good");
    let item = fixture.registry.create(&dry, &fixture.widgets, "ns", object).await.expect("fine");
    assert_eq!(item.revision, None);
    assert!(!fixture.show(&item).expect("an object")["metadata"]["uid"].is_null());
    assert_eq!(fixture.get("a").await.expect_err("not stored").code, 404);

    let created = fixture.create(widget("a", json!({"text": "one"}))).await.expect("created");
    let object = fixture.decode(&widget("a", json!({"text": "two"}))).expect("good");
    let request = UpdateRequest { name: named("a"), part: Part::Main, object };
    let written = fixture.registry.update(&dry, &fixture.widgets, request).await.expect("fine");
    assert_eq!(fixture.show(&written.item).expect("an object")["spec"]["text"], "two");
    let deleted =
        fixture.registry.delete(&dry, &fixture.widgets, named("a"), &DeleteOptions::default()).await;
    assert!(matches!(deleted, Ok(DeleteOutcome::Gone(_))));
    assert_eq!(fixture.get("a").await.expect("still there"), created);
}

#[tokio::test]
async fn patches_of_each_kind_change_objects() {
    let fixture = Fixture::new().await;
    let ports = json!([{"name": "a", "port": 1}, {"name": "b", "port": 2}]);
    fixture.create(widget("a", json!({"text": "one", "ports": ports}))).await.expect("created");
    let json_patch = json!([{"op": "test", "path": "/spec/text", "value": "one"}, {"op": "replace", "path": "/spec/text", "value": "two"}]);
    let patches = [
        (PatchType::Json, json_patch.clone()),
        (PatchType::Merge, json!({"spec": {"replicas": 3}})),
        (
            PatchType::StrategicMerge,
            json!({"spec": {"ports": [{"name": "b", "port": 20}, {"name": "c", "port": 3}]}}),
        ),
    ];
    for (kind, patch) in patches {
        fixture.patch("a", kind, &patch).await.expect("applies");
    }
    let object = fixture.get("a").await.expect("there");
    assert_eq!((&object["spec"]["text"], &object["spec"]["replicas"]), (&json!("two"), &json!(3)));
    let mut ports: Vec<String> =
        object["spec"]["ports"].as_array().expect("ports").iter().map(Value::to_string).collect();
    ports.sort();
    assert_eq!(ports, [r#"{"name":"a","port":1}"#, r#"{"name":"b","port":20}"#, r#"{"name":"c","port":3}"#]);

    let refused = fixture.patch("a", PatchType::Json, &json_patch).await.expect_err("the test fails");
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (422, "the server rejected our request due to an error in our request")
    );
    let refused =
        fixture.patch("a", PatchType::Merge, &json!({"spec": {"nope": 1}})).await.expect_err("strict");
    assert_eq!(refused.code, 422);
    assert!(refused.message.contains(r#"unknown field "spec.nope""#), "{}", refused.message);
    let refused =
        fixture.patch("a", PatchType::Merge, &json!({"metadata": {"name": "b"}})).await.expect_err("renames");
    assert_eq!(refused.message, "the name of the object (b) does not match the name on the URL (a)");
    let stale = json!({"metadata": {"resourceVersion": "1"}, "spec": {"text": "x"}});
    assert_eq!(fixture.patch("a", PatchType::Merge, &stale).await.expect_err("stale").code, 409);
    assert_eq!(fixture.patch("none", PatchType::Merge, &json!({})).await.expect_err("absent").code, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_patches_all_take_effect() {
    let fixture = Fixture::new().await;
    fixture.create(widget("a", json!({}))).await.expect("created");
    let patches = (0..40).map(|n| {
        let patch = json!({"metadata": {"labels": {format!("l{n}"): "v"}}});
        let fixture = &fixture;
        async move { fixture.patch("a", PatchType::Merge, &patch).await.expect("applies in the end") }
    });
    futures_util::future::join_all(patches).await;
    let object = fixture.get("a").await.expect("there");
    assert_eq!(object["metadata"]["labels"].as_object().map(|labels| labels.len()), Some(40));
}

#[tokio::test]
async fn apply_creates_owns_and_conflicts() {
    let fixture = Fixture::new().await;
    let one = widget("a", json!({"text": "one", "replicas": 1}));
    let created = fixture.apply("one", false, &one).await.expect("created");
    let again = fixture.apply("one", false, &one).await.expect("the same");
    assert_eq!(again, created, "applying twice changes nothing");
    let two = widget("a", json!({"text": "two"}));
    let refused = fixture.apply("two", false, &two).await.expect_err("owned by another");
    assert_eq!(refused.message, r#"Apply failed with 1 conflict: conflict with "one": .spec.text"#);
    let forced = fixture.apply("two", true, &two).await.expect("forced");
    assert_eq!(forced["spec"], json!({"text": "two", "replicas": 1}));
    let dropped = fixture.apply("one", false, &widget("a", json!({}))).await.expect("gives up");
    assert_eq!(dropped["spec"], json!({"text": "two"}), "what only one owned is gone");
}

#[tokio::test]
async fn finalizers_hold_an_object_until_they_are_gone() {
    let fixture = Fixture::new().await;
    let mut object = widget("a", json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    fixture.create(object).await.expect("created");
    let foreground =
        DeleteOptions { propagation_policy: Some(PropagationPolicy::Foreground), ..DeleteOptions::default() };
    let Ok(DeleteOutcome::Pending(item)) = fixture.delete("a", &foreground).await else { panic!("held") };
    let held = fixture.show(&item).expect("an object");
    assert_eq!(held["metadata"]["finalizers"], json!(["example.com/hold", "foregroundDeletion"]));
    assert_eq!(held["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(held["metadata"]["generation"], 2);
    let refused = fixture.create(widget("a", json!({}))).await.expect_err("still there");
    assert_eq!(refused.message, r#"object is being deleted: widgets.example.com "a" already exists"#);
    let more = json!({"metadata": {"finalizers": ["example.com/more"]}});
    assert_eq!(fixture.patch("a", PatchType::Merge, &more).await.expect_err("no new ones").code, 422);
    let none = json!({"metadata": {"finalizers": null}});
    fixture.patch("a", PatchType::Merge, &none).await.expect("the last ones");
    assert_eq!(fixture.get("a").await.expect_err("gone").code, 404);
}

#[tokio::test]
async fn preconditions_protect_from_deleting_another_object() {
    let fixture = Fixture::new().await;
    let object = fixture.create(widget("a", json!({}))).await.expect("created");
    let mut options = DeleteOptions::default();
    options.preconditions.uid = Some("other".to_owned());
    let refused = fixture.delete("a", &options).await.expect_err("another uid");
    assert_eq!((refused.code, refused.reason.as_str()), (409, "Conflict"));
    options.preconditions.uid = object["metadata"]["uid"].as_str().map(ToOwned::to_owned);
    let Ok(DeleteOutcome::Gone(status)) = fixture.delete("a", &options).await else { panic!("deleted") };
    let details = status.details.expect("details");
    assert_eq!((details.name.as_str(), details.kind.as_str()), ("a", "widgets"));
}

#[tokio::test]
async fn a_list_is_read_in_pages_at_one_revision() {
    let fixture = Fixture::new().await;
    for n in 0..5 {
        fixture.create(widget(&format!("w{n}"), json!({}))).await.expect("created");
    }
    let first = fixture.list(&[("limit", "2")]).await.expect("a page");
    assert_eq!((first.entries.len(), first.remaining_item_count), (2, Some(3)));
    fixture.delete("w3", &DeleteOptions::default()).await.expect("deleted");
    let mut names = Vec::new();
    let mut page = first.clone();
    loop {
        names.extend(
            page.entries
                .iter()
                .filter_map(|entry| fixture.storage().object_name(&entry.key))
                .map(|name| name.name.to_owned()),
        );
        if page.continue_token.is_empty() {
            break;
        }
        page = fixture.list(&[("limit", "2"), ("continue", &page.continue_token)]).await.expect("a page");
        assert_eq!(page.revision, first.revision);
    }
    assert_eq!(names, ["w0", "w1", "w2", "w3", "w4"], "w3 was there at that revision");
    fixture.get("w0").await.expect("from now on the replica knows of the delete");
    let any = fixture.list(&[("limit", "2"), ("resourceVersion", "0")]).await.expect("any state");
    assert_eq!((any.entries.len(), any.continue_token.as_str()), (4, ""), "the limit does not count");
    let future = fixture.list(&[("resourceVersion", "99999")]).await.expect_err("not yet");
    assert_eq!((future.code, future.retry_after_seconds()), (504, Some(1)));
}

#[tokio::test]
async fn a_watch_sees_objects_come_to_match_and_leave() {
    let fixture = Fixture::new().await;
    let labelled = |name: &str, value: &str| {
        let mut object = widget(name, json!({}));
        object["metadata"]["labels"] = json!({"l": value});
        object
    };
    fixture.create(labelled("a", "yes")).await.expect("created");
    fixture.create(labelled("b", "no")).await.expect("created");
    let mut watch = fixture.watch(&[("labelSelector", "l=yes")]).await;
    let mut seen = Vec::new();
    for change in [None, Some(("b", "yes")), Some(("a", "no"))] {
        if let Some((name, value)) = change {
            let patch = json!({"metadata": {"labels": {"l": value}}});
            fixture.patch(name, PatchType::Merge, &patch).await.expect("patched");
        }
        loop {
            match watch.next().await.expect("goes on") {
                WatchEvent::InitialEventsEnd(_) => break,
                WatchEvent::Object { event, value, revision } => {
                    let frame = fixture.widgets.frame(event, &value, revision).expect("a frame");
                    let frame: Value = serde_json::from_slice(&frame).expect("JSON");
                    assert_eq!(frame["object"]["metadata"]["resourceVersion"], revision.to_string());
                    seen.push((event, frame["object"]["metadata"]["name"].clone()));
                    if change.is_some() {
                        break;
                    }
                }
            }
        }
    }
    let expected =
        [(EventType::Added, json!("a")), (EventType::Added, json!("b")), (EventType::Deleted, json!("a"))];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_bookmark_promises_only_what_was_said() {
    let fixture = Fixture::new().await;
    for name in ["a", "b"] {
        fixture.create(widget(name, json!({}))).await.expect("created");
    }
    let mut watch = fixture.watch(&[]).await;
    for _ in 0..3 {
        assert_eq!(watch.bookmark(), None, "there is more in the beginning");
        watch.next().await.expect("goes on");
    }
    let since = watch.bookmark().expect("all was said");
    fixture.create(widget("c", json!({}))).await.expect("created");
    let Ok(WatchEvent::Object { revision, .. }) = watch.next().await else { panic!("an object is told") };
    assert!(revision > since);
    assert!(watch.bookmark() >= Some(revision));
}

#[tokio::test]
async fn a_watch_that_starts_too_early_ends_with_an_error() {
    let fixture = Fixture::new().await;
    let options = concord_meta::options::ListOptions::from_query(concord_meta::options::Query(&[
        ("watch", "1"),
        ("resourceVersion", "1"),
    ]))
    .expect("good");
    fixture.create(widget("a", json!({}))).await.expect("created");
    let request = concord_registry::WatchRequest { namespace: None, options: &options };
    let started = fixture.registry.watch(fixture.storage(), request).await.expect("no HTTP error");
    // The history of an empty store begins at its first revision: either it can be replayed, or the client is told.
    match started {
        Ok(mut watch) => assert!(matches!(watch.next().await, Ok(WatchEvent::Object { .. }))),
        Err(end) => assert!(matches!(end, WatchEnd::Error(status) if status.code == 410)),
    }
}

#[tokio::test]
async fn scale_changes_replicas_and_nothing_else() {
    let fixture = Fixture::new().await;
    let scaling = fixture.scaling();
    fixture.create(widget("a", json!({"text": "one", "replicas": 1}))).await.expect("created");
    let read_at = concord_meta::options::ReadAt::MostRecent;
    let scale =
        fixture.registry.get_scale(&fixture.widgets, &scaling, named("a"), read_at).await.expect("a scale");
    assert_eq!(scale["spec"], json!({"replicas": 1}));
    let mut changed = scale.clone();
    changed["spec"]["replicas"] = 5.into();
    let after = fixture
        .registry
        .update_scale(&context("scaler"), &fixture.widgets, &scaling, named("a"), changed)
        .await;
    assert_eq!(after.expect("scaled")["spec"], json!({"replicas": 5}));
    let object = fixture.get("a").await.expect("there");
    assert_eq!(
        (&object["spec"], &object["metadata"]["generation"]),
        (&json!({"text": "one", "replicas": 5}), &json!(2))
    );
    let entries = object["metadata"]["managedFields"].as_array().expect("entries");
    let owner = entries.iter().find(|entry| entry["manager"] == "scaler").expect("the scaler owns something");
    assert_eq!(
        (&owner["subresource"], &owner["fieldsV1"]),
        (&json!("scale"), &json!({"f:spec": {"f:replicas": {}}}))
    );
    let mut negative = scale;
    negative["spec"]["replicas"] = (-1).into();
    negative["metadata"].as_object_mut().map(|metadata| metadata.remove("resourceVersion"));
    let refused =
        fixture.registry.update_scale(&context("s"), &fixture.widgets, &scaling, named("a"), negative).await;
    assert_eq!(refused.expect_err("negative").code, 422);
}

#[tokio::test]
async fn what_was_acknowledged_is_in_the_store() {
    use concord_store::Store as _;
    let fixture = Fixture::new().await;
    let created = fixture.create(widget("a", json!({"text": "one"}))).await.expect("created");
    assert_eq!(fixture.store.current_revision().await.expect("a revision"), revision(&created));
    let listing = fixture.list(&[]).await.expect("a list");
    let stored = String::from_utf8_lossy(&listing.entries[0].value);
    assert!(stored.starts_with(r#"{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"#), "{stored}");
    assert!(!stored.contains("resourceVersion"), "{stored}");
}
