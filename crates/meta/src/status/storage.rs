//! The failures of reads and writes that depend on resource versions.

use super::{CauseType, Status, StatusCause};
use crate::{GroupKind, GroupResource};

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. \
    You can start a new list without the continue parameter";

const CONTINUE_INCONSISTENTLY: &str = ", or use the continue token in this response to retrieve the remainder of \
    the results. Continuing with the provided token results in an inconsistent list - objects that were created, \
    modified, or deleted between the time the first chunk was returned and now may show up in the list";

impl Status {
    /// 409: the update was made from an older state of the object.
    #[must_use]
    pub fn modified(resource: &GroupResource, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// 409: the uid a delete requires is not the object's. The message names the kind.
    #[must_use]
    pub fn delete_uid_mismatch(kind: &GroupKind, name: &str, required: &str, actual: &str) -> Self {
        let why = format!(
            "the UID in the precondition ({required}) does not match the UID in record ({actual}). \
             The object might have been deleted and then recreated"
        );
        Self::conflict(&GroupResource::new(kind.group.as_str(), kind.kind.as_str()), name, why)
    }

    /// 409: the resource version a delete requires is not the object's. The message names the kind.
    #[must_use]
    pub fn delete_resource_version_mismatch(
        kind: &GroupKind,
        name: &str,
        required: &str,
        actual: &str,
    ) -> Self {
        let why = format!(
            "the ResourceVersion in the precondition ({required}) does not match the ResourceVersion in record \
             ({actual}). The object might have been modified"
        );
        Self::conflict(&GroupResource::new(kind.group.as_str(), kind.kind.as_str()), name, why)
    }

    /// 409: the uid in the body of an update is not the object's. `key` is the object's storage key.
    #[must_use]
    pub fn update_uid_mismatch(
        resource: &GroupResource,
        name: &str,
        key: &str,
        required: &str,
        actual: &str,
    ) -> Self {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: UID in precondition: {required}, UID in object meta: {actual}"
        );
        Self::conflict(resource, name, why)
    }

    /// 409: the resource version that an update requires is not the object's. `key` is the object's storage key.
    #[must_use]
    pub fn update_resource_version_mismatch(
        resource: &GroupResource,
        name: &str,
        key: &str,
        required: &str,
        actual: &str,
    ) -> Self {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: ResourceVersion in precondition: {required}, ResourceVersion in object meta: {actual}"
        );
        Self::conflict(resource, name, why)
    }

    /// 410: the list asked for is older than the history kept.
    #[must_use]
    pub fn list_expired() -> Self {
        Self::expired("The resourceVersion for the provided list is too old.")
    }

    /// 410: the history a watch was reading is gone.
    #[must_use]
    pub fn watch_expired() -> Self {
        Self::expired("The resourceVersion for the provided watch is too old.")
    }

    /// 410: a watch cannot start at `requested`; the history begins at `oldest`.
    #[must_use]
    pub fn too_old_resource_version(requested: u64, oldest: u64) -> Self {
        Self::expired(format!("too old resource version: {requested} ({oldest})"))
    }

    /// 410: the pages of a list were read too slowly. With `token` the client may read the rest from
    /// the present state.
    #[must_use]
    pub fn continue_expired(token: Option<&str>) -> Self {
        let more = if token.is_some() { CONTINUE_INCONSISTENTLY } else { "" };
        let mut status = Self::expired(format!("{CONTINUE_EXPIRED}{more}."));
        token.unwrap_or_default().clone_into(&mut status.continue_token);
        status
    }

    /// 504: no state as new as `requested` exists yet; the newest is `current`.
    #[must_use]
    pub fn too_large_resource_version(requested: u64, current: u64) -> Self {
        let what = "Too large resource version";
        Self::timeout(format_args!("{what}: {requested}, current: {current}"), 1).with_cause(StatusCause {
            reason: CauseType::RESOURCE_VERSION_TOO_LARGE,
            message: what.to_owned(),
            field: String::new(),
        })
    }
}
