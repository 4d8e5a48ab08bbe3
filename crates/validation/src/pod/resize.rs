//! What the resize subresource may change: processors and memory.

use concord_meta::field::BadValue;
use serde_json::{Map, Value};

use super::{Options, annotations, update::whole};
use crate::{
    gates::Gate,
    node::{Node, Root},
    rules::same,
};

const ONLY: &str = "only cpu and memory resources are mutable";

pub(super) fn update<'v>(new: Root<'v>, old: Root<'v>, options: &Options<'v>) {
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let refuse = |why: &'static str| {
        spec.forget(0);
        spec.nowhere().forbidden(why);
    };
    if old.annotation(annotations::MIRROR).is_some() {
        return refuse("static pods cannot be resized");
    }
    if before.get("os").str("name") == "windows" {
        return refuse("windows pods cannot be resized");
    }
    whole(new, options);
    same_class(spec, old);
    if !is_supported(old.get("status")) {
        spec.forbidden("Pod running on node without support for resize");
    }
    let mut munged = spec.object().cloned().unwrap_or_default();
    if has_pod_resources(spec) || has_pod_resources(before) {
        if !spec.gate(Gate::InPlacePodLevelResourcesVerticalScaling) {
            let why = "resize of pods with pod-level resources is forbidden when InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled";
            return spec.nowhere().forbidden(why);
        }
        pod_level(spec, before, &mut munged);
    }
    if !old.get("status").get("nodeAllocatableResourceClaimStatuses").is_empty() {
        spec.forbidden("pods with node allocatable resource claims cannot be resized");
    }
    if !same_containers(spec, before) {
        return;
    }
    nothing_removed_from_containers(spec, before);
    containers(spec, before, &mut munged);
    init_containers(spec, before, &mut munged);
    if spec.errors() == 0 && !same(Some(&Value::Object(munged)), before.value()) {
        spec.forbidden(ONLY);
    }
}

fn same_class<'v>(spec: Node<'v>, old: Root<'v>) {
    let class = match old.get("status").str("qosClass") {
        "" => quality_of_service(old.get("spec")),
        class => class,
    };
    if class != quality_of_service(spec) {
        spec.invalid(BadValue::named(class), "Pod QOS Class may not change as a result of resizing");
    }
}

fn nothing_removed_from_containers(spec: Node<'_>, before: Node<'_>) {
    for list in ["initContainers", "containers"] {
        let containers = spec.get(list).items().zip(before.get(list).items());
        for (container, old) in containers.filter(|(_, old)| list == "containers" || is_resizable(*old)) {
            nothing_removed(container.get("resources"), old.get("resources"), "resource");
        }
    }
}

/// Whether the resources of an init container may change: those of sidecars, and with a feature of its own all.
fn is_resizable(container: Node<'_>) -> bool {
    container.str("restartPolicy") == "Always"
        || container.gate(Gate::InPlacePodVerticalScalingInitContainers)
}

/// Guaranteed if all limits are set and equal to requests, best effort if nothing is asked for.
fn quality_of_service(spec: Node<'_>) -> &'static str {
    let containers = || ["containers", "initContainers"].into_iter().flat_map(|list| spec.get(list).items());
    let amounts = |of: Node<'_>, list: &'static str| -> Vec<(String, concord_meta::Quantity)> {
        let entries = of.get2("resources", list).entries();
        let known = entries.filter(|(name, _)| ["cpu", "memory"].contains(name));
        let positive = known.filter_map(|(name, node)| Some((name.to_owned(), node.quantity()?)));
        positive.filter(|(_, amount)| !amount.is_zero() && !crate::resources::is_negative(amount)).collect()
    };
    let of_pod = has_pod_resources(spec);
    let owners: Vec<Node<'_>> = if of_pod { vec![spec] } else { containers().collect() };
    let all: Vec<_> =
        owners.iter().map(|owner| (amounts(*owner, "requests"), amounts(*owner, "limits"))).collect();
    if all.iter().all(|(requests, limits)| requests.is_empty() && limits.is_empty()) {
        return "BestEffort";
    }
    let guaranteed = all.iter().all(|(requests, limits)| {
        limits.len() == 2
            && requests.iter().all(|request| limits.contains(request))
            && requests.len() == limits.len()
    });
    if guaranteed { "Guaranteed" } else { "Burstable" }
}

fn is_supported(status: Node<'_>) -> bool {
    let running =
        status.get("containerStatuses").items().find(|container| container.get("state").has("running"));
    running.is_none_or(|container| container.has("resources"))
}

fn has_pod_resources(spec: Node<'_>) -> bool {
    ["requests", "limits"].iter().any(|list| !spec.get2("resources", list).is_empty())
}

fn pod_level(spec: Node<'_>, before: Node<'_>, munged: &mut Map<String, Value>) {
    let (resources, old) = (spec.get("resources"), before.get("resources"));
    if old.is_set() && !resources.is_set() {
        return resources.forbidden("pod-level resources cannot be removed");
    }
    if old.is_set() {
        nothing_removed(resources, old, "pod-level resource");
    }
    let kept = without_processors_and_memory(resources.value(), old.value(), true);
    if !same(kept.as_ref(), old.value()) {
        spec.forbidden("only cpu and memory resources are mutable at pod-level");
    }
    match kept {
        Some(kept) => drop(munged.insert("resources".to_owned(), kept)),
        None => drop(munged.remove("resources")),
    }
}

fn nothing_removed(new: Node<'_>, old: Node<'_>, what: &str) {
    for list in ["requests", "limits"] {
        let (new, old) = (new.get(list), old.get(list));
        if old.object().into_iter().flatten().any(|(name, _)| !new.has(name)) {
            new.forbidden(format!("{what} {list} cannot be removed"));
        }
    }
}

fn same_containers(spec: Node<'_>, before: Node<'_>) -> bool {
    let count = spec.errors();
    for list in ["containers", "initContainers"] {
        let (new, old) = (spec.get(list), before.get(list));
        if new.len() != old.len() {
            new.forbidden(format!("{list} may not be added or removed on resize"));
            continue;
        }
        for (container, old) in new.items().zip(old.items()) {
            if container.str("name") != old.str("name") {
                container
                    .child("name")
                    .forbidden(format!("{list} may not be renamed or reordered on resize"));
            }
        }
    }
    spec.errors() == count
}

/// The new requirements with the old processors and memory.
fn without_processors_and_memory(new: Option<&Value>, old: Option<&Value>, keep_rest: bool) -> Option<Value> {
    let mut kept = match new {
        Some(Value::Object(members)) if keep_rest => members.clone(),
        _ => Map::new(),
    };
    for list in ["limits", "requests"] {
        let of = |value: Option<&Value>| {
            value.and_then(|value| value.get(list)).and_then(Value::as_object).cloned()
        };
        let before = of(old).unwrap_or_default();
        let mut now = of(new).unwrap_or_default();
        for name in ["cpu", "memory"] {
            now.remove(name);
            if let Some(amount) = before.get(name) {
                now.insert(name.to_owned(), amount.clone());
            }
        }
        match now.is_empty() {
            true => drop(kept.remove(list)),
            false => drop(kept.insert(list.to_owned(), Value::Object(now))),
        }
    }
    (old.is_some() || !kept.is_empty()).then_some(Value::Object(kept))
}

fn resized(container: Node<'_>, old: Node<'_>) -> Value {
    let mut members = container.object().cloned().unwrap_or_default();
    let resources = without_processors_and_memory(container.raw("resources"), old.raw("resources"), false);
    members.insert("resources".to_owned(), resources.unwrap_or_else(|| Value::Object(Map::new())));
    Value::Object(members)
}

fn containers(spec: Node<'_>, before: Node<'_>, munged: &mut Map<String, Value>) {
    let mut all = Vec::new();
    for (container, old) in spec.get("containers").items().zip(before.get("containers").items()) {
        let resized = resized(container, old);
        if !same(Some(&resized), old.value()) {
            spec.forbidden(ONLY);
        }
        all.push(resized);
    }
    munged.insert("containers".to_owned(), Value::Array(all));
}

fn init_containers(spec: Node<'_>, before: Node<'_>, munged: &mut Map<String, Value>) {
    let mut all = Vec::new();
    for (container, old) in spec.get("initContainers").items().zip(before.get("initContainers").items()) {
        if !is_resizable(container) {
            if !same(container.value(), old.value()) {
                spec.forbidden("resources for non-sidecar init containers are immutable");
            }
            all.extend(container.value().cloned());
            continue;
        }
        let resized = resized(container, old);
        if !same(Some(&resized), old.value()) {
            container.forbidden("only cpu and memory resources for init or sidecar containers are mutable");
        }
        if !same(container.value(), old.value()) && container.str("restartPolicy") != "Always" {
            for policy in container.get("resizePolicy").items() {
                if policy.str("restartPolicy") == "RestartContainer" {
                    let why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
                    container.forbidden(why);
                }
            }
        }
        all.push(resized);
    }
    if !all.is_empty() {
        munged.insert("initContainers".to_owned(), Value::Array(all));
    }
}
