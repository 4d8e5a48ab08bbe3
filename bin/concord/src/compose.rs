//! The parts of a server, put together.

use std::{
    collections::BTreeSet,
    net::{IpAddr, UdpSocket},
    path::Path,
    sync::Arc,
};

use anyhow::Context as _;
use async_trait::async_trait;
use concord_admission::{Configurations, MeasuredAdmission};
use concord_aggregator::Aggregator;
use concord_apiextensions::{CustomResourceController, CustomResources, Progress};
use concord_apis::{Release, RuntimeConfig, Virtuals};
use concord_controllers::{
    ClusterAuthentication, Controllers, IpRange, NamespaceLifecycle, NodePortRange, ServiceAllocation,
    ServiceRepair,
};
use concord_endpoints::{Apis, ExtensionSource, Follower};
use concord_fleet::{Fleet, FleetState};
use concord_migrator::Migrator;
use concord_openapi::{Contents, OPENID, OpenApi};
use concord_peerproxy::Peers;
use concord_registry::{Admission, Registry, Resources};
use concord_replica::Replica;
use concord_server::{Handler, HealthChecks, Metrics, Request, Response};
use concord_serviceaccounts::OpenId;
use concord_store::Store;
use concord_store_sealed::Keyring;
use tokio::sync::watch;

use crate::{
    access::Access,
    aggregation::{self, RemoteNamespaces},
    cli::{ApiOptions, ServeOptions},
    components::ComponentStatuses,
    emulation::Emulation,
    fleet, migration,
    peers::{self, Peering},
    plugins::{Judging, Plugins},
    reload::Reloader,
    serve::metrics::StoreLatency,
    service_accounts::{ServiceAccountOptions, ServiceAccounts},
    webhooks,
};

/// What a server stands on.
pub(crate) struct Ground {
    pub(crate) store: Arc<dyn Store>,
    /// What encrypts objects on their way to it.
    pub(crate) keyring: Option<Arc<Keyring>>,
    pub(crate) replica: Arc<Replica>,
    /// How far the definitions in the replica are served.
    pub(crate) definitions: Arc<Progress>,
    /// What is configured of admission.
    pub(crate) configurations: Configurations,
    /// What the replica says about the servers on the store.
    pub(crate) fleet: FleetState,
    /// What other servers serve.
    pub(crate) aggregator: Arc<Aggregator>,
    /// How the other servers are reached, if they are.
    pub(crate) peering: Option<Peering>,
}

/// What a server is made of besides its connections.
pub(crate) struct Parts {
    pub(crate) apis: Arc<Apis>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) customs: Arc<CustomResources>,
    pub(crate) fleet: Option<Arc<Fleet>>,
    pub(crate) aggregator: Arc<Aggregator>,
    peers: Option<Arc<Peers>>,
    release: Release,
    accounts: ServiceAccounts,
    pub(crate) range: IpRange,
    pub(crate) repair: Arc<ServiceRepair>,
    pub(crate) advertise_address: IpAddr,
    openid: Option<Arc<OpenId>>,
    pub(crate) migrator: Option<Migrator>,
}

impl Parts {
    /// The APIs of a release that the options ask for, on this store.
    pub(crate) fn new(
        options: &ServeOptions,
        emulation: &Emulation,
        access: &Access,
        ground: Ground,
        metrics: Arc<Metrics>,
        accounts: ServiceAccounts,
    ) -> anyhow::Result<Self> {
        let Ground {
            store,
            keyring,
            replica,
            definitions,
            configurations,
            fleet: state,
            aggregator,
            peering,
        } = ground;
        let ApiOptions { service_cluster_ip_range, service_node_port_range, .. } = &options.apis;
        let range: IpRange = service_cluster_ip_range.parse().context("--service-cluster-ip-range")?;
        let ports: NodePortRange = service_node_port_range.parse().context("--service-node-port-range")?;
        let prefix = crate::engine::key_prefix(&options.etcd);
        let runtime_config = fleet::runtime_config(&options.apis.runtime_config, &emulation.features);
        let set = concord_apis::api_set(&concord_apis::Settings {
            release: emulation.release,
            runtime_config: RuntimeConfig::parse(&runtime_config).context("--runtime-config")?,
            features: emulation.features.clone(),
            prefix: prefix.clone(),
            event_ttl: options.apis.event_ttl,
            authorizer: access.authorizer.clone(),
            virtuals: virtuals(&accounts, &store),
        });
        let resolver = webhooks::resolver(&options.webhooks, &replica, &prefix);
        let converters = Arc::new(webhooks::client(resolver.clone(), &metrics));
        let minor = emulation.features.min_compatibility().minor();
        let customs = CustomResources::new(&set, &prefix, definitions.clone(), converters, minor)
            .context("there are no CustomResourceDefinitions")?;
        let customs = Arc::new(customs);
        let authorizer = &access.authorizer;
        let asked = webhooks::admission(
            resolver,
            &configurations,
            &replica,
            authorizer.clone(),
            &prefix,
            (&emulation.features, &options.plugins, &metrics),
        );
        let fleet =
            fleet::new(&options.fleet, prefix.clone(), &emulation.features, keyring.clone(), &state, &set)?;
        let plugins =
            Plugins { options: &options.plugins, emulation, replica: &replica, resources: &set, authorizer };
        let changing = plugins.changing(accounts.admission())?;
        let Judging { before, last, connected } = plugins.judging()?;
        let webhooks = asked.mutating(changing.clone());
        // First: where there is no namespace, nothing else about an object matters.
        let mut admission: Vec<Arc<dyn Admission>> = vec![Arc::new(NamespaceLifecycle::new(&set)?)];
        admission.extend(changing);
        admission.extend(before);
        let others: [Arc<dyn Admission>; 6] = [
            Arc::new(webhooks),
            Arc::new(ServiceAllocation::new(replica.clone(), &set, range.clone(), ports)?),
            customs.clone(),
            // After all that changes objects.
            access.admission(),
            Arc::new(asked.validating_policies()),
            Arc::new(asked.validating_webhooks()),
        ];
        admission.extend(others);
        admission.extend(last);
        options.plugins.retain(&mut admission);
        // What a client was told is defined or registered has to be found from then on.
        // So has what a namespace demands of the objects in it: by its labels pods are judged.
        let routed = [
            "apiextensions.k8s.io/customresourcedefinitions/",
            "apiregistration.k8s.io/apiservices/",
            "namespaces/",
        ];
        let routed = routed.map(|keys| format!("{prefix}{keys}").into());
        let in_force = asked.prefixes().into_iter().chain(routed).collect();
        let store = access.store(store, &replica, in_force);
        let admission = Arc::new(MeasuredAdmission::new(admission, metrics.clone()));
        let registry = Registry::new(store, replica, vec![admission])
            .with_observer(Arc::new(StoreLatency(metrics.clone())));
        let registry = Arc::new(match &fleet {
            Some(fleet) => registry.with_gate(fleet.gate()),
            None => registry,
        });
        accounts.connect(&set, &registry)?;
        accounts.count(&metrics);
        let advertise_address = advertise_address(options);
        let server_address =
            std::net::SocketAddr::new(advertise_address, options.serving.secure_port).to_string();
        let openid = accounts.openid(&server_address).map(Arc::new);
        let follower: Option<Arc<dyn Follower>> = Some(definitions);
        let others = aggregator.clone();
        let extensions: Option<Arc<ExtensionSource>> = Some(Arc::new(move || others.extensions()));
        let peers = peering.zip(fleet.as_ref()).map(|(peering, fleet)| peering.peers(fleet, metrics.clone()));
        let settings = concord_endpoints::Settings {
            server_address,
            metrics: metrics.clone(),
            follower,
            extensions,
            peers: peers::discovery(peers.as_ref()),
            beta_discovery: !emulation.features.enabled("AggregatedDiscoveryRemoveBetaType"),
        };
        let apis = Arc::new(Apis::new(registry.clone(), set, settings));
        let resources: Arc<dyn Resources> = apis.clone();
        asked.connect(Arc::downgrade(&resources));
        connected.connect(&Arc::downgrade(&resources));
        let release = emulation.release;
        let migrator = migration::migrator(
            &options.migration,
            &emulation.features,
            concord_migrator::Config {
                registry: registry.clone(),
                resources,
                fleet: fleet.clone(),
                keyring,
                metrics,
                automatic_after: None,
            },
        );
        let repair = ServiceRepair::new(registry.clone(), apis.as_ref(), range.clone(), ports)?;
        Ok(Self {
            apis,
            registry,
            customs,
            fleet,
            aggregator,
            peers,
            release,
            accounts,
            range,
            repair: Arc::new(repair),
            advertise_address,
            openid,
            migrator,
        })
    }

    /// What is served at the moment.
    pub(crate) fn resources(&self) -> Arc<dyn Resources> {
        self.apis.clone()
    }

    /// What answers requests: for objects, and for the documents about them.
    pub(crate) fn handler(&self) -> Arc<dyn Handler> {
        let apis = self.apis.clone();
        let others = self.aggregator.clone();
        let openapi = OpenApi::new(move || apis.set(), self.contents());
        let openapi = openapi.with_extensions(move || others.documents());
        let (apis, aggregator) = (self.apis.clone(), self.aggregator.clone());
        let own = Arc::new(Served { apis, aggregator, openapi, openid: self.openid.clone() });
        peers::before(own, &self.apis, self.peers.as_ref())
    }

    /// Has the keys of service accounts read again when their files change.
    pub(crate) fn reload_keys(
        &self,
        options: &ServiceAccountOptions,
        pki_dir: &Path,
        reloader: &mut Reloader,
    ) {
        self.accounts.reload(options, pki_dir, self.openid.clone(), reloader);
    }

    /// What documents are made from, besides the resources.
    fn contents(&self) -> Contents {
        let (registry, customs) = (self.registry.clone(), self.customs.clone());
        let openid = self.openid.iter().flat_map(|_| &OPENID);
        Contents {
            release: self.release.to_string(),
            annotations: concord_builtins::annotations,
            definitions: Box::new(move |resource| customs.spec(resource, &registry.replica().newest().ok()?)),
            services: openid.collect(),
        }
    }

    /// Every path that the index of the server lists.
    pub(crate) fn paths(&self) -> Arc<dyn Fn() -> Vec<String> + Send + Sync> {
        let apis = self.apis.clone();
        let aggregator = self.aggregator.clone();
        let openid: Vec<String> = self.openid.iter().flat_map(|_| OpenId::paths()).collect();
        Arc::new(move || {
            let own = OpenApi::paths().into_iter().chain(openid.iter().cloned());
            let own = apis.set().paths().into_iter().chain(own);
            let all: BTreeSet<String> = own.chain(aggregator.extensions().paths()).collect();
            all.into_iter().collect()
        })
    }

    /// The checks, with those of this server's part in the fleet.
    pub(crate) fn health(&self, checks: HealthChecks) -> HealthChecks {
        let checks = match &self.fleet {
            Some(fleet) => fleet.health(checks),
            None => checks,
        };
        match &self.peers {
            Some(peers) => peers.health(checks),
            None => checks,
        }
    }

    /// Leaves the fleet.
    pub(crate) async fn leave(&self) {
        if let Some(fleet) = &self.fleet {
            fleet.leave(&self.registry).await;
        }
    }

    /// Starts what keeps the server's own objects in place.
    pub(crate) async fn controllers(
        &self,
        secure_port: u16,
        shared_store: bool,
        trust: watch::Receiver<ClusterAuthentication>,
    ) -> anyhow::Result<Controllers> {
        let config = concord_controllers::Config {
            advertise_address: self.advertise_address,
            secure_port,
            service_cluster_ip_range: self.range.clone(),
            shared_store,
            service_accounts: Some(self.accounts.controllers()),
            authentication: Some(trust),
            elsewhere: Some(Arc::new(RemoteNamespaces(self.aggregator.clone()))),
        };
        let controllers = Controllers::start(self.registry.clone(), self.apis.clone(), config)?;
        let customs = (self.registry.clone(), self.customs.clone(), self.apis.clone());
        let customs = CustomResourceController::new(customs.0, customs.1, customs.2);
        controllers.run_also(|cancel| customs.run(cancel)).await;
        let served = (&self.registry, &self.apis, &self.customs);
        aggregation::start(&self.aggregator, served, shared_store, &controllers).await;
        if let Some(fleet) = self.fleet.clone() {
            let registry = self.registry.clone();
            controllers.run_also(|cancel| fleet.run(registry, cancel)).await;
        }
        if let Some(peers) = self.peers.clone() {
            controllers.run_also(|cancel| peers.run(cancel)).await;
        }
        Ok(controllers)
    }
}

/// The parts that answer requests.
struct Served {
    apis: Arc<Apis>,
    aggregator: Arc<Aggregator>,
    openapi: OpenApi,
    openid: Option<Arc<OpenId>>,
}

#[async_trait]
impl Handler for Served {
    async fn handle(&self, request: Request) -> Response {
        let path = request.uri().path();
        if path.starts_with("/openapi") {
            self.apis.current().await;
            return self.openapi.handle(request).await;
        }
        if let Some(elsewhere) = self.aggregator.route(path, &self.apis.set()) {
            return self.aggregator.handle(&elsewhere, request).await;
        }
        match &self.openid {
            Some(openid) if OpenId::answers(path) => openid.handle(request).await,
            _ => self.apis.handle(request).await,
        }
    }
}

/// Where clients reach this server: as told, where it listens, or from where this machine would send to others.
fn advertise_address(options: &ServeOptions) -> IpAddr {
    let bound = options.serving.bind_address;
    let told = options.apis.advertise_address.or((!bound.is_unspecified()).then_some(bound));
    told.or_else(|| outgoing(bound)).unwrap_or(bound)
}

/// The address this machine would send from. Connecting a UDP socket sends nothing, it only chooses a route.
fn outgoing(bound: IpAddr) -> Option<IpAddr> {
    let anywhere: IpAddr =
        if bound.is_ipv4() { [192, 0, 2, 1].into() } else { [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into() };
    let socket = UdpSocket::bind((bound, 0)).ok()?;
    socket.connect((anywhere, 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_unspecified())
}

/// What answers for kinds that are not stored, besides those that need nothing.
fn virtuals(accounts: &ServiceAccounts, store: &Arc<dyn Store>) -> Virtuals {
    let store = store.clone();
    accounts
        .virtuals()
        .with("ComponentStatus", move |schema| Arc::new(ComponentStatuses { schema, store: store.clone() }))
}
