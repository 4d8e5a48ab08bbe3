//! APIServices: which server serves a version of a group.

use concord_meta::{go, names};

use crate::{
    json::base64,
    meta,
    node::{Node, Root},
};

const MAX_GROUP_PRIORITY: i64 = 20_000;
const MAX_VERSION_PRIORITY: i64 = 1000;
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

pub(crate) fn api_service(root: Root<'_>) {
    names_say_what_is_served(root);
    served(root.get("spec"));
}

fn served(spec: Node<'_>) {
    group_and_version(spec);
    priority(spec.get("groupPriorityMinimum"), MAX_GROUP_PRIORITY);
    priority(spec.get("versionPriority"), MAX_VERSION_PRIORITY);
    match spec.get("service").is_set() {
        true => remote(spec),
        false => local(spec),
    }
}

pub(crate) fn api_service_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    meta::update_any_finalizers(new, old);
    match subresource {
        "status" => status(new.get("status")),
        _ => {
            names_say_what_is_served(new);
            meta::whole_any_finalizers(new);
            served(new.get("spec"));
        }
    }
}

/// The name says what is served, and so does what it is made of, if that is given. What could be no name at all is told
/// about elsewhere.
fn names_say_what_is_served(root: Root<'_>) {
    let spec = root.get("spec");
    let required = format!("{}.{}", spec.str("version"), spec.str("group"));
    for member in ["generateName", "name"] {
        let name = root.metadata().get(member);
        let text = name.text();
        if text != required && !text.is_empty() && names::path_segment(text).is_empty() {
            name.invalid(text, format!("must be `spec.version+\".\"+spec.group`: {}", go::quote(&required)));
        }
    }
}

fn group_and_version(spec: Node<'_>) {
    let (group, version) = (spec.get("group"), spec.get("version"));
    match group.text() {
        "" if version.text() != "v1" => {
            group.required("only v1 may have an empty group and it better be legacy kube");
        }
        _ => group.optional_and(names::dns1123_subdomain),
    }
    version.check(names::dns1035_label);
}

fn priority(node: Node<'_>, most: i64) {
    let priority = node.int().unwrap_or_default();
    if priority <= 0 || priority > most {
        node.invalid(priority, format!("must be positive and less than {most}"));
    }
}

fn local(spec: Node<'_>) {
    let bundle = base64(spec.str("caBundle"));
    if !bundle.is_empty() {
        let shown = format!("{} bytes", bundle.len());
        spec.child("caBundle").invalid(&*shown, "local APIServices may not have a caBundle");
    }
    if spec.flag("insecureSkipTLSVerify") {
        let node = spec.child("insecureSkipTLSVerify");
        node.invalid(true, "local APIServices may not have insecureSkipTLSVerify");
    }
}

fn remote(spec: Node<'_>) {
    let service = spec.get("service");
    service.need(&["namespace", "name"]);
    let port = service.num("port");
    if !(1..=65535).contains(&port) {
        let range = crate::rules::range(1, 65535);
        service.child("port").invalid(port, format!("port is not valid: {range}"));
    }
    if spec.flag("insecureSkipTLSVerify") && !spec.str("caBundle").is_empty() {
        spec.child("insecureSkipTLSVerify").invalid(true, "may not be true if caBundle is present");
    }
}

fn status(status: Node<'_>) {
    for condition in status.get("conditions").items() {
        condition.get("status").one_of(&STATUSES);
    }
}
