use std::time::Duration;

use concord_meta::GroupResource;

/// Hears what the store was asked to do, and how long it took. For metrics.
pub trait Observer: Send + Sync + 'static {
    /// A transaction about an object of this resource was answered, with whatever outcome. The operation is upstream's
    /// word: `create`, `update` or `delete`.
    fn answered(&self, operation: &'static str, resource: &GroupResource, took: Duration);
}
