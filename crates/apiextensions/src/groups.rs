//! The groups that definitions make, in the order of discovery.

use std::{collections::BTreeMap, sync::Arc};

use concord_endpoints::{ApiGroup, ApiVersion, Endpoint, Origin};
use concord_meta::{GroupVersion, versions::compare};

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
