//! Groups of pods that are scheduled together, and the workloads that they are made for.

use concord_meta::{field::BadValue, go, names};
use serde_json::Value;

use crate::{
    conditions::conditions,
    internal, meta,
    node::{Node, Root},
    rules::{IMMUTABLE, qualified_name, same},
};

const MAX_TEMPLATES: usize = 8;
const MAX_CLAIMS: usize = 4;
const HIGHEST_PRIORITY: i64 = 1_000_000_000;

pub(crate) fn pod_group(root: Root<'_>) {
    let spec = root.get("spec");
    template_ref(spec.get("podGroupTemplateRef"));
    group(spec);
}

pub(crate) fn pod_group_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    let (spec, before) = (new.get("spec"), old.get("spec"));
    if subresource == "status" {
        return pod_group_status(new.get("status"), spec);
    }
    for name in [
        "podGroupTemplateRef",
        "schedulingPolicy",
        "schedulingConstraints",
        "resourceClaims",
        "disruptionMode",
        "priorityClassName",
        "priority",
    ] {
        unchanged(spec.get(name), before.get(name), MAX_CLAIMS);
    }
}

/// What has not changed need not be looked at again; of what has, only whether it is too long.
fn unchanged(new: Node<'_>, old: Node<'_>, max: usize) {
    if is_same(new.value(), old.value()) {
        return;
    }
    new.invalid(BadValue::verbatim("null"), IMMUTABLE);
    if new.list().len() > max {
        new.too_many(new.len(), max);
    }
}

/// Whether two values are equal for Go: an absent list is an empty one, but an empty object says more than none.
fn is_same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            a.keys().chain(b.keys()).all(|name| is_same(a.get(name), b.get(name)))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(Some(a), Some(b)))
        }
        (Some(Value::Array(list)), None | Some(Value::Null))
        | (None | Some(Value::Null), Some(Value::Array(list))) => list.is_empty(),
        (None, Some(Value::Null)) | (Some(Value::Null), None) => true,
        (a, b) => a == b,
    }
}

/// The length of a name in the words of rules that are declared.
fn declared(problems: Vec<String>) -> Vec<String> {
    let bytes = |problem: String| match problem.starts_with("must be no more than") {
        true => problem.replace("characters", "bytes"),
        false => problem,
    };
    problems.into_iter().map(bytes).collect()
}

fn short_name(name: &str) -> Vec<String> {
    declared(names::dns1123_label(name))
}

fn long_name(name: &str) -> Vec<String> {
    declared(names::dns1123_subdomain(name))
}

fn pod_group_status(status: Node<'_>, spec: Node<'_>) {
    conditions(status.get("conditions"));
    let statuses = status.get("resourceClaimStatuses");
    let known = |name: &str| spec.get("resourceClaims").items().any(|claim| claim.str("name") == name);
    for name in statuses.items().map(|status| status.get("name")).filter(|name| !known(name.text())) {
        name.invalid(name.text(), "must match the name of an entry in `spec.resourceClaims`");
    }
    if statuses.len() > MAX_CLAIMS {
        return statuses.too_many(statuses.len(), MAX_CLAIMS);
    }
    distinct(statuses);
    let named = statuses.items().map(|status| status.get("resourceClaimName")).filter(|name| name.is_set());
    named.for_each(|name| name.check(long_name));
}

/// The template that a group was made of.
fn template_ref(reference: Node<'_>) {
    if !reference.is_set() {
        return;
    }
    one_of(reference, &["workload"]);
    let workload = reference.get("workload");
    if workload.is_set() {
        workload.get("workloadName").required_and(long_name);
        workload.get("podGroupTemplateName").required_and(short_name);
    }
}

/// What groups and their templates have in common.
fn group(group: Node<'_>) {
    let policy = group.get("schedulingPolicy");
    one_of(policy, &["basic", "gang"]);
    let gang = policy.get("gang");
    if gang.is_set() {
        let count = gang.get("minCount");
        match count.int().unwrap_or_default() {
            0 => count.required(""),
            number @ ..0 => count.invalid(number, "must be greater than or equal to 1"),
            _ => {}
        }
    }
    let topology = group.get2("schedulingConstraints", "topology");
    match topology.len() > 1 {
        true => topology.too_many(topology.len(), 1),
        false => topology.items().for_each(|one| one.get("key").required_and(qualified_name)),
    }
    claims(group.get("resourceClaims"));
    group.get("disruptionMode").optional_one_of(&["Pod", "PodGroup"]);
    group.get("priorityClassName").optional_and(long_name);
    let priority = group.get("priority");
    if let Some(number) = priority.int().filter(|number| *number > HIGHEST_PRIORITY) {
        priority.invalid(number, format!("must be less than or equal to {HIGHEST_PRIORITY}"));
    }
}

fn claims(claims: Node<'_>) {
    if claims.len() > MAX_CLAIMS {
        return claims.too_many(claims.len(), MAX_CLAIMS);
    }
    distinct(claims);
    for claim in claims.items() {
        one_of(claim, &["resourceClaimName", "resourceClaimTemplateName"]);
        claim.get("name").required_and(short_name);
        for name in ["resourceClaimName", "resourceClaimTemplateName"].map(|name| claim.get(name)) {
            if name.is_set() {
                name.check(long_name);
            }
        }
    }
}

/// Exactly one of the members is given.
fn one_of(node: Node<'_>, members: &[&'static str]) {
    let given: Vec<&str> = members.iter().copied().filter(|name| node.has(name)).collect();
    let all: Vec<String> = members.iter().map(|name| format!("`{name}`")).collect();
    match given.as_slice() {
        [] => node.invalid("", format!("must specify one of: {}", all.join(", "))),
        [_] => {}
        several => {
            let several = format!("{{{}}}", several.join(", "));
            node.invalid(&*several, format!("must specify exactly one of: {}", all.join(", ")));
        }
    }
}

/// Each has a name of its own.
fn distinct(nodes: Node<'_>) {
    let mut seen: Vec<&str> = Vec::new();
    for node in nodes.items() {
        let name = node.str("name");
        match seen.contains(&name) {
            true => node.duplicate(shown(node)),
            false => seen.push(name),
        }
    }
}

/// An item as Go writes it: in the order of its fields, and a template of a group with its constraints in any case.
fn shown(node: Node<'_>) -> BadValue {
    const FIELDS: [&str; 9] = [
        "name",
        "schedulingPolicy",
        "schedulingConstraints",
        "resourceClaims",
        "disruptionMode",
        "priorityClassName",
        "priority",
        "resourceClaimName",
        "resourceClaimTemplateName",
    ];
    let is_template = node.has("schedulingPolicy");
    let member = |name: &&str| match node.raw(name) {
        Some(value) => Some(format!("\"{name}\":{}", go::json(value))),
        None if is_template && *name == "schedulingConstraints" => Some(format!("\"{name}\":null")),
        None => None,
    };
    let members: Vec<String> = FIELDS.iter().filter_map(member).collect();
    BadValue::verbatim(format!("{{{}}}", members.join(",")))
}

/// Whether it has the form of 1.35, which was another one.
fn is_first(root: Root<'_>) -> bool {
    root.object().get("apiVersion").is_some_and(|version| version == "scheduling.k8s.io/v1alpha1")
}

pub(crate) fn workload(root: Root<'_>) {
    let spec = root.get("spec");
    let controller = spec.get("controllerRef");
    if controller.is_set() {
        controller.get("apiGroup").optional_and(long_name);
        controller.get("kind").required_and(names::path_segment);
        controller.get("name").required_and(names::path_segment);
    }
    if is_first(root) {
        return first_groups(spec.get("podGroups"));
    }
    let templates = spec.get("podGroupTemplates");
    if templates.len() > MAX_TEMPLATES {
        return templates.too_many(templates.len(), MAX_TEMPLATES);
    }
    if templates.is_empty() {
        templates.required("");
    }
    distinct(templates);
    for template in templates.items() {
        template.get("name").required_and(short_name);
        group(template);
    }
}

fn first_groups(groups: Node<'_>) {
    if groups.is_empty() {
        return groups.required("must have at least one item");
    }
    if groups.len() > MAX_TEMPLATES {
        return groups.too_many(groups.len(), MAX_TEMPLATES);
    }
    for (index, group) in groups.items().enumerate() {
        let name = group.get("name");
        name.check(names::dns1123_label);
        if groups.items().take(index).any(|other| other.str("name") == name.text()) {
            name.duplicate(name.text());
        }
        let policy = group.get("policy");
        match [policy.has("basic"), policy.has("gang")] {
            [false, false] => policy.required("exactly one of `basic`, `gang` is required"),
            [true, true] => policy.invalid(
                "{`basic`, `gang`}",
                "exactly one of `basic`, `gang` is required, but multiple fields are set",
            ),
            [true, false] => {}
            [false, true] => policy.get2("gang", "minCount").positive(),
        }
    }
}

pub(crate) fn workload_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    if is_first(new) {
        return first_update(new, old);
    }
    for name in ["controllerRef", "podGroupTemplates"] {
        unchanged(new.get("spec").get(name), old.get("spec").get(name), MAX_TEMPLATES);
    }
    let templates = new.get("spec").get("podGroupTemplates");
    if templates.is_empty() {
        templates.required("");
    }
}

/// Where 1.35 says that something may not change it leaves `spec` out of the path.
fn first_update<'v>(new: Root<'v>, old: Root<'v>) {
    workload(new);
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let is_same = |name: &str| same(spec.raw(name), before.raw(name));
    if before.has("controllerRef") && !is_same("controllerRef") {
        let controller = spec.get("controllerRef");
        let shown = match controller.is_set() {
            true => internal::shown("WorkloadControllerReference", controller.value()),
            false => controller.shown(),
        };
        new.child("controllerRef").invalid(shown, IMMUTABLE);
    }
    if !is_same("podGroups") {
        let shown = internal::shown_list("WorkloadPodGroup", spec.get("podGroups").list());
        new.child("podGroups").invalid(shown, IMMUTABLE);
    }
}
