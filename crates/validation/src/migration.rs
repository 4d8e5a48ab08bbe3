//! StorageVersionMigration.

mod alpha;

use concord_meta::{
    field::BadValue,
    go,
    names::{dns1035_label, dns1123_subdomain},
};
use serde_json::Value;

use crate::{
    conditions::conditions,
    internal, meta,
    node::{Node, Root},
};

const IMMUTABLE: &str = "field is immutable";

/// Whether it has the form of releases before 1.35, which was another one.
fn is_first(root: Root<'_>) -> bool {
    root.object().get("apiVersion").is_some_and(|version| version == "storagemigration.k8s.io/v1alpha1")
}

pub(crate) fn migration(root: Root<'_>) {
    if is_first(root) {
        return alpha::migration(root);
    }
    let resource = root.get("spec").get("resource");
    let name = resource.get("resource");
    match name.text() {
        "" => name.required("resource is required to be set"),
        text => check(name, &dns1035_label(text)),
    }
    let group = resource.get("group");
    if !group.text().is_empty() {
        check(group, &dns1123_subdomain(group.text()));
    }
}

fn check(node: Node<'_>, problems: &[String]) {
    if !problems.is_empty() {
        node.wrong(problems.join(","));
    }
}

pub(crate) fn migration_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    if is_first(new) {
        return alpha::migration_update(subresource, new, old);
    }
    if subresource == "status" {
        meta::update(new, old);
        return status_update(new.get("status"), old.get("status"));
    }
    meta::whole(new);
    migration(new);
    meta::update(new, old);
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let target = |spec: Node<'v>| (spec.get("resource").str("group"), spec.get("resource").str("resource"));
    if target(spec) != target(before) {
        let shown = internal::shown("StorageVersionMigrationSpec", spec.value());
        spec.invalid(shown, IMMUTABLE);
    }
}

fn status_update<'v>(status: Node<'v>, before: Node<'v>) {
    let (revision, was) = (status.get("resourceVersion"), before.str("resourceVersion"));
    let text = revision.text();
    if !text.is_empty() && !is_comparable(text) {
        revision.wrong(format!("resource version is not well formed: {text}"));
    }
    conditions(status.get("conditions"));
    if !was.is_empty() && was != text {
        revision.invalid(text, IMMUTABLE);
    }
    ends_once(status, shown);
    stays(status, before, shown);
}

/// Whether a condition is true.
fn holds(status: Node<'_>, kind: &str) -> bool {
    let mut conditions = status.get("conditions").items();
    conditions.any(|condition| condition.str("type") == kind && condition.str("status") == "True")
}

/// What has ended has ended in one way.
fn ends_once<'v>(status: Node<'v>, shown: impl Fn(Node<'v>) -> BadValue) {
    let all = status.get("conditions");
    if holds(status, "Succeeded") && holds(status, "Failed") {
        all.invalid(shown(all), "Both success and failed conditions cannot be true at the same time");
    }
}

/// What has ended stays so.
fn stays<'v>(status: Node<'v>, before: Node<'v>, shown: impl Fn(Node<'v>) -> BadValue) {
    let all = status.get("conditions");
    for (kind, word) in [("Succeeded", "Success"), ("Failed", "Failed")] {
        if holds(before, kind) && !holds(status, kind) {
            all.invalid(shown(all), format!("{word} condition cannot be set to false once it is true"));
        }
    }
}

/// Digits of any number that begin with none.
fn is_comparable(version: &str) -> bool {
    !version.starts_with('0') && version.bytes().all(|byte| byte.is_ascii_digit())
}

/// Conditions in the order of Go's fields.
fn shown(conditions: Node<'_>) -> BadValue {
    const FIELDS: [&str; 6] =
        ["type", "status", "observedGeneration", "lastTransitionTime", "reason", "message"];
    let member = |condition: &Value, name: &str| {
        let value = match condition.get(name) {
            Some(value) => go::json(value),
            None if name == "observedGeneration" => return None,
            None if name == "lastTransitionTime" => "null".to_owned(),
            None => "\"\"".to_owned(),
        };
        Some(format!("\"{name}\":{value}"))
    };
    let condition = |condition: &Value| {
        let members: Vec<String> = FIELDS.iter().filter_map(|name| member(condition, name)).collect();
        format!("{{{}}}", members.join(","))
    };
    match conditions.list() {
        [] => BadValue::verbatim("null"),
        all => BadValue::verbatim(format!("[{}]", all.iter().map(condition).collect::<Vec<_>>().join(","))),
    }
}
