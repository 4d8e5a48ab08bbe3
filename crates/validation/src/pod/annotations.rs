//! Annotations that mean something to pods.

use concord_meta::go;
use serde_json::{Map, Value};

use super::{Options, all_containers, scheduling};
use crate::{
    gates::Gate,
    json::{self, Field},
    node::Node,
    rules::local_descending_path,
};

pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// What a toleration consists of.
const TOLERATION: [Field; 5] = [
    Field { name: "Key", go_type: "string", number: false },
    Field { name: "Operator", go_type: "core.TolerationOperator", number: false },
    Field { name: "Value", go_type: "string", number: false },
    Field { name: "Effect", go_type: "core.TaintEffect", number: false },
    Field { name: "TolerationSeconds", go_type: "int64", number: true },
];

/// `spec` is the pod's; errors stand at the annotations.
pub(super) fn pod_specific<'v>(annotations: Node<'v>, spec: Node<'v>, options: &Options<'v>) {
    let Some(map) = annotations.object().filter(|map| !map.is_empty()) else { return };
    if let Some(mirror) = text(map, MIRROR)
        && spec.str("nodeName").is_empty()
    {
        annotations.key(MIRROR).invalid(mirror, "must set spec.nodeName if mirror pod annotation is set");
    }
    if let Some(tolerations) = text(map, TOLERATIONS).filter(|text| !text.is_empty()) {
        match json::structs(tolerations.as_bytes(), "Toleration", &TOLERATION) {
            Ok(list) => {
                let compare = options.comparing_tolerations;
                annotations.child(TOLERATIONS).aside(list, |list| scheduling::tolerations(list, compare));
            }
            Err(why) => annotations.invalid(TOLERATIONS, why),
        }
    }
    let checks_cost = annotations.gate(Gate::PodDeletionCost) && !options.invalid_deletion_cost;
    if checks_cost && !has_valid_deletion_cost(annotations) {
        let cost = text(map, DELETION_COST).unwrap_or_default();
        annotations.key(DELETION_COST).invalid(cost, "must be a 32bit integer");
    }
    if let Some(profile) = text(map, SECCOMP_POD) {
        seccomp(annotations.child(SECCOMP_POD), profile);
    }
    for (key, profile) in map {
        if key.starts_with(SECCOMP_CONTAINER) {
            seccomp(annotations.child(key), profile.as_str().unwrap_or_default());
        }
    }
    for (key, profile) in map {
        if let Some(container) = key.strip_prefix(APP_ARMOR) {
            app_armor(annotations.key(key), container, profile.as_str().unwrap_or_default(), spec);
        }
    }
}

fn text<'v>(map: &'v Map<String, Value>, key: &str) -> Option<&'v str> {
    map.get(key)?.as_str()
}

/// Absent is valid; a plus sign or leading zeros are not.
pub(super) fn has_valid_deletion_cost(annotations: Node<'_>) -> bool {
    let Some(cost) = annotations.raw(DELETION_COST).and_then(Value::as_str) else { return true };
    let plain = cost == "0" || cost.starts_with(|first: char| first == '-' || ('1'..='9').contains(&first));
    plain && go::parse_int(cost).is_ok_and(|cost| i32::try_from(cost).is_ok())
}

fn seccomp(node: Node<'_>, profile: &str) {
    match profile {
        "runtime/default" | "docker/default" | "unconfined" => {}
        _ => match profile.strip_prefix("localhost/") {
            Some(path) => local_descending_path(node, path),
            None => node.invalid(profile, "must be a valid seccomp profile"),
        },
    }
}

fn app_armor(node: Node<'_>, container: &str, profile: &str, spec: Node<'_>) {
    if !all_containers(spec).any(|known| known.str("name") == container) {
        node.invalid(container, "container not found");
    }
    let known = ["", "runtime/default", "unconfined"].contains(&profile) || profile.starts_with("localhost/");
    if !known {
        node.invalid(profile, format!("invalid AppArmor profile name: {}", go::quote(profile)));
    }
}

/// Where a profile is given by annotation and by field, both say the same.
pub(super) fn match_fields<'v>(metadata: Node<'v>, spec: Node<'v>) {
    let annotations = metadata.get("annotations");
    if annotations.is_empty() {
        return;
    }
    let context = spec.get("securityContext");
    if let Some(annotation) = annotations.raw(SECCOMP_POD).and_then(Value::as_str) {
        profiles_match(context.get("seccompProfile"), annotation, "seccomp");
    }
    for container in all_containers(spec) {
        let key = format!("{SECCOMP_CONTAINER}{}", container.str("name"));
        if let Some(annotation) = annotations.raw(&key).and_then(Value::as_str) {
            profiles_match(container.get2("securityContext", "seccompProfile"), annotation, "seccomp");
        }
    }
    if spec.get("os").str("name") == "windows" {
        return;
    }
    for container in all_containers(spec) {
        let key = format!("{APP_ARMOR}{}", container.str("name"));
        if let Some(annotation) = annotations.raw(&key).and_then(Value::as_str) {
            let own = container.get2("securityContext", "appArmorProfile");
            let profile = if own.is_set() { own } else { own.holding(context.raw("appArmorProfile")) };
            profiles_match(profile, annotation, "apparmor");
        }
    }
}

fn profiles_match(profile: Node<'_>, annotation: &str, what: &str) {
    if !profile.is_set() {
        return;
    }
    let refuse = |member: &'static str, thing: &str| {
        profile.child(member).forbidden(format!("{what} {thing} in annotation and field must match"));
    };
    match (profile.str("type"), annotation.strip_prefix("localhost/")) {
        ("Unconfined", _) if annotation != "unconfined" => refuse("type", "type"),
        ("RuntimeDefault", _) => {
            let same =
                annotation == "runtime/default" || (what == "seccomp" && annotation == "docker/default");
            if !same {
                refuse("type", "type");
            }
        }
        ("Localhost", None) => refuse("type", "type"),
        ("Localhost", Some(path))
            if profile.str("localhostProfile") != path || !profile.has("localhostProfile") =>
        {
            refuse("localhostProfile", "profile");
        }
        _ => {}
    }
}

/// What an update may do with annotations that a running pod depends on.
pub(super) fn updates<'v>(new: Node<'v>, old: Node<'v>) {
    let own = |key: &str| key.starts_with(APP_ARMOR) || key == MIRROR;
    let refuse = |key: &'v str, what: &str| {
        let name = if key == MIRROR { "mirror pod annotation" } else { "AppArmor annotations" };
        new.key(key).forbidden(format!("may not {what} {name}"));
    };
    for (key, value) in old.object().into_iter().flatten().filter(|(key, _)| own(key)) {
        if new.raw(key) != Some(value) {
            refuse(key, "remove or update");
        }
    }
    for (key, _) in new.object().into_iter().flatten().filter(|(key, _)| own(key)) {
        if !old.has(key) {
            refuse(key, "add");
        }
    }
}
