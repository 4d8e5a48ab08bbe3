//! What this server has to say about the built-in resources it serves.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use concord_meta::{GroupResource, GroupVersion};
use concord_registry::{Resource, Resources, Storage};
use concord_storageversion::{Keys, Record};

/// A built-in resource: its record, and all names it goes by. Resources that share their objects, such as the events of
/// two groups, are one, and called by the first of their names.
pub(crate) struct BuiltIn {
    pub(crate) record: Record,
    pub(crate) names: BTreeSet<GroupResource>,
    /// What the keys of its objects begin with.
    pub(crate) prefix: Bytes,
}

/// Everything that is stored among the resources, in no particular order.
pub(crate) fn built_in(resources: &dyn Resources) -> Vec<BuiltIn> {
    let mut by_prefix: BTreeMap<Bytes, Vec<Arc<Resource>>> = BTreeMap::new();
    for resource in resources.all() {
        if let Some(storage) = resource.storage() {
            by_prefix.entry(storage.prefix.clone()).or_default().push(resource);
        }
    }
    by_prefix.into_iter().filter_map(|(prefix, served)| of_prefix(prefix, &served)).collect()
}

fn of_prefix(prefix: Bytes, served: &[Arc<Resource>]) -> Option<BuiltIn> {
    let names: BTreeSet<GroupResource> = served.iter().map(|resource| resource.group_resource()).collect();
    let first = names.first()?.clone();
    let of_first = |resource: &&Arc<Resource>| resource.group_resource() == first;
    let storage = served.iter().find(of_first)?.storage()?;
    let mut versions: Vec<String> =
        served.iter().filter(of_first).map(|resource| resource.version.to_string()).collect();
    versions.sort();
    // What can be read: in its own group, also what is not served, and in the groups that share the objects.
    let mut decodable = preferred_first(storage);
    for storage in served.iter().filter_map(|resource| resource.storage()) {
        decodable.extend(preferred_first(storage));
    }
    decodable.push(storage.encoding.to_string());
    let mut seen = BTreeSet::new();
    decodable.retain(|version| seen.insert(version.clone()));
    let record = Record {
        group: first.group,
        resource: first.resource,
        encoding: storage.encoding.to_string(),
        decodable,
        served: versions,
        keys: Keys::default(),
        owner: None,
    };
    Some(BuiltIn { record, names, prefix })
}

/// The versions that a kind is known in.
fn preferred_first(storage: &Storage) -> Vec<String> {
    let mut versions: Vec<String> = storage.forms.keys().cloned().collect();
    versions.sort_by_key(|version| Reverse(maturity(version)));
    versions
}

/// How mature a version is: `v2` before `v1` before `v1beta2` before `v1beta1` before `v1alpha1`.
fn maturity(api_version: &str) -> (u8, u32, u32) {
    let version = api_version.parse::<GroupVersion>().map(|parsed| parsed.version).unwrap_or_default();
    let rest = version.strip_prefix('v').unwrap_or(&version);
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (major, stage) = rest.split_at(digits);
    let major = major.parse().unwrap_or_default();
    let minor = |digits: &str| digits.parse().unwrap_or_default();
    match (stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
        (Some(digits), _) => (1, major, minor(digits)),
        (_, Some(digits)) => (0, major, minor(digits)),
        (None, None) => (2, major, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mature_versions_come_first() {
        let mut versions = ["g/v1alpha1", "g/v1beta1", "g/v2", "g/v1", "g/v1beta10", "g/v1beta2"];
        versions.sort_by_key(|version| Reverse(maturity(version)));
        assert_eq!(versions, ["g/v2", "g/v1", "g/v1beta10", "g/v1beta2", "g/v1beta1", "g/v1alpha1"]);
    }
}
