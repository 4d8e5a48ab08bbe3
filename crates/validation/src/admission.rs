//! Webhooks and admission policies.

mod policies;
mod webhooks;

use concord_cel::{Env, Type, admission::compile};
use concord_meta::{field::BadValue, names};

pub(crate) use self::{
    policies::{
        mutating_binding, mutating_binding_update, mutating_policy, mutating_policy_update,
        validating_binding, validating_binding_update, validating_policy, validating_policy_update,
    },
    webhooks::{
        mutating_webhooks, mutating_webhooks_update, validating_webhooks, validating_webhooks_update,
    },
};
use crate::{
    gates::Gate,
    node::{Node, Root},
    rules::qualified_name,
};

const MAX_CONDITIONS: usize = 64;

fn has_wildcard(node: Node<'_>) -> bool {
    node.list().iter().any(|item| item == "*")
}

/// Which requests something is asked about.
fn rule_with_operations(rule: Node<'_>) {
    let operations = rule.get("operations");
    if operations.is_empty() {
        operations.required("");
    }
    if operations.len() > 1 && has_wildcard(operations) {
        operations.wrong("if '*' is present, must not specify other operations");
    }
    operations.items().for_each(|one| one.one_of(&["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]));
    for (name, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let node = rule.get(name);
        if node.is_empty() {
            node.required("");
        }
        if node.len() > 1 && has_wildcard(node) {
            node.wrong(format!("if '*' is present, must not specify other {what}"));
        }
    }
    rule.get("apiVersions").items().filter(|one| one.text().is_empty()).for_each(|one| one.required(""));
    resources(rule.get("resources"));
    rule.get("scope").optional_one_of(&["*", "Cluster", "Namespaced"]);
}

fn resources(resources: Node<'_>) {
    if resources.is_empty() {
        resources.required("");
    }
    let (mut all_of, mut of_all): (Vec<&str>, Vec<&str>) = Default::default();
    let (mut double, mut single, mut plain) = (false, false, false);
    for resource in resources.items() {
        let text = resource.text();
        double |= text == "*/*";
        single |= text == "*";
        let Some((name, sub)) = text.split_once('/') else {
            match text {
                "" => resource.required(""),
                // Upstream looks at the last one only.
                text => plain = text != "*",
            }
            continue;
        };
        for present in [
            all_of.contains(&name).then(|| format!("{name}/*")),
            of_all.contains(&sub).then(|| format!("*/{sub}")),
        ]
        .into_iter()
        .flatten()
        {
            resource.invalid(text, format!("if '{present}' is present, must not specify {text}"));
        }
        if sub == "*" {
            all_of.push(name);
        }
        if name == "*" {
            of_all.push(sub);
        }
    }
    if resources.len() > 1 && double {
        resources.wrong("if '*/*' is present, must not specify other resources");
    }
    if single && plain {
        resources.wrong("if '*' is present, must not specify other resources without subresources");
    }
}

/// An expression that has to be of one of these types.
fn expression(node: Node<'_>, env: &Env, types: &[Type]) {
    if let Err(why) = compile(env, node.text(), types) {
        node.invalid(node.text(), why);
    }
}

/// Conditions under which something is asked.
fn match_conditions(conditions: Node<'_>, env: &Env) {
    if conditions.len() > MAX_CONDITIONS {
        conditions.too_many(conditions.len(), MAX_CONDITIONS);
    }
    let mut seen: Vec<&str> = Vec::new();
    for condition in conditions.items() {
        let source = condition.get("expression");
        match source.text().trim() {
            "" => source.required(""),
            trimmed => {
                if let Err(why) = compile(env, trimmed, &[Type::Bool]) {
                    source.invalid(trimmed, why);
                }
            }
        }
        let name = condition.get("name");
        name.required_and(qualified_name);
        if name.text().is_empty() {
            continue;
        }
        match seen.contains(&name.text()) {
            true => name.duplicate(name.text()),
            false => seen.push(name.text()),
        }
    }
}

/// Names of what is configured by manifests; nobody is to use them otherwise.
const STATIC: &str = ".static.k8s.io";

fn reserved() -> String {
    let what = "are reserved for static manifest-based configurations and cannot be managed via the API";
    format!("names ending with {STATIC:?} {what}")
}

/// A new object is none of those that only manifests can make.
fn not_static(root: Root<'_>) {
    if root.gate(Gate::ManifestBasedAdmissionControlConfig) && root.name().ends_with(STATIC) {
        root.child("metadata").child("name").invalid(root.name(), reserved());
    }
}

/// What to tell who writes an object that looks as if a manifest had made it.
pub(crate) fn static_warnings<'v>(new: Root<'v>, old: Option<Root<'v>>) {
    let told = old.is_some() || !new.gate(Gate::ManifestBasedAdmissionControlConfig);
    if told && new.name().ends_with(STATIC) {
        new.warn(format!("metadata.name: {}", reserved()));
    }
}

/// An enumeration's value that has to be given, possibly with words for its absence.
fn given_one_of(node: Node<'_>, supported: &[&str]) {
    match node.is_set() {
        true => node.one_of(supported),
        false => node.required(""),
    }
}

/// A resource's name, of those a rule is restricted to.
fn resource_names(rule: Node<'_>) {
    let mut seen: Vec<&str> = Vec::new();
    for name in rule.get("resourceNames").items() {
        name.check(names::path_segment);
        match seen.contains(&name.text()) {
            true => name.duplicate(BadValue::from(name.text())),
            false => seen.push(name.text()),
        }
    }
}
