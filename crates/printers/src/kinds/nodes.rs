//! Nodes and what runs on them.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::column::{AGE, NAME};
use crate::duration::UNKNOWN;
use crate::fields::Fields;
use crate::format::{NONE, age, join, or};
use crate::printer::BuiltIn;
use crate::{Column, Printer, Row};

pub(super) fn printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "RuntimeClass" => Some(&RUNTIME_CLASS),
        _ => None,
    }
}

/// Labels that start with this name a role.
const ROLE_PREFIX: &str = "node-role.kubernetes.io/";

/// The older label, whose value is the role.
const ROLE_LABEL: &str = "kubernetes.io/role";

pub(super) static NODE: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Status", "Whether the node is ready and takes pods."),
        Column::string("Roles", "What the node is for."),
        AGE,
        Column::string("Version", "Version of the kubelet."),
        Column::wide("Internal-IP", "Address inside the cluster."),
        Column::wide("External-IP", "Address outside the cluster."),
        Column::wide("OS-Image", "Operating system."),
        Column::wide("Kernel-Version", "Kernel and architecture."),
        Column::wide("Container-Runtime", "Container runtime and its version."),
    ],
    print: node,
};

fn node(object: Fields<'_>, now: Timestamp) -> Row {
    let info = object.at("status").at("nodeInfo");
    row![
        object.name(),
        node_status(object),
        roles(object),
        age(object, now),
        info.text("kubeletVersion"),
        address(object, "InternalIP"),
        address(object, "ExternalIP"),
        info.text_or("osImage", UNKNOWN),
        kernel(info),
        info.text_or("containerRuntimeVersion", UNKNOWN),
    ]
}

fn node_status(object: Fields<'_>) -> String {
    let ready = match object.at("status").last_condition("Ready") {
        None => "Unknown",
        Some(ready) if ready.text("status") == "True" => "Ready",
        Some(_) => "NotReady",
    };
    match object.at("spec").flag("unschedulable") {
        true => format!("{ready},SchedulingDisabled"),
        false => ready.to_owned(),
    }
}

fn roles(object: Fields<'_>) -> String {
    let roles: BTreeSet<&str> = object
        .metadata()
        .pairs("labels")
        .filter_map(
            |(key, value)| if key == ROLE_LABEL { Some(value) } else { key.strip_prefix(ROLE_PREFIX) },
        )
        .filter(|role| !role.is_empty())
        .collect();
    or(join(roles, ","), NONE)
}

fn address<'a>(object: Fields<'a>, address_type: &str) -> &'a str {
    let mut addresses = object.at("status").items("addresses");
    addresses.find(|address| address.text("type") == address_type).map_or(NONE, |found| found.text("address"))
}

fn kernel(info: Fields<'_>) -> String {
    let version = info.text_or("kernelVersion", UNKNOWN);
    match info.text("architecture") {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}

static RUNTIME_CLASS: BuiltIn = BuiltIn {
    columns: &[NAME, Column::string("Handler", "What the container runtime calls it."), AGE],
    print: runtime_class,
};

fn runtime_class(object: Fields<'_>, now: Timestamp) -> Row {
    row![object.name(), object.text("handler"), age(object, now)]
}
