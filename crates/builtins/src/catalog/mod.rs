//! Which resources there are, and how they behave.

mod hash;
mod read;
mod release;
mod resource;
mod strategy;

use std::sync::{LazyLock, OnceLock};

pub use hash::storage_version_hash;
pub use release::{InvalidRelease, Release};
pub use resource::{Deprecation, ResourceFacts, StorageFacts, SubresourceFacts};
pub use strategy::{NameRule, Propagation, SelectableField, StatusOnCreate, StrategyFacts};

static STRATEGIES: LazyLock<read::Strategies> = LazyLock::new(|| {
    read::strategies(include_str!("../../facts/strategies.txt"))
        .expect("the table is complete, as the tests show")
});

/// The resources that a release serves.
#[derive(Debug)]
pub struct Catalog {
    release: Release,
    groups: Vec<GroupFacts>,
}

/// An API group. The core group has an empty name.
#[derive(Debug)]
pub struct GroupFacts {
    /// Its name, such as `apps`.
    pub name: &'static str,
    /// Its versions, the preferred one first.
    pub versions: Vec<VersionFacts>,
}

/// A version of a group.
#[derive(Debug)]
pub struct VersionFacts {
    /// The group's name.
    pub group: &'static str,
    /// The version, such as `v1`.
    pub version: &'static str,
    /// Whether upstream serves it only in a later release.
    pub is_ahead: bool,
    /// What its APIService object says; the group of APIService objects itself has none.
    pub priority: Option<Priority>,
    /// Its resources, by name.
    pub resources: Vec<ResourceFacts>,
}

/// The place of a group and version among all others, as APIService objects have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// groupPriorityMinimum
    pub group: u32,
    /// versionPriority
    pub version: u32,
}

impl Catalog {
    /// What a release serves. One that is not described is taken to be the nearest that is.
    ///
    /// The tables are read for each release that is asked for, once.
    pub fn of(release: Release) -> &'static Self {
        static CATALOGS: [OnceLock<Catalog>; Release::COUNT] = [const { OnceLock::new() }; Release::COUNT];
        let release = release.clamp(Release::OLDEST, Release::LATEST);
        CATALOGS[release.index()].get_or_init(|| {
            read::catalog(include_str!("../../facts/catalog.txt"), release, &STRATEGIES)
                .expect("the table is complete, as the tests show")
        })
    }

    /// What the newest release serves.
    pub fn latest() -> &'static Self {
        Self::of(Release::LATEST)
    }

    /// The release that serves it.
    pub fn release(&self) -> Release {
        self.release
    }

    /// The groups, in the order of discovery.
    pub fn groups(&self) -> &[GroupFacts] {
        &self.groups
    }

    /// All versions of all groups, in the order of discovery.
    pub fn versions(&self) -> impl Iterator<Item = &VersionFacts> {
        self.groups.iter().flat_map(|group| &group.versions)
    }

    /// A version of a group.
    pub fn version(&self, group: &str, version: &str) -> Option<&VersionFacts> {
        self.versions().find(|facts| facts.group == group && facts.version == version)
    }

    /// A resource by its plural name.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&ResourceFacts> {
        self.version(group, version)?.resources.iter().find(|facts| facts.plural == plural)
    }
}

impl VersionFacts {
    /// Whether it is served unless `--runtime-config` says otherwise. In each of the releases upstream turns every version
    /// on that is stable, and no other. One that a later release brings is for those who ask for it by its name.
    pub fn enabled_by_default(&self) -> bool {
        !self.version.contains("alpha") && !self.version.contains("beta") && !self.is_ahead
    }

    /// `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> String {
        api_version(self.group, self.version)
    }
}

pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
