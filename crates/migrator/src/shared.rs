//! What all parts of the migrator work with.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use concord_fleet::Fleet;
use concord_merge::apply::Time;
use concord_meta::{GroupResource, GroupVersion, UserInfo};
use concord_registry::{Context, Registry, Resource, Resources, Storage, Verb, metadata};
use concord_server::{Auditing, Metrics};
use concord_store::{KeyRange, Revision};
use concord_store_sealed::Keyring;

use crate::{
    agreement::{Writers, writers},
    load::Load,
};

/// Who migrates: upstream's name, which webhooks and audit logs know.
const USER: &str = "system:serviceaccount:kube-system:storage-version-migrator-controller";
pub(crate) const MANAGER: &str = "storage-version-migrator-controller";

/// What a migrator works with.
pub struct Config {
    /// Where objects are.
    pub registry: Arc<Registry>,
    /// What is served.
    pub resources: Arc<dyn Resources>,
    /// The other servers; `None` if this one takes no part in a fleet.
    pub fleet: Option<Arc<Fleet>>,
    /// What encrypts objects; `None` if nothing does.
    pub keyring: Option<Arc<Keyring>>,
    /// Where to count.
    pub metrics: Arc<Metrics>,
    /// How long the servers have to agree on another form before what is stored is brought into it without being asked;
    /// `None` for never.
    pub automatic_after: Option<Duration>,
}

pub(crate) struct Shared {
    pub(crate) config: Config,
    /// The StorageVersionMigrations.
    pub(crate) migrations: Arc<Resource>,
    /// Where rewrites are written down, if they are.
    pub(crate) auditing: OnceLock<Arc<Auditing>>,
    /// How much is written at once by writes that may share requests to the store, and by those that cannot.
    pub(crate) together: Load,
    pub(crate) alone: Load,
}

/// What a migration is about, as it is served now.
pub(crate) enum Found {
    /// This.
    Stored(Arc<Resource>),
    /// Something that cannot be migrated, and why.
    Unfit(String),
    /// Nothing.
    Nothing,
}

impl Shared {
    pub(crate) fn registry(&self) -> &Registry {
        &self.config.registry
    }

    /// How much of the objects of a storage is written at once. What expires is written one by one.
    pub(crate) fn load(&self, storage: &Storage) -> &Load {
        if storage.strategy.time_to_live().is_some() { &self.alone } else { &self.together }
    }

    /// A request of the migrator.
    pub(crate) fn context(&self) -> Context {
        let groups =
            ["system:serviceaccounts", "system:serviceaccounts:kube-system", UserInfo::AUTHENTICATED];
        let user = UserInfo {
            name: USER.to_owned(),
            groups: groups.map(str::to_owned).into(),
            ..UserInfo::default()
        };
        let mut context = Context::new(user, now());
        MANAGER.clone_into(&mut context.manager);
        context
    }

    /// What is served under a name: in the stored version if that is served, since nothing has to be converted then.
    pub(crate) fn find(&self, name: &GroupResource) -> Found {
        let all = self.config.resources.all();
        let mut served: Vec<Arc<Resource>> =
            all.into_iter().filter(|resource| resource.group_resource() == *name).collect();
        served.sort_by_key(|resource| {
            resource.storage().is_none_or(|storage| storage.encoding != resource.version)
        });
        let Some(first) = served.into_iter().next() else {
            return self.elsewhere(name).map_or(Found::Nothing, Found::Unfit);
        };
        let needed = [Verb::Update, Verb::Patch, Verb::List];
        if first.storage().is_none() || needed.iter().any(|verb| !first.verbs.contains(verb)) {
            return Found::Unfit(format!(
                "resource \"{}, Resource={}\" does not support discovery operations: [update patch list]",
                first.version, name.resource
            ));
        }
        Found::Stored(first)
    }

    /// Why a resource is not here, if another API server has its group: only that one sees what it stores.
    fn elsewhere(&self, name: &GroupResource) -> Option<String> {
        let version = GroupVersion::new("apiregistration.k8s.io", "v1");
        let services = self.config.resources.find(&version, "apiservices")?;
        let range = KeyRange::prefix(services.storage()?.prefix.clone());
        let snapshot = self.registry().replica().newest().ok()?;
        let mut all = snapshot.scan(&range).filter_map(|entry| services.object(&entry.into()).ok());
        let found = all.find(|service| {
            let spec = service.get("spec").cloned().unwrap_or_default();
            spec["group"] == *name.group && spec["service"].is_object()
        })?;
        Some(format!(
            "resource \"{name}\" is stored by another API server, that of APIService \"{}\", which has to migrate it",
            metadata(&found).name()
        ))
    }

    /// What the servers say about the objects of a storage.
    pub(crate) fn writers(&self, storage: &Storage) -> Writers {
        // First: what is known about the servers is at least as new.
        let seen = self.registry().replica().newest().map_or(0, |snapshot| snapshot.revision());
        let Config { fleet, keyring, .. } = &self.config;
        writers(fleet.as_deref(), keyring.as_deref(), storage, seen)
    }

    /// Returns when something about the servers may have changed.
    pub(crate) async fn servers_changed(&self, changes: &mut Option<tokio::sync::watch::Receiver<Revision>>) {
        let Some(receiver) = changes else { return std::future::pending().await };
        if receiver.changed().await.is_err() {
            *changes = None;
        }
    }

    /// Tells about such changes.
    pub(crate) fn changes(&self) -> Option<tokio::sync::watch::Receiver<Revision>> {
        self.config.fleet.as_ref().map(|fleet| fleet.changes())
    }
}

/// The time.
pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time { unix: i64::try_from(since.as_secs()).unwrap_or(i64::MAX) }
}
