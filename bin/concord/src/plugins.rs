//! The admission plugins, and which of them are on.

use std::{
    path::PathBuf,
    sync::{Arc, Weak},
};

use anyhow::ensure;
use clap::Args;
use concord_controllers::ResourceQuota;
use concord_meta::GroupVersion;
use concord_plugins::{
    AlwaysDeny, AlwaysPullImages, CertificateApproval, CertificateSigning, CertificateSubjectRestriction,
    ClusterTrustBundleAttest, DefaultIngressClass, DefaultStorageClass, DefaultTolerationSeconds,
    DenyServiceExternalIPs, LimitRanger, NodeRestriction, Objects, OwnerReferencesPermissionEnforcement,
    PersistentVolumeClaimResize, PodGroupProtection, PodGroupWorkloadExists, PodResizeValidator, PodSecurity,
    PodTopologyLabels, PolicyParameterAuthorization, Priority, ResourceClaimAuthorization, RuntimeClass,
    StorageObjectInUseProtection, TaintNodesByCondition,
};
use concord_registry::{Admission, Resources};
use concord_replica::Replica;
use concord_server::Authorizer;

use crate::{admission_config::AdmissionConfig, emulation::Emulation};

/// The plugin by whose name the one goes that applies policies and asks webhooks, in turns.
pub(crate) const MUTATING_WEBHOOK: &str = "MutatingAdmissionWebhook";

/// On unless they are turned off.
const ON: [&str; 25] = [
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "ClusterTrustBundleAttest",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "LimitRanger",
    "MutatingAdmissionPolicy",
    MUTATING_WEBHOOK,
    "NamespaceLifecycle",
    "PersistentVolumeClaimResize",
    "PodGroupProtection",
    "PodGroupWorkloadExists",
    "PodResizeValidator",
    "PodSecurity",
    "PodTopologyLabels",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

/// Off unless they are turned on. AlwaysAdmit does nothing, and what NamespaceExists does NamespaceLifecycle does, too.
const OFF: [&str; 7] = [
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "DenyServiceExternalIPs",
    "NamespaceExists",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
];

/// Those of kube-apiserver that there are none of here. They can only be turned off.
const ABSENT: [&str; 9] = [
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "JobValidation",
    "LimitPodHardAntiAffinityTopology",
    "NamespaceAutoProvision",
    "NodeDeclaredFeatureValidator",
    "PodNodeSelector",
    "PodTolerationRestriction",
];

#[derive(Debug, Args)]
#[command(next_help_heading = "Admission")]
pub(crate) struct PluginOptions {
    /// Admission plugins to turn on besides those that are on by default, separated by commas: AlwaysDeny,
    /// AlwaysPullImages, DenyServiceExternalIPs, NodeRestriction, OwnerReferencesPermissionEnforcement.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) enable_admission_plugins: Vec<String>,

    /// Admission plugins to turn off although they are on by default, separated by commas. They go by the names that
    /// kube-apiserver has for them.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) disable_admission_plugins: Vec<String>,

    /// File with the configuration of admission plugins: an AdmissionConfiguration. PodSecurity can be given defaults and
    /// exemptions.
    #[arg(long, value_name = "FILE")]
    pub(crate) admission_control_config_file: Option<PathBuf>,
}

impl PluginOptions {
    fn check(&self) -> anyhow::Result<()> {
        let (enabled, disabled) = (&self.enable_admission_plugins, &self.disable_admission_plugins);
        let is_here = |name: &str| ON.contains(&name) || OFF.contains(&name);
        for name in enabled {
            let absent = ABSENT.contains(&name.as_str());
            ensure!(!absent, "enable-admission-plugins plugin {name:?} is not supported");
            ensure!(is_here(name), "enable-admission-plugins plugin {name:?} is unknown");
        }
        for name in disabled {
            let known = is_here(name) || ABSENT.contains(&name.as_str());
            ensure!(known, "disable-admission-plugins plugin {name:?} is unknown");
        }
        let both: Vec<&str> =
            enabled.iter().filter(|name| disabled.contains(name)).map(String::as_str).collect();
        ensure!(
            both.is_empty(),
            "[{}] in enable-admission-plugins and disable-admission-plugins overlapped",
            both.join(" ")
        );
        Ok(())
    }

    /// Whether a plugin is on. What is no plugin of kube-apiserver always is.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        let is_among = |names: &[String]| names.iter().any(|other| other == name);
        let on = !OFF.contains(&name) || is_among(&self.enable_admission_plugins);
        on && !is_among(&self.disable_admission_plugins)
    }

    /// Leaves out what is turned off. What applies policies and asks webhooks knows by itself which of the two it does.
    pub(crate) fn retain(&self, admission: &mut Vec<Arc<dyn Admission>>) {
        admission.retain(|plugin| plugin.name() == MUTATING_WEBHOOK || self.is_on(plugin.name()));
    }
}

/// What plugins are made from.
pub(crate) struct Plugins<'a> {
    pub(crate) options: &'a PluginOptions,
    pub(crate) emulation: &'a Emulation,
    pub(crate) replica: &'a Arc<Replica>,
    pub(crate) resources: &'a dyn Resources,
    pub(crate) authorizer: &'a Arc<dyn Authorizer>,
}

/// What only refuses.
pub(crate) struct Judging {
    /// Before webhooks are asked.
    pub(crate) before: Vec<Arc<dyn Admission>>,
    /// After all others.
    pub(crate) last: Vec<Arc<dyn Admission>>,
    pub(crate) connected: Connected,
}

/// What has to be told what is served, once that is known.
pub(crate) struct Connected {
    owner_references: Arc<OwnerReferencesPermissionEnforcement>,
    parameters: Arc<PolicyParameterAuthorization>,
    quota: Arc<ResourceQuota>,
}

impl Connected {
    pub(crate) fn connect(&self, resources: &Weak<dyn Resources>) {
        self.owner_references.connect(resources.clone());
        self.parameters.connect(resources.clone());
        self.quota.connect(resources.clone());
    }
}

impl Plugins<'_> {
    fn objects(&self, group: &str, plural: &'static str) -> anyhow::Result<Objects> {
        Ok(Objects::new(self.replica, self.resources, group, plural)?)
    }

    /// What may change objects, in upstream's order; all of it is asked again after a webhook that changed one.
    pub(crate) fn changing(
        &self,
        service_accounts: Arc<dyn Admission>,
    ) -> anyhow::Result<Vec<Arc<dyn Admission>>> {
        let features = &self.emulation.features;
        let mut changing: Vec<Arc<dyn Admission>> = vec![
            Arc::new(LimitRanger::new(self.objects("", "limitranges")?)),
            service_accounts,
            Arc::new(NodeRestriction::new(self.objects("", "pods")?, self.objects("", "nodes")?)),
            Arc::new(TaintNodesByCondition),
            Arc::new(AlwaysPullImages),
            Arc::new(Priority::new(
                self.objects("scheduling.k8s.io", "priorityclasses")?,
                features.enabled("WorkloadAwarePreemption"),
            )),
            Arc::new(DefaultTolerationSeconds),
            Arc::new(DefaultStorageClass::new(self.objects("storage.k8s.io", "storageclasses")?)),
            Arc::new(StorageObjectInUseProtection::new(features.enabled("VolumeAttributesClass"))),
            Arc::new(RuntimeClass::new(self.objects("node.k8s.io", "runtimeclasses")?)),
            Arc::new(DefaultIngressClass::new(self.objects("networking.k8s.io", "ingressclasses")?)),
        ];
        if features.enabled("PodTopologyLabelsAdmission") {
            changing.push(Arc::new(PodTopologyLabels::new(self.objects("", "nodes")?)));
        }
        if features.enabled("GenericWorkload") {
            changing.push(Arc::new(PodGroupProtection));
        }
        self.options.retain(&mut changing);
        Ok(changing)
    }

    /// What only refuses, in upstream's order.
    pub(crate) fn judging(&self) -> anyhow::Result<Judging> {
        self.options.check()?;
        let config = AdmissionConfig::open(self.options.admission_control_config_file.as_ref())?;
        let (features, authorizer) = (&self.emulation.features, self.authorizer);
        let (namespaces, pods) = (self.objects("", "namespaces")?, self.objects("", "pods")?);
        let minor = u32::from(self.emulation.release.minor());
        let owner_references = Arc::new(OwnerReferencesPermissionEnforcement::new(authorizer.clone()));
        let parameters =
            Arc::new(PolicyParameterAuthorization::new(authorizer.clone(), self.replica.clone()));
        let quota = Arc::new(ResourceQuota::new(self.replica.clone(), self.resources)?);
        let mut before: Vec<Arc<dyn Admission>> = vec![
            Arc::new(PodSecurity::new(namespaces, pods, minor, config.pod_security)),
            // Of these rules upstream's plugins know nothing: they are the kind's own.
            Arc::new(ResourceClaimAuthorization::new(
                self.objects("", "namespaces")?,
                authorizer.clone(),
                features.enabled("DRAResourceClaimGranularStatusAuthorization"),
            )),
            parameters.clone(),
            owner_references.clone(),
            Arc::new(PersistentVolumeClaimResize::new(self.objects("storage.k8s.io", "storageclasses")?)),
            Arc::new(CertificateApproval::new(authorizer.clone())),
            Arc::new(CertificateSigning::new(authorizer.clone())),
        ];
        if features.enabled("ClusterTrustBundle") {
            before.push(Arc::new(ClusterTrustBundleAttest::new(authorizer.clone())));
        }
        before.push(Arc::new(CertificateSubjectRestriction));
        before.push(Arc::new(DenyServiceExternalIPs));
        if features.enabled("InPlacePodVerticalScaling") {
            before.push(Arc::new(PodResizeValidator::new(self.objects("", "nodes")?)));
        }
        // Nothing refers to workloads where none are served.
        let version = GroupVersion::new("scheduling.k8s.io", "v1alpha2");
        if features.enabled("GenericWorkload")
            && let Ok(workloads) = Objects::of_version(self.replica, self.resources, &version, "workloads")
        {
            before.push(Arc::new(PodGroupWorkloadExists::new(workloads)));
        }
        let last: Vec<Arc<dyn Admission>> = vec![quota.clone(), Arc::new(AlwaysDeny)];
        Ok(Judging { before, last, connected: Connected { owner_references, parameters, quota } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(enabled: &[&str], disabled: &[&str]) -> Result<(), String> {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let options = PluginOptions {
            enable_admission_plugins: names(enabled),
            disable_admission_plugins: names(disabled),
            admission_control_config_file: None,
        };
        options.check().map_err(|error| error.to_string())
    }

    #[test]
    fn names_are_those_of_kube_apiserver() {
        assert_eq!(
            checked(&["NodeRestriction", "PodSecurity"], &["ResourceQuota", "EventRateLimit"]),
            Ok(())
        );
        for (enabled, disabled, why) in [
            (&["Nonsense"][..], &[][..], "enable-admission-plugins plugin \"Nonsense\" is unknown"),
            (&[], &["Nonsense"], "disable-admission-plugins plugin \"Nonsense\" is unknown"),
            (&["EventRateLimit"], &[], "enable-admission-plugins plugin \"EventRateLimit\" is not supported"),
            (
                &["Priority"],
                &["Priority"],
                "[Priority] in enable-admission-plugins and disable-admission-plugins overlapped",
            ),
        ] {
            assert_eq!(checked(enabled, disabled), Err(why.to_owned()));
        }
    }
}
