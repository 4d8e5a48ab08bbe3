//! This server's part in the fleet.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use concord_election::Leadership;
use concord_meta::GroupVersion;
use concord_registry::{Gate, ObjectName, Registry, Resource, Resources, Storage};
use concord_server::{HealthChecks, StorageVersions, check_fn};
use concord_storageversion::{
    COMPONENT, Disagreement, Identity, Keys, NAMESPACE, Record, hostname_label, object_name, order, server_id,
};
use concord_store::{Compare, Revision, Txn};
use concord_store_sealed::Keyring;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    AgreedSince, FleetState, collector::Collector, commit::Committer, gate::WriteGate, identity::Keeper,
    progress::Progress, records, records::BuiltIn, registrar::Registrar, view::Shared,
};

/// How long giving back the lease may take, as upstream's.
const LEAVING: Duration = Duration::from_secs(10);

/// A server that has not renewed its lease for so many intervals is not waited for.
const SILENT_INTERVALS: u32 = 3;

/// How a server takes part.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the machine is called.
    pub hostname: String,
    /// The server's ID. Default: derived from the name of the machine, as upstream does.
    pub server_id: Option<String>,
    /// What kind of server it is; an extension server has a component of its own.
    pub component: String,
    /// The kinds of servers that have to agree on versions, and whose leases are removed when they are over: as a rule
    /// the server's own. Entries are kept of every kind.
    pub components: Vec<String>,
    /// Whether versions are registered: the feature gate `StorageVersionAPI`.
    pub register_versions: bool,
    /// What encrypts objects on their way to the store. Each server says what it uses *after* it uses it: whatever it
    /// wrote with another key before that then compares an older StorageVersion, and cannot be committed any more.
    pub keyring: Option<Arc<Keyring>>,
    /// What all keys begin with, with a slash at the end.
    pub prefix: String,
    /// How long a lease is good for. Default: an hour, as upstream's.
    pub lease_duration: Duration,
    /// How often it is renewed. Default: every 10 seconds, as upstream's.
    pub renew_interval: Duration,
    /// How often everything is looked through for leftovers, besides at every change. Default: every minute.
    pub collect_interval: Duration,
    /// How long a write waits for its version to be registered before it is refused. Default: 15 seconds, far longer than
    /// registration takes while the store works.
    pub gate_patience: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hostname: String::new(),
            server_id: None,
            component: COMPONENT.to_owned(),
            components: vec![COMPONENT.to_owned()],
            register_versions: true,
            keyring: None,
            prefix: "/registry/".to_owned(),
            lease_duration: Duration::from_secs(3600),
            renew_interval: Duration::from_secs(10),
            collect_interval: Duration::from_secs(60),
            gate_patience: Duration::from_secs(15),
        }
    }
}

/// Why a server cannot take part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A resource that it needs is turned off.
    #[error(
        "{plural}.{version} are not served: without them no version can be registered, and nothing could be written. Turn them on with --runtime-config, or off with --feature-gates=StorageVersionAPI=false"
    )]
    NotServed {
        /// Group and version.
        version: String,
        /// The resource.
        plural: String,
    },
    /// An ID that cannot be the name of a lease.
    #[error("the server ID {id:?} cannot be the name of a lease: {why}")]
    Id {
        /// The ID.
        id: String,
        /// What is wrong with it.
        why: String,
    },
}

/// This server's part in the fleet: its identity, what it says about its versions, and what it may write.
pub struct Fleet {
    pub(crate) settings: Settings,
    pub(crate) identity: Identity,
    pub(crate) shared: Arc<Shared>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) gate: Arc<WriteGate>,
    /// In the order of registration.
    pub(crate) built_in: Vec<BuiltIn>,
    pub(crate) leases: Arc<Resource>,
    /// The resource of StorageVersions, if versions are registered.
    pub(crate) versions: Option<Arc<Resource>>,
    pub(crate) definitions: Option<Arc<Storage>>,
    /// Where peers reach this server, if they are to.
    pub(crate) advertised: OnceLock<String>,
    /// Whether this server leads those on the store, if they elect one.
    pub(crate) leadership: OnceLock<Leadership>,
}

fn served(
    resources: &dyn Resources,
    group: &str,
    version: &str,
    plural: &str,
) -> Result<Arc<Resource>, Error> {
    let version = GroupVersion::new(group, version);
    let found = resources.find(&version, plural).filter(|found| found.storage().is_some());
    found.ok_or_else(|| Error::NotServed { version: version.to_string(), plural: plural.to_owned() })
}

impl Fleet {
    /// A new process of a server that serves these resources. Does nothing before it is run.
    ///
    /// # Errors
    ///
    /// [`Error`].
    pub fn new(
        settings: Settings,
        state: &FleetState,
        resources: &dyn Resources,
    ) -> Result<Arc<Self>, Error> {
        let id = settings.server_id.clone();
        let id = id.unwrap_or_else(|| server_id(&settings.hostname, &settings.component));
        if let Some(why) = concord_meta::names::dns1123_subdomain(&id).into_iter().next() {
            return Err(Error::Id { id, why });
        }
        let label = hostname_label(&settings.hostname);
        if label != settings.hostname {
            let hostname = &settings.hostname;
            tracing::warn!(
                hostname,
                label,
                "The name of the machine is no value of a label, which has at most 63 letters, digits, '-', '_' and '.': the identity lease has what is left of it."
            );
        }
        let process = uuid::Builder::from_random_bytes(rand::random()).into_uuid();
        let identity = Identity {
            holder: format!("{id}_{process}"),
            id,
            component: settings.component.clone(),
            hostname: settings.hostname.clone(),
        };
        let leases = served(resources, "coordination.k8s.io", "v1", "leases")?;
        let versions = settings
            .register_versions
            .then(|| served(resources, "internal.apiserver.k8s.io", "v1alpha1", "storageversions"))
            .transpose()?;
        let definitions = served(resources, "apiextensions.k8s.io", "v1", "customresourcedefinitions").ok();
        let definitions = definitions.and_then(|resource| resource.storage().cloned());
        let mut built_in = records::built_in(resources);
        built_in.sort_by(|one, other| order(&one.record, &other.record));
        let progress = Arc::new(Progress::default());
        progress.expect(built_in.iter().flat_map(|built_in| built_in.names.iter().cloned()));
        let shared = state.0.clone();
        let gate = Arc::new(WriteGate {
            shared: shared.clone(),
            progress: progress.clone(),
            id: identity.id.clone(),
            holder: identity.holder.clone(),
            prefix: settings.prefix.clone().into(),
            lease_key: lease_key(&leases, &identity.id),
            built_in: built_in.iter().map(|known| (known.prefix.clone(), known.record.name())).collect(),
            registers: settings.register_versions,
            patience: settings.gate_patience,
        });
        Ok(Arc::new(Self {
            settings,
            identity,
            shared,
            progress,
            gate,
            built_in,
            leases,
            versions,
            definitions,
            advertised: OnceLock::new(),
            leadership: OnceLock::new(),
        }))
    }

    /// The server's ID.
    pub fn id(&self) -> &str {
        &self.identity.id
    }

    /// What has to hold for this process to speak for its ID: that it still has its lease. `None` while it has none.
    pub fn held(&self) -> Option<Compare> {
        match self.gate.fence(&self.shared.known())? {
            concord_storageversion::Fence::Held { since, .. } => {
                Some(Compare::create_revision(lease_key(&self.leases, &self.identity.id), since))
            }
            concord_storageversion::Fence::Acquiring { .. } => None,
        }
    }

    /// Says in the lease where peers reach this server. To be called before it is run, at most once.
    pub fn advertise(&self, address: SocketAddr) {
        self.advertised.set(address.to_string()).ok();
    }

    /// Lets whoever leads the servers on the store be the first to remove what others left. To be called at most once;
    /// without it they take turns by their age.
    pub fn led_by(&self, leadership: Leadership) {
        self.leadership.set(leadership).ok();
    }

    /// How long nothing has to be heard of a server before it may be taken for gone.
    pub(crate) fn silence(&self) -> Duration {
        self.settings.renew_interval * SILENT_INTERVALS
    }

    /// What every write of this server has to pass.
    pub fn gate(&self) -> Arc<dyn Gate> {
        self.gate.clone()
    }

    /// What the filter of the server asks; `None` if versions are not registered.
    pub fn storage_versions(&self) -> Option<Arc<dyn StorageVersions>> {
        self.versions.as_ref().map(|_| -> Arc<dyn StorageVersions> { self.progress.clone() })
    }

    /// The checks by upstream's names.
    #[must_use]
    pub fn health(&self, checks: HealthChecks) -> HealthChecks {
        let (identity, collector, registration) =
            (self.progress.clone(), self.progress.clone(), self.progress.clone());
        let checks = checks
            .with(check_fn("poststarthook/start-kube-apiserver-identity-lease-controller", move || {
                std::future::ready(identity.identity_health())
            }))
            .with(check_fn(
                "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
                move || std::future::ready(collector.identity_health()),
            ));
        match self.versions {
            None => checks,
            Some(_) => checks
                .with(check_fn("poststarthook/built-in-resources-storage-version-updater", move || {
                    std::future::ready(registration.registration_health())
                })),
        }
    }

    /// Whether all live servers write one version of a resource, and since when.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn agreement(&self, group: &str, resource: &str) -> Result<AgreedSince, Disagreement> {
        self.shared.known().agreement(&object_name(group, resource), &self.settings.components)
    }

    /// The same about the resource whose objects have keys that begin like this, whatever it is called.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn agreement_below(&self, prefix: &[u8]) -> Result<AgreedSince, Disagreement> {
        let name = self.gate.name_of(prefix);
        self.shared.known().agreement(&name, &self.settings.components)
    }

    /// Whether versions are registered: without that, nobody can agree.
    pub fn registers_versions(&self) -> bool {
        self.versions.is_some()
    }

    /// Whether there is no other server on the store, as far as leases tell.
    pub fn is_alone(&self) -> bool {
        self.shared.known().members(&self.settings.components).keys().all(|id| id == self.id())
    }

    /// Tells when something changes about servers or what they say.
    pub fn changes(&self) -> watch::Receiver<Revision> {
        self.shared.changes()
    }

    /// A record with the keys that are in use now.
    pub(crate) fn with_keys(&self, record: &Record) -> Record {
        let Some(keyring) = &self.settings.keyring else { return record.clone() };
        let Record { group, resource, .. } = record;
        let keys =
            Keys { seals_with: keyring.seals_with(group, resource), opens: keyring.opens(group, resource) };
        Record { keys, ..record.clone() }
    }

    /// Takes part until it is cancelled. The lease stays: [`Fleet::leave`] gives it back.
    pub async fn run(self: Arc<Self>, registry: Arc<Registry>, cancel: CancellationToken) {
        let committer = Arc::new(Committer { fleet: self.clone(), registry });
        let keeper = Keeper { committer: committer.clone() };
        let registrar = Registrar::new(committer.clone());
        let collector = Collector::new(committer);
        let all = async {
            tokio::join!(keeper.run(), registrar.run(), collector.run());
        };
        cancel.run_until_cancelled(all).await;
    }

    /// Gives back the identity lease. Nothing that this process still has on its way can be committed afterwards, so it
    /// has to be the last thing it does.
    pub async fn leave(&self, registry: &Registry) {
        let Some(held) = self.held() else { return };
        let txn = Txn::new().compare(held).delete(lease_key(&self.leases, &self.identity.id));
        let left = tokio::time::timeout(LEAVING, registry.store().transact(txn)).await;
        let left =
            left.unwrap_or_else(|_| Err(concord_store::Error::unavailable("it did not answer in time")));
        if let Err(error) = left {
            tracing::warn!(%error, id = self.identity.id, "The identity lease could not be given back; it ends by itself.");
        }
    }
}

/// The key of an identity lease.
pub(crate) fn lease_key(leases: &Resource, id: &str) -> bytes::Bytes {
    let storage = leases.storage().expect("leases are stored");
    storage.key(ObjectName { namespace: NAMESPACE, name: id })
}
