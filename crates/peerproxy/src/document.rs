//! Discovery documents, as servers send them to each other.

use std::collections::{HashMap, HashSet};

use concord_codec::{Limits, decode_value};
use concord_meta::GroupVersion;
use serde::{Deserialize, Deserializer, Serialize};

/// A group in the aggregated document. Fields stand in the order in which kube-apiserver writes them: the tag of a document
/// is a hash of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Where its name is.
    #[serde(default, deserialize_with = "or_default")]
    pub metadata: Metadata,
    /// The preferred one first.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<Version>,
}

/// Of the metadata of a group only the name counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// The group's name; empty for core.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// A version of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Such as `v1`.
    pub version: String,
    /// What is served in it.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// `Current` or `Stale`.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub freshness: String,
}

/// A resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// The plural.
    pub resource: String,
    /// The kind of its objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_kind: Option<Kind>,
    /// `Cluster` or `Namespaced`.
    #[serde(default, deserialize_with = "or_default")]
    pub scope: String,
    /// The singular.
    #[serde(default, deserialize_with = "or_default")]
    pub singular_resource: String,
    /// What can be done with it.
    #[serde(default, deserialize_with = "or_default")]
    pub verbs: Vec<String>,
    /// What it is called for short.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub short_names: Vec<String>,
    /// What it is one of, such as `all`.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// What is below its objects.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub subresources: Vec<Subresource>,
}

/// A subresource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subresource {
    /// Its name, such as `status`.
    pub subresource: String,
    /// The kind of what is sent and received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_kind: Option<Kind>,
    /// Further kinds that are taken.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub accepted_types: Vec<Kind>,
    /// What can be done with it.
    #[serde(default, deserialize_with = "or_default")]
    pub verbs: Vec<String>,
}

/// A kind with its group and version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    /// The group.
    #[serde(default, deserialize_with = "or_default")]
    pub group: String,
    /// The version.
    #[serde(default, deserialize_with = "or_default")]
    pub version: String,
    /// The kind.
    #[serde(default, deserialize_with = "or_default")]
    pub kind: String,
}

/// Go writes lists that are not there as `null`.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List {
    kind: String,
    api_version: String,
    #[serde(default, deserialize_with = "or_default")]
    items: Vec<Group>,
}

/// Why a document cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// It is not JSON, or nests too deep.
    #[error("the document is not JSON: {0}")]
    Json(String),
    /// It is JSON, but not of the right shape.
    #[error("the document is not aggregated discovery: {0}")]
    Shape(String),
    /// It is a document of another kind.
    #[error("the document is a {kind} of {api_version:?}")]
    Kind {
        /// The kind.
        kind: String,
        /// Its group and version.
        api_version: String,
    },
}

/// How long a document may be; one of a server with a thousand custom resources has one megabyte.
pub const MAX_DOCUMENT_BYTES: usize = 16 * 1024 * 1024;

/// Reads the groups of an aggregated document.
///
/// # Errors
///
/// [`DocumentError`].
pub fn parse_groups(body: &[u8]) -> Result<Vec<Group>, DocumentError> {
    let limits = Limits { max_bytes: MAX_DOCUMENT_BYTES, ..Limits::default() };
    let value = decode_value(body, limits).map_err(|error| DocumentError::Json(error.to_string()))?;
    let list: List =
        serde_json::from_value(value).map_err(|error| DocumentError::Shape(error.to_string()))?;
    match (list.kind.as_str(), list.api_version.as_str()) {
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2") => Ok(list.items),
        _ => Err(DocumentError::Kind { kind: list.kind, api_version: list.api_version }),
    }
}

impl Group {
    /// Its name; empty for core.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }
}

impl Version {
    /// Whether the server that sent it knows it only from hearsay.
    pub fn is_stale(&self) -> bool {
        self.freshness == "Stale"
    }
}

/// What a request asks a server to be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The group; empty for core.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The plural.
    pub resource: &'a str,
    /// The subresource, if one is asked for.
    pub subresource: &'a str,
    /// The verb; empty if it is none that discovery speaks of.
    pub verb: &'a str,
}

/// How much of what is wanted a server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Has {
    /// The resource is not known.
    Nothing,
    /// The resource is known, the subresource is not.
    Resource,
    /// Everything but the verb.
    Endpoint,
    /// All of it.
    Everything,
}

type Verbs = HashSet<String>;

/// Everything one server says that it serves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    core: Vec<Group>,
    /// All groups but core, in the server's order.
    groups: Vec<Group>,
    /// What can be asked for, by group and version, then by resource, then by subresource.
    index: HashMap<GroupVersion, HashMap<String, HashMap<String, Verbs>>>,
}

impl Document {
    /// A document of the core group and of all others. Of several groups with one name the first counts.
    pub fn new(core: Vec<Group>, groups: Vec<Group>) -> Self {
        let mut seen = HashSet::new();
        let mut named = groups;
        named.retain(|group| !group.name().is_empty() && seen.insert(group.name().to_owned()));
        let mut core = core;
        core.retain(|group| group.name().is_empty());
        core.truncate(1);
        let mut document = Self::default();
        core.iter().chain(&named).for_each(|group| document.add(group));
        Self { core, groups: named, ..document }
    }

    fn add(&mut self, group: &Group) {
        for version in group.versions.iter().filter(|version| !version.is_stale()) {
            let place = self.index.entry(GroupVersion::new(group.name(), &version.version)).or_default();
            for resource in &version.resources {
                let verbs = |verbs: &[String]| verbs.iter().cloned().collect::<Verbs>();
                let endpoints = place.entry(resource.resource.clone()).or_default();
                endpoints.insert(String::new(), verbs(&resource.verbs));
                for below in &resource.subresources {
                    endpoints.insert(below.subresource.clone(), verbs(&below.verbs));
                }
            }
        }
    }

    /// The core group.
    pub fn core(&self) -> &[Group] {
        &self.core
    }

    /// All groups but core, in the server's order.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Whether anything of a group-version can be asked for.
    pub fn has_version(&self, version: &GroupVersion) -> bool {
        self.index.contains_key(version)
    }

    /// How much the server has of what is wanted.
    pub fn has(&self, wanted: &Wanted<'_>) -> Has {
        let version = GroupVersion::new(wanted.group, wanted.version);
        let Some(endpoints) = self.index.get(&version).and_then(|place| place.get(wanted.resource)) else {
            return Has::Nothing;
        };
        match endpoints.get(wanted.subresource) {
            None => Has::Resource,
            Some(verbs) if wanted.verb.is_empty() || verbs.contains(wanted.verb) => Has::Everything,
            Some(_) => Has::Endpoint,
        }
    }

    /// Whether any of these group-versions stands in it, also without resources.
    pub fn mentions(&self, is_meant: impl Fn(&GroupVersion) -> bool) -> bool {
        let listed = self.groups.iter().flat_map(|group| {
            group.versions.iter().map(|version| GroupVersion::new(group.name(), &version.version))
        });
        self.index.keys().any(&is_meant) || listed.into_iter().any(|version| is_meant(&version))
    }

    /// The document without some group-versions; groups that are left empty are gone.
    #[must_use]
    pub fn without(&self, is_meant: impl Fn(&GroupVersion) -> bool) -> Self {
        let mut groups = self.groups.clone();
        for group in &mut groups {
            let name = group.name().to_owned();
            group.versions.retain(|version| !is_meant(&GroupVersion::new(name.as_str(), &version.version)));
        }
        groups.retain(|group| !group.versions.is_empty());
        let mut index = self.index.clone();
        index.retain(|version, _| !is_meant(version));
        Self { core: self.core.clone(), groups, index }
    }
}

#[cfg(test)]
mod tests;
