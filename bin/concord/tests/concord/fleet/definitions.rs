//! Custom resources whose stored version changes while servers are slow, objects go away and definitions are made anew.

use concord_server::test_client::Protocol;
use concord_store::{Store as _, Txn};
use concord_testing::proxy::Fault;
use futures_util::future::join_all;
use http::Method;
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::world::{
    BOTH, World, define, define_kind, definitions, flip, foo, foos, kind, said, storage_versions, until,
    until_refused, until_said,
};
use crate::support::send;

const NAME: &str = "example.com.foos";
const AUDITED: [(&str, &str); 1] = [("example.com/foos", NAME)];

fn all(stored: &str) -> String {
    format!("s1=example.com/{stored},s2=example.com/{stored} -> example.com/{stored}")
}

async fn pair() -> World {
    let mut world = World::new().await;
    for at in 0..2 {
        world.start(at, &[]).await;
        world.ready(at).await;
    }
    world
}

/// Creates an object as soon as it can be: the other server may not know the definition yet.
async fn create(client: &kube::Client, name: &str) {
    until(name, || async { foos(client).create(&PostParams::default(), &foo(name)).await.ok() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_late_keeps_the_others_from_agreeing_and_writes_nothing_old() {
    let world = pair().await;
    let (fast, slow) = (world.client(0).await, world.client(1).await);
    define(&fast, "v1", &BOTH).await;
    until_said(&fast, NAME, &all("v1")).await;
    create(&fast, "s1--1").await;
    create(&slow, "s2--1").await;
    // What it has on its way stays there, and it does not see what happens.
    world.members[1].proxy.set(Fault::BlackHole);
    let late = tokio::spawn(async move {
        foos(&slow).create(&PostParams::default(), &foo("s2--late")).await.ok();
        slow
    });
    assert!(flip(&fast, "v2").await);
    until_said(&fast, NAME, "s1=example.com/v2,s2=example.com/v1").await;
    create(&fast, "s1--2").await;
    assert_eq!(said(&fast, NAME).await, "s1=example.com/v2,s2=example.com/v1");
    world.members[1].proxy.set(Fault::None);
    until_said(&fast, NAME, &all("v2")).await;
    let slow = late.await.expect("an end");
    create(&slow, "s2--2").await;
    // There and back again, while objects that somebody holds on to are marked as deleted.
    let held = |n: usize| format!("s1--held{n}");
    let finalizers = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    for n in 0..10 {
        create(&fast, &held(n)).await;
        let held = foos(&fast).patch(&held(n), &PatchParams::default(), &Patch::Merge(&finalizers)).await;
        held.expect("held");
    }
    let deletes = (0..10).map(|n| {
        let api = foos(if n % 2 == 0 { &fast } else { &slow });
        async move { api.delete(&held(n), &DeleteParams::default()).await.map(drop) }
    });
    let flips = async {
        for stored in ["v1", "v2", "v1"] {
            assert!(flip(&fast, stored).await, "{stored}");
        }
    };
    let (deleted, ()) = tokio::join!(join_all(deletes), flips);
    deleted.into_iter().collect::<Result<Vec<()>, _>>().expect("all are marked");
    until_said(&fast, NAME, &all("v1")).await;
    for n in 0..10 {
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        foos(&slow).patch(&held(n), &PatchParams::default(), &free).await.expect("freed");
    }
    until("their end", || async {
        foos(&fast).get_opt(&held(9)).await.expect("an answer").is_none().then_some(())
    })
    .await;
    assert!(world.audit(&AUDITED).await.checked() >= 34);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_that_is_made_anew_is_another_owner() {
    let world = pair().await;
    let client = world.client(0).await;
    define(&client, "v1", &BOTH).await;
    until_said(&client, NAME, &all("v1")).await;
    create(&client, "s1--1").await;
    definitions(&client).delete("foos.example.com", &DeleteParams::default()).await.expect("deleted");
    until("the end of the definition", || async {
        definitions(&client).get_opt("foos.example.com").await.expect("an answer").is_none().then_some(())
    })
    .await;
    // Now it is stored in a version that is not served.
    let anew = define(&client, "v2", &["v1"]).await;
    until_said(&client, NAME, &all("v2")).await;
    let uid = anew.metadata.uid.expect("a uid");
    until("the new owner", || async {
        let object = storage_versions(&client).get(NAME).await.ok()?;
        let owners = object.metadata.owner_references.unwrap_or_default();
        (owners.len() == 1 && owners[0].uid == uid).then_some(())
    })
    .await;
    let object = storage_versions(&client).get(NAME).await.expect("registered");
    let entry = &object.data["status"]["storageVersions"][0];
    assert_eq!(entry["servedVersions"], json!(["example.com/v1"]));
    assert_eq!(entry["decodableVersions"], json!(["example.com/v1", "example.com/v2"]));
    create(&client, "s1--2").await;
    let list =
        world.program(0).admin(Protocol::Http2).await.get("/apis/example.com/v1").await.expect("an answer");
    let list: Value = serde_json::from_str(&list.body).expect("JSON");
    let hash = list["resources"][0]["storageVersionHash"].as_str().unwrap_or_default();
    assert_eq!((&list["resources"][0]["name"], hash), (&json!("foos"), ""), "what is not served has no hash");
    world.audit(&AUDITED).await;
    what_cannot_be_published_is_not_written(&world, &client).await;
}

/// Somebody destroys the object in which the versions are published.
async fn what_cannot_be_published_is_not_written(world: &World, client: &kube::Client) {
    let store = world.store().await;
    let key = format!("/registry/storageversions/{NAME}");
    store.transact(Txn::new().put(key.clone(), "\0nothing")).await.expect("stored");
    let path = "/apis/example.com/v1/foos";
    let object =
        json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"generateName": "s1--3"}});
    let text = "wait for storage version registration to complete for resource: foos.example.com, \
        last seen error: the stored StorageVersion cannot be read";
    assert_eq!(until_refused(world.program(0), path, &object).await, text);
    foos(client).get("s1--2").await.expect("reads are served");
    // It keeps nobody else waiting.
    define_kind(client, "Bar", "v1", &BOTH).await;
    until_said(client, "example.com.bars", &all("v1")).await;
    let bars: Api<DynamicObject> = Api::all_with(client.clone(), &kind("example.com", "v1", "Bar"));
    until("another custom resource", || async {
        let bar = DynamicObject::new("s1--5", &kind("example.com", "v1", "Bar"));
        bars.create(&PostParams::default(), &bar).await.ok()
    })
    .await;
    let (code, _, _) =
        send(&mut world.program(0).admin(Protocol::Http2).await, Method::POST, path, &object).await;
    assert_eq!(code, 503, "it still waits");
    store.transact(Txn::new().delete(key)).await.expect("deleted");
    create(client, "s1--4").await;
    store.shutdown().await;
}
