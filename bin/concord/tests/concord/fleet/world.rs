//! Servers that are started again and again on one etcd, each with a way of its own to get there and a clock of its own.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use concord_faultfs::{FaultFs, Faults};
use concord_server::test_client::Protocol;
use concord_store::Store as _;
use concord_store_etcd::{Config, EtcdStore};
use concord_testing::{audit::Auditor, etcd::Cluster, proxy::Proxy};
use futures_util::StreamExt as _;
use http::Method;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::support::{Program, SOON, client, send};

/// A server that is started again and again.
pub(super) struct Member {
    pub(super) id: &'static str,
    data: TempDir,
    /// The way to etcd.
    pub(super) proxy: Proxy,
    /// Its clock; `None` where no clock can be made to jump.
    clock: Option<(FaultFs, TempDir)>,
    pub(super) program: Option<Program>,
}

impl Member {
    async fn new(id: &'static str, etcd: &Cluster) -> Self {
        let target = etcd.endpoints()[0].trim_start_matches("http://").parse().expect("an address");
        let proxy = Proxy::start(target, 0).await.expect("a proxy");
        let clock = concord_faultfs::library().map(|_| {
            let directory = tempdir().expect("a directory");
            let watched = directory.path().join("watched");
            std::fs::create_dir(&watched).expect("a directory");
            let clock = FaultFs::new(&watched, &directory.path().join("control"));
            (clock.expect("a control file"), directory)
        });
        Self { id, data: tempdir().expect("a directory"), proxy, clock, program: None }
    }

    /// Sets the clock of the server, also of the next process.
    pub(super) fn set_clock(&self, ahead: i64) {
        if let Some((clock, _)) = &self.clock {
            let faults = Faults { clock_offset_seconds: ahead, ..Faults::default() };
            clock.set(&faults).expect("the clock is set");
        }
    }
}

pub(super) struct World {
    pub(super) etcd: Cluster,
    pub(super) members: Vec<Member>,
}

impl World {
    pub(super) async fn new() -> Self {
        let etcd = Cluster::single().await.expect("an etcd");
        let mut members = Vec::new();
        for id in ["s1", "s2", "s3"] {
            members.push(Member::new(id, &etcd).await);
        }
        Self { etcd, members }
    }

    pub(super) async fn start(&mut self, at: usize, flags: &[&str]) {
        self.members[at].program = Some(self.launch(at, flags).await);
    }

    /// A process of a server, from the moment it says where it is.
    pub(super) async fn launch(&self, at: usize, flags: &[&str]) -> Program {
        let own = [
            format!("--etcd-servers={}", self.members[at].proxy.url()),
            format!("--server-id={}", self.members[at].id),
        ];
        let flags: Vec<&str> = own.iter().map(String::as_str).chain(flags.iter().copied()).collect();
        let Member { data, clock, .. } = &self.members[at];
        let attach = |command: &mut Command| {
            if let Some((clock, _)) = clock {
                clock.attach(command).expect("there is a library");
            }
        };
        Program::start_as(data.path(), &flags, attach).await
    }

    pub(super) fn program(&self, at: usize) -> &Program {
        self.members[at].program.as_ref().expect("it runs")
    }

    pub(super) async fn ready(&self, at: usize) {
        self.program(at).ready(200).await;
    }

    pub(super) async fn stop(&mut self, at: usize, signal: &str) {
        let Some(program) = self.members[at].program.take() else { return };
        program.signal(signal);
        program.ended().await;
    }

    pub(super) async fn client(&self, at: usize) -> Client {
        client(self.members[at].data.path()).await
    }

    /// The store below everything.
    pub(super) async fn store(&self) -> EtcdStore {
        let config =
            Config { prefix: "/registry/".into(), ..Config::new(self.etcd.endpoints().iter().cloned()) };
        EtcdStore::open(config).await.expect("a store")
    }

    /// Reads the whole log, and fails if anybody did not keep to what was said.
    pub(super) async fn audit(&self, resources: &[(&str, &str)]) -> Auditor {
        let store = self.store().await;
        let last = store.current_revision().await.expect("a revision");
        let (mut commits, mut auditor, mut seen) = (store.follow(1), Auditor::new(resources), 1);
        while seen < last {
            for commit in commits.next().await.expect("more").expect("readable") {
                seen = commit.revision;
                auditor.commit(&commit).unwrap_or_else(|complaint| panic!("{complaint}"));
            }
        }
        store.shutdown().await;
        auditor
    }
}

/// The versions of what the tests define.
pub(super) const BOTH: [&str; 2] = ["v1", "v2"];

pub(super) fn kind(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

pub(super) fn definitions(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"))
}

pub(super) fn foos(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &kind("example.com", "v1", "Foo"))
}

pub(super) fn foo(name: &str) -> DynamicObject {
    DynamicObject::new(name, &kind("example.com", "v1", "Foo"))
}

pub(super) fn storage_versions(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &kind("internal.apiserver.k8s.io", "v1alpha1", "StorageVersion"))
}

/// Both versions, one of them stored, and some served.
pub(super) fn versions(stored: &str, served: &[&str]) -> Value {
    let version = |name: &&str| {
        json!({"name": name, "served": served.contains(name), "storage": *name == stored,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    BOTH.iter().map(version).collect()
}

/// Defines what the tests write, in two versions.
pub(super) async fn define(client: &Client, stored: &str, served: &[&str]) -> DynamicObject {
    define_kind(client, "Foo", stored, served).await
}

pub(super) async fn define_kind(client: &Client, kind: &str, stored: &str, served: &[&str]) -> DynamicObject {
    let plural = format!("{}s", kind.to_lowercase());
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {"group": "example.com", "scope": "Cluster", "versions": versions(stored, served),
            "names": {"plural": plural, "kind": kind}},
    });
    let definition: DynamicObject = serde_json::from_value(definition).expect("a definition");
    definitions(client).create(&PostParams::default(), &definition).await.expect("defined")
}

/// Flips the stored version of the definition; whether that was possible.
pub(super) async fn flip(client: &Client, stored: &str) -> bool {
    let patch = Patch::Merge(json!({"spec": {"versions": versions(stored, &BOTH)}}));
    definitions(client).patch("foos.example.com", &PatchParams::default(), &patch).await.is_ok()
}

/// What the servers say about a resource, and what follows: `s1=v1,s2=v2`, or `s1=v1,s2=v1 -> v1`.
pub(super) async fn said(client: &Client, name: &str) -> String {
    let Ok(Some(object)) = storage_versions(client).get_opt(name).await else { return String::new() };
    let status = &object.data["status"];
    let entry = |entry: &Value| {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        format!("{}={}", text("apiServerID"), text("encodingVersion"))
    };
    let mut entries: Vec<String> =
        status["storageVersions"].as_array().into_iter().flatten().map(entry).collect();
    entries.sort();
    let common = status["commonEncodingVersion"].as_str().map(|common| format!(" -> {common}"));
    format!("{}{}", entries.join(","), common.unwrap_or_default())
}

/// Asks again and again until there is an answer.
pub(super) async fn until<T, F: Future<Output = Option<T>>>(what: &str, ask: impl Fn() -> F) -> T {
    let begin = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(begin.elapsed() < SOON, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Creates objects until one is refused because a gate is closed, and says why. kube's client would try again instead.
pub(super) async fn until_refused(program: &Program, path: &str, object: &Value) -> String {
    until("a refusal", || async {
        let mut admin = program.admin(Protocol::Http2).await;
        let (code, status, _) = send(&mut admin, Method::POST, path, object).await;
        (code == 503).then(|| status["message"].as_str().expect("a message").to_owned())
    })
    .await
}

/// Waits until the servers say this about a resource.
pub(super) async fn until_said(client: &Client, name: &str, what: &str) {
    until(&format!("{name}: {what}"), || async { (said(client, name).await == what).then_some(()) }).await;
}
