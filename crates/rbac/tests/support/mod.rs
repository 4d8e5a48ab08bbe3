//! Built-in APIs on a real store, with the rules in force.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use concord_apis::{Settings, api_set};
use concord_codec::{FieldValidation, MediaType, PatchType, encode};
use concord_endpoints::ApiSet;
use concord_merge::apply::Time;
use concord_meta::{
    GroupVersion, Status, UserInfo,
    options::{DeleteOptions, ReadAt},
};
use concord_rbac::{Aggregation, Bootstrap, Bootstrapped, EscalationCheck, InForce, Rbac, RulesView};
use concord_registry::{
    Body, Context, ObjectName, Part, PatchRequest, Registry, Resource, Resources as _, UpdateRequest,
};
use concord_replica::Replica;
use concord_server::{Attributes, Authorizer as _, PrivilegedGroups, RequestInfo, Union};
use concord_store::Store;
use concord_store_embedded::{EmbeddedStore, Options};
use serde_json::Value;
use tempfile::TempDir;

/// What a test waits for at most.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Server {
    registry: Arc<Registry>,
    store: Arc<EmbeddedStore>,
    replica: Arc<Replica>,
    apis: Arc<ApiSet>,
    rbac: Rbac,
    aggregation: tokio::task::JoinSet<()>,
    _directory: TempDir,
}

pub(crate) fn user(name: &str) -> UserInfo {
    UserInfo { name: name.to_owned(), ..UserInfo::default() }
}

/// Whoever may do everything.
pub(crate) fn masters() -> UserInfo {
    UserInfo { groups: vec![UserInfo::PRIVILEGED.to_owned()], ..user("admin") }
}

fn context(user: &UserInfo) -> Context {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let now = Time { unix: i64::try_from(since.as_secs()).expect("not that late") };
    let mut context = Context::new(user.clone(), now);
    "test".clone_into(&mut context.manager);
    context
}

impl Server {
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = EmbeddedStore::open(&Options::new(directory.path().join("db")));
        let store = Arc::new(store.expect("a store"));
        let view = RulesView::new("/registry/");
        let rbac = Rbac::new(&view);
        let config = concord_replica::Config::default();
        let replica = Arc::new(Replica::start(store.clone(), config, vec![Box::new(view)]));
        replica.not_older_than(0, PATIENCE).await.expect("loads");
        let authorizer = Union(vec![Arc::new(PrivilegedGroups::default()), Arc::new(rbac.clone())]);
        let admission = EscalationCheck::new(rbac.clone(), Arc::new(authorizer));
        let in_force = InForce::new(store.clone(), replica.clone(), "/registry/");
        let registry = Registry::new(Arc::new(in_force), replica.clone(), vec![Arc::new(admission)]);
        Self {
            registry: Arc::new(registry),
            store,
            replica,
            apis: Arc::new(api_set(&Settings::default())),
            rbac,
            aggregation: tokio::task::JoinSet::new(),
            _directory: directory,
        }
    }

    /// From here on nothing that is committed is seen any more.
    pub(crate) async fn stop_replica(&self) {
        self.replica.shutdown().await;
    }

    pub(crate) async fn stop(mut self) {
        self.aggregation.shutdown().await;
        self.replica.shutdown().await;
        self.store.close().await;
    }

    fn resource(&self, plural: &str) -> Arc<Resource> {
        let version = GroupVersion::new("rbac.authorization.k8s.io", "v1");
        self.apis.find(&version, plural).expect("a resource")
    }

    fn shown(resource: &Resource, item: &concord_registry::Item) -> Value {
        Value::Object(resource.object(item).expect("readable"))
    }

    fn decoded(
        resource: &Resource,
        context: &Context,
        object: &Value,
    ) -> Result<concord_registry::Object, Status> {
        let bytes = encode(object);
        let body = Body { bytes: &bytes, media_type: MediaType::Json, validation: FieldValidation::Strict };
        resource.decode(body, context)
    }

    pub(crate) async fn create(
        &self,
        user: &UserInfo,
        plural: &str,
        namespace: &str,
        object: Value,
    ) -> Result<Value, Status> {
        let (resource, context) = (self.resource(plural), context(user));
        let object = Self::decoded(&resource, &context, &object)?;
        let item = self.registry.create(&context, &resource, namespace, object).await?;
        Ok(Self::shown(&resource, &item))
    }

    pub(crate) async fn update(
        &self,
        user: &UserInfo,
        plural: &str,
        namespace: &str,
        object: Value,
    ) -> Result<Value, Status> {
        let (resource, context) = (self.resource(plural), context(user));
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        let object = Self::decoded(&resource, &context, &object)?;
        let request = UpdateRequest { name: ObjectName { namespace, name: &name }, part: Part::Main, object };
        let written = self.registry.update(&context, &resource, request).await?;
        Ok(Self::shown(&resource, &written.item))
    }

    pub(crate) async fn patch(
        &self,
        user: &UserInfo,
        plural: &str,
        namespace: &str,
        name: &str,
        patch_type: PatchType,
        patch: &Value,
    ) -> Result<Value, Status> {
        let (resource, context) = (self.resource(plural), context(user));
        let request = PatchRequest {
            name: ObjectName { namespace, name },
            part: Part::Main,
            patch_type,
            body: &encode(patch),
            force: false,
            validation: FieldValidation::Strict,
        };
        let written = self.registry.patch(&context, &resource, request).await?;
        Ok(Self::shown(&resource, &written.item))
    }

    pub(crate) async fn delete(
        &self,
        user: &UserInfo,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), Status> {
        let name = ObjectName { namespace, name };
        let options = DeleteOptions::default();
        self.registry.delete(&context(user), &self.resource(plural), name, &options).await.map(drop)
    }

    pub(crate) async fn get(&self, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let resource = self.resource(plural);
        let storage = resource.storage().expect("stored");
        let name = ObjectName { namespace, name };
        let item = self.registry.get(storage, name, ReadAt::MostRecent).await.ok()?;
        Some(Self::shown(&resource, &item))
    }

    async fn decides(&self, user: &UserInfo, request: &RequestInfo) -> bool {
        self.rbac.authorize(&Attributes { user, request }).await.is_allowed()
    }

    /// Whether the user may do this to all objects of a core resource.
    pub(crate) async fn allows(&self, user: &UserInfo, verb: &'static str, resource: &str) -> bool {
        let request = RequestInfo {
            is_resource_request: true,
            verb: verb.into(),
            resource: resource.to_owned(),
            ..RequestInfo::default()
        };
        self.decides(user, &request).await
    }

    /// Whether the user may get a path.
    pub(crate) async fn allows_path(&self, user: &UserInfo, path: &str) -> bool {
        let request = RequestInfo { verb: "get".into(), path: path.to_owned(), ..RequestInfo::default() };
        self.decides(user, &request).await
    }

    pub(crate) async fn bootstrap(&self) {
        let done = Bootstrapped::default();
        let bootstrap = Bootstrap::new(self.registry.clone(), self.apis.clone(), &done);
        tokio::time::timeout(PATIENCE, bootstrap.run()).await.expect("in time");
        concord_server::HealthCheck::check(&done.check()).await.expect("it says so");
    }

    pub(crate) fn aggregate(&mut self) {
        let aggregation = Aggregation::new(self.registry.clone(), self.apis.clone(), self.rbac.clone());
        self.aggregation.spawn(aggregation.run());
    }

    pub(crate) async fn revision(&self) -> u64 {
        self.store.current_revision().await.expect("a revision")
    }

    /// Asks again and again until it is so.
    pub(crate) async fn until(&self, is_so: impl AsyncFn(&Self) -> Option<bool>) {
        let asking = async {
            while is_so(self).await != Some(true) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, asking).await.expect("in time");
    }
}
