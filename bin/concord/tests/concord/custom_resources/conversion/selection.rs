//! Which objects a client selects is decided by what it sees of them, in the version it asks for.

use std::{future::Future, pin::Pin};

use futures_util::{Stream, StreamExt as _};
use kube::{
    Error, ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams, WatchEvent, WatchParams},
};
use serde_json::json;
use tokio::time::timeout;

use super::{Gadgets, Hook};
use crate::support::SOON;

type Events = Pin<Box<dyn Stream<Item = Result<WatchEvent<DynamicObject>, Error>> + Send>>;

/// What happened to which object.
async fn told(events: &mut Events) -> (&'static str, String) {
    let event = timeout(SOON, events.next()).await.expect("in time").expect("an event").expect("a good one");
    match event {
        WatchEvent::Added(object) => ("added", object.name_any()),
        WatchEvent::Modified(object) => ("modified", object.name_any()),
        WatchEvent::Deleted(object) => ("deleted", object.name_any()),
        WatchEvent::Bookmark(_) => ("bookmark", String::new()),
        WatchEvent::Error(status) => panic!("{status}"),
    }
}

/// A watch of the second version that begins with what there is.
async fn watch(both: &Gadgets, params: WatchParams) -> Events {
    Box::pin(both.v2.watch(&params.initial_events(), "").await.expect("a watch"))
}

async fn make(both: &Gadgets, objects: &[(&str, &str)]) {
    for (name, host) in objects {
        both.make("v1", name, json!({"host": host})).await.expect("created");
    }
}

fn rename<'a>(both: &'a Gadgets, name: &'a str, host: &str) -> impl Future<Output = ()> + 'a {
    let patch = Patch::Merge(json!({"spec": {"host": host}}));
    async move { drop(both.v1.patch(name, &PatchParams::default(), &patch).await.expect("patched")) }
}

pub(super) async fn fields_are_those_of_the_version(hook: &Hook, both: &Gadgets) {
    both.v2.list(&ListParams::default()).await.expect("a list");
    hook.calls();
    make(both, &[("s1", "x"), ("s2", "y"), ("s3", "x")]).await;
    let selected = ListParams::default().fields("spec.hostname=x");
    let names = |list: kube::api::ObjectList<DynamicObject>| {
        list.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
    };
    assert_eq!(names(both.v2.list(&selected).await.expect("a list")), ["s1", "s3"]);
    assert_eq!(hook.calls(), [3], "all at once, and what was asked before not again");
    let first = both.v2.list(&selected.clone().limit(1)).await.expect("a page");
    let token = first.metadata.continue_.clone().expect("there is more");
    assert_eq!(names(first), ["s1"]);
    let second = both.v2.list(&selected.limit(1).continue_token(&token)).await.expect("a page");
    assert_eq!(second.metadata.continue_.as_deref().unwrap_or_default(), "");
    assert_eq!(names(second), ["s3"]);

    let mut events = watch(both, WatchParams::default().fields("spec.hostname=x")).await;
    let beginning = [told(&mut events).await, told(&mut events).await, told(&mut events).await];
    let added = |name: &str| ("added", name.to_owned());
    assert_eq!(beginning, [added("s1"), added("s3"), ("bookmark", String::new())]);
    rename(both, "s2", "x").await;
    assert_eq!(told(&mut events).await, added("s2"));
    rename(both, "s1", "z").await;
    assert_eq!(told(&mut events).await, ("deleted", "s1".to_owned()));
    rename(both, "s1", "w").await;
    rename(both, "s3", "x").await;
    rename(both, "s2", "v").await;
    assert_eq!(told(&mut events).await, ("deleted", "s2".to_owned()), "others are not told");
}

/// Both watchers get all objects, and the webhook is asked once.
pub(super) async fn what_there_is_is_converted_at_once(hook: &Hook, both: &Gadgets) {
    both.v2.list(&ListParams::default()).await.expect("a list");
    make(both, &[("t1", "x"), ("t2", "y"), ("t3", "x")]).await;
    hook.calls();
    let count = async || {
        let mut events = watch(both, WatchParams::default()).await;
        let mut count = 0;
        while told(&mut events).await.0 == "added" {
            count += 1;
        }
        count
    };
    let (one, other) = tokio::join!(count(), count());
    assert_eq!((one, hook.calls().as_slice()), (other, &[3][..]));
}
