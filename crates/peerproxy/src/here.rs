//! What this server serves.

use concord_endpoints::{ApiSet, Apis};
use concord_meta::GroupVersion;

use crate::document::{Has, Wanted};

/// What a server serves itself. It is asked for every request, so it must be cheap, and what it says must never be old.
pub trait Local: Send + Sync + 'static {
    /// How much of what is wanted there is.
    fn has(&self, wanted: &Wanted<'_>) -> Has;

    /// Whether there is a group-version.
    fn has_version(&self, version: &GroupVersion) -> bool;
}

impl Local for Apis {
    fn has(&self, wanted: &Wanted<'_>) -> Has {
        has(&self.set(), wanted)
    }

    fn has_version(&self, version: &GroupVersion) -> bool {
        let set = self.set();
        set.group(&version.group).is_some_and(|group| group.version(&version.version).is_some())
    }
}

fn has(set: &ApiSet, wanted: &Wanted<'_>) -> Has {
    let version = set.group(wanted.group).and_then(|group| group.version(wanted.version));
    let Some(endpoint) = version.and_then(|version| version.resource(wanted.resource)) else {
        return Has::Nothing;
    };
    let resource = &endpoint.resource;
    let verbs = match wanted.subresource {
        "" => &resource.verbs,
        name => match resource.subresource(name) {
            Some(subresource) => &subresource.verbs,
            None => return Has::Resource,
        },
    };
    match wanted.verb.is_empty() || verbs.iter().any(|verb| verb.as_str() == wanted.verb) {
        true => Has::Everything,
        false => Has::Endpoint,
    }
}
