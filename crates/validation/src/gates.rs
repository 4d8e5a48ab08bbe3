//! The feature gates that rules depend on.

/// Declares the gates: their names are upstream's, and what stands after them is their default in v1.36.
macro_rules! gates {
    ($($name:ident = $default:literal,)*) => {
        /// A feature that some rule depends on, by upstream's name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Gate { $($name,)* }

        const TABLE: &[(Gate, &str, bool)] = &[$((Gate::$name, stringify!($name), $default),)*];
    };
}

gates! {
    CSIServiceAccountTokenSecrets = true,
    ClearingNominatedNodeNameAfterBinding = true,
    ContainerRestartRules = true,
    DRAConsumableCapacity = true,
    EnvFiles = true,
    GitRepoVolumeDriver = false,
    HPAScaleToZero = false,
    ImageVolumeWithDigest = false,
    InPlacePodLevelResourcesVerticalScaling = true,
    InPlacePodVerticalScaling = true,
    InPlacePodVerticalScalingInitContainers = true,
    JobManagedBy = true,
    JobPodReplacementPolicy = true,
    ManifestBasedAdmissionControlConfig = false,
    MatchLabelKeysInPodTopologySpread = true,
    MatchLabelKeysInPodTopologySpreadSelectorMerge = true,
    MutableCSINodeAllocatableCount = true,
    MutablePVNodeAffinity = false,
    MutablePodResourcesForSuspendedJobs = true,
    MutableSchedulingDirectivesForSuspendedJobs = true,
    PodDeletionCost = true,
    PodLevelResources = true,
    PodLifecycleSleepActionAllowZero = true,
    PreferSameTrafficDistribution = true,
    RecoverVolumeExpansionFailure = true,
    RelaxedDNSSearchValidation = true,
    RelaxedEnvironmentVariableValidation = true,
    RelaxedServiceNameValidation = true,
    RestartAllContainersOnContainerExits = true,
    SELinuxMount = false,
    SELinuxMountReadWriteOncePod = true,
    StrictIPCIDRValidation = true,
    TaintTolerationComparisonOperators = false,
    UserNamespacesHostNetworkSupport = false,
    VolumeAttributesClass = true,
}

/// Which of the features that rules depend on there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates(u64);

const _: () = assert!(TABLE.len() <= 64, "one bit for each gate");

impl Gates {
    /// The features of which `enabled` says so, by upstream's names.
    pub fn new(enabled: impl Fn(&str) -> bool) -> Self {
        let on = TABLE.iter().filter(|(_, name, _)| enabled(name));
        Self(on.fold(0, |bits, (gate, ..)| bits | bit(*gate)))
    }

    /// The same, but for what is said of some of them by name.
    #[must_use]
    pub fn and(self, set: &[(&str, bool)]) -> Self {
        let said = |name: &str| set.iter().find(|(said, _)| *said == name).map(|(_, on)| *on);
        let on = TABLE.iter().filter(|(gate, name, _)| said(name).unwrap_or_else(|| self.has(*gate)));
        Self(on.fold(0, |bits, (gate, ..)| bits | bit(*gate)))
    }

    /// Whether a feature is there.
    pub(crate) fn has(self, gate: Gate) -> bool {
        self.0 & bit(gate) != 0
    }
}

/// Those of v1.36.
impl Default for Gates {
    fn default() -> Self {
        Self::new(|name| TABLE.iter().any(|(_, known, default)| *known == name && *default))
    }
}

const fn bit(gate: Gate) -> u64 {
    1 << (gate as u64)
}
