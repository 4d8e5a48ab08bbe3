//! Every failure: its code, its reason, its text, what it is about.

use crate::field::{Error, Path};
use crate::{
    CauseType, GroupKind, GroupResource, GroupVersionKind, Reason, RequestAttributes, Status, StatusCause,
};

fn pods() -> GroupResource {
    GroupResource::new("", "pods")
}

fn deployments() -> GroupResource {
    GroupResource::new("apps", "deployments")
}

fn conflict_cause() -> StatusCause {
    StatusCause {
        reason: CauseType::FIELD_MANAGER_CONFLICT,
        message: "conflict with \"m1\"".to_owned(),
        field: ".data.b".to_owned(),
    }
}

#[test]
fn every_failure_has_upstreams_code_reason_and_text() {
    let table: Vec<(Status, u16, Reason, &str)> = vec![
        (Status::bad_request("why"), 400, Reason::BAD_REQUEST, "why"),
        (Status::unauthorized(), 401, Reason::UNAUTHORIZED, "Unauthorized"),
        (Status::forbidden(&pods(), "p", "why"), 403, Reason::FORBIDDEN, r#"pods "p" is forbidden: why"#),
        (
            Status::forbidden(&deployments(), "", "why"),
            403,
            Reason::FORBIDDEN,
            "deployments.apps is forbidden: why",
        ),
        (Status::forbidden(&GroupResource::default(), "", "why"), 403, Reason::FORBIDDEN, "forbidden: why"),
        (
            Status::namespace_terminating(&pods(), "p", "ns"),
            403,
            Reason::FORBIDDEN,
            r#"pods "p" is forbidden: unable to create new content in namespace ns because it is being terminated"#,
        ),
        (Status::not_found(&deployments(), "d"), 404, Reason::NOT_FOUND, r#"deployments.apps "d" not found"#),
        (
            Status::unknown_resource(),
            404,
            Reason::NOT_FOUND,
            "the server could not find the requested resource",
        ),
        (
            Status::method_not_supported(&deployments(), "watch"),
            405,
            Reason::METHOD_NOT_ALLOWED,
            r#"watch is not supported on resources of kind "deployments.apps""#,
        ),
        (
            Status::method_not_allowed(),
            405,
            Reason::METHOD_NOT_ALLOWED,
            "the server does not allow this method on the requested resource",
        ),
        (
            Status::not_acceptable(&["application/json", "application/yaml"]),
            406,
            Reason::NOT_ACCEPTABLE,
            "only the following media types are accepted: application/json, application/yaml",
        ),
        (Status::already_exists(&pods(), "p"), 409, Reason::ALREADY_EXISTS, r#"pods "p" already exists"#),
        (
            Status::being_deleted(&pods(), "p"),
            409,
            Reason::ALREADY_EXISTS,
            r#"object is being deleted: pods "p" already exists"#,
        ),
        (
            Status::generate_name_conflict(&pods(), "p-x"),
            409,
            Reason::ALREADY_EXISTS,
            r#"pods "p-x" already exists, the server was not able to generate a unique name for the object"#,
        ),
        (
            Status::modified(&pods(), "p"),
            409,
            Reason::CONFLICT,
            r#"Operation cannot be fulfilled on pods "p": the object has been modified; please apply your changes to the latest version and try again"#,
        ),
        (
            Status::apply_conflict(vec![conflict_cause()], "Apply failed with 1 conflict: ..."),
            409,
            Reason::CONFLICT,
            "Apply failed with 1 conflict: ...",
        ),
        (Status::gone("old"), 410, Reason::GONE, "old"),
        (Status::expired("old"), 410, Reason::EXPIRED, "old"),
        (
            Status::body_too_large(),
            413,
            Reason::REQUEST_ENTITY_TOO_LARGE,
            "Request entity too large: limit is 3145728",
        ),
        (
            Status::unsupported_media_type(&["application/json"]),
            415,
            Reason::UNSUPPORTED_MEDIA_TYPE,
            "the body of the request was in an unknown format - accepted media types include: application/json",
        ),
        (
            Status::unprocessable_patch(),
            422,
            Reason::INVALID,
            "the server rejected our request due to an error in our request",
        ),
        (Status::too_many_requests("later", 3), 429, Reason::TOO_MANY_REQUESTS, "later"),
        (Status::internal_error("boom"), 500, Reason::INTERNAL_ERROR, "Internal error occurred: boom"),
        (Status::untyped("boom"), 500, Reason::UNKNOWN, "boom"),
        (
            Status::server_timeout(&pods(), "list", 2),
            500,
            Reason::SERVER_TIMEOUT,
            "The list operation against pods could not be completed at this time, please try again.",
        ),
        (Status::service_unavailable("not yet"), 503, Reason::SERVICE_UNAVAILABLE, "not yet"),
        (
            Status::request_timeout(),
            504,
            Reason::TIMEOUT,
            "Timeout: request did not complete within the allotted timeout",
        ),
    ];
    for (status, code, reason, message) in table {
        assert_eq!((status.code, &status.reason, status.message.as_str()), (code, &reason, message));
    }
}

#[test]
fn details_say_what_it_is_about() {
    let table = [
        (Status::bad_request("why"), None),
        (Status::unknown_resource(), Some(("", "", ""))),
        (Status::request_timeout(), Some(("", "", ""))),
        (Status::not_found(&deployments(), "d"), Some(("d", "apps", "deployments"))),
        (Status::method_not_supported(&deployments(), "watch"), Some(("", "apps", "deployments"))),
        (Status::server_timeout(&pods(), "list", 2), Some(("list", "", "pods"))),
        (Status::invalid(&GroupKind::new("apps", "Deployment"), "d", &[]), Some(("d", "apps", "Deployment"))),
    ];
    for (status, expected) in table {
        let about = status.details.as_ref().map(|d| (d.name.as_str(), d.group.as_str(), d.kind.as_str()));
        assert_eq!(about, expected, "{status}");
    }
    assert_eq!(Status::generate_name_conflict(&pods(), "p").retry_after_seconds(), Some(1));
    assert_eq!(Status::too_many_requests("later", 3).retry_after_seconds(), Some(3));
    assert_eq!(Status::request_timeout().retry_after_seconds(), None);
    assert_eq!(Status::bad_request("why").retry_after_seconds(), None);
}

#[test]
fn causes_are_given_where_upstream_gives_them() {
    let terminating = Status::namespace_terminating(&pods(), "p", "ns");
    assert!(terminating.has_cause(&CauseType::NAMESPACE_TERMINATING));
    assert!(!terminating.has_cause(&CauseType::DISRUPTION_BUDGET));
    let conflict = Status::apply_conflict(vec![conflict_cause()], "");
    assert!(conflict.has_cause(&CauseType::FIELD_MANAGER_CONFLICT));
    let internal = Status::internal_error("boom").details.expect("has a cause").causes;
    assert_eq!(internal, [StatusCause { message: "boom".to_owned(), ..StatusCause::default() }]);
    let budget = StatusCause { reason: CauseType::DISRUPTION_BUDGET, ..StatusCause::default() };
    assert!(Status::bad_request("").with_cause(budget).has_cause(&CauseType::DISRUPTION_BUDGET));
}

#[test]
fn field_errors_become_one_message_and_their_causes() {
    let kind = GroupKind::new("apps", "Deployment");
    let required = Error::required(&Path::new("spec").child("selector"), "");
    let invalid = Error::invalid(&Path::new("metadata").child("name"), "-", "why");
    let table: [(&[Error], &str); 3] = [
        (&[], r#"Deployment.apps "d" is invalid"#),
        (std::slice::from_ref(&required), r#"Deployment.apps "d" is invalid: spec.selector: Required value"#),
        (
            &[required.clone(), invalid],
            r#"Deployment.apps "d" is invalid: [spec.selector: Required value, metadata.name: Invalid value: "-": why]"#,
        ),
    ];
    for (errors, message) in table {
        let status = Status::invalid(&kind, "d", errors);
        assert_eq!(status.message, message);
        let causes = status.details.expect("always details").causes;
        let causes: Vec<_> =
            causes.iter().map(|cause| (cause.reason.as_str(), cause.field.as_str())).collect();
        let expected: Vec<_> = errors.iter().map(|e| (e.error_type.cause(), e.field.as_str())).collect();
        assert_eq!(causes, expected);
    }
    // The message names an error once, the causes keep both.
    let twice = Status::invalid(&kind, "d", &[required.clone(), required]);
    assert_eq!(twice.message, r#"Deployment.apps "d" is invalid: spec.selector: Required value"#);
    assert_eq!(twice.details.expect("always details").causes.len(), 2);
}

#[test]
fn a_refusal_says_who_may_not_do_what() {
    let user = RequestAttributes { user: "u", verb: "get", ..RequestAttributes::default() };
    let log =
        RequestAttributes { resource: "pods", subresource: "log", name: "x", namespace: "default", ..user };
    let table = [
        (
            log,
            "",
            r#"pods "x" is forbidden: User "u" cannot get resource "pods/log" in API group "" in the namespace "default""#,
        ),
        (
            RequestAttributes { verb: "list", resource: "deployments", group: "apps", ..user },
            "because",
            r#"deployments.apps is forbidden: User "u" cannot list resource "deployments" in API group "apps" at the cluster scope: because"#,
        ),
        (RequestAttributes { path: "/foo", ..user }, "", r#"forbidden: User "u" cannot get path "/foo""#),
        (
            RequestAttributes { path: "/<&>", user: "<b>", ..user },
            "a < b",
            r#"forbidden: User "&lt;b&gt;" cannot get path "/&lt;&amp;&gt;": a < b"#,
        ),
    ];
    for (attributes, reason, message) in table {
        assert_eq!(Status::not_authorized(&attributes, reason).message, message);
    }
}

#[test]
fn failures_of_preconditions_name_both_sides() {
    let kind = GroupKind::new("", "ConfigMap");
    let table = [
        (
            Status::delete_uid_mismatch(&kind, "c", "A", "B"),
            r#"Operation cannot be fulfilled on ConfigMap "c": the UID in the precondition (A) does not match the UID in record (B). The object might have been deleted and then recreated"#,
        ),
        (
            Status::delete_resource_version_mismatch(&kind, "c", "1", "2"),
            r#"Operation cannot be fulfilled on ConfigMap "c": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (2). The object might have been modified"#,
        ),
        (
            Status::update_uid_mismatch(&pods(), "p", "/registry/pods/ns/p", "A", "B"),
            r#"Operation cannot be fulfilled on pods "p": StorageError: invalid object, Code: 4, Key: /registry/pods/ns/p, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: A, UID in object meta: B"#,
        ),
    ];
    for (status, message) in table {
        assert_eq!((status.code, status.message.as_str()), (409, message));
    }
}

#[test]
fn failures_of_history_say_where_it_is() {
    let inconsistent = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
    let table = [
        (Status::list_expired(), "The resourceVersion for the provided list is too old."),
        (Status::watch_expired(), "The resourceVersion for the provided watch is too old."),
        (Status::too_old_resource_version(5, 90), "too old resource version: 5 (90)"),
        (
            Status::continue_expired(None),
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
        ),
        (Status::continue_expired(Some("token")), inconsistent),
    ];
    for (status, message) in table {
        assert_eq!((status.code, &status.reason, status.message.as_str()), (410, &Reason::EXPIRED, message));
    }
    assert_eq!(Status::continue_expired(Some("token")).continue_token, "token");
    let future = Status::too_large_resource_version(99, 7);
    assert_eq!(future.message, "Timeout: Too large resource version: 99, current: 7");
    assert_eq!((future.code, future.retry_after_seconds()), (504, Some(1)));
    assert!(future.has_cause(&CauseType::RESOURCE_VERSION_TOO_LARGE));
}

#[test]
fn an_undecodable_body_is_shown_by_its_beginning() {
    let table: [(&[u8], &str); 5] = [
        (b"", "<empty>"),
        (b"{\"a\":", "{\"a\":"),
        (b"{\"a\":\"0123456789012345678901234567890\"}", "{\"a\":\"012345678901234567890123 ..."),
        (b"\xff\x00a", "ff0061"),
        (&[b'0'; 31], "303030303030303030303030303030303030303030303030303030303030 ..."),
    ];
    for (body, shown) in table {
        let expected = format!("the object provided is unrecognized (must be of type Pod): why ({shown})");
        assert_eq!(Status::undecodable("Pod", "why", body).message, expected);
    }
    let pod = GroupVersionKind::new("", "v1", "Pod");
    let status = Status::unfit(&pod, "ConfigMap", "why");
    assert_eq!(status.message, r#"Pod in version "v1" cannot be handled as a ConfigMap: why"#);
}
