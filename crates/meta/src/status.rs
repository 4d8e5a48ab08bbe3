//! The answer to a request that has no object: the failure, or the bare success.

mod failures;
mod protobuf;
mod storage;
mod wire;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use failures::RequestAttributes;

/// A `Status` object, the body of every error answer.
///
/// Clients look at `reason` first and at `code` only when they do not know the reason, so both are
/// part of the contract, and so is the message, which users see and scripts match.
///
/// ```
/// use concord_meta::{GroupResource, Reason, Status};
/// let status = Status::not_found(&GroupResource::new("", "pods"), "web");
/// assert_eq!(status.to_string(), r#"pods "web" not found"#);
/// assert_eq!((status.code, status.reason), (404, Reason::NOT_FOUND));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// Whether the operation succeeded.
    pub outcome: Outcome,
    /// The text for a person.
    pub message: String,
    /// The word for a program; empty when upstream gives none.
    pub reason: Reason,
    /// What the status is about. Some answers carry an empty one, which is `Some` here.
    pub details: Option<Box<StatusDetails>>,
    /// The HTTP status code; 0 where upstream leaves it out of the body.
    pub code: u16,
    /// `metadata.continue`: with an expired list, the token to go on inconsistently.
    pub continue_token: String,
}

/// The `status` of a [`Status`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Outcome {
    /// The operation was carried out.
    Success,
    /// It was not.
    Failure,
}

/// What a [`Status`] is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StatusDetails {
    /// The name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource (plural) or, for invalid objects, the kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The uid of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The single things that went wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// When to try again; also the `Retry-After` header.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(seconds: &u32) -> bool {
    *seconds == 0
}

/// One thing that went wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusCause {
    /// What kind of thing.
    #[serde(skip_serializing_if = "CauseType::is_empty")]
    pub reason: CauseType,
    /// The text for a person.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The path of the field at fault.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// A word that upstream defines a set of but that others (webhooks, extension servers) may extend.
macro_rules! word {
    ($(#[$doc:meta])* $name:ident { $($(#[$constant_doc:meta])* $constant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Cow<'static, str>);

        impl $name {
            $($(#[$constant_doc])* pub const $constant: Self = Self(Cow::Borrowed($text));)*

            /// A word that is not among the constants.
            pub fn new(word: impl Into<Cow<'static, str>>) -> Self {
                Self(word.into())
            }

            /// The word as it is on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Whether no word was given.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }
    };
}

word! {
    /// Why an operation failed.
    Reason {
        /// No reason is known.
        UNKNOWN = "",
        /// 400: the request makes no sense.
        BAD_REQUEST = "BadRequest",
        /// 401: the client did not say who it is.
        UNAUTHORIZED = "Unauthorized",
        /// 403: the client may not do this.
        FORBIDDEN = "Forbidden",
        /// 404: there is no such object or resource.
        NOT_FOUND = "NotFound",
        /// 405: the resource does not know this verb.
        METHOD_NOT_ALLOWED = "MethodNotAllowed",
        /// 406: no media type of the `Accept` header can be served.
        NOT_ACCEPTABLE = "NotAcceptable",
        /// 409: an object of that name exists.
        ALREADY_EXISTS = "AlreadyExists",
        /// 409: the object changed meanwhile.
        CONFLICT = "Conflict",
        /// 410: legacy word for what is no longer there.
        GONE = "Gone",
        /// 410: the state asked for is older than the history kept.
        EXPIRED = "Expired",
        /// 413: the body is too large.
        REQUEST_ENTITY_TOO_LARGE = "RequestEntityTooLarge",
        /// 415: the body's media type is unknown.
        UNSUPPORTED_MEDIA_TYPE = "UnsupportedMediaType",
        /// 422: the object is not valid.
        INVALID = "Invalid",
        /// 429: the client should come back later.
        TOO_MANY_REQUESTS = "TooManyRequests",
        /// 500: the server failed.
        INTERNAL_ERROR = "InternalError",
        /// 500: the server gave up for now.
        SERVER_TIMEOUT = "ServerTimeout",
        /// 500: a stored object cannot be read.
        STORAGE_READ_ERROR = "StorageReadError",
        /// 503: the service is not there now.
        SERVICE_UNAVAILABLE = "ServiceUnavailable",
        /// 504: the operation took too long and may still complete.
        TIMEOUT = "Timeout",
    }
}

word! {
    /// The kind of a single cause; field errors use [`crate::field::ErrorType::cause`].
    CauseType {
        /// Another manager owns the field.
        FIELD_MANAGER_CONFLICT = "FieldManagerConflict",
        /// The resource version lies in the future.
        RESOURCE_VERSION_TOO_LARGE = "ResourceVersionTooLarge",
        /// The namespace is being deleted.
        NAMESPACE_TERMINATING = "NamespaceTerminating",
        /// A disruption budget does not allow the eviction.
        DISRUPTION_BUDGET = "DisruptionBudget",
        /// A server answered with something that is no `Status`.
        UNEXPECTED_SERVER_RESPONSE = "UnexpectedServerResponse",
    }
}
