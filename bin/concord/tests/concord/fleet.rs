//! Three servers on one etcd: upgraded, rolled back, killed, frozen, cut off and with clocks that jump while clients write
//! and migrate.
//!
//! Afterwards the log itself is the witness: an auditor reads it from its first revision on.
//! `CONCORD_FLEET_SECONDS` makes it longer, `CONCORD_FLEET_SEED` repeats one.

mod definitions;
mod drain;
mod gates;
mod idle;
mod world;
mod writers;

use std::{
    env,
    time::{Duration, Instant},
};

use concord_testing::proxy::Fault;
use kube::{
    Api, Client,
    api::{DynamicObject, PostParams},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::json;
use world::{BOTH, Member, World, define, flip, kind};
use writers::Writers;

use crate::support::SOON;

const RELEASES: [&str; 2] = ["1.33", "1.36"];

/// How long a lease lasts here.
const LEASES: [&str; 2] = ["--identity-lease-duration=3s", "--identity-lease-renew-interval=500ms"];

fn flags(release: &str) -> Vec<String> {
    let leases = LEASES.map(ToOwned::to_owned);
    [format!("--emulated-version={release}")].into_iter().chain(leases).collect()
}

async fn start(world: &mut World, at: usize, release: &str) {
    let flags = flags(release);
    world.start(at, &flags.iter().map(String::as_str).collect::<Vec<_>>()).await;
    world.ready(at).await;
}

fn seed() -> u64 {
    let given = env::var("CONCORD_FLEET_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(rand::random);
    eprintln!("CONCORD_FLEET_SEED={seed}");
    seed
}

/// Keeps a server from doing anything for longer than its lease lasts: others remove it, and the server finds out later,
/// when what it had on its way arrives. Or its clock jumps, and then back again.
async fn disturb(member: &Member, how: u8) {
    let longer_than_the_lease = Duration::from_millis(4500);
    let program = member.program.as_ref().expect("it runs");
    member.set_clock(0);
    match how {
        0 => {
            program.signal("STOP");
            tokio::time::sleep(longer_than_the_lease).await;
            program.signal("CONT");
        }
        1 => {
            member.proxy.set(Fault::BlackHole);
            tokio::time::sleep(longer_than_the_lease).await;
            member.proxy.set(Fault::None);
        }
        2 => member.proxy.cut(),
        // All others have not been heard of for hours then; the certificates of clients are good for longer.
        3 => member.set_clock(7200),
        4 => member.set_clock(-240),
        _ => {}
    }
}

fn migrations(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &kind("storagemigration.k8s.io", "v1beta1", "StorageVersionMigration"))
}

/// Asks for a migration of what is written; whether anybody listens.
async fn migrate(client: &Client, name: &str, group: &str, resource: &str) -> bool {
    let object = json!({
        "apiVersion": "storagemigration.k8s.io/v1beta1", "kind": "StorageVersionMigration",
        "metadata": {"name": name}, "spec": {"resource": {"group": group, "resource": resource}},
    });
    let object: DynamicObject = serde_json::from_value(object).expect("a migration");
    migrations(client).create(&PostParams::default(), &object).await.is_ok()
}

async fn succeeds(client: &Client, name: &str) {
    let begin = Instant::now();
    loop {
        let migration = migrations(client).get(name).await.expect("it was asked for");
        let conditions = migration.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if conditions.iter().any(|known| known["type"] == "Succeeded" && known["status"] == "True") {
            return;
        }
        assert!(begin.elapsed() < SOON, "{name}: {conditions:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_ever_stored_in_a_version_that_its_writer_had_not_published() {
    let mut random = StdRng::seed_from_u64(seed());
    let seconds =
        env::var("CONCORD_FLEET_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(12);
    let mut world = World::new().await;
    for at in 0..3 {
        start(&mut world, at, RELEASES[0]).await;
    }
    define(&world.client(0).await, "v1", &BOTH).await;
    let mut writers = Writers::new();
    for at in 0..3 {
        writers.start(world.members[at].id, world.client(at).await).await;
    }
    writers.progress().await;
    let begin = Instant::now();
    let mut round = 0;
    while begin.elapsed() < Duration::from_secs(seconds) || round < 4 {
        let at = round % 3;
        // One after the other to the new release, and then back.
        let release = RELEASES[usize::from(round / 3 % 2 == 0)];
        disturb(&world.members[at], random.random_range(0..6)).await;
        // Whoever is asked may just be stopping, or be an old one: it is done again later.
        let other = world.client((at + 1) % 3).await;
        flip(&other, ["v1", "v2"][round % 2]).await;
        migrate(&other, &format!("foos-{round}"), "example.com", "foos").await;
        migrate(&other, &format!("cidrs-{round}"), "networking.k8s.io", "servicecidrs").await;
        world.stop(at, if random.random_bool(0.5) { "KILL" } else { "TERM" }).await;
        writers.stopped(world.members[at].id);
        start(&mut world, at, release).await;
        writers.start(world.members[at].id, world.client(at).await).await;
        writers.progress().await;
        round += 1;
    }
    let written = writers.end().await;
    for at in 0..3 {
        world.stop(at, "TERM").await;
        world.members[at].set_clock(0);
    }
    // Who is alone agrees with all, and leaves nothing behind.
    start(&mut world, 0, RELEASES[1]).await;
    let client = world.client(0).await;
    for (name, group, resource) in
        [("last-foos", "example.com", "foos"), ("last-cidrs", "networking.k8s.io", "servicecidrs")]
    {
        assert!(migrate(&client, name, group, resource).await, "{name}");
        succeeds(&client, name).await;
    }
    world.stop(0, "TERM").await;
    let auditor = world.audit(&AUDITED).await;
    let (checked, stamped, succeeded) = (auditor.checked(), auditor.stamped(), auditor.succeeded());
    eprintln!(
        "{round} restarts, {written} rounds written, {succeeded} migrations, {checked} commits audited, {stamped} of known writers"
    );
    assert!(stamped >= 6 * written, "{stamped} of {written}");
    assert!(checked > stamped, "others wrote too");
    assert!(succeeded >= 2, "{succeeded}");
}

/// What is written by whom, and the names of their StorageVersions.
const AUDITED: [(&str, &str); 6] = [
    ("example.com/foos", "example.com.foos"),
    ("servicecidrs", "networking.k8s.io.servicecidrs"),
    ("configmaps", "core.configmaps"),
    ("namespaces", "core.namespaces"),
    ("leases", "coordination.k8s.io.leases"),
    ("storageversions", "internal.apiserver.k8s.io.storageversions"),
];
