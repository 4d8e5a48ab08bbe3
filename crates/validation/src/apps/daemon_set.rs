//! DaemonSets.

use super::{
    NO_MATCH, always_running, amount, at_most_all, fixed_selector, int_or_percent, selects, shown,
    template_labels,
};
use crate::{
    internal,
    labels::{self, Values, selector},
    meta,
    node::{Node, Root},
    pod::{self, Options},
};

pub(crate) fn daemon_set(root: Root<'_>) {
    spec(root.get("spec"), &Options::default());
}

fn spec<'v>(spec: Node<'v>, options: &Options<'v>) {
    let (node, template) = (spec.get("selector"), spec.get("template"));
    selector(node, options.selector_values);
    if selects(spec, template) == Some(false) {
        template.child("metadata").child("labels").invalid(template_labels(template), NO_MATCH);
    }
    if node.is_set() && labels::is_empty(node) {
        node.invalid(labels::shown(node), "empty selector is invalid for daemonset");
    }
    pod::template(template, options);
    always_running(template, "DaemonSet");
    spec.get("minReadySeconds").nonnegative();
    strategy(spec.get("updateStrategy"));
    spec.get("revisionHistoryLimit").nonnegative();
}

fn strategy(strategy: Node<'_>) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.str("type") {
        "OnDelete" => {}
        "RollingUpdate" if !rolling.is_set() => rolling.required(""),
        "RollingUpdate" => rolling_update(rolling),
        _ => {
            let shown = internal::shown("DaemonSetUpdateStrategy", strategy.value());
            strategy.not_supported(shown, &["RollingUpdate", "OnDelete"]);
        }
    }
}

fn rolling_update(rolling: Node<'_>) {
    let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    for node in [unavailable, surge] {
        int_or_percent(node);
    }
    for node in [unavailable, surge] {
        at_most_all(node);
    }
    match (amount(unavailable) != 0, amount(surge) != 0) {
        (true, true) => surge.invalid(shown(surge), "may not be set when maxUnavailable is non-zero"),
        (false, false) => unavailable.required("cannot be 0 when maxSurge is 0"),
        _ => {}
    }
}

pub(crate) fn daemon_set_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    if subresource == "status" {
        return super::status::daemon_set(new, old);
    }
    let (node, before) = (new.get("spec"), old.get("spec"));
    fixed_selector(node, before);
    let mut options = Options::for_template(before.get("template"));
    if before.get("selector").breaks(|node| selector(node, Values::Labels)) {
        options.selector_values = Values::Any;
    }
    spec(node, &options);
}
