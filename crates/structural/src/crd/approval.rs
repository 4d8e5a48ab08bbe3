//! Groups of the Kubernetes project: definitions in them say where they were approved.

use concord_meta::field::{Error, Path};
use serde_json::Value;

use crate::{Object, formats::url};

const ANNOTATION: &str = "api-approved.kubernetes.io";

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
    let demand = format!("protected groups must have approval annotation \"{ANNOTATION}\"");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match state_now {
        State::Approved | State::Bypassed => None,
        State::Missing => Some(Error::required(&path, format!("{demand}, {see}"))),
        State::Invalid => {
            let detail =
                format!("{demand} with either a URL or a reason starting with \"unapproved\", {see}");
            Some(Error::invalid(&path, given, detail))
        }
    }
}
