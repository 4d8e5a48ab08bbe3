//! What API groups, versions, kinds and resources are called, and which version is preferred.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A string that is no `group/version`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unexpected GroupVersion string: {0}")]
pub struct InvalidGroupVersion(pub String);

/// A group and one of its versions; the core group's name is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersion {
    /// The group, empty for core.
    pub group: String,
    /// The version, such as `v1beta1`.
    pub version: String,
}

/// A resource (lower-case plural) of a group, whatever the version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    /// The group, empty for core.
    pub group: String,
    /// The resource, such as `pods`.
    pub resource: String,
}

/// A kind of a group, whatever the version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    /// The group, empty for core.
    pub group: String,
    /// The kind, such as `Pod`.
    pub kind: String,
}

/// What the `apiVersion` and `kind` of an object say together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    /// The group, empty for core.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The kind, such as `Pod`.
    pub kind: String,
}

/// What the path of a request names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionResource {
    /// The group, empty for core.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The resource, such as `pods`.
    pub resource: String,
}

impl GroupVersion {
    /// The version `version` of `group`.
    pub fn new(group: impl Into<String>, version: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into() }
    }

    /// A kind of this group and version.
    #[must_use]
    pub fn with_kind(&self, kind: &str) -> GroupVersionKind {
        GroupVersionKind::new(self.group.as_str(), self.version.as_str(), kind)
    }

    /// A resource of this group and version.
    #[must_use]
    pub fn with_resource(&self, resource: &str) -> GroupVersionResource {
        GroupVersionResource::new(self.group.as_str(), self.version.as_str(), resource)
    }
}

impl FromStr for GroupVersion {
    type Err = InvalidGroupVersion;

    /// Reads an `apiVersion`. The empty string and `/` are the empty group and version.
    fn from_str(text: &str) -> Result<Self, InvalidGroupVersion> {
        match text.split_once('/') {
            None => Ok(Self::new("", text)),
            Some((_, version)) if version.contains('/') => Err(InvalidGroupVersion(text.to_owned())),
            Some((group, version)) => Ok(Self::new(group, version)),
        }
    }
}

/// The form of an `apiVersion`: `apps/v1`, or `v1` for core.
impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_str() {
            "" => f.write_str(&self.version),
            group => write!(f, "{group}/{}", self.version),
        }
    }
}

impl GroupResource {
    /// The resource `resource` of `group`.
    pub fn new(group: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }

    /// Whether neither a group nor a resource is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.group.is_empty() && self.resource.is_empty()
    }

    /// This resource in one version.
    #[must_use]
    pub fn with_version(&self, version: &str) -> GroupVersionResource {
        GroupVersionResource::new(self.group.as_str(), version, self.resource.as_str())
    }

    /// Reads `resource.group`; without a dot it is a core resource.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        Self::new(group, resource)
    }
}

/// `deployments.apps`, or `pods` for core.
impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        dotted(f, &self.resource, &self.group)
    }
}

impl GroupKind {
    /// The kind `kind` of `group`.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }

    /// This kind in one version.
    #[must_use]
    pub fn with_version(&self, version: &str) -> GroupVersionKind {
        GroupVersionKind::new(self.group.as_str(), version, self.kind.as_str())
    }

    /// Reads `Kind.group`; without a dot it is a core kind.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        Self::new(group, kind)
    }
}

/// `Deployment.apps`, or `Pod` for core.
impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        dotted(f, &self.kind, &self.group)
    }
}

fn dotted(f: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    match group {
        "" => f.write_str(name),
        group => write!(f, "{name}.{group}"),
    }
}

impl GroupVersionKind {
    /// The kind `kind` of `version` of `group`.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// What the two members of an object say.
    ///
    /// # Errors
    ///
    /// When `api_version` has more than one slash.
    pub fn from_api_version(api_version: &str, kind: &str) -> Result<Self, InvalidGroupVersion> {
        Ok(api_version.parse::<GroupVersion>()?.with_kind(kind))
    }

    /// The group and version, whose text is the object's `apiVersion`.
    #[must_use]
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(self.group.as_str(), self.version.as_str())
    }

    /// The kind without its version.
    #[must_use]
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.group.as_str(), self.kind.as_str())
    }
}

/// The form upstream logs and puts in messages: `apps/v1, Kind=Deployment`, `/v1, Kind=Pod`.
impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

impl GroupVersionResource {
    /// The resource `resource` of `version` of `group`.
    pub fn new(group: impl Into<String>, version: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), resource: resource.into() }
    }

    /// The group and version.
    #[must_use]
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(self.group.as_str(), self.version.as_str())
    }

    /// The resource without its version.
    #[must_use]
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(self.group.as_str(), self.resource.as_str())
    }
}

/// The form upstream logs and puts in messages: `apps/v1, Resource=deployments`.
impl fmt::Display for GroupVersionResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Resource={}", self.group, self.version, self.resource)
    }
}

/// The order of preference among the versions of a group: the greatest is served first.
///
/// Generally available versions are greater than betas, betas than alphas; among equals the higher
/// number wins. Names of another form are less than all of those, the alphabetically first one
/// greatest among them.
///
/// ```
/// let mut versions = vec!["foo1", "v1alpha1", "v1", "v1beta2", "v10", "v2", "v11alpha2"];
/// versions.sort_by(|a, b| concord_meta::compare_kube_aware_versions(b, a));
/// assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v11alpha2", "v1alpha1", "foo1"]);
/// ```
#[must_use]
pub fn compare_kube_aware_versions(a: &str, b: &str) -> Ordering {
    match (KubeVersion::parse(a), KubeVersion::parse(b)) {
        // `v1` and `v01` are equally preferred but not the same name.
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => b.cmp(a),
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct KubeVersion {
    stability: Stability,
    major: i64,
    minor: i64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Alpha,
    Beta,
    GenerallyAvailable,
}

impl KubeVersion {
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v')?;
        let (major, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let (stability, minor) = match rest {
            "" => (Stability::GenerallyAvailable, "0"),
            rest => match rest.strip_prefix("alpha") {
                Some(minor) => (Stability::Alpha, minor),
                None => (Stability::Beta, rest.strip_prefix("beta")?),
            },
        };
        let unsigned = |text: &str| text.parse().ok().filter(|_| !text.starts_with(['+', '-']));
        Some(Self { stability, major: unsigned(major)?, minor: unsigned(minor)? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_written_and_read_as_upstream_does() {
        for text in ["v1", "apps/v1", "rbac.authorization.k8s.io/v1beta1", ""] {
            assert_eq!(text.parse::<GroupVersion>().expect(text).to_string(), text);
        }
        assert_eq!("/".parse(), Ok(GroupVersion::default()));
        let error = "a/b/c".parse::<GroupVersion>().expect_err("two slashes").to_string();
        assert_eq!(error, "unexpected GroupVersion string: a/b/c");
        for (text, group, name) in [("pods", "", "pods"), ("foos.example.com", "example.com", "foos")] {
            assert_eq!(GroupResource::parse(text), GroupResource::new(group, name));
            assert_eq!(GroupResource::new(group, name).to_string(), text);
            assert_eq!(GroupKind::parse(text), GroupKind::new(group, name));
            assert_eq!(GroupKind::new(group, name).to_string(), text);
        }
        let apps = GroupVersion::new("apps", "v1");
        assert_eq!(apps.with_kind("Deployment").to_string(), "apps/v1, Kind=Deployment");
        assert_eq!(apps.with_resource("deployments").to_string(), "apps/v1, Resource=deployments");
        assert_eq!(GroupVersionKind::new("", "v1", "Pod").to_string(), "/v1, Kind=Pod");
        assert!(GroupVersionKind::from_api_version("a/b/c", "K").is_err());
    }

    #[test]
    fn versions_are_preferred_as_upstream_prefers_them() {
        let order =
            ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"];
        for (at, greater) in order.iter().enumerate() {
            for less in &order[at + 1..] {
                assert_eq!(compare_kube_aware_versions(greater, less), Ordering::Greater, "{greater} {less}");
                assert_eq!(compare_kube_aware_versions(less, greater), Ordering::Less, "{less} {greater}");
            }
        }
        // No kube-like versions: they are less than any that is.
        for odd in ["", "v", "v1beta", "v1gamma1", "1", "V1", "v1beta1x", "v-1", "v99999999999999999999"] {
            assert_eq!(compare_kube_aware_versions(odd, "v1alpha1"), Ordering::Less, "{odd}");
        }
    }

    proptest! {
        #[test]
        fn the_order_of_versions_is_total(versions in prop::collection::vec("v?[0-9]{0,2}(alpha|beta)?[0-9]?", 3)) {
            let compare = |a: usize, b: usize| compare_kube_aware_versions(&versions[a], &versions[b]);
            prop_assert_eq!(compare(0, 1), compare(1, 0).reverse());
            if compare(0, 1).is_ge() && compare(1, 2).is_ge() {
                prop_assert!(compare(0, 2).is_ge());
            }
        }
    }
}
