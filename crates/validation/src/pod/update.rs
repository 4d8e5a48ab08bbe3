//! What an update of a pod may change.

use serde_json::{Map, Value};

use super::{Options, annotations, metadata_and_spec, resize, scheduling::tolerations, status};
use crate::{
    internal, meta,
    node::{Node, Root},
    rules::{MAX_INT32, range, same},
};

const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const TERMS: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// An update of a pod or one of its subresources.
pub(crate) fn update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    let mut options = Options::for_update(old.get("spec"), old.metadata().get("annotations"));
    options.resource_is_pod = true;
    meta::update(new, old);
    match subresource {
        "" => spec_update(new, old, &options),
        "status" => status::update(new, old, &options),
        "ephemeralcontainers" => ephemeral_containers(new, old, &options),
        "resize" => resize::update(new, old, &options),
        _ => {}
    }
}

/// Upstream validates metadata once more along with the spec.
pub(super) fn whole<'v>(new: Root<'v>, options: &Options<'v>) {
    meta::whole(new);
    metadata_and_spec(new, options);
}

fn spec_update<'v>(new: Root<'v>, old: Root<'v>, options: &Options<'v>) {
    whole(new, options);
    let (new_notes, old_notes) = (new.metadata().get("annotations"), old.metadata().get("annotations"));
    annotations::updates(new_notes, old_notes);
    let (spec, before) = (new.get("spec"), old.get("spec"));
    annotations::pod_specific(new_notes, spec, options);
    for list in ["containers", "initContainers"] {
        let (containers, before) = (spec.get(list), before.get(list));
        if containers.len() != before.len() {
            return containers.forbidden("pod updates may not add or remove containers");
        }
        for container in containers.items() {
            container.need(&["image"]);
            super::containers::trimmed_image(container);
        }
    }
    if !deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")) {
        return;
    }
    only_added_tolerations(spec.get("tolerations"), before.get("tolerations"), options);
    only_removed_gates(spec.get("schedulingGates"), before.get("schedulingGates"));
    if !same(spec.value(), before.value()) {
        rest_is_unchanged(spec, before);
    }
}

/// Whether to go on.
fn deadline(new: Node<'_>, old: Node<'_>) -> bool {
    match (new.int(), old.int()) {
        (Some(seconds), _) if !(0..=MAX_INT32).contains(&seconds) => {
            new.invalid(seconds, range(0, MAX_INT32));
            return false;
        }
        (Some(seconds), Some(before)) if before < seconds => {
            new.invalid(seconds, "must be less than or equal to previous value");
            return false;
        }
        (None, Some(_)) => new.wrong("must not update from a positive integer to nil value"),
        _ => {}
    }
    true
}

fn only_added_tolerations(new: Node<'_>, old: Node<'_>, options: &Options<'_>) {
    let rest = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(members) = toleration.as_object_mut() {
            members.remove("tolerationSeconds");
        }
        toleration
    };
    let kept = |old: &Value| new.list().iter().any(|new| rest(new) == rest(old));
    if !old.list().iter().all(kept) {
        return new.forbidden("existing toleration can not be modified except its tolerationSeconds");
    }
    tolerations(new, options.comparing_tolerations);
}

fn only_removed_gates(new: Node<'_>, old: Node<'_>) {
    let name = |gate: &Value| gate.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let before: Vec<String> = old.list().iter().map(name).collect();
    for gate in new.items() {
        let name = gate.str("name");
        if !before.iter().any(|known| known == name) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            gate.child("name").forbidden(detail);
        }
    }
}

/// Takes out what may change; if something is left, the update is refused and the difference shown.
fn rest_is_unchanged(spec: Node<'_>, before: Node<'_>) {
    let (Some(new), Some(old)) = (spec.object(), before.object()) else { return };
    let mut munged = new.clone();
    for list in ["containers", "initContainers"] {
        let olds = before.get(list).list();
        for (container, old) in
            munged.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().zip(olds)
        {
            restore(container, old, "image");
        }
    }
    for name in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        put(&mut munged, name, old.get(name));
    }
    if before.num("terminationGracePeriodSeconds") < 0 && spec.num("terminationGracePeriodSeconds") == 1 {
        put(&mut munged, "terminationGracePeriodSeconds", old.get("terminationGracePeriodSeconds"));
    }
    if !before.get("schedulingGates").is_empty() {
        gated(spec, before, &mut munged);
    }
    let munged = Value::Object(munged);
    if !same(Some(&munged), before.value()) {
        let difference = internal::difference("PodSpec", before.value(), Some(&munged));
        spec.forbidden(format!("pod updates may not change fields other than {UPDATABLE}\n{difference}"));
    }
}

fn put(members: &mut Map<String, Value>, name: &str, value: Option<&Value>) {
    match value {
        Some(value) => drop(members.insert(name.to_owned(), value.clone())),
        None => drop(members.remove(name)),
    }
}

fn restore(value: &mut Value, old: &Value, name: &str) {
    if let Some(members) = value.as_object_mut() {
        put(members, name, old.get(name));
    }
}

/// While gates hold a pod back, where it may go can still be narrowed.
fn gated(spec: Node<'_>, before: Node<'_>, munged: &mut Map<String, Value>) {
    let (selector, old_selector) = (spec.get("nodeSelector"), before.get("nodeSelector"));
    let kept = |(key, value): (&String, &Value)| selector.raw(key) == Some(value);
    if !old_selector.object().into_iter().flatten().all(kept) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        selector.wrong(detail);
    }
    put(munged, "nodeSelector", old_selector.value());
    let (affinity, old_affinity) = (spec.get("affinity"), before.get("affinity"));
    let (node, old_node) = (affinity.get("nodeAffinity"), old_affinity.get("nodeAffinity"));
    if same(node.value(), old_node.value()) {
        return;
    }
    node_affinity(node, old_node);
    let alone = !affinity.has("podAffinity") && !affinity.has("podAntiAffinity");
    if affinity.is_set() && !old_affinity.is_set() && alone {
        munged.remove("affinity");
    } else if affinity.is_set() || old_node.is_set() {
        let entry = munged.entry("affinity").or_insert_with(|| Value::Object(Map::new()));
        if let Some(members) = entry.as_object_mut() {
            put(members, "nodeAffinity", old_node.value());
        }
    }
}

fn node_affinity(new: Node<'_>, old: Node<'_>) {
    if !old.has(TERMS) {
        return;
    }
    let terms = new.get2(TERMS, "nodeSelectorTerms");
    let olds = old.get(TERMS).get("nodeSelectorTerms").list();
    if !olds.is_empty() && olds.len() != terms.len() {
        let shown = internal::shown_list("NodeSelectorTerm", terms.list());
        return terms
            .invalid(shown, "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
    }
    for (term, old) in terms.items().zip(olds) {
        if !only_adds(term, old) {
            let shown = internal::shown("NodeSelectorTerm", term.value());
            term.invalid(shown, "only additions are allowed (no mutations or deletions)");
        }
    }
}

fn only_adds(new: Node<'_>, old: &Value) -> bool {
    let before = |name: &str| old.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let lists = ["matchExpressions", "matchFields"];
    if lists.iter().all(|name| before(name).is_empty()) {
        return lists.iter().all(|name| new.get(name).is_empty());
    }
    lists.iter().all(|name| new.get(name).list().starts_with(before(name)))
}

fn ephemeral_containers<'v>(new: Root<'v>, old: Root<'v>, options: &Options<'v>) {
    if old.annotation(annotations::MIRROR).is_some() {
        let spec = new.get("spec");
        spec.forget(0);
        return spec.nowhere().forbidden("static pods do not support ephemeral containers");
    }
    whole(new, options);
    let (new_notes, old_notes) = (new.metadata().get("annotations"), old.metadata().get("annotations"));
    annotations::updates(new_notes, old_notes);
    annotations::pod_specific(new_notes, new.get("spec"), options);
    let containers = new.get("spec").get("ephemeralContainers");
    let name = |container: &Value| container.get("name").cloned();
    for before in old.get("spec").get("ephemeralContainers").items() {
        let found =
            containers.list().iter().rfind(|container| name(container) == before.raw("name").cloned());
        let quoted = concord_meta::go::quote(before.str("name"));
        match found {
            None => {
                containers.forbidden(format!("existing ephemeral containers {quoted} may not be removed\n"))
            }
            Some(found) if !same(Some(found), before.value()) => {
                let difference = internal::difference("EphemeralContainer", before.value(), Some(found));
                containers.forbidden(format!(
                    "existing ephemeral containers {quoted} may not be changed\n{difference}"
                ));
            }
            Some(_) => {}
        }
    }
}
