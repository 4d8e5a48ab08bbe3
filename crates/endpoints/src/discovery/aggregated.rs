//! The document with everything in it.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA512, digest};
use bytes::Bytes;
use concord_codec::{Convert, MediaType};
use concord_meta::{GroupVersion, GroupVersionKind, Status};
use concord_registry::{Resource, Subresource};
use concord_server::Metrics;
use serde::Serialize;

use super::{
    legacy::{main_verbs, verbs},
    shown::{Shown, ShownGroup, ShownVersion},
};
use crate::{
    extensions::Extension,
    set::{ApiGroup, ApiVersion, Endpoint, Origin},
};

/// The version of the aggregated form. Both look the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    V2,
    V2Beta1,
}

impl Generation {
    /// The version that a client asks for, if that is what it asks for.
    pub(crate) fn of(convert: &Convert) -> Option<Self> {
        match (convert.group.as_str(), convert.version.as_str(), convert.kind.as_str()) {
            ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList") => Some(Self::V2),
            ("apidiscovery.k8s.io", "v2beta1", "APIGroupDiscoveryList") => Some(Self::V2Beta1),
            _ => None,
        }
    }

    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V2 => "apidiscovery.k8s.io/v2",
            Self::V2Beta1 => "apidiscovery.k8s.io/v2beta1",
        }
    }

    /// What the client asked for, in upstream's order of its words.
    pub(crate) fn content_type(self, media_type: MediaType) -> String {
        let version = if self == Self::V2 { "v2" } else { "v2beta1" };
        format!("{media_type};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList")
    }
}

/// The document in both versions, with the tag that changes when it does.
pub(crate) struct Aggregated {
    v2: Bytes,
    v2beta1: Bytes,
    /// With its quotes.
    pub(crate) etag: String,
}

impl Aggregated {
    pub(crate) fn bytes(&self, generation: Generation) -> &Bytes {
        match generation {
            Generation::V2 => &self.v2,
            Generation::V2Beta1 => &self.v2beta1,
        }
    }
}

#[derive(Serialize)]
struct GroupDiscovery<'a> {
    metadata: Metadata<'a>,
    versions: Vec<VersionDiscovery<'a>>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
}

#[derive(Serialize)]
struct VersionDiscovery<'a> {
    version: &'a str,
    resources: Vec<ResourceDiscovery<'a>>,
    freshness: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDiscovery<'a> {
    resource: &'a str,
    response_kind: ResponseKind<'a>,
    scope: &'static str,
    singular_resource: &'a str,
    verbs: Vec<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<SubresourceDiscovery<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceDiscovery<'a> {
    subresource: &'a str,
    response_kind: ResponseKind<'a>,
    verbs: Vec<&'static str>,
}

/// Empty where it is that of the list it stands in.
#[derive(Serialize)]
struct ResponseKind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

/// The document about the core group, or about all others.
///
/// # Errors
///
/// 500, which would be a mistake here.
pub(crate) fn document<'a>(
    shown: &'a Shown,
    core: bool,
    metrics: &Metrics,
) -> Result<&'a Aggregated, Status> {
    let kept = &shown.documents.aggregated[usize::from(!core)];
    if let Some(document) = kept.get() {
        return Ok(document);
    }
    metrics.peers().aggregated();
    let meant = shown.groups.iter().filter(|group| group.name.is_empty() == core);
    let items: Result<Vec<Bytes>, Status> = meant.map(item).collect();
    let items = items?.iter().map(|item| &item[..]).collect::<Vec<_>>().join(&b","[..]);
    let whole = |generation: Generation| {
        let begin = format!(
            "{{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"{}\",\"metadata\":{{}},\"items\":[",
            generation.api_version()
        );
        Bytes::from([begin.as_bytes(), items.as_slice(), b"]}\n"].concat())
    };
    let document =
        Aggregated { v2: whole(Generation::V2), v2beta1: whole(Generation::V2Beta1), etag: etag(&items) };
    Ok(kept.get_or_init(|| document))
}

fn etag(content: &[u8]) -> String {
    let hash = digest(&SHA512, content);
    let mut tag = String::with_capacity(130);
    tag.push('"');
    for byte in hash.as_ref() {
        write!(tag, "{byte:02X}").expect("writing to a string cannot fail");
    }
    tag.push('"');
    tag
}

/// The entry of a group.
fn item(group: &ShownGroup) -> Result<Bytes, Status> {
    match &group.own {
        Some(own) => own_item(own).cloned(),
        None => shared_item(group),
    }
}

/// The entry of a group that is all this server's, kept with the group.
fn own_item(group: &ApiGroup) -> Result<&Bytes, Status> {
    if let Some(item) = group.aggregated.get() {
        return Ok(item);
    }
    let versions = group.versions().iter().map(|version| discovery(version, group.origin()));
    let entry = GroupDiscovery { metadata: Metadata { name: group.name() }, versions: versions.collect() };
    let item = to_json(&entry)?;
    Ok(group.aggregated.get_or_init(|| item.into()))
}

/// The entry of a group in which other servers have a part. What they say of their resources is passed on as it is.
fn shared_item(group: &ShownGroup) -> Result<Bytes, Status> {
    let mut versions = Vec::new();
    for version in &group.versions {
        versions.push(match version {
            ShownVersion::Own(of, at) => to_json(&discovery(ShownVersion::of(of, *at), of.origin()))?,
            ShownVersion::Extension(extension) => extension_version(extension)?,
        });
    }
    let metadata = to_json(&Metadata { name: &group.name })?;
    Ok([b"{\"metadata\":", &*metadata, b",\"versions\":[", &versions.join(&b","[..]), b"]}"].concat().into())
}

fn to_json(value: &impl Serialize) -> Result<Vec<u8>, Status> {
    serde_json::to_vec(value).map_err(Status::internal_error)
}

fn extension_version(extension: &Extension) -> Result<Vec<u8>, Status> {
    let version = to_json(&extension.version.version)?;
    let freshness: &[u8] = if extension.is_fresh { b"Current" } else { b"Stale" };
    let parts = [
        b"{\"version\":",
        &*version,
        b",\"resources\":",
        &extension.resources,
        b",\"freshness\":\"",
        freshness,
        b"\"}",
    ];
    Ok(parts.concat())
}

fn discovery(version: &ApiVersion, origin: Origin) -> VersionDiscovery<'_> {
    let resources = version.resources().iter().map(|endpoint| main(endpoint, origin));
    VersionDiscovery {
        version: &version.version().version,
        resources: resources.collect(),
        freshness: "Current",
    }
}

fn main(endpoint: &Endpoint, origin: Origin) -> ResourceDiscovery<'_> {
    let resource = &*endpoint.resource;
    let below = resource.subresources.iter().map(|below| subresource(resource, below, origin));
    ResourceDiscovery {
        resource: &resource.names.plural,
        response_kind: ResponseKind { group: "", version: "", kind: &resource.names.kind },
        scope: if resource.namespaced { "Namespaced" } else { "Cluster" },
        singular_resource: &resource.names.singular,
        verbs: main_verbs(endpoint, origin),
        short_names: &resource.names.short_names,
        categories: &resource.names.categories,
        subresources: below.collect(),
    }
}

fn subresource<'a>(
    resource: &'a Resource,
    below: &'a Subresource,
    origin: Origin,
) -> SubresourceDiscovery<'a> {
    SubresourceDiscovery {
        subresource: &below.name,
        response_kind: response_kind(&below.kind, &resource.version),
        verbs: verbs(&below.verbs, origin),
    }
}

fn response_kind<'a>(kind: &'a GroupVersionKind, parent: &GroupVersion) -> ResponseKind<'a> {
    let foreign = kind.group_version() != *parent;
    let (group, version) = if foreign { (&*kind.group, &*kind.version) } else { ("", "") };
    ResponseKind { group, version, kind: &kind.kind }
}
