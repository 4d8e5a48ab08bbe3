//! The documents of groups and versions, each for itself.

use bytes::Bytes;
use concord_meta::Status;
use concord_registry::{Resource, Subresource, Verb};
use serde::Serialize;

use super::shown::{Shown, ShownGroup, ShownVersion};
use crate::{
    apis::Settings,
    set::{ApiSet, ApiVersion, Endpoint, Origin},
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiVersions<'a> {
    kind: &'static str,
    versions: Vec<&'a str>,
    #[serde(rename = "serverAddressByClientCIDRs")]
    addresses: [ServerAddress<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerAddress<'a> {
    #[serde(rename = "clientCIDR")]
    client_cidr: &'static str,
    server_address: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Group<'a> {
    #[serde(flatten)]
    type_meta: Option<TypeMeta>,
    name: &'a str,
    versions: Vec<Version<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preferred_version: Option<Version<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TypeMeta {
    kind: &'static str,
    api_version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Version<'a> {
    group_version: String,
    version: &'a str,
}

#[derive(Serialize)]
struct GroupList<'a> {
    #[serde(flatten)]
    type_meta: TypeMeta,
    groups: Vec<Group<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceList<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    group_version: String,
    resources: Vec<ApiResource<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiResource<'a> {
    name: String,
    singular_name: &'a str,
    namespaced: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    kind: &'a str,
    verbs: Vec<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    storage_version_hash: &'a str,
}

/// How custom resources list their verbs; built-in ones sort them.
const CUSTOM_ORDER: [Verb; 8] = [
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Create,
    Verb::Update,
    Verb::Watch,
];

/// Compact JSON with a newline at its end.
pub(super) fn json(value: &impl Serialize) -> Result<Bytes, Status> {
    let mut out = serde_json::to_vec(value).map_err(Status::internal_error)?;
    out.push(b'\n');
    Ok(out.into())
}

/// The names of verbs in the order of discovery.
pub(super) fn verbs(verbs: &[Verb], origin: Origin) -> Vec<&'static str> {
    let order = match origin {
        Origin::BuiltIn => Verb::ALL,
        Origin::Custom => CUSTOM_ORDER,
    };
    order.into_iter().filter(|verb| verbs.contains(verb)).map(Verb::as_str).collect()
}

/// The names of the verbs of a resource itself. Nothing is to be written that is about to go.
pub(super) fn main_verbs(endpoint: &Endpoint, origin: Origin) -> Vec<&'static str> {
    let mut told = verbs(&endpoint.resource.verbs, origin);
    if endpoint.is_terminating {
        let writes = [Verb::Create, Verb::Update, Verb::Patch].map(Verb::as_str);
        told.retain(|verb| !writes.contains(verb));
    }
    told
}

/// `/api`
pub(super) fn core(set: &ApiSet, settings: &Settings) -> Result<Bytes, Status> {
    let group = set.group("");
    let versions = group.into_iter().flat_map(|group| group.versions());
    json(&ApiVersions {
        kind: "APIVersions",
        versions: versions.map(|version| version.version().version.as_str()).collect(),
        addresses: [ServerAddress { client_cidr: "0.0.0.0/0", server_address: &settings.server_address }],
    })
}

/// `/apis`
pub(super) fn groups(shown: &Shown) -> Result<Bytes, Status> {
    if let Some(document) = shown.documents.groups.get() {
        return Ok(document.clone());
    }
    let type_meta = TypeMeta { kind: "APIGroupList", api_version: "v1" };
    let named = shown.groups.iter().filter(|group| !group.name.is_empty());
    let document = json(&GroupList { type_meta, groups: named.map(|named| entry(named, None)).collect() })?;
    Ok(shown.documents.groups.get_or_init(|| document).clone())
}

/// `/apis/G`
pub(super) fn group(group: &ShownGroup) -> Result<Bytes, Status> {
    json(&entry(group, Some(TypeMeta { kind: "APIGroup", api_version: "v1" })))
}

fn entry(group: &ShownGroup, type_meta: Option<TypeMeta>) -> Group<'_> {
    fn version_of<'a>(group: &str, version: &'a ShownVersion) -> Version<'a> {
        Version { group_version: format!("{group}/{}", version.name()), version: version.name() }
    }
    Group {
        type_meta,
        name: &group.name,
        versions: group.versions.iter().map(|version| version_of(&group.name, version)).collect(),
        preferred_version: group.versions.first().map(|version| version_of(&group.name, version)),
    }
}

/// `/api/V`, `/apis/G/V`
pub(super) fn version(version: &ApiVersion, origin: Origin) -> Result<Bytes, Status> {
    if let Some(document) = version.document.get() {
        return Ok(document.clone());
    }
    let resources = version.resources().iter().flat_map(|endpoint| {
        let resource = &*endpoint.resource;
        let below = resource.subresources.iter().map(move |below| subresource(resource, below, origin));
        std::iter::once(main(endpoint, origin)).chain(below)
    });
    let document = json(&ResourceList {
        kind: "APIResourceList",
        // The oldest document of all comes without.
        api_version: (!version.version().group.is_empty()).then_some("v1"),
        group_version: version.version().to_string(),
        resources: resources.collect(),
    })?;
    Ok(version.document.get_or_init(|| document).clone())
}

fn main(endpoint: &Endpoint, origin: Origin) -> ApiResource<'_> {
    let resource = &*endpoint.resource;
    ApiResource {
        name: resource.names.plural.clone(),
        singular_name: &resource.names.singular,
        namespaced: resource.namespaced,
        group: "",
        version: "",
        kind: &resource.names.kind,
        verbs: main_verbs(endpoint, origin),
        short_names: &resource.names.short_names,
        categories: &resource.names.categories,
        storage_version_hash: &resource.storage_version_hash,
    }
}

fn subresource<'a>(resource: &'a Resource, below: &'a Subresource, origin: Origin) -> ApiResource<'a> {
    let foreign = below.kind.group_version() != resource.version;
    ApiResource {
        name: format!("{}/{}", resource.names.plural, below.name),
        singular_name: "",
        namespaced: resource.namespaced,
        group: if foreign { &below.kind.group } else { "" },
        version: if foreign { &below.kind.version } else { "" },
        kind: &below.kind.kind,
        verbs: verbs(&below.verbs, origin),
        short_names: &[],
        categories: &[],
        storage_version_hash: "",
    }
}
