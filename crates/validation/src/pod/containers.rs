//! Containers of the three sorts.

use concord_meta::{field::BadValue, names};
use serde_json::Value;

use super::{
    Options, Pod,
    env::{env, env_from},
    mounts::{devices, mounts},
    probes::lifecycle_and_probes,
    security::security_context,
    sources::pull_policy,
};
use crate::{gates::Gate, internal, node::Node, resources, rules::port_name};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const NO_RULES_WITHOUT_POLICY: &str = "must specify restartPolicy when restart rules are used";

/// What an ephemeral container cannot have, in the order of its fields.
const NOT_EPHEMERAL: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

pub(super) fn containers<'v>(containers: Node<'v>, pod: &Pod<'v>) {
    if containers.is_empty() {
        return containers.required("");
    }
    let mut seen: Vec<&str> = Vec::new();
    for container in containers.items() {
        common(container, pod);
        let name = container.str("name");
        match seen.contains(&name) {
            true => container.child("name").duplicate(name),
            false => seen.push(name),
        }
        lifecycle_and_probes(container, pod);
        if has_restart_rules(pod, container) {
            restart_policy(container, may_restart_all(pod, container));
        } else if container.has("restartPolicy") {
            container.child("restartPolicy").forbidden("may not be set for non-init containers");
        }
    }
    host_ports(containers.items());
}

pub(super) fn init_containers<'v>(containers: Node<'v>, regular: Node<'v>, pod: &Pod<'v>) {
    let mut seen: Vec<&str> = regular.list().iter().map(name_of).collect();
    for container in containers.items() {
        common(container, pod);
        init_restart_policy(container, pod);
        let restarts = container.str("restartPolicy") == "Always";
        let name = container.str("name");
        match seen.contains(&name) {
            true => container.child("name").duplicate(name),
            false if !name.is_empty() => seen.push(name),
            false => {}
        }
        // Upstream looks at each of them alone and names its ports after the first place.
        host_ports(std::iter::once(containers.at(0).holding(container.value())));
        if restarts {
            lifecycle_and_probes(container, pod);
        } else {
            for member in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if container.has(member) {
                    container
                        .child(member)
                        .forbidden("may not be set for init containers without restartPolicy=Always");
                }
            }
        }
        resize_policy_of_init(container, pod);
        if !restarts {
            resize_without_restart(container, &pod.options);
        }
    }
}

fn name_of(container: &Value) -> &str {
    container.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// A gate that is off keeps the policy of init containers out, unless a sidecar had one.
fn resize_policy_of_init(container: Node<'_>, pod: &Pod<'_>) {
    let policies = container.get("resizePolicy");
    let allowed = pod.options.sidecar_resize_policy || policies.gate(Gate::InPlacePodVerticalScaling);
    if !allowed && !policies.is_empty() {
        let shown = internal::shown_list("ContainerResizePolicy", policies.list());
        policies.invalid(shown, "must not be set for init containers");
    }
}

fn resize_without_restart(container: Node<'_>, options: &Options<'_>) {
    if options.restart_container_for_init {
        return;
    }
    for policy in container.get("resizePolicy").items() {
        if policy.str("restartPolicy") == "RestartContainer" {
            policy.get("restartPolicy").invalid(
                BadValue::named("RestartContainer"),
                "must not be set to 'RestartContainer' for non-sidecar initContainers",
            );
        }
    }
}

pub(super) fn ephemeral_containers<'v>(
    containers: Node<'v>,
    regular: Node<'v>,
    init: Node<'v>,
    pod: &Pod<'v>,
) {
    const NOT_HERE: &str = "cannot be set for an Ephemeral Container";
    let others: Vec<&str> = regular.list().iter().chain(init.list()).map(name_of).collect();
    let mut seen = others.clone();
    for container in containers.items() {
        common(container, pod);
        trimmed_image(container);
        let name = container.str("name");
        match seen.contains(&name) {
            true => container.child("name").duplicate(name),
            false => seen.push(name),
        }
        let target = container.get("targetContainerName");
        if !target.text().is_empty() && !others.contains(&target.text()) {
            target.not_found(target.text());
        }
        for member in NOT_EPHEMERAL.into_iter().filter(|member| is_given(container, member)) {
            container.child(member).forbidden(NOT_HERE);
        }
        for mount in container.get("volumeMounts").items() {
            for member in
                ["subPath", "subPathExpr"].into_iter().filter(|member| !mount.str(member).is_empty())
            {
                mount.child(member).forbidden(NOT_HERE);
            }
        }
    }
}

/// Whether a member is more than Go's zero value; only resources are no pointer and no list.
fn is_given(container: Node<'_>, member: &str) -> bool {
    match container.raw(member) {
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(members)) => member != "resources" || !members.is_empty(),
        other => other.is_some(),
    }
}

/// An image that the kubelet would not have to trim. Only pods must have one: templates did not.
pub(super) fn trimmed_image(container: Node<'_>) {
    let image = container.str("image");
    if image.trim().len() != image.len() {
        container.child("image").invalid(image, "must not have leading or trailing whitespace");
    }
}

fn common<'v>(container: Node<'v>, pod: &Pod<'v>) {
    container.get("name").required_and(names::dns1123_label);
    container.need(&["image"]);
    container.get("terminationMessagePolicy").required_one_of(&["File", "FallbackToLogsOnError"]);
    ports(container.get("ports"));
    env(container.get("env"), pod);
    env_from(container.get("envFrom"), pod);
    mounts(container, &pod.volumes);
    devices(container, &pod.volumes);
    pull_policy(container.get("imagePullPolicy"));
    let resources = container.get("resources");
    resources::requirements(resources, resources::container_name, pod.options.indivisible_hugepages);
    claims(resources.get("claims"), &pod.claims);
    resize_policy(container.get("resizePolicy"), pod);
    security_context(container.get("securityContext"), pod);
}

fn ports(ports: Node<'_>) {
    let mut names: Vec<&str> = Vec::new();
    for port in ports.items() {
        let name = port.str("name");
        if !name.is_empty() {
            let before = port.errors();
            port.child("name").check_text(name, port_name);
            match names.contains(&name) {
                _ if port.errors() > before => {}
                true => port.child("name").duplicate(name),
                false => names.push(name),
            }
        }
        match port.num("containerPort") {
            0 => port.child("containerPort").required(""),
            _ => port.get("containerPort").port(),
        }
        if port.num("hostPort") != 0 {
            port.get("hostPort").port();
        }
        port.get("protocol").required_one_of(&PROTOCOLS);
    }
}

/// No port of the host is taken twice.
fn host_ports<'v>(containers: impl Iterator<Item = Node<'v>>) {
    let mut taken: Vec<(&str, &str, i64)> = Vec::new();
    for container in containers {
        if !container.has("ports") {
            continue;
        }
        for port in container.get("ports").items().filter(|port| port.num("hostPort") != 0) {
            let key = (port.str("protocol"), port.str("hostIP"), port.num("hostPort"));
            match taken.contains(&key) {
                true => port.child("hostPort").duplicate(&format!("{}/{}/{}", key.0, key.1, key.2)),
                false => taken.push(key),
            }
        }
    }
}

/// The pod's claims that a container uses.
pub(super) fn claims(claims: Node<'_>, known: &[&str]) {
    let mut seen: Vec<String> = Vec::new();
    for claim in claims.items() {
        let (name, request) = (claim.str("name"), claim.str("request"));
        if name.is_empty() {
            claim.required("");
            continue;
        }
        if seen.iter().any(|key| key == name) {
            claim.duplicate(name);
        } else {
            let key = if request.is_empty() { name.to_owned() } else { format!("{name}/{request}") };
            claim.get("request").optional_and(names::dns1123_label);
            if seen.contains(&key) {
                claim.duplicate(&key);
            } else if request.is_empty() {
                let same =
                    seen.iter().filter(|key| key.split_once('/').is_some_and(|(seen, _)| seen == name));
                same.for_each(|_| claim.duplicate(name));
            }
            if !seen.contains(&key) {
                seen.push(key);
            }
        }
        if !known.contains(&name) {
            claim.not_found(name);
            let detail = "must be one of the names in pod.spec.resourceClaims";
            let mut known = known.to_vec();
            known.sort_unstable();
            known.dedup();
            claim.detail(match known.is_empty() {
                true => format!("{detail} which is empty"),
                false => format!("{detail}: {}", known.join(", ")),
            });
        }
    }
}

fn resize_policy(policies: Node<'_>, pod: &Pod<'_>) {
    let mut seen: Vec<&str> = Vec::new();
    for policy in policies.items() {
        let (resource, restart) = (policy.str("resourceName"), policy.str("restartPolicy"));
        if seen.contains(&resource) {
            policy.duplicate(BadValue::named(resource));
        }
        seen.push(resource);
        let at = |name: &str| policies.holding(policy.raw(name));
        at("resourceName").required_one_of(&["cpu", "memory"]);
        at("restartPolicy").required_one_of(&["NotRequired", "RestartContainer"]);
        if pod.spec.str("restartPolicy") == "Never" && restart != "NotRequired" {
            policies.invalid(
                BadValue::named(restart),
                "must be 'NotRequired' when pod `restartPolicy` is 'Never'",
            );
        }
    }
}

/// Whether rules may restart all containers of the pod.
fn has_restart_rules(pod: &Pod<'_>, container: Node<'_>) -> bool {
    pod.options.restart_rules || container.gate(Gate::ContainerRestartRules)
}

fn may_restart_all(pod: &Pod<'_>, container: Node<'_>) -> bool {
    pod.options.restart_all_containers || container.gate(Gate::RestartAllContainersOnContainerExits)
}

fn restart_policy(container: Node<'_>, all: bool) {
    let (policy, rules) = (container.get("restartPolicy"), container.get("restartPolicyRules"));
    if !policy.is_set() {
        if rules.is_empty() {
            return;
        }
        policy.required(NO_RULES_WITHOUT_POLICY);
    } else {
        policy.one_of(&RESTART_POLICIES);
    }
    if rules.len() > 20 {
        rules.too_many(rules.len(), 20);
    }
    for rule in rules.items() {
        let actions: &[&str] = if all { &["Restart", "RestartAllContainers"] } else { &["Restart"] };
        rule.get("action").one_of(actions);
        let codes = rule.get("exitCodes");
        if !codes.is_set() {
            codes.required("must be specified");
            continue;
        }
        codes.get("operator").one_of(&["In", "NotIn"]);
        let values = codes.get("values");
        if values.len() > 255 {
            values.too_many(values.len(), 255);
        }
    }
}

fn init_restart_policy(container: Node<'_>, pod: &Pod<'_>) {
    let (policy, rules) = (container.get("restartPolicy"), container.get("restartPolicyRules"));
    let all = may_restart_all(pod, container);
    match policy.text() {
        _ if !policy.is_set() && rules.is_empty() => {}
        _ if !policy.is_set() => policy.required(NO_RULES_WITHOUT_POLICY),
        _ if !has_restart_rules(pod, container) => policy.one_of(&["Always"]),
        "Always" if !all => {
            if !rules.is_empty() {
                let why = "restartPolicyRules are not allowed for init containers with restart policy Always";
                rules.forbidden(why);
            }
        }
        _ => restart_policy(container, all),
    }
}
