//! The groups that discovery shows: this server's own, and those of others.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use concord_meta::versions;

use super::aggregated::Aggregated;
use crate::{
    extensions::{Extension, Extensions},
    set::{ApiGroup, ApiSet, ApiVersion, Origin},
};

/// What custom resources have, and versions of which nothing else is known.
const VERSION_PRIORITY: i32 = 100;

/// Everything that discovery shows at one moment, with the documents about it, which are made when first asked for.
pub(crate) struct Shown {
    pub(super) set: Arc<ApiSet>,
    extensions: Arc<Extensions>,
    /// In the order of discovery.
    pub(super) groups: Vec<ShownGroup>,
    pub(super) documents: Documents,
}

/// The documents about all groups.
#[derive(Default)]
pub(super) struct Documents {
    pub(super) groups: OnceLock<Bytes>,
    /// Of the core group, and of all others.
    pub(super) aggregated: [OnceLock<Aggregated>; 2],
}

/// A group with its versions, the preferred one first.
pub(super) struct ShownGroup {
    pub(super) name: String,
    priority: i32,
    pub(super) versions: Vec<ShownVersion>,
    /// The group itself, if no other server has a part in it.
    pub(super) own: Option<Arc<ApiGroup>>,
}

pub(super) enum ShownVersion {
    /// A version of one of the server's own groups, by its position.
    Own(Arc<ApiGroup>, usize),
    Extension(Arc<Extension>),
}

impl Shown {
    pub(crate) fn new(set: Arc<ApiSet>, extensions: Arc<Extensions>) -> Self {
        let mut groups: BTreeMap<&str, ShownGroup> =
            set.groups().iter().map(|group| (group.name(), ShownGroup::own(group, &extensions))).collect();
        for extension in extensions.versions.values() {
            let name = extension.version.group.as_str();
            let group = groups.entry(name).or_insert_with(|| ShownGroup::empty(name));
            group.add(extension, &extensions);
        }
        let mut groups: Vec<ShownGroup> = groups.into_values().collect();
        // Stable, so that equals stay sorted by name.
        groups.sort_by_key(|group| Reverse(group.priority));
        Self { set, extensions, groups, documents: Documents::default() }
    }

    /// Whether this shows these.
    pub(crate) fn is_of(&self, set: &Arc<ApiSet>, extensions: &Arc<Extensions>) -> bool {
        Arc::ptr_eq(&self.set, set) && Arc::ptr_eq(&self.extensions, extensions)
    }

    /// The group of that name.
    pub(super) fn group(&self, name: &str) -> Option<&ShownGroup> {
        self.groups.iter().find(|group| group.name == name)
    }
}

impl ShownGroup {
    fn empty(name: &str) -> Self {
        Self { name: name.to_owned(), priority: i32::MIN, versions: Vec::new(), own: None }
    }

    fn own(group: &Arc<ApiGroup>, extensions: &Extensions) -> Self {
        let told = group.versions().iter().filter_map(|version| extensions.own.get(version.version()));
        let priority = told.map(|priority| priority.group).max().unwrap_or(group.priority());
        let versions = (0..group.versions().len()).map(|at| ShownVersion::Own(group.clone(), at)).collect();
        let mut shown = Self { name: group.name().to_owned(), priority, versions, own: Some(group.clone()) };
        if group.versions().iter().any(|version| extensions.own.contains_key(version.version())) {
            shown.own = None;
            shown.sort(extensions);
        }
        shown
    }

    /// Adds what another server has, unless this server has it built in. Over custom resources others win: somebody has
    /// said so in the APIService.
    fn add(&mut self, extension: &Arc<Extension>, extensions: &Extensions) {
        let own = self.versions.iter().position(|version| version.name() == extension.version.version);
        match own {
            Some(own) if self.versions[own].is_built_in() => return,
            Some(own) => drop(self.versions.remove(own)),
            None => {}
        }
        self.own = None;
        self.priority = self.priority.max(extension.priority.group);
        self.versions.push(ShownVersion::Extension(extension.clone()));
        self.sort(extensions);
    }

    fn sort(&mut self, extensions: &Extensions) {
        self.versions.sort_by(|one, other| {
            let by_priority = other.priority(extensions).cmp(&one.priority(extensions));
            by_priority.then_with(|| versions::compare(other.name(), one.name()))
        });
    }
}

impl ShownVersion {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Own(group, at) => &group.versions()[*at].version().version,
            Self::Extension(extension) => &extension.version.version,
        }
    }

    pub(super) fn of(group: &Arc<ApiGroup>, at: usize) -> &ApiVersion {
        &group.versions()[at]
    }

    fn is_built_in(&self) -> bool {
        matches!(self, Self::Own(group, _) if group.origin() == Origin::BuiltIn)
    }

    fn priority(&self, extensions: &Extensions) -> i32 {
        match self {
            Self::Own(group, at) => {
                let told = extensions.own.get(Self::of(group, *at).version());
                told.map_or(VERSION_PRIORITY, |priority| priority.version)
            }
            Self::Extension(extension) => extension.priority.version,
        }
    }
}

#[cfg(test)]
mod tests {
    use concord_meta::GroupVersion;

    use super::*;
    use crate::Priority;

    fn group(name: &str, priority: i32, origin: Origin, versions: &[&str]) -> Arc<ApiGroup> {
        let versions = versions.iter().map(|version| ApiVersion::new(GroupVersion::new(name, *version), []));
        Arc::new(ApiGroup::new(name, priority, origin, versions))
    }

    fn extension(group: &str, version: &str, priorities: (i32, i32)) -> Extension {
        Extension {
            version: GroupVersion::new(group, version),
            priority: Priority { group: priorities.0, version: priorities.1 },
            resources: Bytes::from_static(b"[]"),
            is_fresh: true,
        }
    }

    /// Groups with their versions; those of other servers are marked.
    fn shown(groups: &[Arc<ApiGroup>], extensions: Extensions) -> Vec<String> {
        let set = Arc::new(ApiSet::new(groups.iter().cloned()));
        let text = |group: &ShownGroup| {
            let versions = group.versions.iter().map(|version| match version {
                ShownVersion::Own(..) => version.name().to_owned(),
                ShownVersion::Extension(_) => format!("*{}", version.name()),
            });
            format!("{}: {}", group.name, versions.collect::<Vec<_>>().join(" "))
        };
        Shown::new(set, Arc::new(extensions)).groups.iter().map(text).collect()
    }

    #[test]
    fn groups_and_versions_are_ordered_by_their_priorities() {
        let apps = group("apps", 17800, Origin::BuiltIn, &["v1"]);
        let custom = group("custom.io", 1000, Origin::Custom, &["v1", "v1beta1"]);
        let own = [apps, custom];
        let others = [
            extension("metrics.io", "v1beta1", (100, 100)),
            extension("early.io", "v2", (18000, 10)),
            extension("early.io", "v1alpha1", (5, 20)),
            extension("custom.io", "v2", (2000, 5)),
            extension("custom.io", "v1beta1", (10, 100)),
            extension("apps", "v1", (19000, 1000)),
        ];
        assert_eq!(
            shown(&own, Extensions::new(others, [])),
            ["early.io: *v1alpha1 *v2", "apps: v1", "custom.io: v1 *v1beta1 *v2", "metrics.io: *v1beta1"]
        );
    }

    #[test]
    fn the_places_of_the_servers_own_can_be_changed() {
        let apps = group("apps", 17800, Origin::BuiltIn, &["v1"]);
        let custom = group("custom.io", 1000, Origin::Custom, &["v1", "v1beta1"]);
        let own = [
            (GroupVersion::new("custom.io", "v1beta1"), Priority { group: 18000, version: 101 }),
            (GroupVersion::new("gone.io", "v1"), Priority { group: 1, version: 1 }),
        ];
        assert_eq!(shown(&[apps, custom], Extensions::new([], own)), ["custom.io: v1beta1 v1", "apps: v1"]);
    }
}
