//! What is served.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    ops::Deref,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use concord_meta::GroupVersion;
use concord_printers::Printer;
use concord_registry::{Resource, Resources};

/// Everything that is served at one moment. It never changes: a new one shares with the old one the groups that
/// stayed the same, their cached documents included.
#[derive(Default)]
pub struct ApiSet {
    /// In the order of discovery.
    groups: Vec<Arc<ApiGroup>>,
    by_name: BTreeMap<String, usize>,
}

/// Where the resources of a group come from, which shows in the answers to requests that ask for what is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The server itself.
    BuiltIn,
    /// Custom resource definitions.
    Custom,
}

/// A group with its versions.
pub struct ApiGroup {
    name: String,
    priority: i32,
    origin: Origin,
    versions: Vec<ApiVersion>,
    /// The entry in the aggregated document, made when first asked for.
    pub(crate) aggregated: OnceLock<Bytes>,
}

/// A version of a group with its resources.
pub struct ApiVersion {
    version: GroupVersion,
    /// Sorted by their plural.
    resources: Vec<Endpoint>,
    by_plural: HashMap<String, usize>,
    /// The discovery document, made when first asked for.
    pub(crate) document: OnceLock<Bytes>,
}

/// A resource as it is served: with its columns.
#[derive(Clone)]
pub struct Endpoint {
    /// The resource.
    pub resource: Arc<Resource>,
    /// What its tables show.
    pub columns: Columns,
    /// Whether it is about to go: discovery does not tell how to write what is being deleted. Whoever does so anyway is
    /// answered by the registry.
    pub is_terminating: bool,
}

/// What prints the tables of a resource.
#[derive(Clone)]
pub enum Columns {
    /// One that the program contains.
    Fixed(&'static dyn Printer),
    /// One that was made at run time.
    Shared(Arc<dyn Printer>),
}

impl Default for Columns {
    /// Name and time of creation.
    fn default() -> Self {
        Self::Fixed(concord_printers::printer("", "", ""))
    }
}

impl Deref for Columns {
    type Target = dyn Printer;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Fixed(printer) => *printer,
            Self::Shared(printer) => &**printer,
        }
    }
}

impl From<Arc<Resource>> for Endpoint {
    /// With the columns that every kind has.
    fn from(resource: Arc<Resource>) -> Self {
        Self { resource, columns: Columns::default(), is_terminating: false }
    }
}

impl ApiSet {
    /// A set of these groups. Of several with one name the last counts.
    pub fn new(groups: impl IntoIterator<Item = Arc<ApiGroup>>) -> Self {
        let by_name: BTreeMap<_, _> = groups.into_iter().map(|group| (group.name.clone(), group)).collect();
        let mut groups: Vec<_> = by_name.into_values().collect();
        // Stable, so that equals stay sorted by name.
        groups.sort_by_key(|group| Reverse(group.priority));
        let by_name = groups.iter().enumerate().map(|(at, group)| (group.name.clone(), at)).collect();
        Self { groups, by_name }
    }

    /// This set with one group added or replaced.
    #[must_use]
    pub fn with_group(&self, group: Arc<ApiGroup>) -> Self {
        Self::new(self.groups.iter().cloned().chain([group]))
    }

    /// This set without a group.
    #[must_use]
    pub fn without_group(&self, name: &str) -> Self {
        Self::new(self.groups.iter().filter(|group| group.name != name).cloned())
    }

    /// The groups in the order of discovery.
    pub fn groups(&self) -> &[Arc<ApiGroup>] {
        &self.groups
    }

    /// The group of that name; the core group's is empty.
    pub fn group(&self, name: &str) -> Option<&Arc<ApiGroup>> {
        self.by_name.get(name).map(|at| &self.groups[*at])
    }

    /// Every path that the index of the server lists, sorted.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = vec!["/apis".to_owned(), "/apis/".to_owned()];
        for group in &self.groups {
            let root = match group.name.as_str() {
                "" => "/api".to_owned(),
                name => format!("/apis/{name}"),
            };
            paths.extend(group.versions.iter().map(|version| format!("{root}/{}", version.version.version)));
            paths.push(root);
        }
        paths.sort();
        paths
    }
}

impl Resources for ApiSet {
    fn find(&self, version: &GroupVersion, plural: &str) -> Option<Arc<Resource>> {
        let version = self.group(&version.group)?.version(&version.version)?;
        version.resource(plural).map(|endpoint| Arc::clone(&endpoint.resource))
    }

    fn all(&self) -> Vec<Arc<Resource>> {
        let versions = self.groups.iter().flat_map(|group| group.versions());
        let endpoints = versions.flat_map(|version| version.resources());
        endpoints.map(|endpoint| Arc::clone(&endpoint.resource)).collect()
    }
}

impl ApiGroup {
    /// A group with its versions, the preferred one first. Groups of a higher priority come first in discovery,
    /// those of the same one by name.
    pub fn new(
        name: impl Into<String>,
        priority: i32,
        origin: Origin,
        versions: impl IntoIterator<Item = ApiVersion>,
    ) -> Self {
        Self {
            name: name.into(),
            priority,
            origin,
            versions: versions.into_iter().collect(),
            aggregated: OnceLock::new(),
        }
    }

    /// The name; empty for the core group.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its place among the groups.
    pub(crate) fn priority(&self) -> i32 {
        self.priority
    }

    /// Where its resources come from.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The versions, the preferred one first.
    pub fn versions(&self) -> &[ApiVersion] {
        &self.versions
    }

    /// The version of that name, such as `v1`.
    pub fn version(&self, name: &str) -> Option<&ApiVersion> {
        self.versions.iter().find(|version| version.version.version == name)
    }
}

impl ApiVersion {
    /// A version with its resources, in any order.
    pub fn new(version: GroupVersion, resources: impl IntoIterator<Item = Endpoint>) -> Self {
        let mut resources: Vec<Endpoint> = resources.into_iter().collect();
        resources.sort_by(|a, b| a.resource.names.plural.cmp(&b.resource.names.plural));
        let by_plural = resources.iter().enumerate();
        let by_plural =
            by_plural.map(|(at, endpoint)| (endpoint.resource.names.plural.clone(), at)).collect();
        Self { version, resources, by_plural, document: OnceLock::new() }
    }

    /// Group and version.
    pub fn version(&self) -> &GroupVersion {
        &self.version
    }

    /// The resources, sorted by their plural.
    pub fn resources(&self) -> &[Endpoint] {
        &self.resources
    }

    /// The resource of that plural.
    pub fn resource(&self, plural: &str) -> Option<&Endpoint> {
        self.by_plural.get(plural).map(|at| &self.resources[*at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, priority: i32, versions: &[&str]) -> Arc<ApiGroup> {
        let versions = versions.iter().map(|version| ApiVersion::new(GroupVersion::new(name, *version), []));
        Arc::new(ApiGroup::new(name, priority, Origin::BuiltIn, versions))
    }

    fn names(set: &ApiSet) -> Vec<&str> {
        set.groups().iter().map(|group| group.name()).collect()
    }

    #[test]
    fn groups_are_ordered_by_priority_and_name() {
        let set = ApiSet::new([
            group("b", 1, &["v1"]),
            group("", 9, &["v1"]),
            group("a", 1, &[]),
            group("z", 5, &[]),
        ]);
        assert_eq!(names(&set), ["", "z", "a", "b"]);
        assert_eq!(set.group("z").map(|group| group.name()), Some("z"));
        assert!(set.group("y").is_none());
    }

    #[test]
    fn a_change_of_one_group_leaves_the_others_as_they_are() {
        let set = ApiSet::new([group("a", 1, &["v1"]), group("b", 1, &["v1"])]);
        let changed = set.with_group(group("b", 7, &["v2", "v1"]));
        assert_eq!(names(&changed), ["b", "a"]);
        assert!(Arc::ptr_eq(set.group("a").expect("a"), changed.group("a").expect("a")));
        assert!(changed.group("b").and_then(|group| group.version("v2")).is_some());
        assert_eq!(names(&changed.without_group("b")), ["a"]);
    }

    #[test]
    fn the_index_lists_every_group_and_version() {
        let set = ApiSet::new([group("", 9, &["v1"]), group("apps", 1, &["v1", "v1beta1"])]);
        let expected =
            ["/api", "/api/v1", "/apis", "/apis/", "/apis/apps", "/apis/apps/v1", "/apis/apps/v1beta1"];
        assert_eq!(set.paths(), expected);
    }
}
