//! A registry on a real store, with service accounts and all that belongs to them.

use std::{sync::Arc, time::Duration};

use concord_apis::{Virtuals, api_set};
use concord_codec::{FieldValidation, MediaType};
use concord_endpoints::ApiSet;
use concord_merge::apply::Time;
use concord_meta::{GroupVersion, Status, UserInfo, options::DeleteOptions};
use concord_registry::{
    Admission, Backing, Body, Context, Invocation, Object, ObjectName, Registry, Resource, Resources as _,
    SubresourceKind, Virtual, metadata,
};
use concord_replica::Replica;
use concord_server::TokenFile;
use concord_store::Store;
use concord_store_embedded::{EmbeddedStore, Options};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    Config, Objects, ServiceAccountAdmission, ServiceAccountAuthenticator, SigningKey, TokenGenerator,
    TokenRequests, TokenReviews, VerificationKeys, authenticator::now,
};

pub(crate) const P256: &[u8] = include_bytes!("../testdata/p256.pem");
pub(crate) const RSA: &[u8] = include_bytes!("../testdata/rsa.pem");

pub(crate) fn signing_key(pem: &[u8]) -> SigningKey {
    SigningKey::from_pem(pem).expect("a key")
}

pub(crate) struct World {
    pub(crate) registry: Arc<Registry>,
    pub(crate) set: ApiSet,
    pub(crate) config: Arc<Config>,
    pub(crate) generator: Arc<TokenGenerator>,
    pub(crate) authenticator: Arc<ServiceAccountAuthenticator>,
    _directory: TempDir,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Config::default()).await
    }

    /// Tokens are signed on P-256, and RSA is accepted too. There is a token file, and the namespace `ns`.
    pub(crate) async fn with(config: Config) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = EmbeddedStore::open(&Options::new(directory.path().join("store.db"))).expect("a store");
        let store: Arc<dyn Store> = Arc::new(store);
        let replica = Arc::new(Replica::start(store.clone(), concord_replica::Config::default(), Vec::new()));
        let config = Arc::new(config.complete().expect("good"));
        let mut keys = VerificationKeys::default();
        keys.add(signing_key(P256).public().clone());
        keys.add(signing_key(RSA).public().clone());
        let objects = Arc::new(Objects::new(replica.clone()));
        let generator = Arc::new(TokenGenerator::new(signing_key(P256), config.issuer()));
        let authenticator = Arc::new(ServiceAccountAuthenticator::new(config.clone(), keys, objects.clone()));
        let set = api_set(&concord_apis::Settings {
            virtuals: virtuals(&config, &generator, &objects, &authenticator),
            ..concord_apis::Settings::default()
        });
        let admission: Vec<Arc<dyn Admission>> =
            vec![Arc::new(ServiceAccountAdmission::new(objects.clone()))];
        let registry = Arc::new(Registry::new(store, replica, admission));
        objects.connect(&set, &registry).expect("all kinds are served");
        let world = Self { registry, set, config, generator, authenticator, _directory: directory };
        world.create("namespaces", "", json!({"metadata": {"name": "ns"}})).await;
        world
    }

    pub(crate) fn resource(&self, plural: &str) -> Arc<Resource> {
        let versions = [GroupVersion::new("", "v1"), GroupVersion::new("authentication.k8s.io", "v1")];
        versions.iter().find_map(|version| self.set.find(version, plural)).expect("served")
    }

    pub(crate) async fn try_create(
        &self,
        plural: &str,
        namespace: &str,
        object: Value,
    ) -> Result<Object, Status> {
        let (context, resource) = (context(), self.resource(plural));
        let bytes = concord_codec::encode(&object);
        let object = resource.decode(body(&bytes), &context)?;
        let item = Box::pin(self.registry.create(&context, &resource, namespace, object)).await?;
        resource.object(&item)
    }

    pub(crate) async fn create(&self, plural: &str, namespace: &str, object: Value) -> Object {
        self.try_create(plural, namespace, object).await.expect("created")
    }

    /// Makes an account, and answers its uid.
    pub(crate) async fn account(&self, name: &str) -> String {
        let made = self.create("serviceaccounts", "ns", json!({"metadata": {"name": name}})).await;
        metadata(&made).uid().to_owned()
    }

    /// Makes a pod of the account, and answers its uid.
    pub(crate) async fn pod(&self, name: &str, account: &str) -> String {
        let spec = json!({"serviceAccountName": account, "containers": [{"name": "c", "image": "i"}]});
        let made = self.create("pods", "ns", json!({"metadata": {"name": name}, "spec": spec})).await;
        metadata(&made).uid().to_owned()
    }

    pub(crate) async fn delete(&self, plural: &str, namespace: &str, name: &str) {
        let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
        let at = ObjectName { namespace, name };
        let (context, resource) = (context(), self.resource(plural));
        Box::pin(self.registry.delete(&context, &resource, at, &options)).await.expect("deleted");
        self.settle().await;
    }

    /// Waits until the replica has everything that was written.
    pub(crate) async fn settle(&self) {
        self.registry.replica().consistent(Duration::from_secs(60)).await.expect("a state");
    }

    /// The answer to a TokenRequest for an account in `ns`.
    pub(crate) async fn request(&self, account: &str, body: Value) -> Result<Object, Status> {
        let resource = self.resource("serviceaccounts");
        let subresource = resource.subresource("token").expect("there");
        let SubresourceKind::Virtual(of) = &subresource.behaviour else { panic!("not made up on the spot") };
        self.answer(of, &resource, ObjectName { namespace: "ns", name: account }, body).await
    }

    /// A token for an account in `ns`.
    pub(crate) async fn token(&self, account: &str, spec: Value) -> String {
        let answer = self.request(account, json!({"spec": spec})).await.expect("a token");
        answer["status"]["token"].as_str().expect("text").to_owned()
    }

    /// The answer to a TokenReview.
    pub(crate) async fn review(&self, spec: Value) -> Result<Object, Status> {
        let resource = self.resource("tokenreviews");
        let Backing::Virtual(of) = &resource.backing else { panic!("not made up on the spot") };
        self.answer(of, &resource, ObjectName { namespace: "", name: "" }, json!({"spec": spec})).await
    }

    async fn answer(
        &self,
        of: &Arc<dyn Virtual>,
        resource: &Resource,
        name: ObjectName<'_>,
        sent: Value,
    ) -> Result<Object, Status> {
        let context = context();
        let kind = match name.name {
            "" => resource.kind(),
            _ => GroupVersion::new("authentication.k8s.io", "v1").with_kind("TokenRequest"),
        };
        let bytes = concord_codec::encode(&sent);
        let object = resource.decode_as(&of.schema().into(), &kind, body(&bytes), &context)?;
        let invocation = Invocation { registry: &self.registry, context: &context, resource, name };
        of.create(invocation, object).await
    }

    /// Who the server takes the bearer of a token for; `None` for somebody it does not know.
    pub(crate) async fn who(&self, token: &str) -> Result<Option<Arc<UserInfo>>, String> {
        let known = self.authenticator.authenticate(token, &self.config.api_audiences).await;
        known.map(|known| known.map(|known| known.user)).map_err(|refused| refused.0)
    }
}

pub(crate) fn context() -> Context {
    Context::of_the_server(Time { unix: now() })
}

fn body(bytes: &[u8]) -> Body<'_> {
    Body { bytes, media_type: MediaType::Json, validation: FieldValidation::Strict }
}

fn virtuals(
    config: &Arc<Config>,
    generator: &Arc<TokenGenerator>,
    objects: &Arc<Objects>,
    accounts: &Arc<ServiceAccountAuthenticator>,
) -> Virtuals {
    let (of_requests, generator, objects) = (config.clone(), generator.clone(), objects.clone());
    let (config, accounts) = (config.clone(), accounts.clone());
    let file = TokenFile::parse("secret,alice,1,developers\n", "tokens.csv").expect("valid");
    let others = vec![Arc::new(file) as _];
    Virtuals::default()
        .with("TokenRequest", move |schema| {
            Arc::new(TokenRequests::new(schema, of_requests.clone(), generator.clone(), objects.clone()))
        })
        .with("TokenReview", move |schema| {
            Arc::new(TokenReviews::new(schema, config.clone(), others.clone(), accounts.clone()))
        })
}
