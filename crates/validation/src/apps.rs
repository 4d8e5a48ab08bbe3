//! Deployments, ReplicaSets, StatefulSets, DaemonSets, ControllerRevisions and ReplicationControllers.

mod daemon_set;
mod stateful_set;
mod status;

use concord_meta::field::BadValue;
use serde_json::Value;

pub(crate) use self::{
    daemon_set::{daemon_set, daemon_set_update},
    stateful_set::{stateful_set, stateful_set_update},
};
use crate::{
    labels::{self, Values, selector},
    meta,
    node::{Node, Root},
    pod::{self, Options},
    rules::{IMMUTABLE, NEGATIVE, percent, same},
};

const NO_MATCH: &str = "`selector` does not match template `labels`";

/// The labels of a template as errors show them.
fn template_labels(template: Node<'_>) -> BadValue {
    template.get2("metadata", "labels").shown()
}

/// The template's pods are those that the selector finds; none if the selector is malformed.
fn selects(spec: Node<'_>, template: Node<'_>) -> Option<bool> {
    labels::matches(spec.get("selector"), template.get2("metadata", "labels").object())
}

/// A selector that is there and says something.
fn required_selector(spec: Node<'_>, what: &str) {
    let node = spec.get("selector");
    if !node.is_set() {
        return node.required("");
    }
    selector(node, Values::Labels);
    if labels::is_empty(node) {
        node.invalid(labels::shown(node), format!("empty selector is invalid for {what}"));
    }
}

/// Pods of a workload are started again whenever they end, and have no deadline.
fn always_running(template: Node<'_>, what: &str) {
    let spec = template.get("spec");
    let policy = spec.get("restartPolicy");
    if policy.text() != "Always" {
        policy.unsupported(&["Always"]);
    }
    if spec.has("activeDeadlineSeconds") {
        let detail = format!("activeDeadlineSeconds in {what} is not Supported");
        spec.child("activeDeadlineSeconds").forbidden(detail);
    }
}

fn selector_and_template<'v>(spec: Node<'v>, options: &Options<'v>) {
    required_selector(spec, "deployment");
    let node = spec.get("selector");
    let template = spec.get("template");
    match selects(spec, template) {
        None => return node.invalid(labels::shown(node), "invalid label selector"),
        Some(false) => {
            template.child("metadata").child("labels").invalid(template_labels(template), NO_MATCH);
        }
        Some(true) => {}
    }
    pod::template(template, options);
    always_running(template, "ReplicaSet");
}

/// A number, or a percentage of the replicas.
pub(crate) fn int_or_percent(node: Node<'_>) {
    match node.value() {
        Some(Value::String(text)) => {
            for problem in percent(text) {
                node.invalid(BadValue::named(text), problem);
            }
        }
        _ => node.nonnegative(),
    }
}

/// A percentage's number, if it is one.
fn percentage(node: Node<'_>) -> Option<i64> {
    let text = node.value()?.as_str().filter(|text| percent(text).is_empty())?;
    Some(text.trim_end_matches('%').parse().unwrap_or(i64::MAX))
}

/// The number of either form; what is no number is zero.
fn amount(node: Node<'_>) -> i64 {
    percentage(node).or_else(|| node.int()).or_else(|| node.text().parse().ok()).unwrap_or_default()
}

pub(crate) fn at_most_all(node: Node<'_>) {
    if percentage(node).is_some_and(|percentage| percentage > 100) {
        node.invalid(BadValue::named(node.text()), "must not be greater than 100%");
    }
}

/// A number or text as errors show it; absent is zero.
fn shown(node: Node<'_>) -> BadValue {
    match node.value() {
        None => 0_i64.into(),
        Some(Value::String(text)) => BadValue::named(text),
        Some(value) => value.into(),
    }
}

/// The selector is what it was.
fn fixed_selector<'v>(new: Node<'v>, old: Node<'v>) {
    let node = new.get("selector");
    if !same(node.value(), old.raw("selector")) {
        node.invalid(labels::shown(node), IMMUTABLE);
    }
}

pub(crate) fn deployment(root: Root<'_>) {
    deployment_spec(root.get("spec"), rollback(root), &Options::default());
}

/// The revision to go back to: it was a field of versions before v1, and stands in an annotation since.
fn rollback(root: Root<'_>) -> Option<i64> {
    root.annotation("deprecated.deployment.rollback.to")?.parse().ok()
}

fn deployment_spec<'v>(spec: Node<'v>, rollback: Option<i64>, options: &Options<'v>) {
    spec.get("replicas").nonnegative();
    selector_and_template(spec, options);
    deployment_strategy(spec.get("strategy"));
    spec.get("minReadySeconds").nonnegative();
    spec.get("revisionHistoryLimit").nonnegative();
    if let Some(revision) = rollback.filter(|revision| *revision < 0) {
        spec.child("rollback").child("version").invalid(revision, NEGATIVE);
    }
    let deadline = spec.get("progressDeadlineSeconds");
    if let Some(seconds) = deadline.int() {
        deadline.nonnegative();
        if seconds <= spec.num("minReadySeconds") {
            deadline.invalid(seconds, "must be greater than minReadySeconds");
        }
    }
}

fn deployment_strategy(strategy: Node<'_>) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.str("type") {
        "Recreate" if rolling.is_set() => {
            rolling.forbidden("may not be specified when strategy `type` is 'Recreate'");
        }
        "Recreate" => {}
        "RollingUpdate" if !rolling.is_set() => rolling.required("this should be defaulted and never be nil"),
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            int_or_percent(unavailable);
            int_or_percent(surge);
            if amount(unavailable) == 0 && amount(surge) == 0 {
                unavailable.invalid(shown(unavailable), "may not be 0 when `maxSurge` is 0");
            }
            at_most_all(unavailable);
        }
        _ => {
            let shown = crate::internal::shown("DeploymentStrategy", strategy.value());
            strategy.not_supported(shown, &["Recreate", "RollingUpdate"]);
        }
    }
}

pub(crate) fn deployment_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    if subresource == "status" {
        return status::deployment(new, old);
    }
    let (spec, before) = (new.get("spec"), old.get("spec"));
    deployment_spec(spec, rollback(new), &Options::for_template(before.get("template")));
    fixed_selector(spec, before);
}

pub(crate) fn replica_set(root: Root<'_>) {
    replica_set_spec(root.get("spec"), &Options::default());
}

fn replica_set_spec<'v>(spec: Node<'v>, options: &Options<'v>) {
    spec.get("replicas").nonnegative();
    spec.get("minReadySeconds").nonnegative();
    selector_and_template(spec, options);
}

pub(crate) fn replica_set_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    if subresource == "status" {
        return status::replica_set(new.get("status"), true);
    }
    let (spec, before) = (new.get("spec"), old.get("spec"));
    replica_set_spec(spec, &Options::for_template(before.get("template")));
    fixed_selector(spec, before);
}

pub(crate) fn replication_controller(root: Root<'_>) {
    replication_controller_spec(root.get("spec"), &Options::default());
}

fn replication_controller_spec<'v>(spec: Node<'v>, options: &Options<'v>) {
    spec.get("minReadySeconds").nonnegative();
    let selector = spec.get("selector");
    if selector.is_empty() {
        selector.required("");
    }
    let replicas = spec.get("replicas");
    match replicas.is_set() {
        true => replicas.nonnegative(),
        false => replicas.required(""),
    }
    let template = spec.get("template");
    if !template.is_set() {
        template.required("");
    } else {
        let has = template.get2("metadata", "labels");
        let matches = |(key, value): (&String, &Value)| has.raw(key) == Some(value);
        if !selector.object().into_iter().flatten().all(matches) {
            template.child("metadata").child("labels").invalid(template_labels(template), NO_MATCH);
        }
        pod::template(template, options);
        always_running(template, "ReplicationController");
    }
}

pub(crate) fn replication_controller_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    if subresource == "status" {
        return status::replica_set(new.get("status"), false);
    }
    let before = old.get("spec");
    let spec = new.get("spec");
    replication_controller_spec(spec, &Options::for_template(before.get("template")));
    not_convertible(old.metadata().get("annotations"), spec.get("selector"), before.get("selector"));
}

/// What older servers could not say in this version, and put into annotations, has to stay as it is.
fn not_convertible<'v>(annotations: Node<'v>, selector: Node<'v>, before: Node<'v>) {
    for (key, value) in annotations.object().into_iter().flatten() {
        let Some(field) = key.strip_prefix("non-convertible.kubernetes.io/") else { continue };
        match field {
            _ if field.contains('/') => {}
            _ if field.contains("selector") => {
                if !same(selector.value(), before.value()) {
                    selector.wrong("cannot update non-convertible selector");
                }
            }
            _ => {
                let at = selector.elsewhere(field);
                at.not_found(value.as_str().unwrap_or_default());
                at.detail("unknown non-convertible field");
            }
        }
    }
}

pub(crate) fn controller_revision(root: Root<'_>) {
    root.get("revision").nonnegative();
    let data = root.get("data");
    match data.value() {
        None => data.required("data is mandatory"),
        Some(Value::Object(_)) => {}
        Some(_) => data.required("data must be a valid JSON object"),
    }
}

pub(crate) fn controller_revision_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    meta::whole(new);
    new.get("revision").nonnegative();
    let (data, before) = (new.get("data"), old.get("data"));
    if data.value() != before.value() {
        data.wrong(IMMUTABLE);
    }
}

/// Warnings about the template, when a human may be the writer: new objects and new generations.
pub(crate) fn template_warnings<'v>(new: Root<'v>, old: Option<Root<'v>>) {
    if is_new_generation(new, old) {
        pod::template_warnings(new.get("spec").get("template"));
    }
}

/// The same for a DaemonSet, of which only the template counts.
pub(crate) fn daemon_set_warnings<'v>(new: Root<'v>, old: Option<Root<'v>>) {
    let number = |root: Root<'v>| root.annotation("deprecated.daemonset.template.generation");
    if old.is_none_or(|old| number(old) != number(new)) {
        pod::template_warnings(new.get("spec").get("template"));
    }
}

/// The same as for any, and about the name, which becomes part of pods' names.
pub(crate) fn workload_warnings<'v>(new: Root<'v>, old: Option<Root<'v>>) {
    if old.is_none() {
        meta::warn_name(new, meta::POD_NAMES);
    }
    template_warnings(new, old);
}

/// Warnings about a StatefulSet, which has templates of claims besides.
pub(crate) fn stateful_set_warnings<'v>(new: Root<'v>, old: Option<Root<'v>>) {
    template_warnings(new, old);
    for claim in new.get("spec").get("volumeClaimTemplates").items() {
        // Upstream's paths leave out `spec`, or write it large.
        let at = if old.is_some() { claim.child("Spec") } else { claim };
        crate::persistence::claim_warnings(at.holding(claim.raw("spec")));
    }
    let limit = new.get("spec").get("revisionHistoryLimit");
    if limit.int().is_some_and(|limit| limit < 0) {
        limit.warn("a negative value retains all historical revisions; a value >= 0 is recommended");
    }
}

/// Whether an object is new or its spec has changed.
pub(crate) fn is_new_generation<'v>(new: Root<'v>, old: Option<Root<'v>>) -> bool {
    let generation = |root: Root<'v>| root.metadata().num("generation");
    old.is_none_or(|old| generation(old) != generation(new))
}

pub(crate) fn pod_template(root: Root<'_>) {
    pod::template(root.get("template"), &Options::default());
}

pub(crate) fn pod_template_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    pod::template(new.get("template"), &Options::for_template(old.get("template")));
}

/// Warnings about a PodTemplate.
pub(crate) fn pod_template_warnings<'v>(new: Root<'v>, old: Option<Root<'v>>) {
    if is_new_generation(new, old) {
        pod::template_warnings(new.get("template"));
    }
}

/// Warnings about a ReplicationController: when one is changed, upstream looks at what it was.
pub(crate) fn replication_controller_warnings<'v>(new: Root<'v>, old: Option<Root<'v>>) {
    match old {
        None => workload_warnings(new, None),
        Some(before) => {
            if is_new_generation(new, old) {
                pod::template_warnings(before.get("spec").get("template"));
            }
        }
    }
}
