//! The admission plugins that an operator turns on.

use std::sync::Arc;

use anyhow::ensure;
use clap::Args;
use concord_plugins::OwnerReferencesPermissionEnforcement;
use concord_registry::Admission as _;
use concord_server::Authorizer;

/// Those that are always on, by upstream's names.
const ALWAYS: [&str; 17] = [
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "LimitRanger",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceLifecycle",
    "PersistentVolumeClaimResize",
    "Priority",
    "RuntimeClass",
    "ServiceAccount",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

#[derive(Debug, Args)]
#[command(next_help_heading = "Admission")]
pub(crate) struct PluginOptions {
    /// Admission plugins to turn on besides those that always are, separated by commas:
    /// OwnerReferencesPermissionEnforcement.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) enable_admission_plugins: Vec<String>,
}

impl PluginOptions {
    /// The plugin about owner references, if it is turned on.
    pub(crate) fn owner_references(
        &self,
        authorizer: &Arc<dyn Authorizer>,
    ) -> anyhow::Result<Option<Arc<OwnerReferencesPermissionEnforcement>>> {
        let plugin = OwnerReferencesPermissionEnforcement::new(authorizer.clone());
        let is_asked = |name: &str| name == plugin.name();
        for name in &self.enable_admission_plugins {
            let known = is_asked(name) || ALWAYS.contains(&name.as_str());
            ensure!(known, "enable-admission-plugins plugin {name:?} is unknown");
        }
        let asked = self.enable_admission_plugins.iter().any(|name| is_asked(name));
        Ok(asked.then(|| Arc::new(plugin)))
    }
}
