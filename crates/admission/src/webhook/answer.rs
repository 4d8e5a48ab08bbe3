//! The answer of a webhook: an AdmissionReview with a response.

use base64::{Engine, engine::general_purpose::STANDARD};
use concord_codec::{DecodeError, Limits, Options, decode, decode_yaml, type_meta};
use concord_meta::{GroupVersion, Outcome, Reason, Status, go::quote};
use concord_registry::Object;
use serde_json::Value;

use super::review::ReviewVersion;

/// What a webhook answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) allowed: bool,
    pub(super) patch: Vec<u8>,
    pub(super) patch_type: String,
    pub(super) status: Option<Object>,
    pub(super) warnings: Vec<String>,
    pub(super) audit_annotations: Vec<(String, String)>,
}

/// An answer that is none, and at what point that was seen. The texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BadAnswer {
    /// It cannot be read.
    Unreadable(String),
    /// It does not answer the question.
    Invalid(String),
}

/// Whose scheme upstream's texts name.
const SCHEME: &str = "pkg/util/webhook/client.go:71";

/// Reads an answer to the question of this uid.
pub(super) fn read(
    body: &[u8],
    version: ReviewVersion,
    uid: &str,
    mutating: bool,
) -> Result<Answer, BadAnswer> {
    let review = decoded(body).map_err(BadAnswer::Unreadable)?;
    let said = said_kind(&review, version).map_err(BadAnswer::Unreadable)?;
    let response =
        typed(&review, "AdmissionReview.response", "response", "v1.AdmissionResponse", Value::is_object);
    let response = response.map_err(BadAnswer::Unreadable)?.and_then(Value::as_object);
    let Some(response) = response else {
        return Err(BadAnswer::Invalid("webhook response was absent".to_owned()));
    };
    let mut answer = parsed(response).map_err(BadAnswer::Unreadable)?;
    match version {
        ReviewVersion::V1 => check(&answer, response, &said, uid, mutating).map_err(BadAnswer::Invalid)?,
        // That version says nothing about what kind of patch there is.
        ReviewVersion::V1Beta1 if mutating && !answer.patch.is_empty() => {
            answer.patch_type = "JSONPatch".to_owned();
        }
        ReviewVersion::V1Beta1 => {}
    }
    Ok(answer)
}

fn decoded(body: &[u8]) -> Result<Object, String> {
    let limits = Limits { max_bytes: body.len(), ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    let is_json = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    // Upstream takes everything that does not begin like a JSON object for YAML.
    let decoded = if is_json { decode(body, &options) } else { decode_yaml(body, &options) };
    decoded.map(|decoded| decoded.object).map_err(|error| unreadable(&error))
}

fn unreadable(error: &DecodeError) -> String {
    format!("couldn't get version/kind; json parse error: {error}")
}

/// What the answer says it is, if that can be what was asked for.
fn said_kind(review: &Object, version: ReviewVersion) -> Result<String, String> {
    let seen = type_meta(review).map_err(|error| unreadable(&error))?;
    let api_version = GroupVersion::new(seen.group.clone(), seen.version.clone()).to_string();
    let wanted = version.as_str();
    let is_known = seen.group == "admission.k8s.io" && ["v1", "v1beta1"].contains(&seen.version.as_str());
    match (seen.kind.as_str(), seen.version.as_str()) {
        ("", "") => {}
        ("AdmissionReview", said) if is_known && said == wanted => {}
        ("AdmissionReview", said) if is_known => {
            return Err(format!(
                "converting ({said}.AdmissionReview) to ({wanted}.AdmissionReview): unknown conversion"
            ));
        }
        (kind, _) => {
            let (kind, api_version) = (quote(kind), quote(&api_version));
            return Err(format!(
                "no kind {kind} is registered for version {api_version} in scheme \"{SCHEME}\""
            ));
        }
    }
    let group_version = if seen.version.is_empty() { "/".to_owned() } else { api_version };
    Ok(format!("{group_version}, Kind={}", seen.kind))
}

/// A member that has to be of a type of Go's; `None` if it is absent or null.
fn typed<'a>(
    object: &'a Object,
    place: &str,
    field: &str,
    go_type: &str,
    fits: fn(&Value) -> bool,
) -> Result<Option<&'a Value>, String> {
    match object.get(field).filter(|value| !value.is_null()) {
        Some(value) if !fits(value) => {
            let found = match value {
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) | Value::Null => "object",
            };
            Err(format!("json: cannot unmarshal {found} into Go struct field {place} of type {go_type}"))
        }
        found => Ok(found),
    }
}

fn parsed(response: &Object) -> Result<Answer, String> {
    let member = |field: &str, go_type: &str, fits: fn(&Value) -> bool| {
        typed(response, &format!("AdmissionResponse.response.{field}"), field, go_type, fits)
    };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    member("uid", "types.UID", Value::is_string)?;
    let allowed = member("allowed", "bool", Value::is_boolean)?.and_then(Value::as_bool).unwrap_or_default();
    let patch = text(member("patch", "[]uint8", Value::is_string)?);
    let patch =
        STANDARD.decode(patch).map_err(|error| format!("illegal base64 data in response.patch: {error}"))?;
    let strings = |value: &Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
    let all_text = |value: &Value| value.as_object().is_some_and(|map| map.values().all(Value::is_string));
    let warnings = member("warnings", "[]string", strings)?.and_then(Value::as_array);
    let annotations = member("auditAnnotations", "map[string]string", all_text)?.and_then(Value::as_object);
    let pair = |(key, value): (&String, &Value)| (key.clone(), text(Some(value)));
    Ok(Answer {
        allowed,
        patch,
        patch_type: text(member("patchType", "v1.PatchType", Value::is_string)?),
        status: member("status", "v1.Status", Value::is_object)?.and_then(Value::as_object).cloned(),
        warnings: warnings.into_iter().flatten().map(|warning| text(Some(warning))).collect(),
        audit_annotations: annotations.into_iter().flatten().map(pair).collect(),
    })
}

/// Whether it answers the question.
fn check(answer: &Answer, response: &Object, said: &str, uid: &str, mutating: bool) -> Result<(), String> {
    let told = response.get("uid").and_then(Value::as_str).unwrap_or_default();
    if told != uid {
        return Err(format!("expected response.uid={}, got {}", quote(uid), quote(told)));
    }
    let wanted = "admission.k8s.io/v1, Kind=AdmissionReview";
    if said != wanted {
        return Err(format!("expected webhook response of {wanted}, got {said}"));
    }
    let has_patch = !answer.patch.is_empty();
    let has_type = response.get("patchType").is_some_and(|value| !value.is_null());
    let why = match (mutating, has_patch, has_type) {
        (true, true, false) => "webhook returned response.patch but not response.patchType",
        (true, false, true) => "webhook returned response.patchType but not response.patch",
        (true, true, true) if answer.patch_type.is_empty() => {
            "webhook returned invalid response.patchType of \"\""
        }
        (false, true, _) => "validating webhook may not return response.patch",
        (false, false, true) => "validating webhook may not return response.patchType",
        _ => return Ok(()),
    };
    Err(why.to_owned())
}

/// The refusal that an answer stands for, in the name of the webhook.
pub(super) fn denial(webhook: &str, status: Option<&Object>) -> Status {
    let text =
        |field: &str| status.and_then(|status| status.get(field)?.as_str()).unwrap_or_default().to_owned();
    let told = status.and_then(|status| serde_json::from_value::<Status>(Value::Object(status.clone())).ok());
    let code = status.and_then(|status| status.get("code")?.as_u64()).unwrap_or_default();
    let denied = format!("admission webhook {} denied the request", quote(webhook));
    let message = match (text("message"), text("reason")) {
        (message, _) if !message.is_empty() => format!("{denied}: {message}"),
        (_, reason) if !reason.is_empty() => format!("{denied}: {reason}"),
        _ => format!("{denied} without explanation"),
    };
    // A refusal is never told as a success.
    let code = u16::try_from(code).ok().filter(|code| (400..600).contains(code)).unwrap_or(400);
    let mut denial = Status::failure(code, Reason::new(text("reason")), message);
    denial.outcome = Outcome::Failure;
    denial.details = told.and_then(|told| told.details);
    denial
}

#[cfg(test)]
mod tests;
