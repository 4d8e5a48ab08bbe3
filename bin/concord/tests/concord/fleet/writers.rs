//! Clients of a fleet that write all the time, and say in what they write whom they asked.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use concord_testing::audit::{WRITER, stamp};
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::task::{AbortHandle, JoinSet};

use super::world::{foo, foos, kind};
use crate::support::SOON;

/// Objects that all servers change.
const SHARED: usize = 8;

/// A client of one process of a server: every change says which process it asked.
struct Author {
    id: &'static str,
    holder: String,
    foos: Api<DynamicObject>,
    cidrs: Api<DynamicObject>,
    /// How many changes it has asked for.
    count: usize,
}

impl Author {
    async fn new(id: &'static str, client: Client, base: usize) -> Self {
        let lease = Api::<DynamicObject>::namespaced_with(
            client.clone(),
            "kube-system",
            &kind("coordination.k8s.io", "v1", "Lease"),
        );
        let lease = lease.get(id).await.expect("who is ready has an identity");
        let holder = lease.data["spec"]["holderIdentity"].as_str().expect("a holder").to_owned();
        let cidrs = Api::all_with(client.clone(), &kind("networking.k8s.io", "v1", "ServiceCIDR"));
        Self { id, holder, foos: foos(&client), cidrs, count: base }
    }

    fn stamp(&mut self) -> BTreeMap<String, String> {
        self.count += 1;
        [(WRITER.to_owned(), stamp(self.id, &self.holder, self.count))].into()
    }

    /// Makes an object of each kind.
    async fn create(&mut self, name: &str) -> bool {
        let mut thing = foo(name);
        let mut cidr = DynamicObject::new(name, &kind("networking.k8s.io", "v1", "ServiceCIDR"));
        thing.metadata.annotations = Some(self.stamp());
        cidr.metadata.annotations = Some(self.stamp());
        let network = format!("10.{}.{}.0/24", 64 + self.count / 250 % 128, self.count % 250);
        cidr.data = json!({"spec": {"cidrs": [network]}});
        let options = PostParams::default();
        let both = tokio::join!(self.foos.create(&options, &thing), self.cidrs.create(&options, &cidr));
        both.0.is_ok() && both.1.is_ok()
    }

    /// Changes an object of each kind.
    async fn update(&mut self, name: &str) -> bool {
        let mut patch = || Patch::Merge(json!({"metadata": {"annotations": self.stamp()}}));
        let (thing, cidr) = (patch(), patch());
        let options = PatchParams::default();
        let both =
            tokio::join!(self.foos.patch(name, &options, &thing), self.cidrs.patch(name, &options, &cidr));
        both.0.is_ok() && both.1.is_ok()
    }
}

/// Writes through one server until told to stop: makes objects, and changes its own and those that everybody changes.
/// Whatever is refused is refused; what counts is what is stored.
async fn write(mut author: Author, stop: Arc<AtomicBool>, written: Arc<AtomicUsize>) {
    while !stop.load(Ordering::Relaxed) {
        let name = format!("{}--{}", author.id, author.count);
        let shared = format!("shared-{}", author.count % SHARED);
        let made = author.create(&name).await;
        let changed = author.update(&name).await && author.update(&shared).await;
        if !changed {
            author.create(&shared).await;
        }
        if made && changed {
            written.fetch_add(1, Ordering::Relaxed);
        } else {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

pub(super) struct Writers {
    tasks: JoinSet<()>,
    /// The one of each server.
    current: BTreeMap<&'static str, AbortHandle>,
    stop: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
    started: usize,
}

impl Writers {
    pub(super) fn new() -> Self {
        Self {
            tasks: JoinSet::new(),
            current: BTreeMap::new(),
            stop: Arc::default(),
            written: Arc::default(),
            started: 0,
        }
    }

    pub(super) async fn start(&mut self, id: &'static str, client: Client) {
        self.started += 1;
        let author = Author::new(id, client, self.started * 100_000).await;
        let task = self.tasks.spawn(write(author, self.stop.clone(), self.written.clone()));
        self.current.insert(id, task);
    }

    /// To be called when the process is gone: what was asked of it is not to be asked of the next one.
    pub(super) fn stopped(&mut self, id: &str) {
        if let Some(task) = self.current.remove(id) {
            task.abort();
        }
    }

    pub(super) fn written(&self) -> usize {
        self.written.load(Ordering::Relaxed)
    }

    /// Waits until some more have been written.
    pub(super) async fn progress(&self) {
        let (begin, goal) = (Instant::now(), self.written() + 10);
        while self.written() < goal {
            assert!(begin.elapsed() < SOON, "nobody writes any more");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(super) async fn end(mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.tasks.shutdown().await;
        self.written()
    }
}
