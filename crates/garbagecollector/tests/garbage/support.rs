//! A registry of the built-in kinds on a real store, with the garbage collector beside it.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use concord_apis::{Settings, api_set};
use concord_codec::{FieldValidation, MediaType, PatchType};
use concord_garbagecollector::{GarbageCollector, GraphState, GraphView};
use concord_merge::apply::Time;
use concord_meta::{
    GroupVersion, Status,
    options::{DeleteOptions, PropagationPolicy, ReadAt},
};
use concord_registry::{Body, Context, ObjectName, Part, PatchRequest, Registry, Resource, Resources};
use concord_replica::{Replica, View};
use concord_store::{KeyRange, Store};
use concord_store_embedded::{EmbeddedStore, Options};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What a test waits for at most. Generous: it is only reached when something is wrong.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Some kinds of a server; a test may have them served or not.
pub(crate) struct Kinds {
    all: Arc<dyn Resources>,
    hidden: Mutex<BTreeSet<&'static str>>,
}

impl Kinds {
    pub(crate) fn hide(&self, plural: &'static str) {
        self.hidden.lock().expect("no panic").insert(plural);
    }

    pub(crate) fn show(&self, plural: &'static str) {
        self.hidden.lock().expect("no panic").remove(plural);
    }

    fn is_shown(&self, resource: &Resource) -> bool {
        !self.hidden.lock().expect("no panic").contains(resource.names.plural.as_str())
    }
}

impl Resources for Kinds {
    fn find(&self, version: &GroupVersion, plural: &str) -> Option<Arc<Resource>> {
        self.all.find(version, plural).filter(|found| self.is_shown(found))
    }

    fn all(&self) -> Vec<Arc<Resource>> {
        self.all.all().into_iter().filter(|found| self.is_shown(found)).collect()
    }
}

pub(crate) struct Server {
    pub(crate) registry: Arc<Registry>,
    pub(crate) kinds: Arc<Kinds>,
    pub(crate) state: GraphState,
}

pub(crate) struct Fixture {
    pub(crate) store: Arc<EmbeddedStore>,
    pub(crate) server: Server,
    _directory: tempfile::TempDir,
}

/// A collector that runs until it is stopped.
pub(crate) struct Running {
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn stop(self) {
        self.cancel.cancel();
        self.task.await.expect("it ends well");
    }
}

pub(crate) fn context() -> Context {
    Context::of_the_server(Time { unix: 1_700_000_000 })
}

/// A reference to an object.
pub(crate) fn owner(api_version: &str, kind: &str, object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({"apiVersion": api_version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"]})
}

/// A reference to a ConfigMap that has to wait for whoever refers to it.
pub(crate) fn blocked(object: &Value) -> Value {
    let mut reference = owner("v1", "ConfigMap", object);
    reference["blockOwnerDeletion"] = true.into();
    reference
}

/// `group/plural/namespace/name`; the group and the namespace may be empty.
fn split(path: &str) -> (&str, &str, ObjectName<'_>) {
    let parts: Vec<&str> = path.splitn(4, '/').collect();
    let [group, plural, namespace, name] = parts[..] else {
        panic!("{path} is not group/plural/namespace/name")
    };
    (group, plural, ObjectName { namespace, name })
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = EmbeddedStore::open(&Options::new(directory.path().join("db"))).expect("a store");
        let store = Arc::new(store);
        let server = Server::on(&store).await;
        Self { store, server, _directory: directory }
    }
}

impl Server {
    pub(crate) async fn on(store: &Arc<EmbeddedStore>) -> Self {
        Self::of(store.clone()).await
    }

    pub(crate) async fn of(store: Arc<dyn Store>) -> Self {
        let view = GraphView::new("/registry/");
        let state = view.state();
        let views: Vec<Box<dyn View>> = vec![Box::new(view)];
        let replica = Arc::new(Replica::start(store.clone(), concord_replica::Config::default(), views));
        replica.consistent(PATIENCE).await.expect("loads");
        let registry = Arc::new(Registry::new(store.clone(), replica, Vec::new()));
        let all = Arc::new(api_set(&Settings::default()));
        Self { registry, kinds: Arc::new(Kinds { all, hidden: Mutex::default() }), state }
    }

    pub(crate) fn start(&self) -> Running {
        let cancel = CancellationToken::new();
        let (registry, state) = (self.registry.clone(), self.state.clone());
        let collector = Arc::new(GarbageCollector::new(registry, self.kinds.clone(), state));
        let task = tokio::spawn(collector.run(cancel.clone()));
        Running { cancel, task }
    }

    fn resource(&self, group: &str, plural: &str) -> Arc<Resource> {
        self.kinds.all.find(&GroupVersion::new(group, "v1"), plural).expect("a resource")
    }

    pub(crate) async fn create(&self, path: &str, mut body: Value, owners: &[Value]) -> Value {
        let (group, plural, name) = split(path);
        let resource = self.resource(group, plural);
        body["metadata"]["name"] = name.name.into();
        body["metadata"]["ownerReferences"] = owners.into();
        let bytes = body.to_string();
        let body = Body {
            bytes: bytes.as_bytes(),
            media_type: MediaType::Json,
            validation: FieldValidation::Strict,
        };
        let object = resource.decode(body, &context()).expect("a good body");
        let created = self.registry.create(&context(), &resource, name.namespace, object).await;
        Value::Object(resource.object(&created.expect("created")).expect("readable"))
    }

    /// A ConfigMap in the namespace `ns`.
    pub(crate) async fn map(&self, name: &str, owners: &[Value]) -> Value {
        self.create(&format!("/configmaps/ns/{name}"), json!({}), owners).await
    }

    pub(crate) async fn delete(&self, path: &str, policy: PropagationPolicy) -> Result<(), Status> {
        let (group, plural, name) = split(path);
        let options = DeleteOptions { propagation_policy: Some(policy), ..DeleteOptions::default() };
        self.registry.delete(&context(), &self.resource(group, plural), name, &options).await.map(drop)
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        let (group, plural, name) = split(path);
        let resource = self.resource(group, plural);
        let item = self.registry.get(resource.storage().expect("stored"), name, ReadAt::MostRecent).await;
        match item {
            Ok(item) => Some(Value::Object(resource.object(&item).expect("readable"))),
            Err(status) if status.code == 404 => None,
            Err(status) => panic!("{}", status.message),
        }
    }

    pub(crate) async fn names(&self, plural: &str) -> Vec<String> {
        let resource = self.resource("", plural);
        let snapshot = self.registry.replica().consistent(PATIENCE).await.expect("a state");
        let index = concord_garbagecollector::Index::new(resource.storage().expect("stored"), &snapshot);
        index.iter().map(|object| object.name.name.to_owned()).collect()
    }

    /// Another server on the store of this one, which has not seen what this one has.
    pub(crate) async fn on_same(other: &Self) -> Self {
        Self::of(other.registry.store().clone()).await
    }

    /// Changes a ConfigMap in the namespace `ns`.
    async fn patch(&self, name: &str, metadata: Value) {
        let body = json!({"metadata": metadata}).to_string();
        let request = PatchRequest {
            name: ObjectName { namespace: "ns", name },
            part: Part::Main,
            patch_type: PatchType::Merge,
            body: body.as_bytes(),
            force: false,
            validation: FieldValidation::Strict,
        };
        let patched = self.registry.patch(&context(), &self.resource("", "configmaps"), request).await;
        patched.expect("patched");
    }

    /// Gives a ConfigMap one owner.
    pub(crate) async fn own(&self, name: &str, owner: &Value) {
        self.patch(name, json!({"ownerReferences": [owner]})).await;
    }

    /// Removes the finalizers of a ConfigMap.
    pub(crate) async fn release(&self, name: &str) {
        self.patch(name, json!({"finalizers": null})).await;
    }

    /// The events in a namespace.
    pub(crate) async fn events(&self, namespace: &str) -> Vec<Value> {
        let resource = self.resource("", "events");
        let snapshot = self.registry.replica().consistent(PATIENCE).await.expect("a state");
        let prefix = resource.storage().expect("stored").key_prefix(Some(namespace));
        let events = snapshot.scan(&KeyRange::prefix(prefix)).map(|entry| resource.object(&entry.into()));
        events.map(|event| Value::Object(event.expect("readable"))).collect()
    }

    /// The event about an object, once there is one.
    pub(crate) async fn event(&self, namespace: &str, name: &str) -> Value {
        let started = Instant::now();
        loop {
            let events = self.events(namespace).await;
            let found = events.into_iter().find(|event| event["involvedObject"]["name"] == name);
            if let Some(event) = found {
                return event;
            }
            assert!(started.elapsed() < PATIENCE, "nothing is told of {name}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until exactly these ConfigMaps are left.
    pub(crate) async fn until_left(&self, expected: &[&str]) {
        let started = Instant::now();
        loop {
            let left = self.names("configmaps").await;
            if left == expected {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "{left:?} are left, not {expected:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until nothing has an owner any more.
    pub(crate) async fn until_free(&self) {
        let started = Instant::now();
        while self.state.references() > 0 {
            assert!(started.elapsed() < PATIENCE, "{} references are left", self.state.references());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Waits until an object, or that there is none, is as it should be.
    pub(crate) async fn until(&self, path: &str, is_right: impl Fn(Option<&Value>) -> bool) -> Option<Value> {
        let started = Instant::now();
        loop {
            let object = self.get(path).await;
            if is_right(object.as_ref()) {
                return object;
            }
            assert!(started.elapsed() < PATIENCE, "{path} stays {object:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the collector has done something that came up later than what it is not to do.
    pub(crate) async fn pass(&self) {
        for name in ["canary-1", "canary-2"] {
            let nobody = json!({"metadata": {"name": "nobody", "uid": "nobody"}});
            self.create(&format!("/secrets/ns/{name}"), json!({}), &[owner("v1", "Secret", &nobody)]).await;
            self.until(&format!("/secrets/ns/{name}"), |object| object.is_none()).await;
        }
    }
}
