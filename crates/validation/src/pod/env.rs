//! Environment variables and what they are taken from.

use concord_meta::names;

use super::{Options, Pod};
use crate::{
    gates::Gate,
    node::Node,
    rules::{Check, env_name, no_backsteps, qualified_name, strict_env_name},
};

const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// The fields of a pod that files can hold.
pub(super) const VOLUME_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// All fields that have a name here, whether they can be used or not.
const KNOWN_FIELDS: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

const DIVISORS: [&str; 13] =
    ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

type Rule = fn(Node<'_>);

const SOURCES: [(&str, Rule); 5] = [
    ("fieldRef", |node| field_selector(node, &ENV_FIELDS)),
    ("resourceFieldRef", |node| resource_field_selector(node, false)),
    ("configMapKeyRef", key_selector),
    ("secretKeyRef", key_selector),
    ("fileKeyRef", file_key_selector),
];

/// What the names of variables must be.
fn name_rule(pod: &Pod<'_>) -> Check {
    match pod.takes_any_variable() {
        true => env_name,
        false => strict_env_name,
    }
}

pub(super) fn env(variables: Node<'_>, pod: &Pod<'_>) {
    if variables.is_empty() {
        return;
    }
    let rule = name_rule(pod);
    for variable in variables.items() {
        variable.get("name").required_and(rule);
        if variable.has("valueFrom") {
            value_from(variable.get("valueFrom"), variable.str("value"), &pod.options);
        }
    }
}

fn value_from(node: Node<'_>, value: &str, options: &Options<'_>) {
    let mut count = 0;
    for (name, rule) in SOURCES {
        if node.has(name) {
            count += 1;
            rule(node.get(name));
        }
    }
    match count {
        0 => {
            let files = options.env_files || node.gate(Gate::EnvFiles);
            let last = if files { ", `secretKeyRef` or `fileKeyRef`" } else { " or `secretKeyRef`" };
            let first = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`";
            node.invalid("", format!("{first}{last}"));
        }
        _ if !value.is_empty() => node.invalid("", "may not be specified when `value` is not empty"),
        1 => {}
        _ => node.invalid("", "may not have more than one field specified at a time"),
    }
}

pub(super) fn env_from(sources: Node<'_>, pod: &Pod<'_>) {
    if sources.is_empty() {
        return;
    }
    let rule = name_rule(pod);
    for source in sources.items() {
        source.get("prefix").optional_and(rule);
        let mut count = 0;
        for reference in ["configMapRef", "secretRef"] {
            if source.has(reference) {
                count += 1;
                // Upstream takes the name for a prefix, which may end in a dash.
                source
                    .get(reference)
                    .get("name")
                    .required_and(|name| names::NameRule::Dns1123Subdomain.check_prefix(name));
            }
        }
        match count {
            0 => sources.invalid("", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => sources.invalid("", "may not have more than one field specified at a time"),
        }
    }
}

fn key_selector(node: Node<'_>) {
    node.get("name").check(names::dns1123_subdomain);
    node.get("key").required_and(names::config_map_key);
}

fn file_key_selector(node: Node<'_>) {
    node.get("key").required_and(env_name);
    node.get("volumeName").required_and(names::dns1123_label);
    let path = node.get("path");
    match path.text() {
        "" => path.required(""),
        text => no_backsteps(path, text),
    }
}

/// A field of the pod itself.
pub(super) fn field_selector(node: Node<'_>, supported: &[&str]) {
    let (version, path) = (node.get("apiVersion"), node.get("fieldPath"));
    if version.text().is_empty() {
        return version.required("");
    }
    if path.text().is_empty() {
        return path.required("");
    }
    let unconvertible = |why: String| path.invalid(path.text(), format!("error converting fieldPath: {why}"));
    if version.text() != "v1" {
        return unconvertible(format!("unsupported pod version: {}", version.text()));
    }
    match subscripted(path.text()) {
        Some(("metadata.annotations", key)) => node.check_text(&key.to_lowercase(), qualified_name),
        Some(("metadata.labels", key)) => node.check_text(key, qualified_name),
        Some(_) => unconvertible(format!("field label does not support subscript: {}", path.text())),
        None => {
            // An old name of a field that is still known.
            let field = if path.text() == "spec.host" { "spec.nodeName" } else { path.text() };
            if !KNOWN_FIELDS.contains(&field) {
                unconvertible(format!("field label not supported: {}", path.text()));
            } else if !supported.contains(&field) {
                path.not_supported(field, supported);
            }
        }
    }
}

/// `path['key']`
fn subscripted(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['").filter(|(path, _)| !path.is_empty())
}

/// What a container asked for. Files have to say which container.
pub(super) fn resource_field_selector(node: Node<'_>, is_volume: bool) {
    let resource = node.str("resource");
    let is_hugepages =
        ["limits.hugepages-", "requests.hugepages-"].iter().any(|prefix| resource.starts_with(prefix));
    if is_volume && node.str("containerName").is_empty() {
        node.child("containerName").required("");
    } else if resource.is_empty() {
        node.child("resource").required("");
    } else if !RESOURCES.contains(&resource) && !is_hugepages {
        node.child("resource").not_supported(resource, &RESOURCES);
    }
    divisor(node, resource);
}

fn divisor(node: Node<'_>, resource: &str) {
    let Some(divisor) = node.get("divisor").quantity().filter(|divisor| !divisor.is_zero()) else { return };
    let what = match resource.split_once('.') {
        Some(("limits" | "requests", name)) => match name {
            "cpu" => "cpu",
            "memory" => "memory",
            "ephemeral-storage" => "local ephemeral storage",
            name if name.starts_with("hugepages-") => "hugepages",
            _ => return,
        },
        _ => return,
    };
    let written = divisor.to_string();
    let (fits, values) = match what {
        "cpu" => (["1m", "1"].contains(&written.as_str()), "1m and 1".to_owned()),
        _ => (DIVISORS.contains(&written.as_str()), DIVISORS.join(", ")),
    };
    if !fits {
        let detail = format!("only divisor's values {values} are supported with the {what} resource");
        node.child("divisor").invalid(resource, detail);
    }
}
