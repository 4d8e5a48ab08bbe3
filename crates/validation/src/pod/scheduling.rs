//! Tolerations, spreading, gates.

use std::num::IntErrorKind;

use concord_meta::{field::BadValue, names};

use super::{Options, affinity::match_label_keys};
use crate::{
    gates::Gate,
    labels::{Values, selector},
    node::Node,
    rules::qualified_name,
};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The effect of a taint.
pub(crate) fn taint_effect(effect: Node<'_>) {
    effect.one_of(&EFFECTS);
}

/// The group that a pod is scheduled with.
pub(super) fn group(group: Node<'_>) {
    let name = group.get("podGroupName");
    if name.is_set() {
        name.check(names::dns1123_subdomain);
    } else if group.is_set() {
        name.wrong("must specify one of: `podGroupName`");
    }
}

/// The workload that a pod belongs to: how 1.35 said what a group says since.
pub(super) fn workload(workload: Node<'_>) {
    if workload.is_set() {
        workload.get("name").check(names::dns1123_subdomain);
        workload.get("podGroup").check(names::dns1123_label);
        workload.get("podGroupReplicaKey").optional_and(names::dns1123_label);
    }
}

/// Tolerations of a pod. They may compare numbers if those that it had did.
pub(super) fn tolerations(tolerations: Node<'_>, compared_before: bool) {
    let comparisons = compared_before || tolerations.gate(Gate::TaintTolerationComparisonOperators);
    tolerations_with(tolerations, comparisons);
}

/// Tolerations; `comparisons` says whether they may compare numbers.
pub(crate) fn tolerations_with(tolerations: Node<'_>, comparisons: bool) {
    for toleration in tolerations.items() {
        let (key, operator, value) =
            (toleration.get("key"), toleration.get("operator"), toleration.str("value"));
        key.optional_and(qualified_name);
        if key.text().is_empty() && operator.text() != "Exists" {
            operator.invalid(
                BadValue::named(operator.text()),
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            );
        }
        let effect = toleration.get("effect");
        if toleration.has("tolerationSeconds") && effect.text() != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            effect.invalid(BadValue::named(effect.text()), detail);
        }
        match operator.text() {
            "Lt" | "Gt" if comparisons => number(toleration.get("value")),
            _ => toleration_operator(operator, value),
        }
        if !effect.text().is_empty() {
            taint_effect(effect);
        }
    }
}

fn toleration_operator(operator: Node<'_>, value: &str) {
    match operator.text() {
        "Equal" | "" => {
            let problems = names::label_value(value);
            if !problems.is_empty() {
                operator.invalid(value, problems.join(";"));
            }
        }
        "Exists" if value.is_empty() => {}
        "Exists" => operator.invalid(value, "value must be empty when `operator` is 'Exists'"),
        // Behind a gate that is off; upstream lists them all the same.
        "Lt" | "Gt" => operator.unsupported(&["Equal", "Exists", "Lt", "Gt"]),
        _ => operator.unsupported(&["Equal", "Exists"]),
    }
}

/// A number that a taint's value is compared with.
fn number(value: Node<'_>) {
    let text = value.text();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let canonical = text == "0"
        || (!digits.is_empty() && !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()));
    if text.is_empty() {
        value.invalid(text, "must be non-empty");
    } else if !canonical {
        value.invalid(text, "must be a valid decimal integer in canonical form");
    }
    if let Err(error) = text.parse::<i64>() {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        value.invalid(text, format!("strconv.ParseInt: parsing {text:?}: {why}"));
    }
}

pub(super) fn readiness_gates(gates: Node<'_>) {
    gates.items().for_each(|gate| gate.get("conditionType").check(qualified_name));
}

pub(super) fn scheduling_gates(gates: Node<'_>) {
    let mut seen: Vec<&str> = Vec::new();
    for gate in gates.items() {
        let name = gate.str("name");
        gate.check_text(name, qualified_name);
        if seen.contains(&name) {
            gate.duplicate(name);
        }
        seen.push(name);
    }
}

pub(super) fn topology_spread(constraints: Node<'_>, options: &Options<'_>) {
    for (index, constraint) in constraints.items().enumerate() {
        constraint.get("maxSkew").positive();
        let key = constraint.get("topologyKey");
        if key.text().is_empty() {
            key.required("can not be empty");
        }
        let action = constraint.get("whenUnsatisfiable");
        action.one_of(&["DoNotSchedule", "ScheduleAnyway"]);
        let later = constraints.list().get(index + 1..).unwrap_or_default();
        let repeats = |other: &serde_json::Value| {
            let text = |name: &str| other.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
            text("topologyKey") == key.text() && text("whenUnsatisfiable") == action.text()
        };
        if later.iter().any(repeats) {
            let pair = format!("{{{}, {}}}", key.text(), action.text());
            constraint.child("{topologyKey, whenUnsatisfiable}").duplicate(&pair);
        }
        min_domains(constraint.get("minDomains"), action.text());
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            constraint.get(policy).optional_one_of(&["Honor", "Ignore"]);
        }
        let merged = constraint.gate(Gate::MatchLabelKeysInPodTopologySpreadSelectorMerge);
        // What broke the rule that is in force already has to keep the other one.
        let allowed = constraint.gate(Gate::MatchLabelKeysInPodTopologySpread);
        match allowed
            && (merged && !options.breaks_match_label_keys
                || !merged && options.breaks_legacy_match_label_keys)
        {
            true => match_label_keys(constraint, constraint.get("labelSelector"), false),
            false => legacy_match_label_keys(constraint),
        }
        if !options.invalid_spread_selector {
            selector(constraint.get("labelSelector"), Values::Labels);
        }
    }
}

fn min_domains(domains: Node<'_>, action: &str) {
    if let Some(number) = domains.int() {
        domains.positive();
        if action != "DoNotSchedule" {
            let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
            domains.invalid(number, detail);
        }
    }
}

/// The rule where keys are not merged into the selector.
pub(super) fn legacy_match_label_keys(constraint: Node<'_>) {
    let (keys, selector) = (constraint.get("matchLabelKeys"), constraint.get("labelSelector"));
    if keys.is_empty() {
        return;
    }
    if !selector.is_set() {
        keys.forbidden("must not be specified when labelSelector is not set");
    }
    for key in keys.items() {
        key.check(qualified_name);
        let labels = selector.get("matchLabels");
        let expressions = selector.get("matchExpressions").list();
        let named = labels.has(key.text()) || expressions.iter().any(|e| e.get("key") == key.value());
        if named {
            key.invalid(key.text(), "exists in both matchLabelKeys and labelSelector");
        }
    }
}
