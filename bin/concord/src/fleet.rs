//! This server among others on the same store.

use std::{sync::Arc, time::Duration};

use anyhow::ensure;
use clap::Args;
use concord_apis::FeatureGates;
use concord_fleet::{Fleet, FleetState, Settings};
use concord_registry::Resources;
use concord_store_sealed::Keyring;

use crate::{duration, host};

#[derive(Debug, Args)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct FleetOptions {
    /// Who this server is among those on the same store: the name of its lease in kube-system. Servers on one machine
    /// need one each. Default: made from the name of the machine, as kube-apiserver does.
    #[arg(long, value_name = "ID")]
    pub(crate) server_id: Option<String>,
    /// How long after its last sign of life a server is taken for gone.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration::parse)]
    pub(crate) identity_lease_duration: Duration,
    /// How often a server gives a sign of life.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub(crate) identity_lease_renew_interval: Duration,
}

/// The APIs that this server needs for a feature, which are alpha or beta and thus off unless something asks for them.
const NEEDED: [(&str, &str); 3] = [
    ("StorageVersionAPI", "internal.apiserver.k8s.io/v1alpha1"),
    ("StorageVersionMigrator", "storagemigration.k8s.io/v1beta1"),
    ("StorageVersionMigrator", "storagemigration.k8s.io/v1alpha1"),
];

/// What `--runtime-config` says, with the APIs that features need, unless it says something about those itself. Without its
/// feature nobody works on migrations: then they are not served, whatever it says.
pub(crate) fn runtime_config(asked: &[String], features: &FeatureGates) -> Vec<String> {
    let is_about = |pair: &str, api: &str| {
        let rest = pair.trim().strip_prefix(api);
        rest.is_some_and(|rest| rest.is_empty() || rest.trim_start().starts_with(['=', '/']))
    };
    let is_said = |api: &str| asked.iter().any(|pair| is_about(pair, api));
    let needed = NEEDED.iter().filter(|(feature, api)| features.enabled(feature) && !is_said(api));
    let useless = |pair: &&String| {
        let migrations = pair.trim().starts_with("storagemigration.k8s.io");
        migrations && !features.enabled("StorageVersionMigrator")
    };
    let said = asked.iter().filter(|pair| !useless(pair)).cloned();
    needed.map(|(_, api)| format!("{api}=true")).chain(said).collect()
}

/// This server's part in the fleet; `None` if it is not to have an identity.
pub(crate) fn new(
    options: &FleetOptions,
    prefix: String,
    features: &FeatureGates,
    keyring: Option<Arc<Keyring>>,
    state: &FleetState,
    resources: &dyn Resources,
) -> anyhow::Result<Option<Arc<Fleet>>> {
    if !features.enabled("APIServerIdentity") {
        return Ok(None);
    }
    let FleetOptions { server_id, identity_lease_duration, identity_lease_renew_interval } = options;
    ensure!(
        *identity_lease_renew_interval * 2 < *identity_lease_duration
            && !identity_lease_renew_interval.is_zero(),
        "--identity-lease-renew-interval must be less than half of --identity-lease-duration"
    );
    ensure!(identity_lease_duration.subsec_nanos() == 0, "--identity-lease-duration must be whole seconds");
    let defaults = Settings::default();
    let settings = Settings {
        hostname: host::name().unwrap_or_else(|| "localhost".to_owned()),
        server_id: server_id.clone(),
        register_versions: features.enabled("StorageVersionAPI"),
        keyring,
        prefix,
        lease_duration: *identity_lease_duration,
        renew_interval: *identity_lease_renew_interval,
        collect_interval: defaults.collect_interval.min(*identity_lease_duration / 4),
        ..defaults
    };
    Ok(Some(Fleet::new(settings, state, resources)?))
}

#[cfg(test)]
mod tests {
    use concord_apis::Release;

    use super::*;

    #[test]
    fn the_api_of_storage_versions_is_on_unless_it_is_turned_off() {
        let all = |asked: &[&str], gates: &[&str]| {
            let asked: Vec<String> = asked.iter().map(|pair| (*pair).to_owned()).collect();
            let features = FeatureGates::parse(Release::LATEST, Release::LATEST, gates).expect("gates");
            runtime_config(&asked, &features)
        };
        let on = "internal.apiserver.k8s.io/v1alpha1=true";
        let none = "StorageVersionMigrator=false";
        assert_eq!(all(&[], &[none]), [on]);
        assert_eq!(all(&["api/all=false"], &[none]), [on, "api/all=false"]);
        let off = "internal.apiserver.k8s.io/v1alpha1=false";
        assert_eq!(all(&[off], &[none]), [off]);
        assert_eq!(all(&["api/beta=true"], &["StorageVersionAPI=false", none]), ["api/beta=true"]);
        let migrations = ["storagemigration.k8s.io/v1beta1=true", "storagemigration.k8s.io/v1alpha1=true"];
        assert_eq!(all(&[], &[]), [on, migrations[0], migrations[1]]);
        assert_eq!(all(&["storagemigration.k8s.io/v1beta1=true"], &[none]), [on]);
        let newer = "storagemigration.k8s.io/v1=true";
        assert_eq!(all(&[newer], &[]), [on, migrations[0], migrations[1], newer], "the others as well");
        let off = ["storagemigration.k8s.io/v1beta1=false", "storagemigration.k8s.io/v1alpha1/x"];
        assert_eq!(all(&off, &[]), [on, off[0], off[1]]);
    }
}
