//! Three servers on three etcds, and a migration among writers while everything that can happen does.
//!
//! A witness reads the whole log: nothing is lost, comes back, or is changed in anything but its form, and what a migration
//! says that it has proved was so. Everything that can happen does in every run; the seed decides in which order, and to whom.
//! `CONCORD_MIGRATION_OBJECTS`, `CONCORD_MIGRATION_ROUNDS` and `CONCORD_MIGRATION_FAULTS` make it larger,
//! `CONCORD_MIGRATION_SEED` repeats what happens.

mod witness;
mod world;
mod writers;

use std::{
    env,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream};
use kube::api::PostParams;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};
use serde_json::json;

use self::{world::World, writers::Told};
use super::{
    condition, create_foo, define, definitions, foos, migration, migrations, progress, stored_versions,
};

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Happening {
    LeaderKilled,
    ServerKilled,
    ServerFrozen,
    ServerCutOff,
    EtcdLeaderKilled,
    Compaction,
    WebhookDown,
    Disagreement,
}

const HAPPENINGS: [Happening; 8] = [
    Happening::LeaderKilled,
    Happening::ServerKilled,
    Happening::ServerFrozen,
    Happening::ServerCutOff,
    Happening::EtcdLeaderKilled,
    Happening::Compaction,
    Happening::WebhookDown,
    Happening::Disagreement,
];

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What happens in a run: everything that can, in any order, and then whatever comes.
fn faults(random: &mut StdRng, count: usize) -> Vec<Happening> {
    let mut faults = HAPPENINGS.to_vec();
    faults.shuffle(random);
    while faults.len() < count {
        // Those at the end come first.
        faults.insert(0, HAPPENINGS[random.random_range(0..HAPPENINGS.len())]);
    }
    faults
}

#[test]
fn everything_that_can_happen_does_whatever_the_seed() {
    for seed in 0..1000 {
        let mut random = StdRng::seed_from_u64(seed);
        let first = faults(&mut random, 20).split_off(20 - HAPPENINGS.len());
        assert!(HAPPENINGS.iter().all(|happening| first.contains(happening)), "{seed}: {first:?}");
    }
}

/// Objects that nobody but migrations may touch.
async fn create_static(world: &World, count: u64) {
    let clients = [world.client(0).await, world.client(1).await, world.client(2).await];
    let padding = "x".repeat(800);
    let create = |number: u64| {
        let foos = foos(&clients[number as usize % 3], "v1");
        let object = json!({"apiVersion": "example.com/v1", "kind": "Foo",
            "metadata": {"name": format!("static-{number:06}"), "labels": {"number": number.to_string()}},
            "spec": {"count": number, "padding": padding}});
        async move {
            let object = serde_json::from_value(object).expect("an object");
            foos.create(&PostParams::default(), &object).await.expect("created");
        }
    };
    stream::iter(0..count).map(create).buffer_unordered(16).collect::<Vec<_>>().await;
}

/// Migrates while things happen, until it has succeeded; and looks at what it says it has proved.
async fn migrate(
    world: &mut World,
    random: &mut StdRng,
    round: u64,
    objects: u64,
    faults: &mut Vec<Happening>,
) {
    let (version, key) = if round.is_multiple_of(2) { ("v2", 2) } else { ("v1", 1) };
    define(&world.client(0).await, &["v1", "v2"], version).await;
    world.encrypt_with(key);
    let name = format!("round-{round}");
    let rate = (objects / 20).max(50).to_string();
    let asked = migration(&name, "example.com", "foos", &[("max-requests-per-second", &rate)]);
    migrations(&world.client(0).await).create(&PostParams::default(), &asked).await.expect("created");
    while let Some(happening) = faults.pop() {
        if world.has_ended(&name).await {
            faults.push(happening);
            break;
        }
        world.suffer(happening, random.random_range(0..3), &name, key).await;
        world.seen().await;
        tokio::time::sleep(Duration::from_millis(random.random_range(0..400))).await;
    }
    let (begin, longest) = (Instant::now(), Duration::from_secs(60 + objects / 10));
    while !world.has_ended(&name).await {
        assert!(begin.elapsed() < longest, "not in time: {:?}", world.migration(&name).await);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let ended = world.migration(&name).await.expect("it is there");
    assert!(condition(&ended, "Succeeded", "True").is_some(), "{:?}", ended.data);
    let proof = progress(&ended);
    eprintln!("{name}: {proof}");
    world.seen().await;
    let at = proof["censusRevision"].as_u64().expect("a revision");
    let forms = world.witness.lock().forms_at(at);
    let (expected, seal) = (format!("example.com/{version}"), format!("aesgcm:v1:key{key}:"));
    let is_expected = |(version, key): &(String, String)| *version == expected && key.starts_with(&seal);
    assert!(forms.len() == 1 && forms.keys().all(is_expected), "at {at}: {forms:?}");
    assert_eq!(proof["census"][0]["objects"].as_u64(), forms.values().next().map(|count| *count as u64));
    let client = world.client(0).await;
    assert_eq!(stored_versions(&client).await, json!([version]));
    let definition = definitions(&client).get(super::FOOS).await.expect("there");
    let conditions = definition.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    assert!(!conditions.iter().any(|known| known["type"] == "StorageMigrating" && known["status"] == "True"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_nothing_is_lost_and_success_is_true() {
    let seed = setting("CONCORD_MIGRATION_SEED", rand::random());
    eprintln!("CONCORD_MIGRATION_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let objects = setting("CONCORD_MIGRATION_OBJECTS", 200);
    let mut world = World::new().await;
    define(&world.client(0).await, &["v1", "v2"], "v1").await;
    for at in 0..3 {
        create_foo(&world.client(at).await, "v1", &format!("first-{at}")).await;
    }
    create_static(&world, objects).await;
    world.ask_webhook().await;
    for at in 0..3 {
        world.write(at).await;
    }
    let mut faults = faults(&mut random, setting("CONCORD_MIGRATION_FAULTS", 0) as usize);
    let (mut round, rounds) = (0, setting("CONCORD_MIGRATION_ROUNDS", 1));
    while round < rounds || !faults.is_empty() {
        Box::pin(migrate(&mut world, &mut random, round, objects, &mut faults)).await;
        round += 1;
    }
    let acknowledged = world.writers.told();
    let told = std::mem::take(&mut world.writers).end().await;
    world.seen().await;
    let witness = world.witness.lock();
    for told in &told {
        match told {
            Told::Stored { name, revision, count } => {
                assert!(witness.saw(name, *revision, *count), "{name} was not stored at {revision}");
            }
            Told::Deleted(name) => assert!(witness.saw_the_end_of(name), "{name} is there"),
        }
    }
    assert_eq!(witness.live("static-") as u64, objects);
    assert!(witness.rewritten as u64 >= objects && acknowledged > 20, "{} {acknowledged}", witness.rewritten);
    eprintln!("{} answers, {} rewrites, {round} rounds", told.len(), witness.rewritten);
}
