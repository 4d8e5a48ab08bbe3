//! The parameters of requests.

use base64::Engine as _;
use serde_json::{Value, json};

/// A parameter: its name, where it stands, and the type of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Parameter {
    name: &'static str,
    place: &'static str,
    ty: &'static str,
    description: &'static str,
}

const fn query(name: &'static str, ty: &'static str, description: &'static str) -> Parameter {
    Parameter { name, place: "query", ty, description }
}

/// A part of the path.
pub(crate) const fn path(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, place: "path", ty: "string", description }
}

const ALLOW_WATCH_BOOKMARKS: Parameter =
    query("allowWatchBookmarks", "boolean", "Send bookmarks, which tell how far a watch has come.");
const CONTINUE: Parameter = query("continue", "string", "Go on with the list that an earlier answer began.");
const DRY_RUN: Parameter =
    query("dryRun", "string", "With the value All, do everything but store the result.");
const FIELD_MANAGER: Parameter =
    query("fieldManager", "string", "Who makes the change, for the record of who owns which field.");
const FIELD_SELECTOR: Parameter =
    query("fieldSelector", "string", "Only objects with these values of fields.");
const FIELD_VALIDATION: Parameter = query(
    "fieldValidation",
    "string",
    "What becomes of unknown and duplicate fields: Ignore, Warn or Strict.",
);
const FORCE: Parameter =
    query("force", "boolean", "Take over fields that others own. Only for apply patches.");
const GRACE_PERIOD_SECONDS: Parameter =
    query("gracePeriodSeconds", "integer", "How long the object has to end in order. Zero means at once.");
const IGNORE_STORE_READ_ERROR: Parameter = query(
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "boolean",
    "Delete it even if it cannot be read.",
);
const LABEL_SELECTOR: Parameter = query("labelSelector", "string", "Only objects with these labels.");
const LIMIT: Parameter = query("limit", "integer", "The most objects that one answer may have.");
const ORPHAN_DEPENDENTS: Parameter = query(
    "orphanDependents",
    "boolean",
    "Deprecated, use propagationPolicy: whether dependents stay behind.",
);
const PRETTY: Parameter =
    query("pretty", "string", "Write the answer for people, with line breaks and indentation.");
const PROPAGATION_POLICY: Parameter =
    query("propagationPolicy", "string", "What becomes of dependents: Orphan, Background or Foreground.");
const RESOURCE_VERSION: Parameter = query("resourceVersion", "string", "How current the answer has to be.");
const RESOURCE_VERSION_MATCH: Parameter =
    query("resourceVersionMatch", "string", "What resourceVersion means for a list: NotOlderThan or Exact.");
const SEND_INITIAL_EVENTS: Parameter =
    query("sendInitialEvents", "boolean", "Begin a watch with an event for each object that exists.");
const SHARD_SELECTOR: Parameter = query("shardSelector", "string", "Only objects of this shard.");
const TIMEOUT_SECONDS: Parameter = query("timeoutSeconds", "integer", "How long the request may take.");
const WATCH: Parameter = query("watch", "boolean", "Send changes as they happen instead of a list.");

/// Of a request that reads an object.
pub(crate) const GET: &[Parameter] = &[PRETTY];
/// Of a request that reads a custom object.
pub(crate) const GET_CUSTOM: &[Parameter] = &[PRETTY, RESOURCE_VERSION];
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
    /// What a document of version 3 says of it. `uniqueItems` stands there because it does upstream, where it means that
    /// the parameter cannot be given twice.
    pub(crate) fn document(self) -> Value {
        let mut document = json!({
            "name": self.name,
            "in": self.place,
            "description": self.description,
            "schema": {"type": self.ty, "uniqueItems": true},
        });
        if self.place == "path" {
            document["required"] = true.into();
        }
        document
    }

    /// What a document of version 2 says where the parameter is used. Those that clients look for stand there; of the
    /// others there is one for the whole document.
    pub(crate) fn swagger(self) -> Value {
        match self.name {
            "name" | "fieldValidation" | "dryRun" => self.swagger_definition(),
            _ => json!({"$ref": format!("#/parameters/{}", self.swagger_name())}),
        }
    }

    /// The parameter itself, as version 2 says it.
    pub(crate) fn swagger_definition(self) -> Value {
        let mut document = json!({
            "name": self.name,
            "in": self.place,
            "description": self.description,
            "type": self.ty,
            "uniqueItems": true,
        });
        if self.place == "path" {
            document["required"] = true.into();
        }
        document
    }

    /// The name of the one for the whole document.
    pub(crate) fn swagger_name(self) -> String {
        shared_name(self.name, &self.swagger_definition())
    }
}

/// Upstream's names for parameters that are used in many places: the name and a hash of what is said of it.
pub(crate) fn shared_name(name: &str, definition: &Value) -> String {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let text = definition.to_string();
    let hash = text.bytes().fold(OFFSET, |hash, byte| hash.wrapping_mul(PRIME) ^ u64::from(byte));
    format!("{name}-{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&hash.to_be_bytes()[..6]))
}
