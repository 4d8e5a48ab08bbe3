//! From a definition to resources.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use concord_codec::ListOrder;
use concord_endpoints::{Columns, Endpoint};
use concord_meta::{GroupResource, GroupVersionKind};
use concord_registry::{
    Backing, Converter, Deprecation, Form, Lifetime, Renaming, Resource, ResourceNames, Scaling, Storage,
    Subresource, SubresourceKind, Verb,
};
use concord_store::Revision;
use concord_structural::Scale;
use concord_webhook::Client;

use crate::{
    columns::CustomColumns,
    definition::{Conversion, Definition, Version},
    strategy::CustomStrategy,
    webhook::Asking,
};

/// What all definitions have in common.
#[derive(Clone)]
pub(crate) struct Place {
    /// What all keys begin with, with a slash at the end.
    pub(crate) prefix: String,
    /// Calls conversion webhooks.
    pub(crate) webhooks: Arc<Client>,
}

/// The resource of a served version. `since` is when the definition became what it is.
pub(crate) fn endpoint(
    place: &Place,
    definition: &Definition,
    version: &Arc<Version>,
    since: Revision,
) -> Endpoint {
    let group_version = definition.group_version(&version.name);
    let storage = storage(place, definition, version, since);
    let names = &definition.names;
    let names = ResourceNames {
        plural: names.plural.clone(),
        singular: names.singular.clone(),
        kind: names.kind.clone(),
        list_kind: names.list_kind.clone(),
        short_names: names.short_names.clone(),
        categories: names.categories.clone(),
    };
    let backing = Backing::Stored(Arc::new(storage));
    let mut resource = Resource::new(group_version, names, backing, Verb::ALL.to_vec());
    resource.order = ListOrder::Sorted;
    let deprecation = |warning| Deprecation { warning, removed_release: String::new() };
    resource.deprecation = definition.warning(version).map(deprecation);
    resource.storage_version_hash = storage_version_hash(definition);
    resource.subresources = subresources(&resource, version);
    let columns = Columns::Shared(Arc::new(CustomColumns::new(&version.columns)));
    Endpoint { columns, ..Endpoint::from(Arc::new(resource)) }
}

/// As upstream's: empty if the stored version is not served.
fn storage_version_hash(definition: &Definition) -> String {
    let stored = definition.version(&definition.stored);
    let served = stored.filter(|stored| stored.served);
    let hash = |stored: &Arc<Version>| {
        concord_builtins::storage_version_hash(&definition.group, &stored.name, &definition.names.kind)
    };
    served.map(hash).unwrap_or_default()
}

fn subresources(resource: &Resource, version: &Version) -> Vec<Subresource> {
    let verbs = || vec![Verb::Get, Verb::Patch, Verb::Update];
    let status = version.has_status.then(|| Subresource {
        name: "status".to_owned(),
        kind: resource.kind(),
        verbs: verbs(),
        behaviour: SubresourceKind::Part,
    });
    let scale = version.scale.as_ref().and_then(scaling).map(|scaling| Subresource {
        name: "scale".to_owned(),
        kind: GroupVersionKind::new("autoscaling", "v1", "Scale"),
        verbs: verbs(),
        behaviour: SubresourceKind::Scale(scaling),
    });
    status.into_iter().chain(scale).collect()
}

fn scaling(scale: &Scale) -> Option<Scaling> {
    let path = |path: &str| {
        let path = path.strip_prefix('.').unwrap_or(path);
        path.split('.').map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    Some(Scaling {
        spec_replicas: path(&scale.spec_replicas),
        status_replicas: path(&scale.status_replicas),
        selector: scale.label_selector.as_deref().map(path),
        schema: concord_builtins::schema("autoscaling", "v1", "Scale")?,
    })
}

fn storage(place: &Place, definition: &Definition, version: &Arc<Version>, since: Revision) -> Storage {
    let working = definition.group_version(&version.name);
    let names = &definition.names;
    let forms: BTreeMap<String, Form> = definition
        .versions
        .iter()
        .map(|version| {
            let schema = Arc::clone(&version.schema);
            (definition.group_version(&version.name).to_string(), Form::Custom(schema))
        })
        .collect();
    let strategy = CustomStrategy::new(&names.kind, &working.to_string(), Arc::clone(version));
    let converter: Arc<dyn Converter> = match &definition.conversion {
        Conversion::None => Arc::new(Renaming),
        Conversion::Webhook(webhook) => Arc::new(Asking::new(place.webhooks.clone(), webhook.clone())),
    };
    Storage {
        resource: GroupResource::new(definition.group.as_str(), names.plural.as_str()),
        kind: names.kind.clone(),
        version: working,
        encoding: definition.group_version(&definition.stored),
        namespaced: definition.namespaced,
        prefix: Bytes::from(format!("{}{}/{}/", place.prefix, definition.group, names.plural)),
        strategy: Arc::new(strategy),
        converter,
        forms,
        formed_since: since,
        lifetime: Some(Lifetime::default()),
    }
}
