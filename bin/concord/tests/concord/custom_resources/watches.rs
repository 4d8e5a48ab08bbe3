//! Who watches custom objects while their definition changes.

use std::{pin::pin, time::Duration};

use futures_util::{Stream, StreamExt as _};
use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{define, gadget, gadgets, kind, refusal, version};
use crate::support::SOON;

const GROUP: &str = "watched.example.com";

fn api(client: &Client, version: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), "default", &kind(GROUP, version, "Gadget"))
}

fn definitions(client: &Client) -> Api<CustomResourceDefinition> {
    Api::all(client.clone())
}

async fn patch(client: &Client, patch: &Value) {
    let name = format!("gadgets.{GROUP}");
    let patched = definitions(client).patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.expect("patched");
}

/// What comes next: what happened, and to whom; nothing at the end.
async fn next(
    stream: &mut (impl Stream<Item = kube::Result<WatchEvent<DynamicObject>>> + Unpin),
) -> Option<(&'static str, String)> {
    let event = timeout(SOON, stream.next()).await.expect("something happens")?;
    Some(match event.expect("an event") {
        WatchEvent::Added(object) => ("ADDED", object.name_any()),
        WatchEvent::Modified(object) => ("MODIFIED", object.name_any()),
        WatchEvent::Deleted(object) => ("DELETED", object.name_any()),
        other => panic!("unexpected: {other:?}"),
    })
}

async fn create(client: &Client, name: &str) {
    let resource = kind(GROUP, "v1", "Gadget");
    let object = gadget(&resource, name, &json!({"color": "red"}));
    api(client, "v1").create(&PostParams::default(), &object).await.expect("created");
}

async fn verbs(client: &Client) -> Vec<String> {
    let request = Request::get(format!("/apis/{GROUP}/v1")).body(Vec::new()).expect("a request");
    let found: Value = client.request(request).await.expect("discovery");
    let found = found["resources"].as_array().expect("resources").iter();
    let gadgets = found.clone().find(|resource| resource["name"] == "gadgets").expect("gadgets");
    serde_json::from_value(gadgets["verbs"].clone()).expect("verbs")
}

/// A watch lasts as long as its definition is what it was when it began; then it ends, and whoever comes back is told the
/// rest by the new definition. What changes nothing that is served ends no watch.
pub(super) async fn watches_end_with_their_definition(client: &Client) {
    let both = json!([version("v1", true), version("v2", false)]);
    define(client, &gadgets(GROUP, &both)).await;
    let parameters = WatchParams::default().disable_bookmarks();
    let start = api(client, "v2").list(&ListParams::default()).await.expect("a list");
    let start = start.metadata.resource_version.expect("a version");
    let (of_v1, of_v2) = (api(client, "v1"), api(client, "v2"));
    let mut v2 = pin!(of_v2.watch(&parameters, &start).await.expect("a watch"));

    patch(client, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    create(client, "one").await;
    assert_eq!(next(&mut v2).await, Some(("ADDED", "one".to_owned())), "a label ends no watch");

    let mut unserved = both.clone();
    unserved[1]["served"] = json!(false);
    patch(client, &json!({"spec": {"versions": unserved}})).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let stale = api(client, "v2").get("one").await.expect_err("not served");
    assert_eq!(refusal(stale).code, 404);
    assert_eq!(next(&mut v2).await, None, "what is not served is not watched");

    let mut v1 = pin!(of_v1.watch(&parameters, &start).await.expect("a watch"));
    assert_eq!(next(&mut v1).await, Some(("ADDED", "one".to_owned())));
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    api(client, "v1").patch("one", &PatchParams::default(), &Patch::Merge(&held)).await.expect("held");
    assert_eq!(next(&mut v1).await, Some(("MODIFIED", "one".to_owned())));
    assert!(verbs(client).await.contains(&"create".to_owned()));

    let name = format!("gadgets.{GROUP}");
    definitions(client).delete(&name, &DeleteParams::default()).await.expect("being deleted");
    assert_eq!(verbs(client).await, ["delete", "deletecollection", "get", "list", "watch"]);
    assert_eq!(next(&mut v1).await, Some(("MODIFIED", "one".to_owned())), "being deleted, and still watched");
    let free = json!({"metadata": {"finalizers": null}});
    api(client, "v1").patch("one", &PatchParams::default(), &Patch::Merge(&free)).await.expect("let go");
    assert_eq!(next(&mut v1).await, Some(("DELETED", "one".to_owned())));
    assert_eq!(next(&mut v1).await, None, "its definition is gone");
}
