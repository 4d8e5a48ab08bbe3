//! Random graphs in a real store end as a simple collector would have them.

use std::collections::BTreeMap;

use concord_meta::options::PropagationPolicy::{Background, Foreground, Orphan};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::Value;

use crate::{
    collector::references,
    support::{Fixture, Server, blocked, owner},
    world::{FOREGROUND, Name, ORPHAN, Object, Reference, Uid, World, collect},
};

const NAMES: Name = 40;

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn number(name: &str) -> Name {
    name.trim_start_matches("map-").parse().expect("a number")
}

/// What is stored, in the words of the model. Uids are numbered as they come.
async fn stored(server: &Server, uids: &mut BTreeMap<String, Uid>) -> World {
    let mut number_of = |uid: &str| {
        let next = Uid::try_from(uids.len()).expect("few") + 1;
        *uids.entry(uid.to_owned()).or_insert(next)
    };
    let mut world = World::default();
    for name in server.names("configmaps").await {
        let Some(map) = server.get(&format!("/configmaps/ns/{name}")).await else { continue };
        let list =
            |pointer: &str| map.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
        let references = list("/metadata/ownerReferences").into_iter().map(|reference| Reference {
            name: number(text(&reference, "/name")),
            uid: number_of(text(&reference, "/uid")),
            blocks: reference["blockOwnerDeletion"] == true,
        });
        let owners = references.collect();
        let finalizers = list("/metadata/finalizers");
        let known = |name: &Value| [ORPHAN, FOREGROUND].into_iter().find(|known| name == known);
        let object = Object {
            uid: number_of(text(&map, "/metadata/uid")),
            owners,
            finalizers: finalizers.iter().filter_map(known).collect(),
            is_deleting: !map["metadata"]["deletionTimestamp"].is_null(),
            revision: 0,
        };
        world.objects.insert(number(&name), object);
    }
    world
}

/// Makes maps that own each other, and begins to delete some.
async fn disturb(server: &Server, random: &mut StdRng) {
    let mut maps: Vec<Value> = Vec::new();
    for at in 0..NAMES {
        let mut owners: BTreeMap<String, Value> = BTreeMap::new();
        for _ in 0..random.random_range(0..4) {
            let Some(map) = maps.choose(random) else { continue };
            let reference =
                if random.random_bool(0.5) { blocked(map) } else { owner("v1", "ConfigMap", map) };
            owners.insert(text(map, "/metadata/uid").to_owned(), reference);
        }
        let owners: Vec<Value> = owners.into_values().collect();
        maps.push(server.map(&format!("map-{at}"), &owners).await);
    }
    // Some are made anew in the place of their owners, so that there are circles of names, and some circles of uids.
    for _ in 0..NAMES / 4 {
        let (map, by) = (maps.choose(random).expect("some"), maps.choose(random).expect("some"));
        server.own(text(map, "/metadata/name"), &blocked(by)).await;
    }
    for _ in 0..NAMES / 3 {
        let map = maps.choose(random).expect("some");
        let policy = *[Background, Background, Foreground, Orphan].choose(random).expect("some");
        let path = format!("/configmaps/ns/{}", text(map, "/metadata/name"));
        // It may be gone already.
        server.delete(&path, policy).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_graphs_end_as_they_should() {
    for seed in 0..8 {
        let Fixture { server, .. } = &Fixture::new().await;
        let mut random = StdRng::seed_from_u64(seed);
        disturb(server, &mut random).await;
        let mut uids = BTreeMap::new();
        let mut expected = stored(server, &mut uids).await;
        collect(&mut expected);
        let left: Vec<String> = expected.objects.keys().map(|name| format!("map-{name}")).collect();
        let mut left: Vec<&str> = left.iter().map(String::as_str).collect();
        left.sort_unstable();
        let running = server.start();
        server.until_left(&left).await;
        for (name, object) in &expected.objects {
            let path = format!("/configmaps/ns/map-{name}");
            let count = |map: Option<&Value>| references(map) == object.owners.len();
            server.until(&path, count).await;
        }
        running.stop().await;
    }
}
