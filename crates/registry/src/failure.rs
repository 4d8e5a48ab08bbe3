//! What the log says, as what clients are told.

use concord_meta::Status;
use concord_store::Error as StoreError;

/// How long a client should wait before it asks again while the log cannot be reached.
const RETRY_AFTER: u32 = 1;

/// A read that the replica did not answer.
pub(crate) fn read_failed(error: &concord_replica::Error) -> Status {
    use concord_replica::Error;
    match error {
        Error::Expired { .. } => Status::list_expired(),
        Error::TooNew { requested, current } => Status::too_large_resource_version(*requested, *current),
        Error::NotLoaded => Status::too_many_requests("storage is (re)initializing", RETRY_AFTER),
        Error::Store(error) => store_failed(error),
        other => Status::internal_error(other),
    }
}

/// A transaction that the store did not carry out.
pub(crate) fn store_failed(error: &StoreError) -> Status {
    match error {
        StoreError::TooLarge { .. } => Status::request_entity_too_large("etcdserver: request is too large"),
        StoreError::Unavailable { .. } | StoreError::OutcomeUnknown { .. } => {
            tracing::warn!(%error, "The store could not answer.");
            Status::internal_error(error)
        }
        other => Status::internal_error(other),
    }
}
