//! Leases, priorities, runtime classes, disruption budgets: kinds with few rules.

use concord_meta::{field::BadValue, names};

use crate::{
    apps::{at_most_all, int_or_percent},
    internal,
    labels::{Values, labels, selector},
    meta,
    node::{Node, Root},
    pod, resources,
    rules::{IMMUTABLE, qualified_name},
};

/// What users may give to their own priorities.
const MAX_USER_PRIORITY: i64 = 1_000_000_000;
const SYSTEM_PRIORITIES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

fn lease_spec(spec: Node<'_>) {
    let (duration, transitions) = (spec.get("leaseDurationSeconds"), spec.get("leaseTransitions"));
    if let Some(seconds) = duration.int().filter(|seconds| *seconds <= 0) {
        duration.invalid(seconds, "must be greater than 0");
    }
    transitions.nonnegative();
    let strategy = spec.get("strategy");
    if strategy.is_set() {
        lease_strategy(strategy.child("strategy"), strategy.text());
    }
    if !spec.str("preferredHolder").is_empty() && strategy.text().is_empty() {
        spec.child("preferredHolder").forbidden("may only be specified if `strategy` is defined");
    }
}

/// How a leader is chosen: as Kubernetes does, or as somebody else's domain says.
pub(crate) fn lease_strategy(node: Node<'_>, strategy: &str) {
    if !strategy.contains('/') {
        if strategy != "OldestEmulationVersion" {
            node.not_supported(BadValue::named(strategy), &["OldestEmulationVersion"]);
        }
        return;
    }
    for problem in qualified_name(strategy) {
        node.invalid(BadValue::named(strategy), problem);
    }
}

pub(crate) fn lease(root: Root<'_>) {
    lease_spec(root.get("spec"));
}

pub(crate) fn lease_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::update_any_finalizers(new, old);
    lease_spec(new.get("spec"));
}

fn budget(spec: Node<'_>, values: Values) {
    let (least, most) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if least.is_set() && most.is_set() {
        let shown = internal::shown("PodDisruptionBudgetSpec", spec.value());
        spec.invalid(shown, "minAvailable and maxUnavailable cannot be both set");
    }
    for node in [least, most].into_iter().filter(|node| node.is_set()) {
        int_or_percent(node);
        at_most_all(node);
    }
    selector(spec.get("selector"), values);
    spec.get("unhealthyPodEvictionPolicy").optional_one_of(&["AlwaysAllow", "IfHealthyBudget"]);
}

pub(crate) fn pod_disruption_budget(root: Root<'_>) {
    budget(root.get("spec"), Values::Labels);
}

pub(crate) fn pod_disruption_budget_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    if subresource == "status" {
        let status = new.get("status");
        crate::conditions::conditions(status.get("conditions"));
        for name in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
            status.get(name).nonnegative();
        }
        return;
    }
    let broken = old.get("spec").get("selector").breaks(|node| selector(node, Values::Labels));
    budget(new.get("spec"), if broken { Values::Any } else { Values::Labels });
}

pub(crate) fn priority_class(root: Root<'_>) {
    let (name, value) = (root.name(), root.get("value").int().unwrap_or_default());
    if name.starts_with("system-") {
        let known = SYSTEM_PRIORITIES.iter().find(|(known, _)| *known == name);
        let is_default = root.object().get("globalDefault") == Some(&true.into());
        let problem = match known {
            None => Some(format!("{name} is not a known system priority class")),
            Some((_, expected)) if *expected != value => {
                Some(format!("value of {name} PriorityClass must be {expected}"))
            }
            Some(_) if is_default => Some(format!("globalDefault of {name} PriorityClass must be false")),
            Some(_) => None,
        };
        if let Some(problem) = problem {
            let at = root.child("metadata").child("name");
            at.forbidden(format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {problem}"
            ));
        }
    } else if value > MAX_USER_PRIORITY {
        let detail = format!("maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}");
        root.child("value").forbidden(detail);
    }
    let policy = root.get("preemptionPolicy");
    if policy.is_set() {
        policy.required_one_of(&["PreemptLowerPriority", "Never"]);
    }
}

pub(crate) fn priority_class_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    if new.get("value").int() != old.get("value").int() {
        new.child("value").forbidden("may not be changed in an update.");
    }
    let policy = new.get("preemptionPolicy");
    if policy.value() != old.get("preemptionPolicy").value() {
        let shown = if policy.is_set() { BadValue::named(policy.text()) } else { BadValue::verbatim("null") };
        policy.invalid(shown, IMMUTABLE);
    }
}

pub(crate) fn runtime_class(root: Root<'_>) {
    root.get("handler").required_and(names::dns1123_label);
    let overhead = root.get("overhead");
    if overhead.is_set() {
        resources::overhead(overhead.holding(overhead.raw("podFixed")), false);
    }
    let scheduling = root.get("scheduling");
    labels(scheduling.get("nodeSelector"));
    let tolerations = scheduling.get("tolerations");
    pod::tolerations_with(tolerations, false);
    let mut seen: Vec<[&str; 4]> = Vec::new();
    for toleration in tolerations.items() {
        let key = ["key", "operator", "value", "effect"].map(|name| toleration.str(name));
        if seen.contains(&key) {
            toleration.duplicate(internal::shown("Toleration", toleration.value()));
        }
        seen.push(key);
    }
}

pub(crate) fn runtime_class_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::whole_any_finalizers(new);
    runtime_class(new);
    meta::update_any_finalizers(new, old);
    let handler = new.get("handler");
    if handler.text() != old.get("handler").text() {
        handler.invalid(handler.text(), IMMUTABLE);
    }
}

/// What to tell who writes a runtime class.
pub(crate) fn runtime_class_warnings<'v>(new: Root<'v>, _: Option<Root<'v>>) {
    let selector = new.get("scheduling").get("nodeSelector");
    for (key, _) in selector.object().into_iter().flatten() {
        if let Some(warning) = pod::node_label(key) {
            selector.warn(warning);
        }
    }
}
