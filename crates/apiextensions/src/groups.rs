//! The groups that definitions make, in the order of discovery.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use concord_endpoints::{ApiGroup, ApiVersion, Endpoint, Origin};
use concord_meta::GroupVersion;

/// Where upstream puts the groups of custom resources among all others.
const PRIORITY: i32 = 1000;

/// A group with these resources; `None` if there are none.
pub(crate) fn group(name: &str, endpoints: impl IntoIterator<Item = Endpoint>) -> Option<Arc<ApiGroup>> {
    let mut versions: BTreeMap<String, Vec<Endpoint>> = BTreeMap::new();
    for endpoint in endpoints {
        versions.entry(endpoint.resource.version.version.clone()).or_default().push(endpoint);
    }
    if versions.is_empty() {
        return None;
    }
    let mut versions: Vec<_> = versions.into_iter().collect();
    versions.sort_by(|(one, _), (other, _)| compare(other, one));
    let versions = versions
        .into_iter()
        .map(|(version, endpoints)| ApiVersion::new(GroupVersion::new(name, version.as_str()), endpoints));
    Some(Arc::new(ApiGroup::new(name, PRIORITY, Origin::Custom, versions)))
}

/// The parts of a version that count: its stage (0 is alpha, 2 is stable), its number, and the number of its stage.
fn parts(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(end);
    let number = |digits: &str| match digits.as_bytes() {
        [b'1'..=b'9', ..] => digits.parse().ok(),
        _ => None,
    };
    let major = number(major)?;
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    let (stage, rest) = match rest.strip_prefix("beta") {
        Some(rest) => (1, rest),
        None => (0, rest.strip_prefix("alpha")?),
    };
    Some((stage, major, number(rest)?))
}

/// How upstream orders versions: stable ones are the greatest, then beta, alpha, and names that are none of these, of
/// which the first in the alphabet is the greatest.
pub(crate) fn compare(one: &str, other: &str) -> Ordering {
    match (parts(one), parts(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => other.cmp(one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_upstream_does() {
        let expected = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
            "v0",
        ];
        let mut versions = expected;
        versions.sort_unstable();
        versions.sort_by(|one, other| compare(other, one));
        assert_eq!(versions, expected);
    }
}
