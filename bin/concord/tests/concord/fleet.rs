//! Three servers on one etcd: upgraded, rolled back, killed, frozen and cut off while clients write.
//!
//! Afterwards the log itself is the witness: an auditor reads it from its first revision on.
//! `CONCORD_FLEET_SECONDS` makes it longer, `CONCORD_FLEET_SEED` repeats one.

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use concord_store::Store as _;
use concord_store_etcd::{Config, EtcdStore};
use concord_testing::{
    audit::Auditor,
    etcd::Cluster,
    proxy::{Fault, Proxy},
};
use futures_util::StreamExt as _;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use tokio::task::JoinSet;

use crate::support::{Program, SOON, client};

const RELEASES: [&str; 2] = ["1.33", "1.36"];

/// A server that is started again and again.
struct Member {
    id: &'static str,
    data: TempDir,
    /// The way to etcd.
    proxy: Proxy,
    program: Option<Program>,
}

struct World {
    etcd: Cluster,
    members: Vec<Member>,
}

impl World {
    async fn new() -> Self {
        let etcd = Cluster::single().await.expect("an etcd");
        let target = etcd.endpoints()[0].trim_start_matches("http://").parse().expect("an address");
        let mut members = Vec::new();
        for id in ["s1", "s2", "s3"] {
            let proxy = Proxy::start(target, 0).await.expect("a proxy");
            members.push(Member { id, data: tempdir().expect("a directory"), proxy, program: None });
        }
        Self { etcd, members }
    }

    async fn start(&mut self, at: usize, release: &str) {
        let flags = [
            format!("--etcd-servers={}", self.members[at].proxy.url()),
            format!("--server-id={}", self.members[at].id),
            format!("--emulated-version={release}"),
            "--identity-lease-duration=3s".to_owned(),
            "--identity-lease-renew-interval=500ms".to_owned(),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let member = &mut self.members[at];
        member.program = Some(Program::start_with(member.data.path(), &flags).await);
    }

    async fn ready(&self, at: usize) {
        self.members[at].program.as_ref().expect("it runs").ready(200).await;
    }

    async fn stop(&mut self, at: usize, signal: &str) {
        let Some(program) = self.members[at].program.take() else { return };
        program.signal(signal);
        program.ended().await;
    }

    async fn client(&self, at: usize) -> Client {
        client(self.members[at].data.path()).await
    }

    /// Reads the whole log, and answers how many objects kept to what was said about them.
    async fn audit(&self, resources: &[(&str, &str)]) -> usize {
        let config =
            Config { prefix: "/registry/".into(), ..Config::new(self.etcd.endpoints().iter().cloned()) };
        let store = EtcdStore::open(config).await.expect("a store");
        let last = store.current_revision().await.expect("a revision");
        let (mut commits, mut auditor, mut seen) = (store.follow(1), Auditor::new(resources), 1);
        while seen < last {
            for commit in commits.next().await.expect("more").expect("readable") {
                seen = commit.revision;
                auditor.commit(&commit).unwrap_or_else(|complaint| panic!("{complaint}"));
            }
        }
        store.shutdown().await;
        auditor.checked()
    }
}

fn kind(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

fn versions(stored: &str) -> Value {
    let version = |name: &&str| {
        json!({"name": name, "served": true, "storage": *name == stored,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    ["v1", "v2"].iter().map(version).collect()
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "versions": versions("v1"),
            "names": {"plural": "foos", "kind": "Foo"}},
    })
}

/// Writes through one server until told to stop: objects whose names say by whom they were written. Whatever is refused
/// is refused; what counts is what is stored.
async fn write(
    client: Client,
    id: &'static str,
    stop: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
    base: usize,
) {
    let foos: Api<DynamicObject> = Api::all_with(client.clone(), &kind("example.com", "v1", "Foo"));
    let cidrs = kind("networking.k8s.io", "v1", "ServiceCIDR");
    let cidrs: Api<DynamicObject> = Api::all_with(client, &cidrs);
    let mut count = base;
    while !stop.load(Ordering::Relaxed) {
        count += 1;
        let name = format!("{id}--{count}");
        let thing = DynamicObject::new(&name, &kind("example.com", "v1", "Foo"));
        let mut cidr = DynamicObject::new(&name, &kind("networking.k8s.io", "v1", "ServiceCIDR"));
        let network = format!("10.{}.{}.0/24", 64 + count / 250 % 128, count % 250);
        cidr.data = json!({"spec": {"cidrs": [network]}});
        let options = PostParams::default();
        let both = tokio::join!(foos.create(&options, &thing), cidrs.create(&options, &cidr));
        if both.0.is_ok() && both.1.is_ok() {
            written.fetch_add(1, Ordering::Relaxed);
        } else {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

struct Writers {
    tasks: JoinSet<()>,
    stop: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
    started: usize,
}

impl Writers {
    fn new() -> Self {
        Self { tasks: JoinSet::new(), stop: Arc::default(), written: Arc::default(), started: 0 }
    }

    fn start(&mut self, id: &'static str, client: Client) {
        self.started += 1;
        let base = self.started * 100_000;
        self.tasks.spawn(write(client, id, self.stop.clone(), self.written.clone(), base));
    }

    fn written(&self) -> usize {
        self.written.load(Ordering::Relaxed)
    }

    /// Waits until some more have been written.
    async fn progress(&self) {
        let (begin, goal) = (Instant::now(), self.written() + 10);
        while self.written() < goal {
            assert!(begin.elapsed() < SOON, "nobody writes any more");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn end(mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.tasks.shutdown().await;
        self.written()
    }
}

fn seed() -> u64 {
    let given = env::var("CONCORD_FLEET_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(rand::random);
    eprintln!("CONCORD_FLEET_SEED={seed}");
    seed
}

/// Keeps a server from doing anything for longer than its lease lasts: others remove it, and the server finds out later,
/// when what it had on its way arrives.
async fn disturb(member: &Member, how: u8) {
    let longer_than_the_lease = Duration::from_millis(4500);
    let program = member.program.as_ref().expect("it runs");
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
        _ => {}
    }
}

/// Flips the stored version of the definition.
async fn flip(client: &Client, stored: &str) {
    let definitions = kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> = Api::all_with(client.clone(), &definitions);
    let patch = Patch::Merge(json!({"spec": {"versions": versions(stored)}}));
    // Whoever is asked may just be stopping: it is flipped again later.
    definitions.patch("foos.example.com", &PatchParams::default(), &patch).await.ok();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_ever_stored_in_a_version_that_its_writer_had_not_published() {
    let mut random = StdRng::seed_from_u64(seed());
    let seconds =
        env::var("CONCORD_FLEET_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(12);
    let mut world = World::new().await;
    for at in 0..3 {
        world.start(at, RELEASES[0]).await;
        world.ready(at).await;
    }
    let definitions = kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> = Api::all_with(world.client(0).await, &definitions);
    let definition: DynamicObject = serde_json::from_value(definition()).expect("a definition");
    definitions.create(&PostParams::default(), &definition).await.expect("defined");
    let mut writers = Writers::new();
    for at in 0..3 {
        writers.start(world.members[at].id, world.client(at).await);
    }
    writers.progress().await;
    let begin = Instant::now();
    let mut round = 0;
    while begin.elapsed() < Duration::from_secs(seconds) || round < 4 {
        let at = round % 3;
        // One after the other to the new release, and then back.
        let release = RELEASES[usize::from(round / 3 % 2 == 0)];
        disturb(&world.members[at], random.random_range(0..4)).await;
        flip(&world.client((at + 1) % 3).await, ["v1", "v2"][round % 2]).await;
        world.stop(at, if random.random_bool(0.5) { "KILL" } else { "TERM" }).await;
        world.start(at, release).await;
        world.ready(at).await;
        writers.start(world.members[at].id, world.client(at).await);
        writers.progress().await;
        round += 1;
    }
    let written = writers.end().await;
    for at in 0..3 {
        world.stop(at, "TERM").await;
    }
    let checked = world
        .audit(&[
            ("example.com/foos", "example.com.foos"),
            ("servicecidrs", "networking.k8s.io.servicecidrs"),
            ("configmaps", "core.configmaps"),
            ("namespaces", "core.namespaces"),
            ("leases", "coordination.k8s.io.leases"),
            ("storageversions", "internal.apiserver.k8s.io.storageversions"),
        ])
        .await;
    eprintln!("{round} restarts, {written} pairs written, {checked} commits audited");
    assert!(checked > 2 * written, "{checked} of {written}");
}
