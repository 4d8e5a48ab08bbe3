//! When a Job has failed, when it has succeeded, and when its pods are replaced.

use concord_meta::field::BadValue;

use super::indexes;
use crate::{internal, node::Node, rules::qualified_name};

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;
const MAX_INDEX_BYTES: usize = 64 * 1024;

pub(super) fn failure(spec: Node<'_>) {
    if !spec.has("podFailurePolicy") {
        return;
    }
    let rules = spec.get2("podFailurePolicy", "rules");
    if rules.len() > MAX_RULES {
        rules.too_many(rules.len(), MAX_RULES);
    }
    let pod = spec.get2("template", "spec");
    let containers: Vec<&str> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| pod.get(list).items().map(|container| container.str("name")))
        .collect();
    for rule in rules.items() {
        action(rule.get("action"), spec);
        let (codes, conditions) = (rule.get("onExitCodes"), rule.get("onPodConditions"));
        if codes.is_set() {
            exit_codes(codes, &containers);
        }
        pod_conditions(conditions);
        match (codes.is_set(), conditions.is_empty()) {
            (true, false) => {
                rule.invalid_as_such("specifying both OnExitCodes and OnPodConditions is not supported");
            }
            (false, true) => {
                rule.invalid_as_such("specifying one of OnExitCodes and OnPodConditions is required")
            }
            _ => {}
        }
    }
}

fn required_one_of(node: Node<'_>, supported: &[&str]) {
    match node.text() {
        "" => node.required(format!("valid values: {:?}", supported).replace(',', "")),
        _ => node.one_of(supported),
    }
}

fn action(node: Node<'_>, spec: Node<'_>) {
    match node.text() {
        "FailIndex" if !spec.has("backoffLimitPerIndex") => {
            node.invalid(BadValue::named("FailIndex"), "requires the backoffLimitPerIndex to be set");
        }
        _ => required_one_of(node, &ACTIONS),
    }
}

fn pod_conditions(conditions: Node<'_>) {
    if conditions.len() > MAX_RULES {
        conditions.too_many(conditions.len(), MAX_RULES);
    }
    for pattern in conditions.items() {
        pattern.get("type").check(qualified_name);
        required_one_of(pattern.get("status"), &["False", "True", "Unknown"]);
    }
}

fn exit_codes(codes: Node<'_>, containers: &[&str]) {
    required_one_of(codes.get("operator"), &["In", "NotIn"]);
    let name = codes.get("containerName");
    if name.is_set() && !containers.contains(&name.text()) {
        let detail = "must be one of the container or initContainer names in the pod template";
        name.invalid(name.text(), detail);
    }
    let values = codes.get("values");
    if values.is_empty() {
        values.wrong("at least one value is required");
    } else if values.len() > MAX_EXIT_CODES {
        values.too_many(values.len(), MAX_EXIT_CODES);
    }
    let (mut seen, mut ordered): (Vec<i64>, bool) = (Vec::new(), true);
    for value in values.items() {
        let Some(number) = value.int() else { continue };
        if codes.str("operator") == "In" && number == 0 {
            value.invalid(number, "must not be 0 for the In operator");
        }
        ordered &= seen.last().is_none_or(|last| *last <= number);
        if seen.contains(&number) {
            value.duplicate(number);
        }
        seen.push(number);
    }
    if !ordered {
        values.wrong("must be ordered");
    }
}

pub(super) fn success(spec: Node<'_>) {
    if !spec.has("successPolicy") {
        return;
    }
    let policy = spec.get("successPolicy");
    if spec.str("completionMode") != "Indexed" {
        let shown = internal::shown("SuccessPolicy", policy.value());
        return policy.invalid(shown, "requires indexed completion mode");
    }
    let rules = policy.get("rules");
    if rules.is_empty() {
        rules.required("at least one rules must be specified when the successPolicy is specified");
    }
    if rules.len() > MAX_RULES {
        rules.too_many(rules.len(), MAX_RULES);
    }
    rules.items().for_each(|rule| success_rule(rule, spec.num("completions")));
}

fn success_rule(rule: Node<'_>, completions: i64) {
    let (count, named) = (rule.get("succeededCount"), rule.get("succeededIndexes"));
    if !count.is_set() && !named.is_set() {
        rule.required("at least one of succeededCount or succeededIndexes must be specified");
    }
    let mut total = 0;
    if named.is_set() {
        if named.text().len() > MAX_INDEX_BYTES {
            named.too_long(MAX_INDEX_BYTES);
        }
        match indexes::count(named.text(), completions) {
            Ok(number) => total = number,
            Err(problem) => named.invalid(named.text(), format!("error parsing succeededIndexes: {problem}")),
        }
    }
    if let Some(number) = count.int() {
        count.nonnegative();
        let most =
            |most: i64, what: &str| format!("must be less than or equal to {most} (the number of {what})");
        if number > completions {
            count.invalid(number, most(completions, "specified completions"));
        }
        if named.is_set() && number > total {
            count.invalid(number, most(total, "indexes in the specified succeededIndexes field"));
        }
    }
}

pub(super) fn replacement(spec: Node<'_>) {
    let policy = spec.get("podReplacementPolicy");
    let supported: &[&str] =
        if spec.has("podFailurePolicy") { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    policy.optional_one_of(supported);
}
