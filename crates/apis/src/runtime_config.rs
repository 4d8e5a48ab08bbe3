use std::collections::BTreeMap;

use concord_builtins::{Catalog, VersionFacts};

/// Which of the built-in group versions are served, as `--runtime-config` says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeConfig(BTreeMap<String, bool>);

/// Why a `--runtime-config` makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeConfigError {
    /// A value that is neither true nor false.
    #[error("invalid value {0}: only true and false are allowed")]
    Value(String),
    /// A group version that no release has.
    #[error(
        "unknown api groups or versions {0}: `concord serve --runtime-config=api/all=true` serves all there are"
    )]
    Unknown(String),
}

/// The levels that can be turned on and off as a whole.
const LEVELS: [&str; 4] = ["api/all", "api/ga", "api/beta", "api/alpha"];

impl RuntimeConfig {
    /// Reads `key=value` pairs; a key alone is turned on.
    ///
    /// # Errors
    ///
    /// See [`RuntimeConfigError`].
    pub fn parse<S: AsRef<str>>(pairs: &[S]) -> Result<Self, RuntimeConfigError> {
        let mut switches = BTreeMap::new();
        for pair in pairs.iter().map(AsRef::as_ref).filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, "true"));
            let on = match value {
                "true" | "" => true,
                "false" => false,
                _ => return Err(RuntimeConfigError::Value(pair.to_owned())),
            };
            let known = Catalog::v1_36().versions().any(|version| version.api_version() == key);
            if !known && !LEVELS.contains(&key) {
                return Err(RuntimeConfigError::Unknown(key.to_owned()));
            }
            switches.insert(key.to_owned(), on);
        }
        Ok(Self(switches))
    }

    /// Whether a group version is served: what names it counts most, then its level, then everything.
    pub(crate) fn enables(&self, version: &VersionFacts) -> bool {
        let level = match version.version {
            version if version.contains("alpha") => "api/alpha",
            version if version.contains("beta") => "api/beta",
            _ => "api/ga",
        };
        let said = [version.api_version().as_str(), level, "api/all"]
            .iter()
            .find_map(|key| self.0.get(*key))
            .copied();
        said.unwrap_or_else(|| version.enabled_by_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enabled(pairs: &[&str], group: &str, version: &str) -> bool {
        let config = RuntimeConfig::parse(pairs).expect("good");
        config.enables(Catalog::v1_36().version(group, version).expect("known"))
    }

    #[test]
    fn what_names_a_version_counts_more_than_its_level() {
        assert!(enabled(&[], "apps", "v1"));
        assert!(!enabled(&[], "internal.apiserver.k8s.io", "v1alpha1"));
        assert!(enabled(&["api/all=true"], "internal.apiserver.k8s.io", "v1alpha1"));
        assert!(!enabled(&["api/all=true", "api/alpha=false"], "internal.apiserver.k8s.io", "v1alpha1"));
        assert!(enabled(
            &["api/alpha=false", "internal.apiserver.k8s.io/v1alpha1"],
            "internal.apiserver.k8s.io",
            "v1alpha1"
        ));
        assert!(!enabled(&["apps/v1=false"], "apps", "v1"));
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(
            RuntimeConfig::parse(&["apps/v1=maybe"]),
            Err(RuntimeConfigError::Value("apps/v1=maybe".to_owned()))
        );
        assert_eq!(
            RuntimeConfig::parse(&["apps/v9"]),
            Err(RuntimeConfigError::Unknown("apps/v9".to_owned()))
        );
    }
}
