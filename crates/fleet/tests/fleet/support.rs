//! Servers that share a store, each with a replica of its own.

use std::{sync::Arc, time::Duration};

use concord_apis::{Release, RuntimeConfig, Settings as ApiSettings, api_set};
use concord_endpoints::ApiSet;
use concord_fleet::{Fleet, FleetView, Settings};
use concord_merge::apply::Time;
use concord_meta::{
    GroupVersion, Status,
    options::{DeleteOptions, ReadAt},
};
use concord_registry::{
    Context, Item, Object, ObjectName, Part, Registry, Resource, Resources as _, UpdateRequest,
};
use concord_replica::{Config, Replica, View};
use concord_store::{KeyRange, Scan, Store};
use concord_store_embedded::{EmbeddedStore, Options};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What a test waits for at most: only reached when something is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const STORAGE_VERSIONS: (&str, &str, &str) =
    ("internal.apiserver.k8s.io", "v1alpha1", "storageversions");
pub(crate) const LEASES: (&str, &str, &str) = ("coordination.k8s.io", "v1", "leases");
pub(crate) const CONFIG_MAPS: (&str, &str, &str) = ("", "v1", "configmaps");
pub(crate) const DEFINITIONS: (&str, &str, &str) =
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions");

/// The log.
pub(crate) struct Log {
    pub(crate) store: Arc<EmbeddedStore>,
    _directory: TempDir,
}

impl Log {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = EmbeddedStore::open(&Options::new(directory.path().join("store.db")));
        Self { store: Arc::new(store.expect("a store")), _directory: directory }
    }

    pub(crate) async fn revision(&self) -> u64 {
        self.store.current_revision().await.expect("a revision")
    }

    /// The names of what is stored below a prefix.
    pub(crate) async fn names(&self, prefix: &str) -> Vec<String> {
        let prefix = format!("/registry/{prefix}/");
        let page =
            self.store.scan(Scan::new(KeyRange::prefix(prefix.clone()), 10_000)).await.expect("a page");
        let name = |key: &[u8]| String::from_utf8_lossy(key)[prefix.len()..].to_owned();
        page.entries.iter().map(|entry| name(&entry.key)).collect()
    }
}

/// How a server is to be.
#[derive(Clone)]
pub(crate) struct Kind {
    pub(crate) release: &'static str,
    pub(crate) id: &'static str,
    pub(crate) settings: Settings,
}

impl Kind {
    /// A server whose writes do not wait for long.
    pub(crate) fn impatient(id: &'static str) -> Self {
        let mut kind = Self::new(id);
        kind.settings.gate_patience = Duration::from_secs(1);
        kind
    }

    pub(crate) fn new(id: &'static str) -> Self {
        Self {
            release: "1.36",
            id,
            settings: Settings { hostname: "host".to_owned(), ..Settings::default() },
        }
    }
}

/// One process of a server.
pub(crate) struct Server {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) set: ApiSet,
    pub(crate) replica: Arc<Replica>,
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) fn start(log: &Log, kind: &Kind) -> Self {
        Self::start_on(log, log.store.clone(), kind)
    }

    /// A server that writes through something else to the log that it follows.
    pub(crate) fn start_on(log: &Log, store: Arc<dyn Store>, kind: &Kind) -> Self {
        Self::start_between(log.store.clone(), store, kind)
    }

    pub(crate) fn start_between(followed: Arc<dyn Store>, store: Arc<dyn Store>, kind: &Kind) -> Self {
        let config = RuntimeConfig::parse(&["internal.apiserver.k8s.io/v1alpha1=true"]).expect("good");
        let release: Release = kind.release.parse().expect("a release");
        let set = api_set(&ApiSettings { release, runtime_config: config, ..ApiSettings::default() });
        let view = FleetView::new("/registry/");
        let state = view.state();
        let views: Vec<Box<dyn View>> = vec![Box::new(view)];
        let replica = Arc::new(Replica::start(followed, Config::default(), views));
        let settings = Settings { server_id: Some(kind.id.to_owned()), ..kind.settings.clone() };
        let fleet = Fleet::new(settings, &state, &set).expect("a fleet");
        let registry = Registry::new(store, replica.clone(), Vec::new()).with_gate(fleet.gate());
        let (registry, cancel) = (Arc::new(registry), CancellationToken::new());
        let task = tokio::spawn(fleet.clone().run(registry.clone(), cancel.clone()));
        Self { fleet, registry, set, replica, cancel, task }
    }

    /// Starts one, and waits until it is ready.
    pub(crate) async fn ready(log: &Log, kind: &Kind) -> Self {
        let server = Self::start(log, kind);
        server.registered().await;
        server
    }

    pub(crate) async fn registered(&self) {
        let versions = self.fleet.storage_versions().expect("versions are registered");
        wait_for("the registration", || async { versions.is_completed().then_some(()) }).await;
    }

    /// As `kill -9`, but for what is on its way.
    pub(crate) async fn kill(self) {
        self.task.abort();
        self.task.await.ok();
        self.replica.shutdown().await;
    }

    /// In order.
    pub(crate) async fn stop(self) {
        self.cancel.cancel();
        self.task.await.expect("it ends well");
        self.fleet.leave(&self.registry).await;
        self.replica.shutdown().await;
    }

    pub(crate) fn resource(&self, (group, version, plural): (&str, &str, &str)) -> Arc<Resource> {
        self.set.find(&GroupVersion::new(group, version), plural).expect("served")
    }

    pub(crate) async fn create(
        &self,
        resource: (&str, &str, &str),
        namespace: &str,
        object: Value,
    ) -> Result<Item, Status> {
        let resource = self.resource(resource);
        let mut object = object.as_object().expect("an object").clone();
        object.insert("kind".to_owned(), resource.names.kind.as_str().into());
        object.insert("apiVersion".to_owned(), resource.version.to_string().into());
        Box::pin(self.registry.create(&context(), &resource, namespace, object)).await
    }

    pub(crate) async fn config_map(&self, name: &str) -> Result<Item, Status> {
        self.create(CONFIG_MAPS, "default", json!({"metadata": {"name": name}})).await
    }

    pub(crate) async fn get(
        &self,
        resource: (&str, &str, &str),
        namespace: &str,
        name: &str,
    ) -> Option<Object> {
        let resource = self.resource(resource);
        let storage = resource.storage().expect("stored");
        let name = ObjectName { namespace, name };
        let item = self.registry.get(storage, name, ReadAt::MostRecent).await.ok()?;
        Some(resource.object(&item).expect("readable"))
    }

    pub(crate) async fn storage_version(&self, name: &str) -> Option<Object> {
        self.get(STORAGE_VERSIONS, "", name).await
    }

    /// What the servers say about a resource, and what follows: `a=v1,b=v2`, or `a=v1,b=v1 -> v1`.
    pub(crate) async fn said(&self, name: &str) -> String {
        let Some(object) = self.storage_version(name).await else { return String::new() };
        let status = concord_storageversion::Status::of(&object);
        let mut entries: Vec<String> = status
            .storage_versions
            .iter()
            .map(|entry| format!("{}={}", entry.api_server_id, entry.encoding_version))
            .collect();
        entries.sort();
        let common = status.common_encoding_version.map(|common| format!(" -> {common}")).unwrap_or_default();
        format!("{}{common}", entries.join(","))
    }

    pub(crate) async fn update(
        &self,
        resource: (&str, &str, &str),
        (namespace, name): (&str, &str),
        part: Part<'_>,
        change: impl Fn(&mut Object),
    ) {
        let mut object = self.get(resource, namespace, name).await.expect("it exists");
        change(&mut object);
        let request = UpdateRequest { name: ObjectName { namespace, name }, part, object };
        let resource = self.resource(resource);
        Box::pin(self.registry.update(&context(), &resource, request)).await.expect("updated");
    }

    pub(crate) async fn delete(&self, resource: (&str, &str, &str), namespace: &str, name: &str) {
        let resource = self.resource(resource);
        let name = ObjectName { namespace, name };
        let (context, options) = (context(), DeleteOptions::default());
        Box::pin(self.registry.delete(&context, &resource, name, &options)).await.expect("deleted");
    }
}

fn context() -> Context {
    Context::of_the_server(Time { unix: 1_800_000_000 })
}

/// Asks again and again until there is an answer.
pub(crate) async fn wait_for<T, F: Future<Output = Option<T>>>(what: &str, ask: impl Fn() -> F) -> T {
    let waited = tokio::time::timeout(PATIENCE, async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("{what} took too long"))
}

/// Waits until the servers say this about a resource.
pub(crate) async fn wait_said(server: &Server, name: &str, said: &str) {
    wait_for(&format!("{name}: {said}"), || async { (server.said(name).await == said).then_some(()) }).await;
}
