//! What the server's own requests have in common.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use concord_merge::apply::Time;
use concord_meta::{GroupVersion, Status};
use concord_registry::{Context, Registry, Resource, Resources};
use concord_replica::Snapshot;

use crate::Error;

/// How long to wait for the store to say what its newest state is.
const WAIT_FOR_STORE: Duration = Duration::from_secs(10);

/// A request of the server itself, with the field manager that upstream has for it.
pub(crate) fn context(manager: &str) -> Context {
    let mut context = Context::of_the_server(now());
    manager.clone_into(&mut context.manager);
    context
}

pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time { unix: i64::try_from(since.as_secs()).unwrap_or(i64::MAX) }
}

/// A state that has every write that was answered before.
pub(crate) async fn consistent(registry: &Registry) -> Result<Snapshot, Status> {
    registry.replica().consistent(WAIT_FOR_STORE).await.map_err(Status::internal_error)
}

/// A resource, if it is served. The group of core is empty.
pub(crate) fn served(
    resources: &dyn Resources,
    group: &str,
    version: &str,
    plural: &str,
) -> Option<Arc<Resource>> {
    resources.find(&GroupVersion::new(group, version), plural)
}

/// A resource that must be served.
pub(crate) fn required(
    resources: &dyn Resources,
    group: &str,
    version: &str,
    plural: &str,
) -> Result<Arc<Resource>, Error> {
    let found = served(resources, group, version, plural).filter(|found| found.storage().is_some());
    found.ok_or_else(|| Error::NotServed {
        version: GroupVersion::new(group, version).to_string(),
        plural: plural.to_owned(),
    })
}
