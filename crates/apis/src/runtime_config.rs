use std::collections::BTreeMap;

use concord_builtins::{Catalog, Release, ResourceFacts, VersionFacts};

/// Which of the built-in APIs are served, as `--runtime-config` says it: levels, group versions, and resources of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeConfig(BTreeMap<String, bool>);

/// Why a `--runtime-config` makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeConfigError {
    /// A level that is turned neither on nor off.
    #[error("invalid value {0}")]
    Level(String),
    /// A value that is neither true nor false.
    #[error("invalid value of {0}: {1}, err: strconv.ParseBool: parsing {1:?}: invalid syntax")]
    Value(String, String),
    /// A key that names nothing.
    #[error("runtime-config invalid key {0}")]
    Key(String),
    /// A resource that is not written as resources are.
    #[error("invalid key {0}: group/version/resource and resource is always lowercase plural, not {1:?}")]
    Resource(String, String),
    /// A group that no release has.
    #[error("unknown api groups {0}")]
    UnknownGroup(String),
    /// A version that no release has of its group.
    #[error("group version {0} that has not been registered")]
    UnknownVersion(String),
    /// Nothing would be served.
    #[error("invalid runtime-config with only api/all=false")]
    Nothing,
}

/// The levels that can be turned on and off as a whole, what counts more later.
const LEVELS: [&str; 4] = ["api/all", "api/ga", "api/beta", "api/alpha"];

impl RuntimeConfig {
    /// Reads `key=value` pairs; a group version or resource alone is turned on.
    ///
    /// # Errors
    ///
    /// See [`RuntimeConfigError`].
    pub fn parse<S: AsRef<str>>(pairs: &[S]) -> Result<Self, RuntimeConfigError> {
        let mut switches = BTreeMap::new();
        for pair in pairs.iter().map(AsRef::as_ref).filter(|pair| !pair.is_empty()) {
            let (key, value) =
                pair.split_once('=').map_or((pair, ""), |(key, value)| (key.trim(), value.trim()));
            if LEVELS.contains(&key) {
                let on = level(value).ok_or_else(|| RuntimeConfigError::Level(format!("{key}={value}")))?;
                switches.insert(key.to_owned(), on);
                continue;
            }
            check_key(key)?;
            let on =
                boolean(value).ok_or_else(|| RuntimeConfigError::Value(key.to_owned(), value.to_owned()))?;
            switches.insert(key.trim_start_matches('/').to_owned(), on);
        }
        if switches.len() == 1 && switches.get("api/all") == Some(&false) {
            return Err(RuntimeConfigError::Nothing);
        }
        Ok(Self(switches))
    }

    /// Whether a resource of a group version is served: what names it counts most, then its version, then the level of
    /// that, then everything.
    pub(crate) fn enables(&self, version: &VersionFacts, resource: &ResourceFacts) -> bool {
        let level = match version.version {
            version if version.contains("alpha") => "api/alpha",
            version if version.contains("beta") => "api/beta",
            _ => "api/ga",
        };
        let api_version = version.api_version();
        let keys = [&format!("{api_version}/{}", resource.plural), &api_version, level, "api/all"];
        // Levels mean what upstream has at them.
        let meant = if version.is_ahead { &keys[..2] } else { &keys[..] };
        let said = meant.iter().find_map(|key| self.0.get(*key)).copied();
        said.unwrap_or_else(|| version.enabled_by_default())
    }
}

/// Levels are spelled out.
fn level(value: &str) -> Option<bool> {
    match value {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// As Go reads a boolean; nothing is true.
fn boolean(value: &str) -> Option<bool> {
    match value {
        "" | "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Whether a key is that of a group version, or of a resource in one: of any release, so that a fleet of several can be
/// started with the same flags. The core group has no name: `v1`, or `/v1`, and `/v1/pods`.
fn check_key(key: &str) -> Result<(), RuntimeConfigError> {
    let (group, version, resource) = match *key.split('/').collect::<Vec<_>>() {
        [version] if version == "v1" => ("", version, None),
        [group, version] => (group, version, None),
        [group, version, resource] => (group, version, Some(resource)),
        _ => return Err(RuntimeConfigError::Key(key.to_owned())),
    };
    let catalogs = || Release::all().map(Catalog::of);
    if !catalogs().any(|catalog| catalog.groups().iter().any(|facts| facts.name == group)) {
        return Err(RuntimeConfigError::UnknownGroup(format!("{group}/{version}")));
    }
    if !catalogs().any(|catalog| catalog.version(group, version).is_some()) {
        return Err(RuntimeConfigError::UnknownVersion(format!("{group}/{version}")));
    }
    match resource {
        Some(resource) if resource.to_lowercase() != resource => {
            Err(RuntimeConfigError::Resource(key.to_owned(), resource.to_owned()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enabled(pairs: &[&str], group: &str, version: &str, plural: &str) -> bool {
        let config = RuntimeConfig::parse(pairs).expect("good");
        let version = Catalog::latest().version(group, version).expect("known");
        let resource = version.resources.iter().find(|facts| facts.plural == plural).expect("known");
        config.enables(version, resource)
    }

    #[test]
    fn what_names_a_resource_counts_more_than_its_version_and_that_more_than_its_level() {
        let internal =
            |pairs: &[&str]| enabled(pairs, "internal.apiserver.k8s.io", "v1alpha1", "storageversions");
        let apps = |pairs: &[&str]| enabled(pairs, "apps", "v1", "deployments");
        assert!(apps(&[]) && !internal(&[]));
        assert!(internal(&["api/all=true"]));
        assert!(!internal(&["api/all=true", "api/alpha=false"]));
        assert!(internal(&["api/alpha=false", "internal.apiserver.k8s.io/v1alpha1"]));
        assert!(internal(&["internal.apiserver.k8s.io/v1alpha1/storageversions=true"]));
        assert!(!internal(&["api/beta=true"]));
        assert!(!apps(&["apps/v1=false"]) && !apps(&["api/ga=false", "api/all=true"]));
        assert!(apps(&["apps/v1=0", "apps/v1/deployments=T"]));
        assert!(!apps(&["apps/v1/deployments=false"]) && apps(&["apps/v1/daemonsets=false"]));
        let migrations =
            |pairs: &[&str]| enabled(pairs, "storagemigration.k8s.io", "v1", "storageversionmigrations");
        assert!(!migrations(&[]) && !migrations(&["api/all=true", "api/ga=true"]), "1.36 does not have it");
        assert!(migrations(&["storagemigration.k8s.io/v1=true"]));
        for core in ["v1=false", "/v1=false", "/v1/pods=false"] {
            assert!(!enabled(&[core], "", "v1", "pods"), "{core}");
        }
    }

    #[test]
    fn nonsense_is_refused_as_upstream_refuses_it() {
        for (pair, complaint) in [
            ("api/all=maybe", "invalid value api/all=maybe"),
            ("api/all", "invalid value api/all="),
            (
                "apps/v1=maybe",
                "invalid value of apps/v1: maybe, err: strconv.ParseBool: parsing \"maybe\": invalid syntax",
            ),
            ("apps", "runtime-config invalid key apps"),
            ("a/b/c/d", "runtime-config invalid key a/b/c/d"),
            ("nowhere.io/v1", "unknown api groups nowhere.io/v1"),
            ("apps/v9", "group version apps/v9 that has not been registered"),
            (
                "apps/v1/Deployments",
                "invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase \
                 plural, not \"Deployments\"",
            ),
            ("api/all=false", "invalid runtime-config with only api/all=false"),
        ] {
            let error = RuntimeConfig::parse(&[pair]).expect_err(pair);
            assert_eq!(error.to_string(), complaint);
        }
        // Of another release than the newest one.
        assert!(RuntimeConfig::parse(&["storage.k8s.io/v1alpha1=true", "apps/v1/nosuchthings"]).is_ok());
    }
}
