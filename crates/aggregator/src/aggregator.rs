use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use concord_endpoints::{ApiSet, Apis, Extensions};
use concord_openapi::{DocumentArchive, ExtensionDocuments};
use concord_pki::ClientIdentity;
use concord_registry::Registry;
use concord_replica::{Batch, Closed, Entry, Error as ReplicaError, Scope};
use concord_server::{Metrics, Request, Response};
use concord_webhook::Resolver;
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Duration, sleep},
};
use tokio_util::sync::CancellationToken;

use crate::{
    availability::is_slice_of,
    catalogue::Catalogue,
    keeper::{Keeper, Tools},
    proxy::Proxy,
    registration::{Registration, RegistrationSettings},
    remote::{Remote, Remotes},
    service::{ApiService, Backend},
    view::{ApiServices, Registered},
};

/// The pause before something that failed is tried again.
const PAUSE: Duration = Duration::from_millis(500);
/// How many failures are remembered until somebody looks at them.
const MAX_FAILURES: usize = 64;

/// What an [`Aggregator`] has to know about its server.
pub struct Settings {
    /// Finds the Services that other servers are behind.
    pub resolver: Arc<dyn Resolver>,
    /// The Services, by namespace and name, whose addresses the operator gave, so that nothing about them need be in the
    /// log.
    pub explicit: HashSet<(String, String)>,
    /// What is shown to other servers, so that they believe who their clients are.
    pub identity: Option<Arc<ClientIdentity>>,
    /// Whether other servers may send clients elsewhere.
    pub allows_redirects: bool,
    /// What all keys begin with, with a slash at the end.
    pub prefix: String,
    /// Where to say who can be reached.
    pub metrics: Arc<Metrics>,
    /// Where the documents of other servers are kept, for when this server starts and they are away.
    pub archive: DocumentArchive,
}

/// What other servers serve, as part of what this one serves.
pub struct Aggregator {
    services: ApiServices,
    catalogue: Arc<Catalogue>,
    remotes: Arc<Remotes>,
    proxy: Proxy,
    explicit: Arc<HashSet<(String, String)>>,
    prefix: String,
    metrics: Arc<Metrics>,
    archive: DocumentArchive,
    /// For the controller.
    failures: Mutex<Option<mpsc::Receiver<Backend>>>,
    /// Whether all APIServices of this server's own versions have been there.
    is_registered: Arc<AtomicBool>,
}

/// A request that is another server's to answer.
pub struct Elsewhere(Arc<ApiService>);

/// Looks after the APIServices of other servers.
pub struct AggregationController {
    tools: Arc<Tools>,
    services: ApiServices,
    failures: mpsc::Receiver<Backend>,
}

/// Who looks after one of them.
struct Running {
    service: Arc<ApiService>,
    changed: watch::Sender<u64>,
    task: tokio::task::AbortHandle,
}

impl Aggregator {
    /// Knows who serves what from the view.
    pub fn new(services: ApiServices, settings: Settings) -> Self {
        let Settings { resolver, explicit, identity, allows_redirects, prefix, metrics, archive } = settings;
        let remotes = Arc::new(Remotes::new(resolver, identity));
        let (told, failures) = mpsc::channel(MAX_FAILURES);
        let catalogue = Arc::new(Catalogue::new(services.clone()));
        let proxy = Proxy {
            services: services.clone(),
            remotes: remotes.clone(),
            catalogue: catalogue.clone(),
            allows_redirects,
            failures: told,
        };
        let (explicit, failures) = (Arc::new(explicit), Mutex::new(Some(failures)));
        let is_registered = Arc::default();
        Self {
            services,
            catalogue,
            remotes,
            proxy,
            explicit,
            prefix,
            failures,
            metrics,
            archive,
            is_registered,
        }
    }

    /// Whether another server answers a request for this path, given what this server serves itself.
    pub fn route(&self, path: &str, set: &ApiSet) -> Option<Elsewhere> {
        self.proxy.find(path, set).map(Elsewhere)
    }

    /// The answer of another server.
    pub async fn handle(&self, elsewhere: &Elsewhere, request: Request) -> Response {
        self.proxy.handle(&elsewhere.0, request).await
    }

    /// What discovery shows of other servers.
    pub fn extensions(&self) -> Arc<Extensions> {
        self.catalogue.composed().extensions.clone()
    }

    /// What other servers say about what they serve.
    pub fn documents(&self) -> Arc<ExtensionDocuments> {
        self.catalogue.composed().documents.clone()
    }

    /// Keeps the APIServices of what this server serves itself, when it is run.
    pub fn registration(
        &self,
        registry: Arc<Registry>,
        apis: Arc<Apis>,
        settings: RegistrationSettings,
    ) -> Registration {
        let settings = (self.prefix.clone(), settings);
        Registration::new(registry, apis, self.services.clone(), settings, self.is_registered.clone())
    }

    /// Whether all APIServices of what this server serves itself have been there since it started: clients that read them
    /// would take what is missing for not served.
    pub fn is_registered(&self) -> bool {
        self.is_registered.load(Ordering::Relaxed)
    }

    /// What is registered now.
    pub(crate) fn registered(&self) -> Arc<Registered> {
        self.services.registered()
    }

    /// The resources that a server said it has when it was last asked, if it can be reached.
    pub(crate) fn fresh_resources(&self, service: &ApiService) -> Option<Bytes> {
        self.catalogue.fresh_resources(service)
    }

    /// The server of an APIService.
    pub(crate) fn remote(&self, service: &ApiService) -> Option<Arc<Remote>> {
        self.remotes.get(service.backend.as_ref()?).ok()
    }

    /// Looks after the APIServices of other servers, when it is run. Once. Of several servers on a store only the one whose
    /// `tells` is true writes down whether they can be reached: they need not agree, and would take turns in saying so.
    pub fn controller(
        &self,
        registry: Arc<Registry>,
        apis: Arc<Apis>,
        tells: watch::Receiver<bool>,
    ) -> AggregationController {
        let tools = Tools {
            registry,
            apis,
            remotes: self.remotes.clone(),
            catalogue: self.catalogue.clone(),
            prefix: self.prefix.clone(),
            explicit: self.explicit.clone(),
            metrics: self.metrics.clone(),
            archive: self.archive.clone(),
            tells,
        };
        let failures = self.failures.lock().take().unwrap_or_else(|| mpsc::channel(1).1);
        AggregationController { tools: Arc::new(tools), services: self.services.clone(), failures }
    }
}

impl AggregationController {
    /// Goes on until it is cancelled or the replica ends.
    pub async fn run(mut self, cancel: CancellationToken) {
        let mut keepers = Keepers {
            tools: self.tools.clone(),
            running: BTreeMap::new(),
            archived: None,
            tasks: JoinSet::new(),
        };
        cancel.run_until_cancelled(self.follow(&mut keepers)).await;
        keepers.tasks.shutdown().await;
    }

    async fn follow(&mut self, keepers: &mut Keepers) {
        loop {
            match self.follow_once(keepers).await {
                Ok(Closed::Shutdown | Closed::Failed)
                | Err(ReplicaError::Shutdown | ReplicaError::Failed { .. }) => return,
                _ => sleep(PAUSE).await,
            }
        }
    }

    async fn follow_once(&mut self, keepers: &mut Keepers) -> Result<Closed, ReplicaError> {
        let replica = self.tools.registry.replica();
        let prefix = &self.tools.prefix;
        let services = Scope::prefix(format!("{prefix}services/specs/"));
        let slices = Scope::prefix(format!("{prefix}endpointslices/"));
        let (_, mut services) = replica.snapshot_and_subscribe(services)?;
        let (_, mut slices) = replica.snapshot_and_subscribe(slices)?;
        let mut changes = self.services.changes();
        loop {
            keepers.adjust(self.services.registered().remote());
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return Ok(Closed::Shutdown) },
                batch = services.next() => match batch {
                    Ok(batch) => keepers.wake(&batch, services.scope(), |backend, name, _| backend.name == name),
                    Err(closed) => return Ok(closed),
                },
                batch = slices.next() => match batch {
                    Ok(batch) => keepers.wake(&batch, slices.scope(), |backend, _, entry| {
                        entry.is_some_and(|entry| is_slice_of(entry, &backend.name))
                    }),
                    Err(closed) => return Ok(closed),
                },
                Some(backend) = self.failures.recv() => keepers.doubt(&backend),
                Some(ended) = keepers.tasks.join_next() => Keepers::ended(ended),
            }
        }
    }
}

/// All who look after an APIService.
struct Keepers {
    tools: Arc<Tools>,
    running: BTreeMap<String, Running>,
    /// Whose documents are kept on disk; not known before it was looked at.
    archived: Option<BTreeSet<String>>,
    tasks: JoinSet<()>,
}

impl Keepers {
    /// There is a keeper for each of these, and no other.
    fn adjust<'a>(&mut self, services: impl Iterator<Item = &'a Arc<ApiService>>) {
        let services: BTreeMap<&str, &Arc<ApiService>> =
            services.map(|service| (service.name.as_str(), service)).collect();
        let metrics = &self.tools.metrics;
        self.running.retain(|name, running| {
            let is_same = services.get(name.as_str()).is_some_and(|service| running.keeps(service));
            if !is_same {
                running.task.abort();
                metrics.aggregation().forget(name);
            }
            is_same
        });
        for (name, service) in &services {
            if !self.running.contains_key(*name) {
                self.start(service);
            }
        }
        self.tools.catalogue.retain(|name| services.contains_key(name));
        let is_needed = |backend: &Backend| services.values().any(|of| of.backend.as_ref() == Some(backend));
        self.tools.remotes.retain(is_needed);
        self.tidy_archive(services.values().filter_map(|service| service.owner()).collect());
    }

    /// Nothing is kept of servers that are gone.
    fn tidy_archive(&mut self, owners: BTreeSet<String>) {
        if self.archived.as_ref() == Some(&owners) {
            return;
        }
        let (archive, kept) = (self.tools.archive.clone(), owners.clone());
        self.archived = Some(owners);
        self.tasks.spawn_blocking(move || {
            if let Err(error) = archive.retain(kept.iter().map(String::as_str)) {
                tracing::warn!(%error, "OpenAPI documents of servers that are gone could not be removed.");
            }
        });
    }

    fn start(&mut self, service: &Arc<ApiService>) {
        let Some(backend) = service.backend.clone() else { return };
        let changed = watch::Sender::new(0);
        let keeper = Keeper {
            tools: self.tools.clone(),
            service: service.clone(),
            backend,
            changed: changed.subscribe(),
            available: watch::Sender::new(service.is_available),
        };
        let task = self.tasks.spawn(keeper.run());
        let running = Running { service: service.clone(), changed, task };
        self.running.insert(service.name.clone(), running);
    }

    /// Has those look again whose server may be somewhere else now: what changed is in the namespace of its Service, and
    /// `concerns` it by its own name or by what it says.
    fn wake(&self, batch: &Batch, scope: &Scope, concerns: impl Fn(&Backend, &str, Option<&Entry>) -> bool) {
        let length = scope.range().start.len();
        for event in batch.iter() {
            let key = std::str::from_utf8(&event.key()[length..]).unwrap_or_default();
            let Some((namespace, name)) = key.split_once('/') else { continue };
            for running in self.running.values() {
                let Some(backend) = &running.service.backend else { continue };
                let entry = event.current().or_else(|| event.previous());
                if backend.namespace == namespace && concerns(backend, name, entry) {
                    self.tools.remotes.forget(backend);
                    running.changed.send_modify(|count| *count += 1);
                }
            }
        }
    }

    /// Has those look again whose server did not answer.
    fn doubt(&self, backend: &Backend) {
        let of = self.running.values().filter(|running| running.service.backend.as_ref() == Some(backend));
        of.for_each(|running| running.changed.send_modify(|count| *count += 1));
    }

    fn ended(ended: Result<(), tokio::task::JoinError>) {
        if let Err(error) = ended
            && !error.is_cancelled()
        {
            tracing::error!(%error, "The work on an APIService did not end well.");
        }
    }
}

impl Running {
    /// Whether it looks after an APIService as it is specified now.
    fn keeps(&self, service: &ApiService) -> bool {
        self.service.backend == service.backend
            && self.service.version == service.version
            && self.service.uid == service.uid
    }
}
