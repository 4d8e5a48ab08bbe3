//! Watches that go on where others ended.

#[allow(dead_code, reason = "the verbs are tested elsewhere")]
mod support;

use std::{sync::Arc, time::Duration};

use concord_meta::options::{ListOptions, Query};
use concord_registry::{Registry, Watch, WatchEvent, WatchRequest};
use concord_replica::{Config, Replica};
use concord_store::{KeyRange, Scan, Store as _, Txn};
use serde_json::json;
use support::{Fixture, widget};

impl Fixture {
    /// Writes all widgets again as they are, under one revision.
    async fn rewrite(&self) -> u64 {
        let all = Scan::new(KeyRange::prefix(self.storage().prefix.clone()), 100);
        let entries = self.store.scan(all).await.expect("read").entries;
        let txn = entries.into_iter().fold(Txn::new(), |txn, entry| txn.put(entry.key, entry.value));
        let revision = self.store.transact(txn).await.expect("written").revision;
        self.registry.replica().consistent(Duration::from_secs(10)).await.expect("follows");
        revision
    }

    /// What another server on the same store has.
    async fn started_anew(&self) -> Registry {
        let replica = Arc::new(Replica::start(self.store.clone(), Config::default(), Vec::new()));
        replica.consistent(Duration::from_secs(10)).await.expect("loads");
        Registry::new(self.store.clone(), replica, Vec::new())
    }

    async fn create_named(&self, name: &str) {
        self.create(widget(name, json!({}))).await.expect("created");
    }
}

async fn watch(fixture: &Fixture, registry: &Registry, query: &[(&str, &str)]) -> Watch {
    let query = [&[("watch", "1")], query].concat();
    let options = ListOptions::from_query(Query(&query)).expect("good options");
    let request = WatchRequest { namespace: Some("ns"), options: &options };
    registry.watch(fixture.storage(), request).await.expect("good selectors").expect("starts")
}

async fn next_name(fixture: &Fixture, watch: &mut Watch) -> String {
    let event = tokio::time::timeout(Duration::from_secs(30), watch.next()).await.expect("in time");
    let WatchEvent::Object { event, value, revision } = event.expect("goes on") else {
        panic!("only objects are told")
    };
    let frame = fixture.widgets.frame(event, &value, revision).expect("a frame");
    let frame: serde_json::Value = serde_json::from_slice(&frame).expect("JSON");
    frame["object"]["metadata"]["name"].as_str().expect("a name").to_owned()
}

#[tokio::test]
async fn a_revision_with_several_objects_is_told_again() {
    let fixture = Fixture::new().await;
    for name in ["a", "b", "c"] {
        fixture.create_named(name).await;
    }
    let revision = fixture.rewrite().await.to_string();
    let mut resumed = watch(&fixture, &fixture.registry, &[("resourceVersion", &revision)]).await;
    let mut selecting = watch(
        &fixture,
        &fixture.registry,
        &[("resourceVersion", &revision), ("fieldSelector", "metadata.name=b")],
    )
    .await;
    fixture.create_named("d").await;
    for name in ["a", "b", "c", "d"] {
        assert_eq!(next_name(&fixture, &mut resumed).await, name);
    }
    assert_eq!(selecting.try_next(), Ok(None), "whoever watches one object was told all there is");
}

#[tokio::test]
async fn a_revision_with_one_object_is_not() {
    let fixture = Fixture::new().await;
    fixture.create_named("a").await;
    let revision = fixture.rewrite().await.to_string();
    let mut resumed = watch(&fixture, &fixture.registry, &[("resourceVersion", &revision)]).await;
    fixture.create_named("b").await;
    assert_eq!(next_name(&fixture, &mut resumed).await, "b");
}

/// A server that was started since has not seen what happened at the revision, but what it left.
#[tokio::test]
async fn a_server_that_was_started_since_tells_it_again_as_well() {
    let fixture = Fixture::new().await;
    fixture.create_named("a").await;
    fixture.create_named("b").await;
    let revision = fixture.rewrite().await.to_string();
    let registry = fixture.started_anew().await;
    let mut resumed = watch(&fixture, &registry, &[("resourceVersion", &revision)]).await;
    fixture.create_named("c").await;
    for name in ["a", "b", "c"] {
        assert_eq!(next_name(&fixture, &mut resumed).await, name);
    }
    // Where only one was written, there is nothing to tell.
    let registry = fixture.started_anew().await;
    let newest = registry.replica().newest().expect("loaded").revision().to_string();
    let mut resumed = watch(&fixture, &registry, &[("resourceVersion", &newest)]).await;
    fixture.create_named("d").await;
    assert_eq!(next_name(&fixture, &mut resumed).await, "d");
}
