//! Which nodes a pod goes to, and beside which pods.

use concord_meta::{field::BadValue, names};
use serde_json::Value;

use super::Options;
use crate::{
    labels::{Values, selector},
    node::Node,
    rules::qualified_name,
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn affinity(affinity: Node<'_>, options: &Options<'_>) {
    if !affinity.is_set() {
        return;
    }
    let node = affinity.get("nodeAffinity");
    if node.has(REQUIRED) {
        node_selector(node.get(REQUIRED), options.node_affinity_values);
    }
    for term in node.get(PREFERRED).items() {
        weight(term);
        node_selector_term(term.get("preference"), Values::Any);
    }
    for name in ["podAffinity", "podAntiAffinity"] {
        if !affinity.has(name) {
            continue;
        }
        let pods = affinity.get(name);
        pods.get(REQUIRED).items().for_each(|term| pod_term(term, options.selector_values));
        for term in pods.get(PREFERRED).items() {
            weight(term);
            pod_term(term.get("podAffinityTerm"), options.selector_values);
        }
    }
}

/// All terms about pods, for the question whether they were well-formed.
pub(super) fn pod_terms<'v>(affinity: Node<'v>) -> Vec<Node<'v>> {
    let kinds = ["podAffinity", "podAntiAffinity"].map(|name| affinity.get(name));
    let required = kinds.into_iter().flat_map(|pods| pods.get(REQUIRED).items().collect::<Vec<_>>());
    let preferred = kinds.into_iter().flat_map(|pods| pods.get(PREFERRED).items().collect::<Vec<_>>());
    required.chain(preferred.map(|term| term.get("podAffinityTerm"))).collect()
}

/// The required terms about nodes.
pub(super) fn required_terms(affinity: Node<'_>) -> Node<'_> {
    affinity.get("nodeAffinity").get2(REQUIRED, "nodeSelectorTerms")
}

fn weight(term: Node<'_>) {
    let number = term.num("weight");
    if !(1..=100).contains(&number) {
        term.child("weight").invalid(number, "must be in the range 1-100");
    }
}

/// The selectors of a term about pods.
pub(super) fn term_selectors(term: Node<'_>, values: Values) {
    selector(term.get("labelSelector"), values);
    selector(term.get("namespaceSelector"), values);
}

fn pod_term(term: Node<'_>, values: Values) {
    term_selectors(term, values);
    for name in term.get("namespaces").list().iter().filter_map(Value::as_str) {
        term.child("namespace").check_text(name, names::dns1123_label);
    }
    match_label_keys(term, term.get("labelSelector"), true);
    let key = term.get("topologyKey");
    if key.text().is_empty() {
        key.required("can not be empty");
    }
    key.check(qualified_name);
}

/// Keys of labels whose values are taken from the pod itself.
pub(super) fn match_label_keys<'v>(term: Node<'v>, selector: Node<'v>, mismatch: bool) {
    let matching = term.get("matchLabelKeys");
    let mismatching = if mismatch { term.get("mismatchLabelKeys") } else { term.child("mismatchLabelKeys") };
    for keys in [matching, mismatching].into_iter().filter(|keys| !keys.is_empty()) {
        match selector.is_set() {
            true => keys.items().for_each(|key| key.check(qualified_name)),
            false => keys.forbidden("must not be specified when labelSelector is not set"),
        }
    }
    let keys = matching.list();
    if !keys.is_empty() && selector.is_set() {
        repeated_keys(term, selector, keys);
    }
    for key in matching.items() {
        if mismatching.list().iter().any(|other| Some(other) == key.value()) {
            key.invalid(key.text(), "exists in both matchLabelKeys and mismatchLabelKeys");
        }
    }
}

/// A key counts as repeated when the selector has it twice: once by itself and once because it is merged in.
fn repeated_keys<'v>(term: Node<'v>, selector: Node<'v>, keys: &[Value]) {
    let mut seen: Vec<&str> =
        selector.get("matchLabels").object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    for expression in selector.get("matchExpressions").list() {
        let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
        if let Some(index) = keys.iter().rposition(|matching| matching == key)
            && seen.contains(&key)
        {
            term.at(index).invalid(key, "exists in both matchLabelKeys and labelSelector");
        }
        seen.push(key);
    }
}

/// Terms about nodes, of which one has to hold.
pub(crate) fn node_selector(selector: Node<'_>, values: Values) {
    let terms = selector.get("nodeSelectorTerms");
    if terms.is_empty() {
        return terms.required("must have at least one node selector term");
    }
    terms.items().for_each(|term| node_selector_term(term, values));
}

/// Whether the values of a node selector are labels' values.
pub(crate) fn has_invalid_values(terms: Node<'_>) -> bool {
    terms.items().any(|term| {
        term.get("matchExpressions").items().any(|requirement| {
            requirement.get("values").items().any(|value| !names::label_value(value.text()).is_empty())
        })
    })
}

fn node_selector_term(term: Node<'_>, values: Values) {
    term.get("matchExpressions").items().for_each(|requirement| node_requirement(requirement, values));
    term.get("matchFields").items().for_each(field_requirement);
}

fn node_requirement(requirement: Node<'_>, rule: Values) {
    let values = requirement.get("values");
    match (requirement.str("operator"), values.len()) {
        ("In" | "NotIn", 0) => values.required("must be specified when `operator` is 'In' or 'NotIn'"),
        ("In" | "NotIn", _) | ("Exists" | "DoesNotExist", 0) | ("Gt" | "Lt", 1) => {}
        ("Exists" | "DoesNotExist", _) => {
            values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        ("Gt" | "Lt", _) => values.required("must be specified single value when `operator` is 'Lt' or 'Gt'"),
        (other, _) => operator(requirement, other),
    }
    requirement.get("key").check(qualified_name);
    if rule == Values::Labels {
        values.items().for_each(|value| value.check(names::label_value));
    }
}

fn operator(requirement: Node<'_>, operator: &str) {
    requirement.child("operator").invalid(BadValue::named(operator), "not a valid selector operator");
}

fn field_requirement(requirement: Node<'_>) {
    let (key, values) = (requirement.get("key"), requirement.get("values"));
    match requirement.str("operator") {
        "In" | "NotIn" if values.len() != 1 => {
            values.required(
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            );
        }
        "In" | "NotIn" => {}
        other => operator(requirement, other),
    }
    match key.text() {
        "metadata.name" => values.items().for_each(|value| value.check(names::dns1123_subdomain)),
        text => key.invalid(text, "not a valid field selector key"),
    }
}
