//! Watches of objects that somebody else converts.

#[allow(dead_code, reason = "the verbs are tested elsewhere")]
mod support;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use concord_meta::{
    GroupVersion,
    options::{ListOptions, Query},
};
use concord_registry::{
    ConversionError, Converter, Object, Remote, Renaming, Storage, Translator, Watch, WatchEvent,
    WatchRequest,
};
use serde_json::json;
use support::{Fixture, widget};
use tokio::{sync::Semaphore, time::timeout};

const SOON: Duration = Duration::from_secs(30);

/// Answers as often as it is let.
struct Slow(Arc<Semaphore>);

#[async_trait]
impl Translator for Slow {
    async fn translate(&self, objects: &[Object], to: &GroupVersion) -> Result<Vec<Object>, ConversionError> {
        self.0.acquire().await.map_err(|error| ConversionError(error.to_string()))?.forget();
        let mut made = objects.to_vec();
        made.iter_mut().try_for_each(|object| Renaming.convert(object, to))?;
        Ok(made)
    }
}

struct Asking(Remote);

impl Converter for Asking {
    fn convert(&self, _: &mut Object, _: &GroupVersion) -> Result<(), ConversionError> {
        Err(ConversionError("nobody was asked".to_owned()))
    }

    fn remote(&self) -> Option<&Remote> {
        Some(&self.0)
    }
}

/// The same objects in another version, for which somebody has to be asked.
fn other_version(fixture: &Fixture, answers: &Arc<Semaphore>) -> Arc<Storage> {
    let stored = fixture.storage();
    Arc::new(Storage {
        resource: stored.resource.clone(),
        kind: stored.kind.clone(),
        version: GroupVersion::new("example.com", "v2"),
        encoding: stored.encoding.clone(),
        namespaced: stored.namespaced,
        prefix: stored.prefix.clone(),
        strategy: stored.strategy.clone(),
        converter: Arc::new(Asking(Remote::new(Arc::new(Slow(answers.clone()))))),
        forms: stored.forms.clone(),
        formed_since: 0,
        lifetime: None,
    })
}

async fn watch(fixture: &Fixture, storage: &Arc<Storage>) -> Watch {
    let query = [("watch", "1"), ("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")];
    let options = ListOptions::from_query(Query(&query)).expect("good options");
    let request = WatchRequest { namespace: Some("ns"), options: &options };
    fixture.registry.watch(storage, request).await.expect("good selectors").expect("starts")
}

#[tokio::test]
async fn a_watch_that_nobody_reads_holds_up_no_other() {
    let fixture = Fixture::new().await;
    fixture.create(widget("a", json!({"text": "one"}))).await.expect("created");
    let answers = Arc::new(Semaphore::new(0));
    let storage = other_version(&fixture, &answers);
    let (mut unread, mut other) = (watch(&fixture, &storage).await, watch(&fixture, &storage).await);
    // Somebody is asked for the first one, and then nobody waits for it any more.
    assert!(timeout(Duration::from_millis(50), unread.next()).await.is_err(), "there is no answer yet");
    assert_eq!(unread.bookmark(), None, "something waits to be said");
    answers.add_permits(1);
    let event = timeout(SOON, other.next()).await.expect("it need not wait for the first one");
    let Ok(WatchEvent::Object { value, .. }) = &event else { panic!("{event:?}") };
    assert!(value.starts_with(br#"{"kind":"Widget","apiVersion":"example.com/v2""#), "{value:?}");
    // One answer was enough for both, and nothing was lost.
    assert_eq!(timeout(SOON, unread.next()).await.expect("it is told too"), event);
}
