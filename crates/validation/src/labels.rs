//! Labels, annotations and the selectors over labels.

use concord_meta::{field::BadValue, go, names, objectmeta::MAX_ANNOTATION_BYTES};
use serde_json::{Map, Value};

use crate::{node::Node, rules::qualified_name};

type Labels = Map<String, Value>;

/// Keys and values are those of labels. Errors name the map, not the key.
pub(crate) fn labels(node: Node<'_>) {
    for (key, value) in node.object().into_iter().flatten() {
        node.check_text(key, qualified_name);
        node.check_text(value.as_str().unwrap_or_default(), names::label_value);
    }
}

/// Keys are those of annotations, which may have upper case in front of the slash; all together are not too long.
pub(crate) fn annotations(node: Node<'_>) {
    let mut bytes = 0_usize;
    for (key, value) in node.object().into_iter().flatten() {
        if !qualified_name(key).is_empty() {
            for problem in qualified_name(&key.to_lowercase()) {
                node.invalid(key, problem);
            }
        }
        bytes += key.len() + value.as_str().unwrap_or_default().len();
    }
    if bytes > MAX_ANNOTATION_BYTES {
        node.too_long(MAX_ANNOTATION_BYTES);
    }
}

/// Whether a selector's values have to be labels' too. An object that had others may keep them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Values {
    Labels,
    Any,
}

/// A selector, if there is one, is well-formed.
pub(crate) fn selector(node: Node<'_>, values: Values) {
    labels(node.get("matchLabels"));
    for requirement in node.get("matchExpressions").items() {
        let at = requirement.get("values");
        match requirement.str("operator") {
            "In" | "NotIn" if at.is_empty() => {
                at.required("must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !at.is_empty() => {
                at.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                requirement.child("operator").invalid(BadValue::named(other), "not a valid selector operator")
            }
        }
        requirement.get("key").check(qualified_name);
        if values == Values::Labels {
            at.items().for_each(|value| value.check(names::label_value));
        }
    }
}

/// Whether a selector says nothing.
pub(crate) fn is_empty(selector: Node<'_>) -> bool {
    selector.get("matchLabels").is_empty() && selector.get("matchExpressions").is_empty()
}

/// What upstream makes of a selector: none where it is malformed.
pub(crate) fn matches(selector: Node<'_>, labels: Option<&Labels>) -> Option<bool> {
    if !selector.is_set() {
        return Some(false);
    }
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let mut all = true;
    for (key, value) in selector.get("matchLabels").object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        if !qualified_name(key).is_empty() || !names::label_value(value).is_empty() {
            return None;
        }
        all &= label(key) == Some(value);
    }
    for requirement in selector.get("matchExpressions").list() {
        all &= requirement_matches(requirement, label)?;
    }
    Some(all)
}

fn requirement_matches<'l>(requirement: &Value, label: impl Fn(&str) -> Option<&'l str>) -> Option<bool> {
    let text = |name: &str| requirement.get(name).and_then(Value::as_str).unwrap_or_default();
    let values = requirement.get("values").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let well_formed = qualified_name(text("key")).is_empty()
        && values.iter().all(|value| names::label_value(value.as_str().unwrap_or_default()).is_empty());
    let found = label(text("key"));
    let named = found.is_some_and(|found| values.iter().any(|value| value == found));
    match (text("operator"), values.is_empty()) {
        _ if !well_formed => None,
        ("In", false) => Some(named),
        ("NotIn", false) => Some(!named),
        ("Exists", true) => Some(found.is_some()),
        ("DoesNotExist", true) => Some(found.is_none()),
        _ => None,
    }
}

/// A selector as errors show it: its members have the order of Go's type.
pub(crate) fn shown(selector: Node<'_>) -> BadValue {
    let Some(value) = selector.value() else { return BadValue::verbatim("null") };
    let mut members = Vec::new();
    if let Some(labels) =
        value.get("matchLabels").filter(|labels| labels.as_object().is_some_and(|l| !l.is_empty()))
    {
        members.push(format!("\"matchLabels\":{}", go::json(labels)));
    }
    let expressions = selector.get("matchExpressions").list();
    if !expressions.is_empty() {
        let expressions: Vec<_> = expressions.iter().map(expression).collect();
        members.push(format!("\"matchExpressions\":[{}]", expressions.join(",")));
    }
    BadValue::verbatim(format!("{{{}}}", members.join(",")))
}

fn expression(value: &Value) -> String {
    let text = |name: &str| go::json(value.get(name).unwrap_or(&Value::from("")));
    let values = match value.get("values").and_then(Value::as_array) {
        Some(values) if !values.is_empty() => {
            format!(",\"values\":{}", go::json(&Value::from(values.clone())))
        }
        _ => String::new(),
    };
    format!("{{\"key\":{},\"operator\":{}{values}}}", text("key"), text("operator"))
}
