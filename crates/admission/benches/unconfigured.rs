//! What admission costs a create that nobody configured any for: no webhook, no policy. Nothing is stored, so that no disk
//! hides it.

use std::sync::Arc;

use concord_admission::{AdmissionView, Config, Configurations, DynamicAdmission, MeasuredAdmission};
use concord_apis::{Settings, api_set};
use concord_codec::{FieldValidation, MediaType};
use concord_merge::apply::Time;
use concord_meta::GroupVersion;
use concord_registry::{Admission, Body, Context, Registry, Resource, Resources as _};
use concord_replica::Replica;
use concord_server::{AlwaysAllow, Metrics};
use concord_store::Store;
use concord_store_embedded::{EmbeddedStore, Options};
use concord_webhook::{Client, Routing, Services};
use divan::Bencher;
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

const PREFIX: &str = "/registry/";

fn main() {
    divan::main();
}

/// Which plugins a create passes.
#[derive(Clone, Copy, Debug)]
enum Chain {
    /// No chain at all.
    None,
    /// All that users can configure.
    Plugins,
    /// The same as a server has them, which measures each for its metrics.
    Server,
}

/// A server without a network.
struct World {
    runtime: Runtime,
    registry: Registry,
    resource: Arc<Resource>,
    _directory: TempDir,
}

fn plugins(
    configurations: &Configurations,
    replica: &Arc<Replica>,
    metrics: &Arc<Metrics>,
) -> Vec<Arc<dyn Admission>> {
    let config = Config {
        replica: replica.clone(),
        authorizer: Arc::new(AlwaysAllow),
        client: Client::new(Arc::new(Services::new(replica.clone(), PREFIX, Routing::ClusterIp))),
        metrics: metrics.clone(),
        prefix: PREFIX.to_owned(),
        mutating_policies: true,
        mutating_webhooks: true,
    };
    let all = DynamicAdmission::new(configurations, config);
    vec![
        Arc::new(all.mutating(Vec::new())),
        Arc::new(all.validating_policies()),
        Arc::new(all.validating_webhooks()),
    ]
}

impl World {
    fn new(chain: Chain) -> Self {
        // One thread: how long it takes to wake another would be all that is seen.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let directory = tempfile::tempdir().expect("a directory");
        let _entered = runtime.enter();
        let store = EmbeddedStore::open(&Options::new(directory.path().join("store.db")));
        let store: Arc<dyn Store> = Arc::new(store.expect("a store"));
        let view = AdmissionView::new(PREFIX);
        let configurations = view.configurations();
        let replica = Replica::start(store.clone(), concord_replica::Config::default(), vec![Box::new(view)]);
        let replica = Arc::new(replica);
        let metrics = Arc::new(Metrics::new());
        let plugins = plugins(&configurations, &replica, &metrics);
        let admission: Vec<Arc<dyn Admission>> = match chain {
            Chain::None => Vec::new(),
            Chain::Plugins => plugins,
            Chain::Server => vec![Arc::new(MeasuredAdmission::new(plugins, metrics))],
        };
        let resource = api_set(&Settings::default()).find(&GroupVersion::new("", "v1"), "configmaps");
        let registry = Registry::new(store, replica, admission);
        Self { registry, resource: resource.expect("served"), _directory: directory, runtime }
    }

    fn create(&self, object: &str) {
        let mut context = Context::of_the_server(Time { unix: 0 });
        context.dry_run = true;
        let body = Body {
            bytes: object.as_bytes(),
            media_type: MediaType::Json,
            validation: FieldValidation::Strict,
        };
        let object = self.resource.decode(body, &context).expect("an object");
        let create = self.registry.create(&context, &self.resource, "ns", object);
        self.runtime.block_on(create).expect("created");
    }
}

/// A create of a ConfigMap of 1 KiB, as a dry run. Without anything configured, all three take as long.
#[divan::bench(args = [Chain::None, Chain::Plugins, Chain::Server])]
fn create(bencher: Bencher<'_, '_>, chain: Chain) {
    let world = World::new(chain);
    let object = json!({"metadata": {"name": "a"}, "data": {"key": "x".repeat(1024)}}).to_string();
    world.create(&object);
    bencher.bench_local(|| world.create(&object));
}
