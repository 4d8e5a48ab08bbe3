//! The release of Kubernetes that a server is: the newest, or one that it emulates.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use concord_apis::{FeatureGates, Release};

use crate::cli::ApiOptions;

/// The component of upstream's that this program takes the place of. The flag may name it.
const COMPONENT: &str = "kube";

/// What a server is to be.
pub(crate) struct Emulation {
    pub(crate) release: Release,
    pub(crate) features: Arc<FeatureGates>,
}

impl Emulation {
    /// What `--emulated-version` and `--feature-gates` ask for.
    pub(crate) fn new(options: &ApiOptions) -> anyhow::Result<Self> {
        let release = emulated(&options.emulated_version).context("--emulated-version")?;
        let features = FeatureGates::parse(release, min_compatibility(release), &options.feature_gates);
        let features = features.context("--feature-gates")?;
        for name in features.without_effect(release, &options.feature_gates) {
            tracing::warn!("--feature-gates: nothing in this server depends on {name}");
        }
        Ok(Self { release, features: Arc::new(features) })
    }
}

/// The release that `--emulated-version` asks for: `1.33`, or `kube=1.33`.
///
/// # Errors
///
/// As upstream refuses it: not a release, another component, or one that this program cannot emulate.
fn emulated(values: &[String]) -> anyhow::Result<Release> {
    let mut asked: Option<Release> = None;
    for value in values.iter().map(|value| value.trim()).filter(|value| !value.is_empty()) {
        let (component, version) = value.split_once('=').unwrap_or((COMPONENT, value));
        if component.trim() != COMPONENT {
            bail!("component not registered: {component}");
        }
        let version = version.trim();
        let plain = version.trim_start_matches('v');
        if plain.matches('.').count() > 1 {
            bail!("patch version not allowed, got: {COMPONENT}={plain}");
        }
        let release: Release =
            plain.parse().with_context(|| format!("illegal version string {version:?}"))?;
        if let Some(before) = asked {
            bail!("duplicate version flag, {COMPONENT}={before} and {COMPONENT}={release}");
        }
        asked = Some(release);
    }
    let release = asked.unwrap_or(Release::LATEST);
    if !release.is_described() {
        let (oldest, latest) = (Release::OLDEST, Release::LATEST);
        bail!("emulation version {release} is not between [{oldest}, {latest}.0]");
    }
    Ok(release)
}

/// The oldest release that a server emulating this one shares a store with: the one before, if this program knows it.
pub(crate) fn min_compatibility(release: Release) -> Release {
    release.before().max(Release::OLDEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Result<String, String> {
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        emulated(&values).map(|release| release.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn releases_are_named_as_for_kube_apiserver() {
        for (values, release) in
            [(&[][..], "1.36"), (&["1.33"], "1.33"), (&["v1.34"], "1.34"), (&["kube=1.35"], "1.35")]
        {
            assert_eq!(read(values).as_deref(), Ok(release));
        }
        for (values, complaint) in [
            (&["1.32"][..], "emulation version 1.32 is not between [1.33, 1.36.0]"),
            (&["1.37"], "emulation version 1.37 is not between [1.33, 1.36.0]"),
            (&["etcd=1.33"], "component not registered: etcd"),
            (&["1.33.2"], "patch version not allowed, got: kube=1.33.2"),
            (&["1.33", "kube=1.34"], "duplicate version flag, kube=1.33 and kube=1.34"),
            (&["soon"], "illegal version string \"soon\""),
        ] {
            assert_eq!(read(values), Err(complaint.to_owned()));
        }
    }

    #[test]
    fn the_oldest_release_is_compatible_with_itself_alone() {
        let compatible = |text: &str| min_compatibility(text.parse().expect("a release")).to_string();
        assert_eq!(compatible("1.36"), "1.35");
        assert_eq!(compatible("1.33"), "1.33");
    }
}
