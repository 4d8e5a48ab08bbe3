//! What to tell who writes a pod that is valid but hardly meant so.

use concord_meta::go;
use serde_json::Value;

use super::all_containers;
use crate::{
    gates::Gate,
    ip::warn_ip,
    meta,
    node::{Node, Root},
    persistence, resources,
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const NO_POD: &str = "a null labelSelector results in matching no pod";
const SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";

/// Annotations without effect, and what takes their place.
const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Sources of volumes that have no future: the member, what warnings call it, and since when.
const VOLUMES: [(&str, &str, &str); 8] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Labels of nodes that have other names now.
const NODE_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

/// The warning about a label of nodes, if it has another name now.
pub(crate) fn node_label(label: &str) -> Option<&'static str> {
    NODE_LABELS.iter().find(|(known, _)| *known == label).map(|(_, warning)| *warning)
}

/// Warnings about a pod.
pub(crate) fn pod_warnings(root: Root<'_>) {
    warnings(root.get("spec"), root.metadata(), false);
}

/// Warnings about a template of pods.
pub(crate) fn template_warnings(template: Node<'_>) {
    warnings(template.get("spec"), template.get("metadata"), true);
}

fn warnings<'v>(spec: Node<'v>, metadata: Node<'v>, is_template: bool) {
    nodes(spec);
    let annotations = metadata.get("annotations");
    for (key, warning) in ANNOTATIONS.into_iter().filter(|(key, _)| annotations.has(key)) {
        annotations.key(key).warn(warning);
    }
    for volume in spec.get("volumes").items() {
        for (_, called, warning) in VOLUMES.into_iter().filter(|(name, ..)| volume.has(name)) {
            volume.child(called).warn(warning);
        }
        if volume.has("gitRepo") {
            let off = !volume.gate(Gate::GitRepoVolumeDriver);
            let when = if off { ", and disabled by default in v1.33+" } else { "" };
            volume.child("gitRepo").warn(&format!("deprecated in v1.11{when}"));
        }
        if volume.has("ephemeral") {
            persistence::claim_warnings(volume.get("ephemeral").get2("volumeClaimTemplate", "spec"));
        }
    }
    super::overlaps::warnings(spec.get("volumes"));
    repeated(spec);
    for resource in ["memory", "ephemeral-storage"] {
        fractional(spec.get("overhead"), resource);
    }
    profiles(spec, annotations);
    for container in all_containers(spec) {
        of_container(container, spec, annotations, is_template);
    }
    ports(spec);
    port_names(spec);
    if spec.num("terminationGracePeriodSeconds") < 0 {
        spec.child("terminationGracePeriodSeconds")
            .warn("must be >= 0; negative values are invalid and will be treated as 1");
    }
    affinity(spec.get("affinity"));
    spec.get2("dnsConfig", "nameservers").items().for_each(|server| warn_ip(server, server.text()));
    spec.get("hostAliases").items().for_each(|alias| warn_ip(alias.get("ip"), alias.str("ip")));
}

fn nodes(spec: Node<'_>) {
    for (key, node) in spec.get("nodeSelector").entries() {
        if let Some(warning) = node_label(key) {
            node.warn(warning);
        }
    }
    if spec.has("affinity") {
        let node = spec.get2("affinity", "nodeAffinity");
        node.get2(REQUIRED, "nodeSelectorTerms").items().for_each(|term| node_term(term, false));
        node.get(PREFERRED).items().for_each(|term| node_term(term.get("preference"), true));
    }
    for spread in spec.get("topologySpreadConstraints").items() {
        let key = spread.str("topologyKey");
        if let Some(warning) = node_label(key) {
            spread.child("topologyKey").warn(&format!("{key} is {warning}"));
        }
        if !spread.has("labelSelector") {
            spread.child("labelSelector").warn(NO_POD);
        }
    }
}

/// Labels and, where they are not checked, values of a term about nodes.
pub(crate) fn node_term(term: Node<'_>, check_values: bool) {
    for expression in term.get("matchExpressions").items() {
        let key = expression.str("key");
        if let Some(warning) = node_label(key) {
            expression.child("key").warn(&format!("{key} is {warning}"));
        }
        if check_values {
            for value in expression.get("values").items() {
                for problem in concord_meta::names::label_value(value.text()) {
                    value.warn(&format!("{} is invalid, {problem}", value.text()));
                }
            }
        }
    }
}

fn repeated(spec: Node<'_>) {
    for (list, member) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let mut seen: Vec<&str> = Vec::new();
        for item in spec.get(list).items() {
            let text = item.str(member);
            if seen.contains(&text) {
                item.child(member).warn(&format!("duplicate {member} {}", go::quote(text)));
            }
            seen.push(text);
        }
    }
    for secret in spec.get("imagePullSecrets").items().filter(|secret| secret.str("name").is_empty()) {
        secret.child("name").warn("invalid empty name \"\"");
    }
}

fn fractional(amounts: Node<'_>, resource: &'static str) {
    let Some(amount) = amounts.raw(resource).and_then(resources::quantity) else { return };
    if amount.milli_value() % 1000 != 0 {
        amounts
            .key(resource)
            .warn(&format!("fractional byte value \"{amount}\" is invalid, must be an integer"));
    }
}

fn profiles(spec: Node<'_>, annotations: Node<'_>) {
    const KEY: &str = "seccomp.security.alpha.kubernetes.io/pod";
    if annotations.has(KEY) && !spec.get("securityContext").has("seccompProfile") {
        annotations.key(KEY).warn(SECCOMP);
    }
}

fn of_container<'v>(container: Node<'v>, spec: Node<'v>, annotations: Node<'v>, is_template: bool) {
    let context = container.get("securityContext");
    for (key, _) in annotations.object().into_iter().flatten() {
        let of = |prefix: &str| key.strip_prefix(prefix) == Some(container.str("name"));
        if of("container.seccomp.security.alpha.kubernetes.io/") && !context.has("seccompProfile") {
            annotations.key(key).warn(SECCOMP);
        }
        let app_armor = of("container.apparmor.security.beta.kubernetes.io/");
        if is_template && app_armor && !context.has("appArmorProfile") {
            let same = says_the_same(spec.get2("securityContext", "appArmorProfile"), annotations.str(key));
            if !same {
                annotations
                    .key(key)
                    .warn("deprecated since v1.30; use the \"appArmorProfile\" field instead");
            }
        }
    }
    for resource in ["memory", "ephemeral-storage"] {
        for list in ["limits", "requests"] {
            fractional(container.get2("resources", list), resource);
        }
    }
    env(container.get("env"));
}

fn says_the_same(profile: Node<'_>, annotation: &str) -> bool {
    match annotation {
        "unconfined" => profile.str("type") == "Unconfined",
        "runtime/default" => profile.str("type") == "RuntimeDefault",
        _ => annotation.strip_prefix("localhost/").is_some_and(|path| {
            profile.str("type") == "Localhost" && profile.str("localhostProfile") == path
        }),
    }
}

/// A variable that is defined again, other than from itself.
fn env(variables: Node<'_>) {
    let mut seen: Vec<&str> = Vec::new();
    for variable in variables.items() {
        let (name, value) = (variable.str("name"), variable.str("value"));
        if !seen.contains(&name) {
            seen.push(name);
            continue;
        }
        let reference = format!("$({name})");
        if variable.has("valueFrom") || value == reference || !value.contains(&reference) {
            let name = go::quote(name);
            variable
                .warn(&format!("hides previous definition of {name}, which may be dropped when using apply"));
        }
    }
}

fn all_ports<'v>(spec: Node<'v>) -> impl Iterator<Item = Node<'v>> {
    all_containers(spec)
        .filter(|container| container.has("ports"))
        .flat_map(|container| container.get("ports").items())
}

fn ports(spec: Node<'_>) {
    let mut seen: Vec<Node<'_>> = Vec::new();
    for port in all_ports(spec) {
        if !port.str("hostIP").is_empty() && port.num("hostPort") == 0 {
            let value = |name: &str| {
                port.raw(name).map(|value| match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                })
            };
            let number = |name: &str| value(name).unwrap_or_else(|| "0".to_owned());
            let text = |name: &str| value(name).unwrap_or_default();
            port.warn(&format!(
                "hostIP set without hostPort: {{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
                text("name"),
                number("hostPort"),
                number("containerPort"),
                text("protocol"),
                text("hostIP"),
            ));
        }
        let key = (port.num("containerPort"), port.str("protocol"));
        for other in seen.iter().filter(|other| (other.num("containerPort"), other.str("protocol")) == key) {
            let (ip, other_ip) = (port.str("hostIP"), other.str("hostIP"));
            let (number, other_number) = (port.num("hostPort"), other.num("hostPort"));
            let what = if ip == other_ip && number == other_number {
                "duplicate"
            } else if number == 0 || other_number == 0 {
                "overlapping"
            } else if number == other_number && ip.is_empty() != other_ip.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            port.warn(&format!("{what} port definition with {}", other.path()));
        }
        seen.push(port);
    }
}

fn port_names(spec: Node<'_>) {
    let mut seen: Vec<Node<'_>> = Vec::new();
    for port in all_ports(spec).filter(|port| !port.str("name").is_empty()) {
        match seen.iter().find(|other| other.str("name") == port.str("name")) {
            None => seen.push(port),
            Some(other) => {
                let (name, other) = (go::quote(port.str("name")), other.path());
                port.warn(&format!(
                    "duplicate port name {name} with {other}, services and probes that select ports by name will use {other}"
                ));
            }
        }
    }
}

fn affinity(affinity: Node<'_>) {
    for kind in ["podAffinity", "podAntiAffinity"].into_iter().filter(|kind| affinity.has(kind)) {
        let pods = affinity.get(kind);
        let required = pods.get(REQUIRED).items();
        let preferred = pods.get(PREFERRED).items().map(|term| term.get("podAffinityTerm"));
        for term in required.chain(preferred).filter(|term| !term.has("labelSelector")) {
            term.child("labelSelector").warn(NO_POD);
        }
    }
}

/// Warnings about new pods; updates are made by controllers, and nobody would read them.
pub(crate) fn new_pod_warnings<'v>(new: Root<'v>, old: Option<Root<'v>>) {
    if old.is_none() {
        meta::warn_name(new, "the Pod's hostname");
        pod_warnings(new);
    }
}
