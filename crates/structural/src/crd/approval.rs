//! Groups of the Kubernetes project: definitions in them say where they were approved.

use concord_meta::{
    field::{Error, Path},
    go,
};
use serde_json::Value;

use crate::{Object, formats::url};

const ANNOTATION: &str = "api-approved.kubernetes.io";
const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Invalid,
    Approved,
    Bypassed,
    Missing,
}

fn annotation(definition: &Object) -> &str {
    let annotations = definition.get("metadata").and_then(|metadata| metadata.get("annotations"));
    annotations
        .and_then(|annotations| annotations.get(ANNOTATION))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn state(annotation: &str) -> State {
    if annotation.is_empty() {
        return State::Missing;
    }
    if annotation.starts_with("unapproved") {
        return State::Bypassed;
    }
    match url::parse_request_uri(annotation) {
        Ok(url) if !url.host.is_empty() && !url.scheme.is_empty() => State::Approved,
        _ => State::Invalid,
    }
}

fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].into_iter().any(|domain| {
        group.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

/// What the condition `KubernetesAPIApprovalPolicyConformant` of a definition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Whether the definition was approved.
    pub is_approved: bool,
    /// The reason of the condition.
    pub reason: &'static str,
    /// Its message.
    pub message: String,
}

/// Whether a definition in a group of the Kubernetes project was approved; `None` in any other group.
#[must_use]
pub fn approval(definition: &Object) -> Option<Approval> {
    let group = definition.get("spec").and_then(|spec| spec.get("group")).and_then(Value::as_str);
    if !is_protected(group.unwrap_or_default()) {
        return None;
    }
    let given = annotation(definition);
    let (reason, message) = match state(given) {
        State::Invalid => ("InvalidAnnotation", demand_of_value()),
        State::Missing => ("MissingAnnotation", demand_of_annotation()),
        State::Approved => ("ApprovedAnnotation", format!("approved in {given}")),
        State::Bypassed => ("UnapprovedAnnotation", format!("not approved: {}", go::quote(given))),
    };
    Some(Approval { is_approved: state(given) == State::Approved, reason, message })
}

fn demand_of_annotation() -> String {
    format!("protected groups must have approval annotation \"{ANNOTATION}\", {SEE}")
}

fn demand_of_value() -> String {
    format!(
        "protected groups must have approval annotation \"{ANNOTATION}\" with either a URL or a reason starting with \
         \"unapproved\", {SEE}"
    )
}

/// Whether the annotation is what a protected group demands. What was wrong before may stay so.
pub(super) fn validate(definition: &Object, old: Option<&Object>) -> Option<Error> {
    let group = definition.get("spec").and_then(|spec| spec.get("group")).and_then(Value::as_str);
    if !is_protected(group.unwrap_or_default()) {
        return None;
    }
    let given = annotation(definition);
    let state_now = state(given);
    if old.is_some_and(|old| state(annotation(old)) == state_now) {
        return None;
    }
    let path = Path::new("metadata").child("annotations").key(ANNOTATION);
    match state_now {
        State::Approved | State::Bypassed => None,
        State::Missing => Some(Error::required(&path, demand_of_annotation())),
        State::Invalid => Some(Error::invalid(&path, given, demand_of_value())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_condition_says_what_the_annotation_does() {
        let of = |group: &str, annotation: &str| {
            let definition =
                json!({"metadata": {"annotations": {ANNOTATION: annotation}}, "spec": {"group": group}});
            approval(definition.as_object().expect("an object")).map(|approval| {
                assert_eq!(approval.is_approved, approval.reason == "ApprovedAnnotation");
                (approval.reason, approval.message)
            })
        };
        assert_eq!(of("example.com", ""), None);
        assert_eq!(of("myk8s.io", ""), None);
        let text = |text: &str| text.to_owned();
        assert_eq!(
            of("x.k8s.io", "https://a.b/c"),
            Some(("ApprovedAnnotation", text("approved in https://a.b/c")))
        );
        assert_eq!(
            of("x.k8s.io", "unapproved, why"),
            Some(("UnapprovedAnnotation", text("not approved: \"unapproved, why\"")))
        );
        assert_eq!(of("kubernetes.io", "yes"), Some(("InvalidAnnotation", demand_of_value())));
        assert_eq!(of("k8s.io", ""), Some(("MissingAnnotation", demand_of_annotation())));
    }
}
