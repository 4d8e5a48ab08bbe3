//! What the server's own requests have in common.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use concord_merge::apply::Time;
use concord_meta::{GroupVersion, Status};
use concord_registry::{Context, Item, Object, ObjectName, Registry, Resource, Resources};
use concord_replica::Snapshot;

use crate::object::GROUP;

/// The pauses between attempts of tasks that cannot do what they should: they double from the first to the second.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Pauses that double from failure to failure.
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self(PAUSES.0)
    }

    pub(crate) async fn pause(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(PAUSES.1);
    }
}

/// A request of the server itself, with the field manager that upstream has for it.
pub(crate) fn context(manager: &str) -> Context {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Time { unix: i64::try_from(since.as_secs()).unwrap_or(i64::MAX) };
    let mut context = Context::of_the_server(now);
    manager.clone_into(&mut context.manager);
    context
}

/// One of the four kinds, if it is served.
pub(crate) fn served(resources: &dyn Resources, plural: &str) -> Option<Arc<Resource>> {
    resources.find(&GroupVersion::new(GROUP, "v1"), plural)
}

/// An object, if there is one.
pub(crate) fn current(
    snapshot: &Snapshot,
    resource: &Resource,
    name: ObjectName<'_>,
) -> Result<Option<Object>, Status> {
    let Some(storage) = resource.storage() else { return Ok(None) };
    snapshot.get(&storage.key(name)).map(|entry| resource.object(&Item::from(entry))).transpose()
}

/// A state of the store as this server knows it.
pub(crate) fn newest(registry: &Registry) -> Result<Snapshot, Status> {
    registry.replica().newest().map_err(Status::internal_error)
}
