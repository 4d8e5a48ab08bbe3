//! A registry on a real store with the kinds that controllers know by name, as loose as a test can have them.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod gate;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use concord_codec::{FieldValidation, MediaType, PatchType};
use concord_controllers::{
    Config, Controllers, IpRange, NamespaceLifecycle, NodePortRange, ResourceQuota, ServiceAllocation,
};
use concord_merge::apply::Time;
use concord_meta::{
    GroupResource, GroupVersion, Status,
    options::{DeleteOptions, ReadAt},
};
use concord_registry::{
    Admission, Backing, Body, Context, DeleteOutcome, Item, Object, ObjectName, Part, PatchRequest, Registry,
    Renaming, Resource, ResourceNames, Resources, Storage, Strategy, UpdateRequest, Verb, metadata_mut,
};
use concord_replica::Replica;
use concord_schema::{Builder, ListType, Presence, Scalar, Schema, TypeId};
use concord_store::{Compare, KeyRange, Scan, Store, Txn};
use concord_store_embedded::{EmbeddedStore, Options};
use serde_json::{Value, json};
use tokio::sync::Notify;

use self::gate::Gate;

/// What a test waits for at most. Generous: it is only reached when something is wrong.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The facts about namespaces that controllers rely on.
struct Namespaces;

impl Strategy for Namespaces {
    fn prepare_for_create(&self, _: &Context, object: &mut Object) {
        object.insert("spec".to_owned(), json!({"finalizers": ["kubernetes"]}));
        object.insert("status".to_owned(), json!({"phase": "Active"}));
    }

    fn prepare_for_update(&self, _: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
        let kept: &[&str] = match part {
            Part::Sub("finalize") => &["status"],
            Part::Sub(_) => &["spec"],
            Part::Main => &["spec", "status"],
        };
        for name in kept {
            match old.get(*name) {
                Some(value) => drop(new.insert((*name).to_owned(), value.clone())),
                None => drop(new.remove(*name)),
            }
        }
    }

    fn is_held(&self, object: &Object) -> bool {
        let finalizers = object.get("spec").and_then(|spec| spec["finalizers"].as_array());
        finalizers.is_some_and(|finalizers| !finalizers.is_empty())
    }

    fn begin_deletion(&self, object: &mut Object) {
        object.insert("status".to_owned(), json!({"phase": "Terminating"}));
    }
}

struct Plain;

impl Strategy for Plain {}

/// Pods that run are given the time they ask for.
struct Pods;

impl Strategy for Pods {
    fn graceful_deletion(&self, object: &Object, options: &DeleteOptions) -> Option<i64> {
        let asked = object.get("spec").and_then(|spec| spec["terminationGracePeriodSeconds"].as_i64());
        Some(options.grace_period_seconds.or(asked).unwrap_or_default())
    }
}

fn object_meta(types: &mut Builder) -> TypeId {
    let string = types.scalar("string", Scalar::String);
    let strings = types.map("map[string]string", string);
    let set = types.list("[]string", string, ListType::Set);
    let time = types.scalar("v1.Time", Scalar::Time);
    let int = types.scalar("int64", Scalar::Int64);
    let any = types.scalar("interface {}", Scalar::FreeForm);
    let list = types.list("[]any", any, ListType::Atomic);
    let mut meta = types.structure("v1.ObjectMeta");
    for name in ["name", "generateName", "namespace", "uid", "resourceVersion"] {
        meta = meta.field(name, string, Presence::NonZero);
    }
    meta.field("labels", strings, Presence::NonZero)
        .field("annotations", strings, Presence::NonZero)
        .field("finalizers", set, Presence::NonZero)
        .field("creationTimestamp", time, Presence::NonZero)
        .field("deletionTimestamp", time, Presence::NonZero)
        .field("deletionGracePeriodSeconds", int, Presence::Given)
        .field("generation", int, Presence::NonZero)
        .field("managedFields", list, Presence::NonZero)
        .add()
}

/// Anything goes beside the metadata.
fn schema() -> Schema {
    let mut types = Builder::new();
    let string = types.scalar("string", Scalar::String);
    let any = types.scalar("interface {}", Scalar::FreeForm);
    let meta = object_meta(&mut types);
    let mut object = types.structure("v1.Object").field("metadata", meta, Presence::Always);
    for name in ["kind", "apiVersion", "addressType", "description", "preemptionPolicy"] {
        object = object.field(name, string, Presence::NonZero);
    }
    for name in ["spec", "status", "data", "subsets", "endpoints", "ports", "value"] {
        object = object.field(name, any, Presence::Given);
    }
    let object = object.add();
    Schema::new(types.finish().place(object))
}

fn resource(
    group: &str,
    plural: &str,
    kind: &str,
    prefix: &str,
    strategy: Arc<dyn Strategy>,
) -> Arc<Resource> {
    let version = GroupVersion::new(group, "v1");
    let cluster = [
        "namespaces",
        "ipaddresses",
        "servicecidrs",
        "priorityclasses",
        "flowschemas",
        "prioritylevelconfigurations",
    ];
    let storage = Storage {
        resource: GroupResource::new(group, plural),
        kind: kind.to_owned(),
        version: version.clone(),
        encoding: version.clone(),
        namespaced: !cluster.contains(&plural),
        prefix: format!("/registry/{prefix}/").into(),
        strategy,
        converter: Arc::new(Renaming),
        forms: BTreeMap::from([(version.to_string(), Arc::new(schema()).into())]),
        formed_since: 0,
        lifetime: None,
    };
    let names =
        ResourceNames { plural: plural.to_owned(), kind: kind.to_owned(), ..ResourceNames::default() };
    Arc::new(Resource::new(version, names, Backing::Stored(Arc::new(storage)), Verb::ALL.to_vec()))
}

/// The resources of the tests.
pub(crate) struct Catalog(Vec<Arc<Resource>>);

impl Catalog {
    fn new() -> Self {
        let plain = |group, plural, kind| resource(group, plural, kind, plural, Arc::new(Plain));
        let flow = "flowcontrol.apiserver.k8s.io";
        Self(vec![
            resource("", "namespaces", "Namespace", "namespaces", Arc::new(Namespaces)),
            plain("", "configmaps", "ConfigMap"),
            plain("", "persistentvolumeclaims", "PersistentVolumeClaim"),
            plain("", "resourcequotas", "ResourceQuota"),
            plain("apps", "deployments", "Deployment"),
            resource("", "pods", "Pod", "pods", Arc::new(Pods)),
            resource("", "services", "Service", "services/specs", Arc::new(Plain)),
            resource("", "endpoints", "Endpoints", "services/endpoints", Arc::new(Plain)),
            plain("discovery.k8s.io", "endpointslices", "EndpointSlice"),
            plain("networking.k8s.io", "ipaddresses", "IPAddress"),
            plain("networking.k8s.io", "servicecidrs", "ServiceCIDR"),
            plain("scheduling.k8s.io", "priorityclasses", "PriorityClass"),
            plain(flow, "flowschemas", "FlowSchema"),
            plain(flow, "prioritylevelconfigurations", "PriorityLevelConfiguration"),
        ])
    }
}

impl Resources for Catalog {
    fn find(&self, version: &GroupVersion, plural: &str) -> Option<Arc<Resource>> {
        self.0.iter().find(|found| found.version == *version && found.names.plural == plural).cloned()
    }

    fn all(&self) -> Vec<Arc<Resource>> {
        self.0.clone()
    }
}

/// A server without HTTP.
pub(crate) struct Server {
    pub(crate) registry: Arc<Registry>,
    pub(crate) resources: Arc<dyn Resources>,
}

/// A store, and servers on it.
pub(crate) struct Cluster {
    pub(crate) store: Arc<EmbeddedStore>,
    _directory: tempfile::TempDir,
}

pub(crate) fn range() -> IpRange {
    "10.0.0.0/28".parse().expect("a range")
}

pub(crate) fn config() -> Config {
    Config {
        advertise_address: "192.0.2.1".parse().expect("an address"),
        secure_port: 6443,
        service_cluster_ip_range: range(),
        shared_store: false,
        service_accounts: None,
        authentication: None,
        elsewhere: None,
    }
}

impl Cluster {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = EmbeddedStore::open(&Options::new(directory.path().join("db")));
        Self { store: Arc::new(store.expect("a store")), _directory: directory }
    }

    /// Another server on the same store, with a replica of its own.
    pub(crate) async fn server(&self) -> Server {
        self.server_of(Arc::new(Catalog::new())).await
    }

    /// Such a server with other resources.
    pub(crate) async fn server_of(&self, resources: Arc<dyn Resources>) -> Server {
        server_on(self.store.clone(), resources).await
    }

    /// A server whose writes wait for the test.
    pub(crate) async fn gated(&self, prefix: &'static str) -> (Arc<Gate<EmbeddedStore>>, Server) {
        let (arrived, open) = (Notify::new(), Notify::new());
        let gate = Arc::new(Gate { inner: self.store.clone(), prefix, arrived, open });
        (gate.clone(), server_on(gate, Arc::new(Catalog::new())).await)
    }

    /// What the store has under a key.
    pub(crate) async fn value(&self, key: &str) -> Bytes {
        let page = self.store.scan(Scan::key(key.to_owned())).await.expect("a page");
        page.entries.first().map(|entry| entry.value.clone()).expect("it is there")
    }

    pub(crate) async fn put(&self, key: &str, value: Bytes) {
        self.store.transact(Txn::new().put(key.to_owned(), value)).await.expect("written");
    }

    /// The keys that begin like this, as the store has them.
    pub(crate) async fn keys(&self, prefix: &str) -> Vec<String> {
        let page =
            self.store.scan(Scan::new(KeyRange::prefix(prefix.to_owned()), 10_000)).await.expect("a page");
        page.entries.iter().map(|entry| String::from_utf8_lossy(&entry.key).into_owned()).collect()
    }
}

/// Something that has to hold for everything that a server writes.
struct Fence(Compare);

#[async_trait::async_trait]
impl concord_registry::Gate for Fence {
    async fn pass(&self, txn: &mut Txn) -> Result<(), Status> {
        txn.compares.push(self.0.clone());
        Ok(())
    }
}

async fn server_on(store: Arc<dyn Store>, resources: Arc<dyn Resources>) -> Server {
    let replica = Replica::start(store.clone(), concord_replica::Config::default(), Vec::new());
    let replica = Arc::new(replica);
    replica.consistent(PATIENCE).await.expect("loads");
    let lifecycle = NamespaceLifecycle::new(resources.as_ref()).expect("there are namespaces");
    let services =
        ServiceAllocation::new(replica.clone(), resources.as_ref(), range(), NodePortRange::default());
    let quota = ResourceQuota::new(replica.clone(), resources.as_ref()).expect("there are quotas");
    quota.connect(Arc::downgrade(&resources));
    let admission: Vec<Arc<dyn Admission>> =
        vec![Arc::new(lifecycle), Arc::new(services.expect("there are services")), Arc::new(quota)];
    let registry = Registry::new(store, replica, admission);
    Server { registry: Arc::new(registry), resources }
}

impl Server {
    /// The same, but it writes only while that holds.
    pub(crate) fn fenced(self, fence: Compare) -> Self {
        let registry =
            Registry::new(self.registry.store().clone(), self.registry.replica().clone(), Vec::new());
        Self { registry: Arc::new(registry.with_gate(Arc::new(Fence(fence)))), ..self }
    }
}

pub(crate) fn context() -> Context {
    let mut context = Context::of_the_server(Time { unix: 1_700_000_000 });
    "test".clone_into(&mut context.manager);
    context
}

/// `group/plural/namespace/name`; the group and the namespace may be empty.
fn split(path: &str) -> (&str, &str, ObjectName<'_>) {
    let parts: Vec<&str> = path.splitn(4, '/').collect();
    let [group, plural, namespace, name] = parts[..] else {
        panic!("{path} is not group/plural/namespace/name")
    };
    (group, plural, ObjectName { namespace, name })
}

impl Server {
    pub(crate) fn start(&self) -> Controllers {
        self.start_as(config())
    }

    pub(crate) fn start_as(&self, config: Config) -> Controllers {
        Controllers::start(self.registry.clone(), self.resources.clone(), config).expect("starts")
    }

    pub(crate) fn resource(&self, group: &str, plural: &str) -> Arc<Resource> {
        self.resources.find(&GroupVersion::new(group, "v1"), plural).expect("a resource of the tests")
    }

    fn decode(&self, resource: &Resource, body: &Value) -> Object {
        let bytes = body.to_string();
        let body = Body {
            bytes: bytes.as_bytes(),
            media_type: MediaType::Json,
            validation: FieldValidation::Strict,
        };
        resource.decode(body, &context()).expect("a good body")
    }

    pub(crate) async fn create_as(
        &self,
        context: &Context,
        path: &str,
        mut body: Value,
    ) -> Result<Value, Status> {
        let (group, plural, object) = split(path);
        let resource = self.resource(group, plural);
        body["metadata"]["name"] = object.name.into();
        let decoded = self.decode(&resource, &body);
        let item = self.registry.create(context, &resource, object.namespace, decoded).await?;
        show(&resource, &item)
    }

    pub(crate) async fn create(&self, path: &str, body: Value) -> Result<Value, Status> {
        self.create_as(&context(), path, body).await
    }

    /// Replaces an object; the body need not have a resource version.
    pub(crate) async fn update(&self, path: &str, part: Part<'_>, mut body: Value) -> Result<Value, Status> {
        let (group, plural, name) = split(path);
        let resource = self.resource(group, plural);
        body["metadata"]["name"] = name.name.into();
        let request = UpdateRequest { name, part, object: self.decode(&resource, &body) };
        let written = self.registry.update(&context(), &resource, request).await?;
        show(&resource, &written.item)
    }

    pub(crate) async fn merge(&self, path: &str, part: Part<'_>, patch: Value) -> Result<Value, Status> {
        let (group, plural, name) = split(path);
        let resource = self.resource(group, plural);
        let body = patch.to_string();
        let request = PatchRequest {
            name,
            part,
            patch_type: PatchType::Merge,
            body: body.as_bytes(),
            force: false,
            validation: FieldValidation::Strict,
        };
        let written = self.registry.patch(&context(), &resource, request).await?;
        show(&resource, &written.item)
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<DeleteOutcome, Status> {
        let (group, plural, name) = split(path);
        self.registry.delete(&context(), &self.resource(group, plural), name, &DeleteOptions::default()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        let (group, plural, name) = split(path);
        let resource = self.resource(group, plural);
        let item = self.registry.get(resource.storage().expect("stored"), name, ReadAt::MostRecent).await;
        match item {
            Ok(item) => Some(show(&resource, &item).expect("readable")),
            Err(status) if status.code == 404 => None,
            Err(status) => panic!("{}", status.message),
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
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn show(resource: &Resource, item: &Item) -> Result<Value, Status> {
    let mut object = resource.object(item)?;
    metadata_mut(&mut object).remove("managedFields");
    Ok(Value::Object(object))
}

pub(crate) fn refused<T: std::fmt::Debug>(outcome: Result<T, Status>) -> (u16, String) {
    let status = outcome.expect_err("refused");
    (status.code, status.message)
}
