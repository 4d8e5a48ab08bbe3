//! The parameters of requests.

use serde_json::{Value, json};

/// A parameter: its name, where it stands, and the type of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Parameter {
    name: &'static str,
    place: &'static str,
    ty: &'static str,
}

const fn query(name: &'static str, ty: &'static str) -> Parameter {
    Parameter { name, place: "query", ty }
}

/// A part of the path.
pub(crate) const fn path(name: &'static str) -> Parameter {
    Parameter { name, place: "path", ty: "string" }
}

const ALLOW_WATCH_BOOKMARKS: Parameter = query("allowWatchBookmarks", "boolean");
const CONTINUE: Parameter = query("continue", "string");
const DRY_RUN: Parameter = query("dryRun", "string");
const FIELD_MANAGER: Parameter = query("fieldManager", "string");
const FIELD_SELECTOR: Parameter = query("fieldSelector", "string");
const FIELD_VALIDATION: Parameter = query("fieldValidation", "string");
const FORCE: Parameter = query("force", "boolean");
const GRACE_PERIOD_SECONDS: Parameter = query("gracePeriodSeconds", "integer");
const IGNORE_STORE_READ_ERROR: Parameter =
    query("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean");
const LABEL_SELECTOR: Parameter = query("labelSelector", "string");
const LIMIT: Parameter = query("limit", "integer");
const ORPHAN_DEPENDENTS: Parameter = query("orphanDependents", "boolean");
const PRETTY: Parameter = query("pretty", "string");
const PROPAGATION_POLICY: Parameter = query("propagationPolicy", "string");
const RESOURCE_VERSION: Parameter = query("resourceVersion", "string");
const RESOURCE_VERSION_MATCH: Parameter = query("resourceVersionMatch", "string");
const SEND_INITIAL_EVENTS: Parameter = query("sendInitialEvents", "boolean");
const SHARD_SELECTOR: Parameter = query("shardSelector", "string");
const TIMEOUT_SECONDS: Parameter = query("timeoutSeconds", "integer");
const WATCH: Parameter = query("watch", "boolean");

/// Of a request that reads an object.
pub(crate) const GET: &[Parameter] = &[PRETTY];
/// Of a request that creates or replaces an object.
pub(crate) const WRITE: &[Parameter] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, PRETTY];
/// Of a patch.
pub(crate) const PATCH: &[Parameter] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE, PRETTY];
/// Of a deletion.
pub(crate) const DELETE: &[Parameter] =
    &[DRY_RUN, GRACE_PERIOD_SECONDS, IGNORE_STORE_READ_ERROR, ORPHAN_DEPENDENTS, PRETTY, PROPAGATION_POLICY];
/// Of a request for a collection, or for a watch.
pub(crate) const LIST: &[Parameter] = &[
    ALLOW_WATCH_BOOKMARKS,
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    PRETTY,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    SHARD_SELECTOR,
    TIMEOUT_SECONDS,
    WATCH,
];
/// Of the deletion of a collection.
pub(crate) const DELETE_COLLECTION: &[Parameter] = &[
    CONTINUE,
    DRY_RUN,
    FIELD_SELECTOR,
    GRACE_PERIOD_SECONDS,
    IGNORE_STORE_READ_ERROR,
    LABEL_SELECTOR,
    LIMIT,
    ORPHAN_DEPENDENTS,
    PRETTY,
    PROPAGATION_POLICY,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    SHARD_SELECTOR,
    TIMEOUT_SECONDS,
];

impl Parameter {
    /// What a document says of it. `uniqueItems` stands there because it does upstream, where it means that the
    /// parameter cannot be given twice.
    pub(crate) fn document(self) -> Value {
        let mut document = json!({
            "name": self.name,
            "in": self.place,
            "schema": {"type": self.ty, "uniqueItems": true},
        });
        if self.place == "path" {
            document["required"] = true.into();
        }
        document
    }
}
