//! What other servers serve below `/apis`.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use concord_meta::GroupVersion;

/// The place of a version among all others, as its APIService says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority {
    /// `groupPriorityMinimum`: the highest of a group's versions counts.
    pub group: i32,
    /// `versionPriority`
    pub version: i32,
}

/// A version of a group that another server serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// Group and version.
    pub version: GroupVersion,
    /// Its place.
    pub priority: Priority,
    /// Its resources as the aggregated document lists them: a list in JSON.
    pub resources: Bytes,
    /// Whether the other server said so lately.
    pub is_fresh: bool,
}

/// The versions that other servers serve, and the places of this server's own where somebody changed them. Discovery
/// shows all of them as one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    pub(crate) versions: BTreeMap<GroupVersion, Arc<Extension>>,
    pub(crate) own: BTreeMap<GroupVersion, Priority>,
}

impl Extensions {
    /// These versions of other servers, and these places of the server's own.
    pub fn new(
        versions: impl IntoIterator<Item = Extension>,
        own: impl IntoIterator<Item = (GroupVersion, Priority)>,
    ) -> Self {
        let versions = versions.into_iter().map(|extension| (extension.version.clone(), Arc::new(extension)));
        Self { versions: versions.collect(), own: own.into_iter().collect() }
    }

    /// Every path of them that the index of the server lists.
    pub fn paths(&self) -> Vec<String> {
        let versions = self.versions.keys();
        versions.flat_map(|of| [format!("/apis/{}", of.group), format!("/apis/{of}")]).collect()
    }
}

/// Tells what other servers serve at the moment.
pub type ExtensionSource = dyn Fn() -> Arc<Extensions> + Send + Sync;
