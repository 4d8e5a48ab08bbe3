//! Three servers on three etcds, and everything that can happen to them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use concord_store::Store as _;
use concord_store_etcd::EtcdStore;
use concord_testing::{
    etcd::{Cluster, Options},
    proxy::{Fault, Proxy},
    webhook::{Certificate, Reply, WebhookServer},
};
use kube::{
    Api, Client,
    api::{DynamicObject, PostParams},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use tokio::task::JoinHandle;

use super::{
    super::{condition, kind, migrations},
    Happening,
    witness::{Witness, follow},
    writers::Writers,
};
use crate::{
    encryption::{EncryptionFile, etcd_store},
    support::{Program, SOON, client},
};

const RESOURCES: &str = "[foos.example.com]";

/// The providers such that one of the keys writes.
pub(super) fn providers(key: usize) -> &'static str {
    match key {
        1 => "[{aesgcm: {keys: [<key1>, <key2>]}}]",
        _ => "[{aesgcm: {keys: [<key2>, <key1>]}}]",
    }
}

struct Member {
    id: String,
    data: TempDir,
    file: EncryptionFile,
    /// The ways to the etcds.
    proxies: Vec<Proxy>,
    program: Option<Program>,
}

pub(super) struct World {
    etcd: Cluster,
    store: Arc<EtcdStore>,
    members: Vec<Member>,
    pub(super) witness: Arc<Mutex<Witness>>,
    following: JoinHandle<()>,
    pub(super) writers: Writers,
    hook: WebhookServer,
    is_down: Arc<AtomicBool>,
}

impl World {
    pub(super) async fn new() -> Self {
        let etcd = Cluster::start(Options { members: 3, ..Options::default() }).await.expect("etcds");
        let store = Arc::new(etcd_store(&etcd).await);
        let mut members = Vec::new();
        for id in ["s1", "s2", "s3"] {
            let mut proxies = Vec::new();
            for at in 0..etcd.size() {
                proxies.push(Proxy::start(etcd.client_address(at), 0).await.expect("a proxy"));
            }
            let (data, file) =
                (tempdir().expect("a directory"), EncryptionFile::new(RESOURCES, providers(1)));
            members.push(Member { id: id.to_owned(), data, file, proxies, program: None });
        }
        let text = std::fs::read_to_string(members[0].file.path()).expect("a file");
        let witness = Arc::new(Mutex::new(Witness::new(&text)));
        let following = follow(store.clone(), witness.clone());
        let is_down = Arc::new(AtomicBool::new(false));
        let down = is_down.clone();
        let hook = WebhookServer::start(Certificate::For("127.0.0.1"), move |asked| {
            if down.load(Ordering::Relaxed) {
                return Reply::hang_up();
            }
            let review: Value = serde_json::from_slice(&asked.body).expect("a review");
            let response = json!({"uid": review["request"]["uid"], "allowed": true});
            let answer =
                json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
            Reply::ok(&answer.to_string())
        });
        let hook = hook.await.expect("a webhook");
        let writers = Writers::default();
        let mut world = Self { etcd, store, members, witness, following, writers, hook, is_down };
        for at in 0..3 {
            world.start(at).await;
        }
        world
    }

    async fn start(&mut self, at: usize) {
        let member = &mut self.members[at];
        let etcds: Vec<String> = member.proxies.iter().map(Proxy::url).collect();
        let flags = [
            format!("--etcd-servers={}", etcds.join(",")),
            format!("--server-id={}", member.id),
            member.file.flag(),
            "--encryption-provider-config-automatic-reload=true".to_owned(),
            "--storage-migration-delay=0s".to_owned(),
            "--identity-lease-duration=3s".to_owned(),
            "--identity-lease-renew-interval=500ms".to_owned(),
            "--leader-elect-lease-duration=3s".to_owned(),
            "--leader-elect-renew-deadline=2s".to_owned(),
            "--leader-elect-retry-period=500ms".to_owned(),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let program = Program::start_with(member.data.path(), &flags).await;
        program.ready(200).await;
        member.program = Some(program);
    }

    pub(super) async fn client(&self, at: usize) -> Client {
        client(self.members[at].data.path()).await
    }

    /// Somebody writes through a server.
    pub(super) async fn write(&mut self, at: usize) {
        let client = self.client(at).await;
        self.writers.start(client);
    }

    /// Every change of an object is asked for at a webhook.
    pub(super) async fn ask_webhook(&self) {
        let hook = json!({
            "name": "keep.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail", "timeoutSeconds": 2,
            "clientConfig": {"url": format!("https://127.0.0.1:{}/", self.hook.port),
                "caBundle": BASE64_STANDARD.encode(&self.hook.authority)},
            "rules": [{"apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["UPDATE"],
                "resources": ["foos"]}],
        });
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "keep"}, "webhooks": [hook],
        });
        let kind = kind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration");
        let api: Api<DynamicObject> = Api::all_with(self.client(0).await, &kind);
        let object = serde_json::from_value(object).expect("an object");
        api.create(&PostParams::default(), &object).await.expect("created");
    }

    /// All servers write with one of the keys, as soon as they have noticed.
    pub(super) fn encrypt_with(&self, key: usize) {
        self.members.iter().for_each(|member| member.file.replace(RESOURCES, providers(key)));
    }

    /// A migration as one of the servers shows it.
    pub(super) async fn migration(&self, name: &str) -> Option<DynamicObject> {
        // Nobody wants to know later what was asked.
        self.hook.take_asked();
        self.witness.lock().agrees();
        for at in 0..3 {
            let ask = async { migrations(&self.client(at).await).get(name).await };
            if let Ok(Ok(found)) = tokio::time::timeout(Duration::from_secs(5), ask).await {
                return Some(found);
            }
        }
        None
    }

    pub(super) async fn has_ended(&self, name: &str) -> bool {
        let found = self.migration(name).await;
        found.is_some_and(|found| {
            ["Succeeded", "Failed"].iter().any(|kind| condition(&found, kind, "True").is_some())
        })
    }

    /// Who runs the controllers.
    async fn leader(&self) -> Option<usize> {
        let client = self.client(0).await;
        let leases: Api<DynamicObject> =
            Api::namespaced_with(client, "kube-system", &kind("coordination.k8s.io", "v1", "Lease"));
        let lease = leases.get("concord-controllers").await.ok()?;
        let holder = lease.data["spec"]["holderIdentity"].as_str()?.split('_').next()?.to_owned();
        self.members.iter().position(|member| member.id == holder)
    }

    async fn restart(&mut self, at: usize) {
        let program = self.members[at].program.take().expect("it runs");
        program.signal("KILL");
        program.ended().await;
        self.start(at).await;
        self.write(at).await;
    }

    /// Has something happen, and afterwards everything is as it was. `key` is the one that all servers write with.
    pub(super) async fn suffer(&mut self, happening: Happening, at: usize, migration: &str, key: usize) {
        eprintln!("{happening:?} {}", self.members[at].id);
        let longer_than_leases = Duration::from_millis(3500);
        match happening {
            Happening::LeaderKilled => {
                let leader = self.leader().await.unwrap_or(at);
                self.restart(leader).await;
            }
            Happening::ServerKilled => self.restart(at).await,
            Happening::ServerFrozen => {
                let program = self.members[at].program.as_ref().expect("it runs");
                program.signal("STOP");
                tokio::time::sleep(longer_than_leases).await;
                program.signal("CONT");
            }
            Happening::ServerCutOff => {
                self.members[at].proxies.iter().for_each(|proxy| proxy.set(Fault::BlackHole));
                tokio::time::sleep(longer_than_leases).await;
                self.members[at].proxies.iter().for_each(|proxy| proxy.set(Fault::None));
            }
            Happening::EtcdLeaderKilled => {
                let leader = self.etcd.leader().await.expect("a leader");
                self.etcd.kill(leader).expect("killed");
                tokio::time::sleep(Duration::from_millis(500)).await;
                self.etcd.restart(leader).expect("started");
                self.etcd.ready().await.expect("healthy");
            }
            Happening::Compaction => {
                let seen = self.witness.lock().seen;
                // A server may have been faster.
                self.store.compact(seen).await.ok();
            }
            Happening::WebhookDown => {
                self.is_down.store(true, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(1500)).await;
                self.is_down.store(false, Ordering::Relaxed);
            }
            Happening::Disagreement => self.disagree(at, migration, key).await,
        }
        self.members[at].program.as_ref().expect("it runs").ready(200).await;
    }

    /// One server writes with another key until the migration waits, unless it ends before.
    async fn disagree(&self, at: usize, migration: &str, key: usize) {
        self.members[at].file.replace(RESOURCES, providers(3 - key));
        let begin = Instant::now();
        loop {
            let found = self.migration(migration).await;
            let waits = |found: &DynamicObject| {
                condition(found, "Running", "False").is_some_and(|(reason, _)| reason != "Paused")
            };
            if found.as_ref().is_some_and(waits) {
                break;
            }
            assert!(begin.elapsed() < SOON, "not in time: it waits for the servers to agree");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.members[at].file.replace(RESOURCES, providers(key));
    }

    /// Waits until the witness has seen everything.
    pub(super) async fn seen(&self) {
        let begin = Instant::now();
        let last = loop {
            match self.store.current_revision().await {
                Ok(last) => break last,
                // The etcds may still be choosing a leader.
                Err(error) => assert!(begin.elapsed() < SOON, "not in time: a revision: {error}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let seen = || {
            let witness = self.witness.lock();
            witness.agrees();
            witness.seen
        };
        while seen() < last {
            assert!(begin.elapsed() < SOON, "not in time: the witness sees revision {last}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.following.abort();
    }
}
