//! delete and deletecollection.

use concord_codec::{
    DecodeError, Decoded, FieldValidation, MediaType, Options, decode, decode_yaml, negotiate_body, type_meta,
};
use concord_meta::{
    GroupVersion, GroupVersionKind, Status, go,
    options::{DeleteOptions, ListOptions},
};
use concord_protobuf::Unknown;
use concord_registry::{DeleteOutcome, ListRequest, Object};
use concord_server::{Body, RequestContext as _, Response};
use http::{StatusCode, header};
use serde_json::Value;

use super::{in_time, keep};
use crate::{call::Call, form::refused};

/// What upstream calls the place its options are registered in; it is part of an error's text.
const SCHEME: &str = "pkg/apis/meta/internalversion/scheme/register.go:27";

/// The place of a value as Go names it, where it is, what Go reads it into, and whether it fits.
type Member = (&'static str, &'static [&'static str], &'static str, fn(&Value) -> bool);

/// What the options consist of.
const MEMBERS: [Member; 7] = [
    ("DeleteOptions.gracePeriodSeconds", &["gracePeriodSeconds"], "int64", Value::is_i64),
    ("DeleteOptions.preconditions", &["preconditions"], "v1.Preconditions", Value::is_object),
    ("Preconditions.preconditions.uid", &["preconditions", "uid"], "types.UID", Value::is_string),
    (
        "Preconditions.preconditions.resourceVersion",
        &["preconditions", "resourceVersion"],
        "string",
        Value::is_string,
    ),
    ("DeleteOptions.orphanDependents", &["orphanDependents"], "bool", Value::is_boolean),
    ("DeleteOptions.propagationPolicy", &["propagationPolicy"], "v1.DeletionPropagation", Value::is_string),
    ("DeleteOptions.dryRun", &["dryRun"], "[]string", Value::is_array),
];

pub(super) async fn delete(
    call: &Call<'_>,
    body: &mut Body,
    warnings: &mut Vec<String>,
) -> Result<Response, Status> {
    let options = options(call, body).await?;
    let mut context = call.bare_context(options.dry_run);
    context.options = options.to_object();
    let deletion = call.registry.delete(&context, call.resource(), call.object_name(), &options);
    let outcome = Box::pin(in_time(call.deadline(), deletion)).await;
    match keep(call, warnings, &context, outcome)? {
        DeleteOutcome::Gone(status) => call.answer_status(&status),
        DeleteOutcome::GoneObject(item) => call.answer_item(StatusCode::OK, item).await,
        DeleteOutcome::Pending(item) => {
            let cascading = options.orphan_dependents == Some(false);
            let code = if cascading { StatusCode::ACCEPTED } else { StatusCode::OK };
            call.answer_item(code, item).await
        }
    }
}

pub(super) async fn delete_collection(
    call: &Call<'_>,
    body: &mut Body,
    warnings: &mut Vec<String>,
) -> Result<Response, Status> {
    let selected = ListOptions::from_query(call.query())?;
    let options = options(call, body).await?;
    let mut context = call.bare_context(options.dry_run);
    context.options = options.to_object();
    let namespace = Some(call.namespace()).filter(|namespace| !namespace.is_empty());
    let request = ListRequest { namespace, options: &selected };
    // However many there are: no limit but the one on the whole request.
    let deletion = call.registry.delete_collection(&context, call.resource(), request, &options);
    let outcome = Box::pin(deletion).await;
    let listing = keep(call, warnings, &context, outcome)?;
    call.answer_list(call.resource().translate_list(listing).await?, None)
}

/// The options in the body or, if there is none, in the parameters.
async fn options(call: &Call<'_>, body: &mut Body) -> Result<DeleteOptions, Status> {
    let bytes = call.read(body).await?;
    if bytes.is_empty() {
        return DeleteOptions::from_query(call.query());
    }
    let offer = call.resource().offer();
    let media_type = negotiate_body(call.header(header::CONTENT_TYPE), offer).map_err(refused)?;
    let object = match media_type {
        MediaType::Protobuf => in_protobuf(call, &bytes)?,
        _ => decoded(&bytes, media_type)?.object,
    };
    if call.parts.audit().is_some() {
        let mut internal = object.clone();
        internal.insert("kind".to_owned(), "DeleteOptions".into());
        // As upstream, whose options have no other version when they are written down.
        internal.insert("apiVersion".to_owned(), "meta.k8s.io/__internal".into());
        call.audit_sent(&internal);
    }
    checked(object)
}

/// The members of options in protobuf, with what they say they are.
fn in_protobuf(call: &Call<'_>, bytes: &[u8]) -> Result<Object, Status> {
    let unknown = Unknown::read(bytes).map_err(|error| Status::bad_request(error.to_string()))?;
    let codec = call.resource().codec(&GroupVersionKind::new("", "v1", "DeleteOptions"))?;
    let object = codec.decode(unknown.raw);
    let mut object = object.map_err(|error| Status::bad_request(error.to_string()))?;
    object.insert("kind".to_owned(), unknown.kind.into());
    object.insert("apiVersion".to_owned(), unknown.api_version.into());
    Ok(object)
}

fn checked(object: Object) -> Result<DeleteOptions, Status> {
    let seen = type_meta(&object).map_err(|error| undecodable(&error))?;
    if !["", "DeleteOptions"].contains(&seen.kind.as_str()) {
        let version = GroupVersion::new(seen.group, seen.version).to_string();
        let (kind, version) = (go::quote(&seen.kind), go::quote(&version));
        return Err(Status::bad_request(format!(
            "no kind {kind} is registered for version {version} in scheme \"{SCHEME}\""
        )));
    }
    check_members(&object)?;
    DeleteOptions::from_body(&Value::Object(object))
}

fn decoded(bytes: &[u8], media_type: MediaType) -> Result<Decoded, Status> {
    let options = Options { validation: FieldValidation::Ignore, ..Options::default() };
    let decoded = match media_type {
        MediaType::Yaml => decode_yaml(bytes, &options),
        _ => decode(bytes, &options),
    };
    decoded.map_err(|error| undecodable(&error))
}

fn undecodable(error: &DecodeError) -> Status {
    match error {
        DecodeError::Syntax { .. }
        | DecodeError::UnexpectedEnd
        | DecodeError::NotAnObject { .. }
        | DecodeError::TypeField { .. } => {
            Status::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
        }
        error => Status::bad_request(error.to_string()),
    }
}

/// The first value of a wrong type, in Go's words.
fn check_members(object: &Object) -> Result<(), Status> {
    for (place, path, go_type, fits) in MEMBERS {
        let (first, rest) = path.split_first().expect("every member is somewhere");
        let value = rest.iter().try_fold(object.get(*first), |value, name| Some(value?.get(name)));
        let Some(value) = value.flatten().filter(|value| !value.is_null()) else { continue };
        if !fits(value) {
            return Err(unfit(value, place, go_type));
        }
        let items = value.as_array().into_iter().flatten();
        if let Some(item) = items.into_iter().find(|item| !item.is_string() && !item.is_null()) {
            return Err(unfit(item, place, "string"));
        }
    }
    Ok(())
}

fn unfit(value: &Value, place: &str, go_type: &str) -> Status {
    let found = match value {
        // Of a number that is none of the right kind the value is told.
        Value::Number(number) if go_type == "int64" => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) | Value::Null => "object".to_owned(),
    };
    Status::bad_request(format!(
        "json: cannot unmarshal {found} into Go struct field {place} of type {go_type}"
    ))
}

#[cfg(test)]
mod tests {
    use concord_meta::options::PropagationPolicy;

    use super::*;

    fn read(bytes: &[u8], media_type: MediaType) -> Result<DeleteOptions, Status> {
        checked(decoded(bytes, media_type)?.object)
    }

    #[test]
    fn bodies_are_read_in_both_forms() {
        let json =
            br#"{"kind":"DeleteOptions","apiVersion":"apps/v1","propagationPolicy":"Orphan","other":1}"#;
        let yaml = b"propagationPolicy: Orphan\n";
        for options in [read(json, MediaType::Json), read(yaml, MediaType::Yaml)] {
            assert_eq!(options.expect("options").propagation_policy, Some(PropagationPolicy::Orphan));
        }
        assert_eq!(read(b"null", MediaType::Json), Ok(DeleteOptions::default()));
    }

    #[test]
    fn what_are_no_options_is_refused_in_upstreams_words() {
        let struct_type = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                           \"json:\\\"kind,omitempty\\\"\" }";
        let array = format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type {struct_type}"
        );
        for (body, message) in [
            ("{", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
            ("[]", &array),
            (
                r#"{"kind":"Foo","apiVersion":"v1"}"#,
                "no kind \"Foo\" is registered for version \"v1\" in scheme \
                 \"pkg/apis/meta/internalversion/scheme/register.go:27\"",
            ),
            (
                r#"{"gracePeriodSeconds":"a"}"#,
                "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
            ),
            (
                r#"{"gracePeriodSeconds":1.5}"#,
                "json: cannot unmarshal number 1.5 into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
            ),
            (
                r#"{"orphanDependents":1.5}"#,
                "json: cannot unmarshal number into Go struct field DeleteOptions.orphanDependents of type bool",
            ),
            (
                r#"{"dryRun":["All",1]}"#,
                "json: cannot unmarshal number into Go struct field DeleteOptions.dryRun of type string",
            ),
            (
                r#"{"preconditions":{"uid":1}}"#,
                "json: cannot unmarshal number into Go struct field Preconditions.preconditions.uid of type types.UID",
            ),
        ] {
            let status = read(body.as_bytes(), MediaType::Json).expect_err(body);
            assert_eq!((status.code, status.message.as_str()), (400, message), "{body}");
        }
    }
}
