//! What a token costs: made, seen for the first time, and seen again; and a get with one through all filters of a server.

use std::{hint::black_box, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use concord_apis::{Settings, api_set};
use concord_codec::{FieldValidation, MediaType};
use concord_merge::apply::Time;
use concord_meta::GroupVersion;
use concord_rbac::{Rbac, RulesView};
use concord_registry::{Body, Context, Registry, Resources as _, metadata};
use concord_replica::{Event, EventKind, Replica, View as _};
use concord_server::{
    AlwaysAllow, Authentication, Authorizer, Config as ServerConfig, Handler, Request, Response,
    TokenAuthenticator as _, Version, full, with_body,
};
use concord_serviceaccounts::{
    Config, Objects, ServiceAccountAuthenticator, SigningKey, TokenGenerator, VerificationKeys,
};
use concord_store::{KeyValue, Store};
use concord_store_embedded::{EmbeddedStore, Options};
use divan::Bencher;
use http::StatusCode;
use rustls::{
    crypto::aws_lc_rs::sign::any_supported_type,
    pki_types::{PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const P256: &[u8] = include_bytes!("../testdata/p256.pem");
const RSA: &[u8] = include_bytes!("../testdata/rsa.pem");

fn pem(algorithm: &str) -> &'static [u8] {
    if algorithm == "RS256" { RSA } else { P256 }
}

fn main() {
    divan::main();
}

/// A server with one account and its token in a Secret.
struct World {
    runtime: Runtime,
    objects: Arc<Objects>,
    keys: VerificationKeys,
    token: String,
    _registry: Arc<Registry>,
    _directory: TempDir,
}

impl World {
    fn new(pem: &[u8]) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let directory = tempfile::tempdir().expect("a directory");
        let _entered = runtime.enter();
        let store = EmbeddedStore::open(&Options::new(directory.path().join("store.db")));
        let store: Arc<dyn Store> = Arc::new(store.expect("a store"));
        let replica = Arc::new(Replica::start(store.clone(), concord_replica::Config::default(), Vec::new()));
        let set = api_set(&Settings::default());
        let registry = Arc::new(Registry::new(store, replica.clone(), Vec::new()));
        let objects = Arc::new(Objects::new(replica));
        objects.connect(&set, &registry).expect("all kinds are served");
        let create = |plural: &str, object: &Value| {
            let resource = set.find(&GroupVersion::new("", "v1"), plural).expect("served");
            let context = Context::of_the_server(Time { unix: 0 });
            let bytes = object.to_string();
            let body = Body {
                bytes: bytes.as_bytes(),
                media_type: MediaType::Json,
                validation: FieldValidation::Strict,
            };
            let object = resource.decode(body, &context).expect("an object");
            let item = runtime.block_on(registry.create(&context, &resource, "ns", object)).expect("created");
            metadata(&resource.object(&item).expect("an object")).uid().to_owned()
        };
        let uid = create("serviceaccounts", &json!({"metadata": {"name": "sa"}}));
        let key = SigningKey::from_pem(pem).expect("a key");
        let mut keys = VerificationKeys::default();
        keys.add(key.public().clone());
        let token = TokenGenerator::new(key, "https://issuer").secret_token("ns", "sa", &uid, "s");
        let token = token.expect("signed");
        create("secrets", &json!({"metadata": {"name": "s"}, "stringData": {"token": token}}));
        Self { objects, keys, token, _registry: registry, _directory: directory, runtime }
    }

    fn authenticator(&self) -> ServiceAccountAuthenticator {
        let config = Arc::new(Config::default().complete().expect("good"));
        ServiceAccountAuthenticator::new(config, self.keys.clone(), self.objects.clone())
    }

    fn authenticate(&self, authenticator: &ServiceAccountAuthenticator) {
        let user = self.runtime.block_on(authenticator.authenticate_token(&self.token));
        assert!(black_box(user).expect("good").is_some());
    }
}

#[divan::bench(args = ["ES256", "RS256"])]
fn sign(bencher: Bencher<'_, '_>, algorithm: &str) {
    let generator =
        TokenGenerator::new(SigningKey::from_pem(pem(algorithm)).expect("a key"), "https://issuer");
    bencher.bench(|| generator.secret_token("ns", "sa", "uid", "s").expect("signed"));
}

#[divan::bench(args = ["ES256", "RS256"])]
fn seen_for_the_first_time(bencher: Bencher<'_, '_>, algorithm: &str) {
    let world = World::new(pem(algorithm));
    world.authenticate(&world.authenticator());
    bencher
        .with_inputs(|| world.authenticator())
        .bench_refs(|authenticator| world.authenticate(authenticator));
}

#[divan::bench]
fn seen_again(bencher: Bencher<'_, '_>) {
    let world = World::new(P256);
    let authenticator = world.authenticator();
    world.authenticate(&authenticator);
    bencher.bench(|| world.authenticate(&authenticator));
}

/// Answers at once.
struct Api;

#[async_trait]
impl Handler for Api {
    async fn handle(&self, _: Request) -> Response {
        with_body(StatusCode::OK, "application/json", Bytes::new())
    }
}

/// How many roles there are, and how many bindings, each of another account to another role.
const RULES: usize = 1000;

/// Rules of a large cluster, by which the account of [`World`] may read ConfigMaps.
fn rbac() -> Rbac {
    let event = |kind: &str, at: usize, object: Value| {
        let key = format!("/registry/{kind}/rule-{at}").into();
        let value = object.to_string().into();
        let entry = KeyValue { key, value, create_revision: 1, mod_revision: 1 };
        Event { revision: 1, kind: EventKind::Created(Arc::new(entry)) }
    };
    let rule = |at: usize| {
        let metadata = json!({"name": format!("rule-{at}")});
        let plural = if at == RULES / 2 { "configmaps".to_owned() } else { format!("r{at}") };
        let rules = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": [plural, "pods"]}]);
        let account = if at == RULES / 2 { "sa".to_owned() } else { format!("sa-{at}") };
        let subject = json!({"kind": "ServiceAccount", "namespace": "ns", "name": account});
        let role = json!({"kind": "ClusterRole", "name": format!("rule-{at}")});
        let binding = json!({"metadata": metadata, "roleRef": role, "subjects": [subject]});
        let role = json!({"metadata": metadata, "rules": rules});
        [event("clusterroles", at, role), event("clusterrolebindings", at, binding)]
    };
    let mut view = RulesView::new("/registry/");
    view.apply(1, &(0..RULES).flat_map(rule).collect::<Vec<_>>());
    Rbac::new(&view)
}

/// A server that knows these tokens and allows this, without a network.
fn chain(tokens: Option<ServiceAccountAuthenticator>, authorizer: Arc<dyn Authorizer>) -> Arc<dyn Handler> {
    let key = PrivateKeyDer::from_pem_slice(P256).expect("a key");
    let key = any_supported_type(&key).expect("a key that can sign");
    let mut config = ServerConfig::new(Arc::new(CertifiedKey::new(Vec::new(), key)), Version::default());
    config.authentication = Authentication {
        tokens: tokens.into_iter().map(|tokens| Arc::new(tokens) as _).collect(),
        ..Authentication::default()
    };
    config.authorizer = authorizer;
    config.apis = Arc::new(Api);
    config.complete().expect("valid").into_handler()
}

/// A get through all filters: by nobody where everything is allowed, by a service account there, and by one that may because
/// of one of a thousand roles and bindings. What the last takes more than the first is what authentication and RBAC cost.
#[divan::bench(args = ["nobody", "service account", "service account, RBAC"])]
fn get(bencher: Bencher<'_, '_>, who: &str) {
    let world = World::new(P256);
    let is_known = who != "nobody";
    let authorizer: Arc<dyn Authorizer> =
        if who.ends_with("RBAC") { Arc::new(rbac()) } else { Arc::new(AlwaysAllow) };
    let chain = chain(is_known.then(|| world.authenticator()), authorizer);
    let bearer = format!("Bearer {}", world.token);
    let request = || {
        let request = http::Request::builder().uri("/api/v1/namespaces/default/configmaps/cm-1234");
        let request = if is_known { request.header("authorization", &bearer) } else { request };
        request.body(full("")).expect("valid")
    };
    bencher.with_inputs(request).bench_local_values(|request| {
        let response = world.runtime.block_on(chain.handle(request));
        assert_eq!(response.status(), 200);
        response
    });
}
