//! Definitions that change, go and come back while their objects are written.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, Error, ResourceExt as _,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::timeout};

use super::{define, gadget, gadgets, kind};
use crate::support::SOON;

const GROUP: &str = "churn.example.com";
const WRITERS: usize = 8;
/// How many objects are written before the definition changes once more.
const BETWEEN: usize = 24;

/// What writers and the one who changes the definition know of each other.
#[derive(Default)]
struct Shared {
    /// The latest schema that somebody asked for, and the latest that was acknowledged.
    begun: AtomicI64,
    acknowledged: AtomicI64,
    /// All objects that were acknowledged, by name, with the schema that wrote them.
    made: Mutex<BTreeMap<String, i64>>,
    ends: AtomicBool,
}

impl Shared {
    fn made(&self) -> BTreeMap<String, i64> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn until_more_are_made(&self) {
        let enough = self.made().len() + BETWEEN;
        let wait = async {
            while self.made().len() < enough {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(SOON, wait).await.expect("writers go on");
    }
}

/// Two versions whose schemas say by a default which schema they are.
fn versions(schema: i64) -> Value {
    let version = |name: &str, storage: bool| {
        let spec =
            json!({"type": "object", "properties": {"schema": {"type": "integer", "default": schema}}});
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        })
    };
    json!([version("v1", schema % 2 == 0), version("v2", schema % 2 == 1)])
}

async fn write(client: Client, writer: usize, shared: Arc<Shared>) {
    for number in 0.. {
        if shared.ends.load(Ordering::SeqCst) {
            return;
        }
        let resource = kind(GROUP, if number % 2 == 0 { "v1" } else { "v2" }, "Gadget");
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
        let object = gadget(&resource, &format!("w{writer}-{number}"), &json!({}));
        let oldest = shared.acknowledged.load(Ordering::SeqCst);
        match api.create(&PostParams::default(), &object).await {
            Ok(made) => {
                let newest = shared.begun.load(Ordering::SeqCst);
                let schema = made.data["spec"]["schema"].as_i64().expect("a default");
                assert!((oldest..=newest).contains(&schema), "{schema} is not of {oldest} to {newest}");
                shared.made.lock().unwrap_or_else(PoisonError::into_inner).insert(made.name_any(), schema);
            }
            // It is not served, going away, or changing.
            Err(Error::Api(status)) => {
                assert!([403, 404, 429].contains(&status.code), "{status:?}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(other) => panic!("no answer: {other}"),
        }
    }
}

/// Watches a version, beginning again wherever a watch ends, and reads what it is told of. Answers all names it learned
/// of with the schema that wrote them.
async fn watch(client: Client, version: &'static str, shared: Arc<Shared>) -> BTreeMap<String, i64> {
    let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &kind(GROUP, version, "Gadget"));
    let mut seen = BTreeMap::new();
    let schema = |object: &DynamicObject| object.data["spec"]["schema"].as_i64().expect("a default");
    while !shared.ends.load(Ordering::SeqCst) {
        // It is not served for a moment while the definition is another.
        let Ok(list) = api.list(&ListParams::default()).await else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        seen.extend(list.items.iter().map(|object| (object.name_any(), schema(object))));
        let from = list.metadata.resource_version.expect("a version");
        let parameters = WatchParams::default().timeout(10).disable_bookmarks();
        let Ok(events) = api.watch(&parameters, &from).await else { continue };
        let mut events = pin!(events);
        while let Ok(Some(Ok(event))) = timeout(Duration::from_millis(500), events.next()).await {
            if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event {
                let newest = shared.begun.load(Ordering::SeqCst);
                assert!(schema(&object) <= newest, "written by a definition that nobody asked for yet");
                seen.insert(object.name_any(), schema(&object));
            }
        }
    }
    seen
}

pub(super) async fn nothing_is_lost_while_definitions_change(client: &Client) {
    let shared = Arc::new(Shared::default());
    define(client, &gadgets(GROUP, &versions(0))).await;
    let watchers = ["v1", "v2"].map(|version| tokio::spawn(watch(client.clone(), version, shared.clone())));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write(client.clone(), writer, shared.clone()));
    }
    for schema in 1..=4 {
        shared.until_more_are_made().await;
        change(client, &shared, schema).await;
    }
    shared.until_more_are_made().await;
    recreate(client, &shared, 5).await;
    for schema in 6..=7 {
        shared.until_more_are_made().await;
        change(client, &shared, schema).await;
    }
    shared.until_more_are_made().await;
    shared.ends.store(true, Ordering::SeqCst);
    while let Some(ended) = writers.join_next().await {
        ended.expect("every writer was answered rightly");
    }
    for watcher in watchers {
        let seen = watcher.await.expect("every watcher was told rightly");
        let wrong = shared
            .made()
            .into_iter()
            .find(|(name, schema)| seen.get(name).is_some_and(|seen| seen != schema));
        assert_eq!(wrong, None, "told to watchers as it was written");
    }
    for version in ["v1", "v2"] {
        let resource = kind(GROUP, version, "Gadget");
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
        let list = api.list(&ListParams::default()).await.expect("a list");
        let there = list.items.iter().map(|object| {
            (object.name_any(), object.data["spec"]["schema"].as_i64().expect("what it was written by"))
        });
        let expected: BTreeMap<String, i64> =
            shared.made().into_iter().filter(|(_, schema)| *schema >= 5).collect();
        assert_eq!(there.collect::<BTreeMap<_, _>>(), expected, "{version}");
    }
}

/// Another default, and another storage version.
async fn change(client: &Client, shared: &Shared, schema: i64) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let patch = Patch::Merge(json!({"spec": {"versions": versions(schema)}}));
    shared.begun.store(schema, Ordering::SeqCst);
    api.patch(&format!("gadgets.{GROUP}"), &PatchParams::default(), &patch).await.expect("changed");
    shared.acknowledged.store(schema, Ordering::SeqCst);
}

/// The definition goes with all its objects, and another of its name comes.
async fn recreate(client: &Client, shared: &Shared, schema: i64) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = format!("gadgets.{GROUP}");
    api.delete(&name, &DeleteParams::default()).await.expect("being deleted");
    let gone = async {
        while api.get_opt(&name).await.expect("an answer").is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, gone).await.expect("it goes");
    shared.begun.store(schema, Ordering::SeqCst);
    define(client, &gadgets(GROUP, &versions(schema))).await;
    shared.acknowledged.store(schema, Ordering::SeqCst);
}
