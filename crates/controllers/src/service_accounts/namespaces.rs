use std::{collections::BTreeSet, sync::Arc};

use concord_meta::Status;
use concord_registry::{
    Item, Object, ObjectName, Registry, Resource, Resources, Storage, metadata, metadata_mut,
};
use concord_replica::{Event, EventKind, Scope, Snapshot};
use concord_store::KeyRange;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Common, ServiceAccountsConfig};
use crate::{
    Error,
    lifecycle::{namespace_storage, terminating},
    own::required,
    queue::{self, Sync},
};

/// The account of pods that name none.
const DEFAULT: &str = "default";

const ROOT_CA: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";
const DESCRIBED: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                         endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                         guaranteed across distributions of Kubernetes clusters.";

/// Gives every namespace the account `default` and the authorities to trust.
pub(crate) struct Namespaces {
    common: Common,
    namespaces: Arc<Storage>,
    config_maps: Arc<Resource>,
}

/// What is followed, in this order.
const NAMESPACES: usize = 0;
const ACCOUNTS: usize = 1;

impl Namespaces {
    pub(crate) fn new(
        registry: Arc<Registry>,
        resources: &dyn Resources,
        config: ServiceAccountsConfig,
    ) -> Result<Self, Error> {
        Ok(Self {
            namespaces: namespace_storage(resources)?,
            config_maps: required(resources, "", "v1", "configmaps")?,
            common: Common::new(registry, resources, config)?,
        })
    }

    /// Goes on until it is cancelled or the replica ends.
    pub(crate) async fn run(self, cancel: CancellationToken) {
        let prefix = |storage: Option<&Arc<Storage>>| storage.map(|storage| storage.prefix.clone());
        let scopes = [
            Some(self.namespaces.prefix.clone()),
            prefix(self.common.accounts.storage()),
            prefix(self.config_maps.storage()),
        ];
        let scopes: Vec<Scope> = scopes.into_iter().flatten().map(Scope::prefix).collect();
        cancel.run_until_cancelled(queue::run(&self, &self.common.registry, &scopes)).await;
    }

    async fn keep_account(&self, snapshot: &Snapshot, namespace: &str) -> Result<(), Status> {
        let at = ObjectName { namespace, name: DEFAULT };
        if get(&self.common.accounts, snapshot, at)?.is_some() {
            return Ok(());
        }
        let account = json!({"metadata": {"name": DEFAULT}});
        self.common.create(&self.common.accounts, namespace, &account).await
    }

    async fn keep_root_ca(&self, snapshot: &Snapshot, namespace: &str) -> Result<(), Status> {
        let at = ObjectName { namespace, name: ROOT_CA };
        let data = json!({"ca.crt": self.common.config.root_ca});
        let Some(mut found) = get(&self.config_maps, snapshot, at)? else {
            let metadata = json!({"name": ROOT_CA, "annotations": {DESCRIPTION: DESCRIBED}});
            let config_map = json!({"metadata": metadata, "data": data});
            return self.common.create(&self.config_maps, namespace, &config_map).await;
        };
        if found.get("data") == Some(&data) && is_described(&found) {
            return Ok(());
        }
        if self.common.too_soon(format!("{namespace}/{ROOT_CA}")) {
            return Err(Status::too_many_requests("somebody else wants it different", 1));
        }
        found.insert("data".to_owned(), data);
        let metadata = metadata_mut(&mut found);
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(DESCRIPTION.to_owned(), DESCRIBED.into());
        }
        self.common.replace(&self.config_maps, at, found).await
    }
}

fn is_described(config_map: &Object) -> bool {
    let annotations = metadata(config_map).get("annotations");
    annotations
        .and_then(|annotations| annotations.get(DESCRIPTION)?.as_str())
        .is_some_and(|text| !text.is_empty())
}

fn get(resource: &Resource, snapshot: &Snapshot, at: ObjectName<'_>) -> Result<Option<Object>, Status> {
    let entry = resource.storage().and_then(|storage| snapshot.get(&storage.key(at)));
    entry.map(|entry| resource.object(&Item::from(entry))).transpose()
}

impl Sync for Namespaces {
    type Item = String;
    const QUEUE: &str = "serviceaccount";

    fn all(&self, snapshot: &Snapshot, items: &mut BTreeSet<String>) {
        let entries = snapshot.scan(&KeyRange::prefix(self.namespaces.prefix.clone()));
        let names = entries.filter_map(|entry| self.namespaces.object_name(&entry.key));
        items.extend(names.map(|name| name.name.to_owned()));
    }

    fn changed(&self, scope: usize, event: &Event, items: &mut BTreeSet<String>) {
        let gone = matches!(event.kind, EventKind::Deleted { .. });
        let (storage, wanted) = match scope {
            NAMESPACES => (Some(&self.namespaces), None),
            ACCOUNTS => (self.common.accounts.storage(), Some(DEFAULT).filter(|_| gone)),
            _ => (self.config_maps.storage(), Some(ROOT_CA)),
        };
        let Some(at) = storage.and_then(|storage| storage.object_name(event.key())) else { return };
        match (scope, wanted) {
            (NAMESPACES, _) if !gone => drop(items.insert(at.name.to_owned())),
            (_, Some(wanted)) if at.name == wanted => drop(items.insert(at.namespace.to_owned())),
            _ => {}
        }
    }

    async fn sync(&self, namespace: &String) -> Result<(), Status> {
        let snapshot = self.common.registry.replica().newest().map_err(Status::internal_error)?;
        let key = self.namespaces.key(ObjectName { namespace: "", name: namespace });
        let Some(entry) = snapshot.get(&key) else { return Ok(()) };
        if terminating(&self.namespaces, entry).is_some() {
            return Ok(());
        }
        // Both at once: the store commits in groups, and pods wait for it.
        let (account, root_ca) = futures_util::join!(
            self.keep_account(&snapshot, namespace),
            self.keep_root_ca(&snapshot, namespace)
        );
        account.and(root_ca)
    }
}
