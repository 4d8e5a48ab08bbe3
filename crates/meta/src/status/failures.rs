//! The failures every server knows, with upstream's codes, reasons and texts.

use std::fmt;

use super::{CauseType, Outcome, Reason, Status, StatusCause, StatusDetails};
use crate::{GroupKind, GroupResource, GroupVersionKind, field, go};

/// The bytes a request body may have.
const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

impl Status {
    /// A failure that upstream has no constructor for, without details.
    pub fn failure(code: u16, reason: Reason, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            outcome: Outcome::Failure,
            message,
            reason,
            details: None,
            code,
            continue_token: String::new(),
        }
    }

    fn with_details(mut self, details: StatusDetails) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    fn about(self, resource: &GroupResource, name: &str) -> Self {
        let (group, kind) = (resource.group.clone(), resource.resource.clone());
        self.with_details(StatusDetails { name: name.to_owned(), group, kind, ..StatusDetails::default() })
    }

    fn retry_after(mut self, seconds: u32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// The same status with one more cause.
    #[must_use]
    pub fn with_cause(mut self, cause: StatusCause) -> Self {
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// The seconds for the `Retry-After` header, if there is one.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u32> {
        self.details.as_ref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0)
    }

    /// Whether a cause of this kind is given.
    #[must_use]
    pub fn has_cause(&self, reason: &CauseType) -> bool {
        self.details.iter().flat_map(|details| &details.causes).any(|cause| cause.reason == *reason)
    }

    /// 400: the request makes no sense, as `message` says.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(400, Reason::BAD_REQUEST, message)
    }

    /// 400: the body is no object; `error` says why. The message shows how the body begins.
    pub fn undecodable(kind: &str, error: impl fmt::Display, body: &[u8]) -> Self {
        let start = summary(body);
        let what = "the object provided is unrecognized";
        Self::bad_request(format!("{what} (must be of type {kind}): {error} ({start})"))
    }

    /// 400: the body is an object, but not one of `kind`, or `error` says what else is wrong with it.
    pub fn unfit(body: &GroupVersionKind, kind: &str, error: impl fmt::Display) -> Self {
        let version = go::quote(&body.version);
        Self::bad_request(format!(
            "{} in version {version} cannot be handled as a {kind}: {error}",
            body.kind
        ))
    }

    /// 401: the handler chain's answer to a request without an identity.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::failure(401, Reason::UNAUTHORIZED, "Unauthorized")
    }

    /// 403: `error` says why this may not be done to the object.
    pub fn forbidden(resource: &GroupResource, name: &str, error: impl fmt::Display) -> Self {
        let message = match (resource.is_empty(), name) {
            (true, _) => format!("forbidden: {error}"),
            (false, "") => format!("{resource} is forbidden: {error}"),
            (false, name) => format!("{resource} {} is forbidden: {error}", go::quote(name)),
        };
        Self::failure(403, Reason::FORBIDDEN, message).about(resource, name)
    }

    /// 403: no authorizer allows the request. `reason` is the authorizer's, and may be empty.
    #[must_use]
    pub fn not_authorized(request: &RequestAttributes<'_>, reason: &str) -> Self {
        let what = request.describe();
        let message = if reason.is_empty() { what } else { format!("{what}: {reason}") };
        Self::forbidden(&GroupResource::new(request.group, request.resource), request.name, message)
    }

    /// 403: nothing can be created in a namespace that is being deleted.
    #[must_use]
    pub fn namespace_terminating(resource: &GroupResource, name: &str, namespace: &str) -> Self {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        Self::forbidden(resource, name, why).with_cause(StatusCause {
            reason: CauseType::NAMESPACE_TERMINATING,
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        })
    }

    /// 404: there is no object of that name.
    #[must_use]
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {} not found", go::quote(name));
        Self::failure(404, Reason::NOT_FOUND, message).about(resource, name)
    }

    /// 404: the group and version exist and have no such resource.
    #[must_use]
    pub fn unknown_resource() -> Self {
        Self::failure(404, Reason::NOT_FOUND, "the server could not find the requested resource")
            .with_details(StatusDetails::default())
    }

    /// 405: the resource does not know the verb `action`.
    #[must_use]
    pub fn method_not_supported(resource: &GroupResource, action: &str) -> Self {
        let kind = go::quote(&resource.to_string());
        let message = format!("{action} is not supported on resources of kind {kind}");
        Self::failure(405, Reason::METHOD_NOT_ALLOWED, message).about(resource, "")
    }

    /// 405: the path does not know the HTTP method.
    #[must_use]
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::failure(405, Reason::METHOD_NOT_ALLOWED, message).with_details(StatusDetails::default())
    }

    /// 406: only these media types can be served.
    #[must_use]
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", accepted.join(", "));
        Self::failure(406, Reason::NOT_ACCEPTABLE, message)
    }

    /// 409: an object of that name exists.
    #[must_use]
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {} already exists", go::quote(name));
        Self::failure(409, Reason::ALREADY_EXISTS, message).about(resource, name)
    }

    /// 409: an object of that name exists and is being deleted.
    #[must_use]
    pub fn being_deleted(resource: &GroupResource, name: &str) -> Self {
        let mut status = Self::already_exists(resource, name);
        status.message.insert_str(0, "object is being deleted: ");
        status
    }

    /// 409: every generated name was taken; the client may try again in a second.
    #[must_use]
    pub fn generate_name_conflict(resource: &GroupResource, name: &str) -> Self {
        let mut status = Self::already_exists(resource, name).retry_after(1);
        status.message.push_str(", the server was not able to generate a unique name for the object");
        status
    }

    /// 409: `error` says why the object cannot be changed.
    pub fn conflict(resource: &GroupResource, name: &str, error: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {}: {error}", go::quote(name));
        Self::failure(409, Reason::CONFLICT, message).about(resource, name)
    }

    /// 409: fields of an apply are owned by others.
    pub fn apply_conflict(causes: Vec<StatusCause>, message: impl Into<String>) -> Self {
        Self::failure(409, Reason::CONFLICT, message)
            .with_details(StatusDetails { causes, ..StatusDetails::default() })
    }

    /// 410: legacy word for [`Status::expired`].
    pub fn gone(message: impl Into<String>) -> Self {
        Self::failure(410, Reason::GONE, message)
    }

    /// 410: the state asked for is older than the history kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::failure(410, Reason::EXPIRED, message)
    }

    /// 413: `message` says what the limit is.
    pub fn request_entity_too_large(message: impl fmt::Display) -> Self {
        let message = format!("Request entity too large: {message}");
        Self::failure(413, Reason::REQUEST_ENTITY_TOO_LARGE, message)
    }

    /// 413: the body has more than 3 MiB.
    #[must_use]
    pub fn body_too_large() -> Self {
        Self::request_entity_too_large(format_args!("limit is {MAX_BODY_BYTES}"))
    }

    /// 415: only bodies of these media types can be read.
    #[must_use]
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let types = accepted.join(", ");
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {types}"
        );
        Self::failure(415, Reason::UNSUPPORTED_MEDIA_TYPE, message)
    }

    /// 422: the object (or the options) have these errors.
    #[must_use]
    pub fn invalid(kind: &GroupKind, name: &str, errors: &[field::Error]) -> Self {
        let causes = errors.iter().map(|error| StatusCause {
            reason: CauseType::new(error.error_type.cause()),
            message: error.body(),
            field: error.field.clone(),
        });
        let mut message = format!("{kind} {} is invalid", go::quote(name));
        if !errors.is_empty() {
            message.push_str(": ");
            message.push_str(&field::aggregate(errors));
        }
        Self::failure(422, Reason::INVALID, message).with_details(StatusDetails {
            name: name.to_owned(),
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            causes: causes.collect(),
            ..StatusDetails::default()
        })
    }

    /// 422: a patch does not apply. Upstream keeps the cause to itself.
    #[must_use]
    pub fn unprocessable_patch() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::failure(422, Reason::INVALID, message).with_details(StatusDetails::default())
    }

    /// 429: the client should come back in `retry_after` seconds.
    pub fn too_many_requests(message: impl Into<String>, retry_after: u32) -> Self {
        Self::failure(429, Reason::TOO_MANY_REQUESTS, message)
            .with_details(StatusDetails::default())
            .retry_after(retry_after)
    }

    /// 500: the server failed with `error`.
    pub fn internal_error(error: impl fmt::Display) -> Self {
        let cause = StatusCause { message: error.to_string(), ..StatusCause::default() };
        let message = format!("Internal error occurred: {error}");
        Self::failure(500, Reason::INTERNAL_ERROR, message).with_cause(cause)
    }

    /// 500: an error upstream has not given a reason to.
    pub fn untyped(message: impl Into<String>) -> Self {
        Self::failure(500, Reason::UNKNOWN, message)
    }

    /// 500: the server gave up on `operation` for now.
    #[must_use]
    pub fn server_timeout(resource: &GroupResource, operation: &str, retry_after: u32) -> Self {
        let message = format!(
            "The {operation} operation against {resource} could not be completed at this time, please try again."
        );
        Self::failure(500, Reason::SERVER_TIMEOUT, message)
            .about(resource, operation)
            .retry_after(retry_after)
    }

    /// 503: the service is not there now.
    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::failure(503, Reason::SERVICE_UNAVAILABLE, message)
    }

    /// 504: the operation took too long and may still complete.
    pub fn timeout(message: impl fmt::Display, retry_after: u32) -> Self {
        Self::failure(504, Reason::TIMEOUT, format!("Timeout: {message}"))
            .with_details(StatusDetails::default())
            .retry_after(retry_after)
    }

    /// 504: a request reached its deadline.
    #[must_use]
    pub fn request_timeout() -> Self {
        Self::timeout("request did not complete within the allotted timeout", 0)
    }

    /// The bare success of a delete that left nothing behind.
    #[must_use]
    pub fn deleted(resource: &GroupResource, name: &str, uid: &str) -> Self {
        let mut status = Self::failure(0, Reason::UNKNOWN, "").about(resource, name);
        status.outcome = Outcome::Success;
        status.details.get_or_insert_default().uid = uid.to_owned();
        status
    }
}

/// The first 30 bytes of a body, in hex unless it looks like JSON.
fn summary(body: &[u8]) -> String {
    let start = &body[..body.len().min(30)];
    let more = if start.len() < body.len() { " ..." } else { "" };
    match start.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(start)),
        Some(_) => start.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + more,
    }
}

/// Who wants to do what, as a refusal says it.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestAttributes<'a> {
    /// The name of the user.
    pub user: &'a str,
    /// The verb, such as `get`.
    pub verb: &'a str,
    /// The API group; empty for core and for paths.
    pub group: &'a str,
    /// The resource; empty when `path` is asked for.
    pub resource: &'a str,
    /// The subresource, or empty.
    pub subresource: &'a str,
    /// The namespace, or empty for the cluster scope.
    pub namespace: &'a str,
    /// The name of the object, or empty.
    pub name: &'a str,
    /// The path of a request for no resource; used only when `resource` is empty.
    pub path: &'a str,
}

impl RequestAttributes<'_> {
    /// Names come from the client, so what looks like HTML is made harmless, as upstream does.
    fn describe(&self) -> String {
        let (user, verb) = (go::quote(self.user), self.verb);
        let text = if self.resource.is_empty() {
            format!("User {user} cannot {verb} path {}", go::quote(self.path))
        } else {
            let slash = if self.subresource.is_empty() { "" } else { "/" };
            let resource = go::quote(&format!("{}{slash}{}", self.resource, self.subresource));
            let place = match self.namespace {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {}", go::quote(namespace)),
            };
            let group = go::quote(self.group);
            format!("User {user} cannot {verb} resource {resource} in API group {group} {place}")
        };
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
    }
}

#[cfg(test)]
#[path = "failures_tests.rs"]
mod tests;
