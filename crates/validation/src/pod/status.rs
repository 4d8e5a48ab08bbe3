//! What a pod's status may become.

use concord_meta::{field::BadValue, names};
use serde_json::Value;

use super::{Options, annotations};
use crate::{
    gates::Gate,
    internal,
    ip::{is_dual_stack, legacy_ip, parse_sloppy, warn_ip},
    node::{Node, Root},
    resources,
    rules::qualified_name,
};

const SYSTEM_CONDITIONS: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];
const NOT_AGAIN: &str = "may not be transitioned to non-terminated state";
const MAX_HEALTH_MESSAGE: usize = 1024;
const MAX_IMAGE_REF: usize = 256;
const LISTS: [&str; 3] = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];

pub(super) fn update<'v>(new: Root<'v>, old: Root<'v>, options: &Options<'v>) {
    let (notes, old_notes) = (new.metadata().get("annotations"), old.metadata().get("annotations"));
    annotations::updates(notes, old_notes);
    let (spec, old_spec) = (new.get("spec"), old.get("spec"));
    annotations::pod_specific(notes, spec, options);
    let (status, before) = (new.get("status"), old.get("status"));
    conditions(status.get("conditions"));
    if spec.str("nodeName") != old_spec.str("nodeName") {
        status.child("nodeName").forbidden("may not be changed directly");
    }
    nominated_node(status, before, old_spec);
    observed_generation(status);
    if status.str("qosClass") != before.str("qosClass") {
        let class = status.get("qosClass");
        class.invalid(BadValue::named(class.text()), crate::rules::IMMUTABLE);
    }
    transitions(status, before, old_spec, options);
    claim_statuses(status.get("resourceClaimStatuses"), spec.get("resourceClaims"));
    extended_claim(status.get("extendedResourceClaimStatus"), spec);
    allocatable_claims(status, spec);
    ips(status, before);
    LISTS.iter().for_each(|list| users(status.get(list), spec));
    allocated(status.get("containerStatuses"), spec.get("containers"));
    allocated(status.get("initContainerStatuses"), spec.get("initContainers"));
    for one in status.get("ephemeralContainerStatuses").items() {
        if !one.get("allocatedResourcesStatus").is_empty() {
            one.child("allocatedResourcesStatus").forbidden("must not be specified in container status");
        }
    }
    if status.gate(Gate::ImageVolumeWithDigest) {
        LISTS.iter().for_each(|list| mounted_images(status.get(list)));
    }
}

/// What to tell who writes the status of a pod.
pub(crate) fn status_warnings<'v>(new: Root<'v>, _: Option<Root<'v>>) {
    for list in ["podIPs", "hostIPs"] {
        new.get("status").get(list).items().for_each(|item| warn_ip(item.get("ip"), item.str("ip")));
    }
}

fn observed_generation(node: Node<'_>) {
    let generation = node.get("observedGeneration");
    if let Some(number) = generation.int()
        && number < 0
    {
        generation.invalid(number, "must be a non-negative integer");
    }
}

fn conditions(conditions: Node<'_>) {
    for condition in conditions.items() {
        observed_generation(condition);
        if !SYSTEM_CONDITIONS.contains(&condition.str("type")) {
            condition.child("Type").check_text(condition.str("type"), qualified_name);
        }
    }
}

fn nominated_node(status: Node<'_>, before: Node<'_>, old_spec: Node<'_>) {
    let node = status.get("nominatedNodeName");
    if node.text().is_empty() || node.text() == before.str("nominatedNodeName") {
        return;
    }
    node.check(names::dns1123_subdomain);
    if node.gate(Gate::ClearingNominatedNodeNameAfterBinding) && !old_spec.str("nodeName").is_empty() {
        node.forbidden("may not be set on pods that are already bound to a node");
    }
}

fn is_terminated(status: &Value) -> bool {
    status.get("state").and_then(|state| state.get("terminated")).is_some_and(|state| !state.is_null())
}

fn transitions(status: Node<'_>, before: Node<'_>, spec: Node<'_>, options: &Options<'_>) {
    let by_rules = options.restart_rules || spec.gate(Gate::ContainerRestartRules);
    let by_all = options.restart_all_containers || spec.gate(Gate::RestartAllContainersOnContainerExits);
    let all_could_restart = by_rules
        && by_all
        && super::all_containers(spec).any(|container| {
            container
                .get("restartPolicyRules")
                .items()
                .any(|rule| rule.str("action") == "RestartAllContainers")
        });
    for (list, containers) in LISTS.into_iter().zip(["containers", "initContainers", ""]) {
        let is_ephemeral = containers.is_empty();
        if all_could_restart && !is_ephemeral {
            continue;
        }
        let now = status.get(list);
        for (index, old) in before.get(list).list().iter().enumerate().filter(|(_, old)| is_terminated(old)) {
            let ended = |new: &&Value| new.get("name") == old.get("name") && !is_terminated(new);
            let Some(new) = now.list().iter().find(ended) else { continue };
            let name = new.get("name").and_then(Value::as_str).unwrap_or_default();
            let may_restart = match by_rules {
                true => may_restart(spec, containers, name, exit_code(old)),
                false => may_restart_with_pod(spec, containers, name, exit_code(old)),
            };
            if is_ephemeral || !may_restart {
                now.at(index).child("state").forbidden(NOT_AGAIN);
            }
        }
    }
}

fn exit_code(status: &Value) -> i64 {
    status.pointer("/state/terminated/exitCode").and_then(Value::as_i64).unwrap_or_default()
}

/// What the container's rules, its policy and the pod's policy say about another start, in this order.
/// Without rules of their own containers do as their pod says; only sidecars always start again.
fn may_restart_with_pod(spec: Node<'_>, list: &str, name: &str, code: i64) -> bool {
    let mut containers = spec.raw(list).and_then(Value::as_array).into_iter().flatten();
    let is_sidecar = |container: &Value| {
        list == "initContainers" && container.get("restartPolicy").is_some_and(|policy| policy == "Always")
    };
    let known = containers.find(|container| container.get("name").is_some_and(|known| known == name));
    spec.str("restartPolicy") == "Always"
        || (spec.str("restartPolicy") == "OnFailure" && code != 0)
        || known.is_some_and(is_sidecar)
}

fn may_restart(spec: Node<'_>, list: &str, name: &str, code: i64) -> bool {
    let containers = spec.raw(list).and_then(Value::as_array).into_iter().flatten();
    let mut found = containers.filter(|container| container.get("name").is_some_and(|known| known == name));
    let Some(container) = found.next() else { return false };
    let text = |value: &Value, member: &str| {
        value.get(member).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    for rule in container.get("restartPolicyRules").and_then(Value::as_array).into_iter().flatten() {
        let Some(codes) = rule.get("exitCodes") else { continue };
        let named =
            codes.get("values").and_then(Value::as_array).is_some_and(|values| values.contains(&code.into()));
        let holds = match text(codes, "operator").as_str() {
            "In" => named,
            "NotIn" => !named,
            _ => false,
        };
        if holds {
            // Only the first rule that holds counts.
            let all = text(rule, "action") == "RestartAllContainers";
            if text(rule, "action") == "Restart"
                || all && spec.gate(Gate::RestartAllContainersOnContainerExits)
            {
                return true;
            }
            break;
        }
    }
    let policy = match text(container, "restartPolicy") {
        policy if policy.is_empty() => spec.str("restartPolicy").to_owned(),
        policy => policy,
    };
    match policy.as_str() {
        "Never" => false,
        "OnFailure" => code != 0,
        _ => true,
    }
}

fn claim_statuses(statuses: Node<'_>, claims: Node<'_>) {
    let mut seen: Vec<&str> = Vec::new();
    for status in statuses.items() {
        let name = status.get("name");
        if !claims.list().iter().any(|claim| claim.get("name") == name.value()) {
            name.invalid(name.text(), "must match the name of an entry in `spec.resourceClaims`");
        }
        match seen.contains(&name.text()) {
            true => name.duplicate(name.text()),
            false => seen.push(name.text()),
        }
        let claim = status.get("resourceClaimName");
        if claim.is_set() {
            for problem in names::dns1123_subdomain(claim.text()) {
                claim.invalid(BadValue::named(claim.text()), problem);
            }
        }
    }
}

fn extended_claim(status: Node<'_>, spec: Node<'_>) {
    if !status.is_set() {
        return;
    }
    let mappings = status.get("requestMappings");
    if mappings.is_empty() {
        mappings.required("at least one request mapping is required");
    }
    let mut seen: Vec<[&str; 3]> = Vec::new();
    for mapping in mappings.items() {
        let key = ["containerName", "resourceName", "requestName"].map(|name| mapping.str(name));
        let container = ["containers", "initContainers"]
            .into_iter()
            .flat_map(|list| spec.get(list).items())
            .find(|container| container.str("name") == key[0]);
        match container {
            None => mapping.child("containerName").invalid(
                key[0],
                "must match the name of an entry in spec.initContainers.name or spec.containers.name",
            ),
            Some(container) if !container.get2("resources", "requests").has(key[1]) => mapping
                .child("resourceName")
                .invalid(key[1], "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests"),
            Some(_) => {}
        }
        status.child("requestName").check_text(key[2], names::dns1123_label);
        if seen.contains(&key) {
            for (name, value) in ["containerName", "resourceName", "requestName"].into_iter().zip(key) {
                mapping.child(name).duplicate(value);
            }
        }
        seen.push(key);
    }
    status.get("resourceClaimName").required_and(names::dns1123_subdomain);
}

fn allocatable_claims(status: Node<'_>, spec: Node<'_>) {
    for claim in status.get("nodeAllocatableResourceClaimStatuses").items() {
        let name = claim.get("resourceClaimName");
        if name.text().is_empty() {
            name.required("must not be empty");
        }
        let lists = [spec.get("resourceClaims").list(), status.get("resourceClaimStatuses").list()];
        let found = lists.into_iter().flatten().any(|known| known.get("resourceClaimName") == name.value());
        if !found || !name.is_set() {
            name.invalid(name.text(), "no mapping found in pod reference");
        }
        for member in ["containers", "resources"] {
            if claim.get(member).is_empty() {
                claim.child(member).required("must not be empty");
            }
        }
        for (resource, amount) in claim.get("resources").entries() {
            if !resources::is_native(resource) {
                amount.invalid(BadValue::named(resource), "must be a node allocatable resource name");
            }
            if let Some(quantity) = amount.quantity().filter(resources::is_negative) {
                amount.invalid(resources::shown(&quantity), "must be non-negative");
            }
        }
    }
}

fn ips(status: Node<'_>, before: Node<'_>) {
    addresses(status.get("podIPs"), before.get("podIPs"), "PodIP");
    let hosts = status.get("hostIPs");
    if let Some(first) = hosts.items().next() {
        if first.str("ip") != status.str("hostIP") {
            first.get("ip").invalid(first.str("ip"), "must be equal to `hostIP`");
        }
        addresses(hosts, before.get("hostIPs"), "HostIP");
    }
}

fn addresses(list: Node<'_>, before: Node<'_>, type_name: &'static str) {
    let text = |item: &'_ Value| item.get("ip").and_then(Value::as_str).unwrap_or_default().to_owned();
    let known: Vec<String> = before.list().iter().map(text).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    list.items().for_each(|item| legacy_ip(item, item.str("ip"), &known));
    if list.len() > 1 {
        let all: Vec<&str> = list.items().map(|item| item.str("ip")).collect();
        if let Some(index) = all.iter().position(|ip| parse_sloppy(ip).is_none()) {
            let why = format!("invalid IP[{index}]: {}", all[index]);
            list.internal_error(format!("failed to check for dual stack with error:{why}"));
        }
        if !is_dual_stack(&all) || all.len() > 2 {
            let shown = internal::shown_list(type_name, list.list());
            list.invalid(shown, "may specify no more than one IP for each IP family");
        }
    }
}

fn users(statuses: Node<'_>, spec: Node<'_>) {
    let os = spec.raw("os").and_then(|os| os.get("name")?.as_str()).unwrap_or("linux");
    for status in statuses.items().filter(|status| status.has("user")) {
        let linux = status.get2("user", "linux");
        match os {
            "windows" if linux.is_set() => linux.forbidden("cannot be set for a windows pod"),
            "linux" => {
                linux.get("uid").id();
                linux.get("gid").id();
                linux.get("supplementalGroups").items().for_each(Node::id);
            }
            _ => {}
        }
    }
}

fn allocated(statuses: Node<'_>, containers: Node<'_>) {
    for status in statuses.items() {
        let container = containers.items().find(|container| container.str("name") == status.str("name"));
        for resource in status.get("allocatedResourcesStatus").items() {
            if let Some(container) = container {
                allocated_name(resource.get("name"), container.get("resources"));
            }
            let mut seen: Vec<&str> = Vec::new();
            for one in resource.get("resources").items() {
                one.get("health").one_of(&["Healthy", "Unhealthy", "Unknown"]);
                let message = one.get("message");
                if message.is_set() && message.text().is_empty() {
                    message.required("must be non-empty if specified");
                } else if message.text().len() > MAX_HEALTH_MESSAGE {
                    message.too_long(MAX_HEALTH_MESSAGE);
                }
                let id = one.get("resourceID");
                match seen.contains(&id.text()) {
                    true => id.duplicate(BadValue::named(id.text())),
                    false => seen.push(id.text()),
                }
            }
        }
    }
}

fn allocated_name(name: Node<'_>, resources: Node<'_>) {
    let Some(claim) = name.text().strip_prefix("claim:") else {
        if !resources.get("requests").has(name.text()) {
            name.invalid(BadValue::named(name.text()), "must match one of the container's resource requests");
        }
        return;
    };
    let known = resources.get("claims").items().any(|known| match known.str("request") {
        "" => known.str("name") == claim,
        request => claim == format!("{}/{request}", known.str("name")),
    });
    if !known {
        name.invalid(
            BadValue::named(name.text()),
            "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty",
        );
    }
}

fn mounted_images(statuses: Node<'_>) {
    for status in statuses.items().filter(|status| status.has("volumeMounts")) {
        for mount in status.get("volumeMounts").items().filter(|mount| mount.has("volumeStatus")) {
            let image = mount.get("volumeStatus").get_as("image", "imageVolumeStatus");
            if !image.is_set() {
                continue;
            }
            let reference = image.get("imageRef");
            if reference.text().is_empty() {
                reference.required("imageRef must not be empty");
            }
            if reference.text().len() > MAX_IMAGE_REF {
                reference.too_long(MAX_IMAGE_REF);
            }
        }
    }
}
