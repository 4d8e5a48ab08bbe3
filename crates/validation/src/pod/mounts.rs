//! Where a container finds its volumes.

use concord_meta::field::BadValue;
use serde_json::Value;

use super::volumes::Volumes;
use crate::{
    node::Node,
    rules::{local_descending_path, no_backsteps},
};

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn mounts<'v>(container: Node<'v>, volumes: &Volumes<'v>) {
    let mounts = container.get("volumeMounts");
    let devices = container.get("volumeDevices").list();
    let is_device = |member: &str, of: &str| devices.iter().any(|device| text(device, member) == of);
    let mut seen: Vec<&str> = Vec::new();
    for mount in mounts.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        if name.text().is_empty() {
            name.required("");
        }
        if !volumes.has(name.text()) {
            name.not_found(name.text());
        }
        if path.text().is_empty() {
            path.required("");
        }
        if seen.contains(&path.text()) {
            path.invalid(path.text(), "must be unique");
        }
        seen.push(path.text());
        if is_device("name", name.text()) {
            name.invalid(name.text(), "must not already exist in volumeDevices");
        }
        if is_device("devicePath", path.text()) {
            path.invalid(path.text(), "must not already exist as a path in volumeDevices");
        }
        sub_paths(mount, mounts);
        propagation(mount, mounts, container);
        recursive_read_only(mount, mounts);
    }
}

/// Errors about the following stand at the list, not at the mount.
fn sub_paths<'v>(mount: Node<'v>, mounts: Node<'v>) {
    let (path, expression) = (mount.str("subPath"), mount.str("subPathExpr"));
    if !path.is_empty() {
        local_descending_path(mounts.child("subPath"), path);
    }
    if !expression.is_empty() {
        if !path.is_empty() {
            mount.child("subPathExpr").invalid(expression, "subPathExpr and subPath are mutually exclusive");
        }
        local_descending_path(mounts.child("subPathExpr"), expression);
    }
}

fn propagation<'v>(mount: Node<'v>, mounts: Node<'v>, container: Node<'v>) {
    let Some(value) = mount.raw("mountPropagation") else { return };
    let node = mounts.child("mountPropagation").holding(Some(value));
    node.one_of(&["Bidirectional", "HostToContainer", "None"]);
    if node.text() == "Bidirectional" && !container.get("securityContext").flag("privileged") {
        node.forbidden("Bidirectional mount propagation is available only to privileged containers");
    }
}

fn recursive_read_only<'v>(mount: Node<'v>, mounts: Node<'v>) {
    let Some(value) = mount.raw("recursiveReadOnly") else { return };
    let node = mounts.child("recursiveReadOnly").holding(Some(value));
    match node.text() {
        "Disabled" => {}
        "Enabled" | "IfPossible" => {
            if !mount.flag("readOnly") {
                node.forbidden("may only be specified when readOnly is true");
            }
            if mount.has("mountPropagation") && mount.str("mountPropagation") != "None" {
                node.forbidden("may only be specified when mountPropagation is None or not specified");
            }
        }
        other => node.not_supported(BadValue::named(other), &["Disabled", "Enabled", "IfPossible"]),
    }
}

fn is_claim(name: Node<'_>, volumes: &Volumes<'_>) {
    match volumes.is_claim(name.text()) {
        Some(true) => {}
        Some(false) => name.invalid(
            name.text(),
            "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
        ),
        None => name.not_found(name.text()),
    }
}

pub(super) fn devices<'v>(container: Node<'v>, volumes: &Volumes<'v>) {
    let mounts = container.get("volumeMounts").list();
    let is_mount = |member: &str, of: &str| mounts.iter().any(|mount| text(mount, member) == of);
    let (mut names, mut paths): (Vec<&str>, Vec<&str>) = Default::default();
    for device in container.get("volumeDevices").items() {
        let (name, path) = (device.get("name"), device.get("devicePath"));
        if name.text().is_empty() {
            name.required("");
        }
        if names.contains(&name.text()) {
            name.invalid(name.text(), "must be unique");
        }
        is_claim(name, volumes);
        if path.text().is_empty() {
            path.required("");
        }
        if paths.contains(&path.text()) {
            path.invalid(path.text(), "must be unique");
        }
        match path.breaks(|path| no_backsteps(path, path.text())) {
            true => path.invalid(path.text(), "can not contain backsteps ('..')"),
            false => paths.push(path.text()),
        }
        if is_mount("name", name.text()) {
            name.invalid(name.text(), "must not already exist in volumeMounts");
        }
        if is_mount("mountPath", path.text()) {
            path.invalid(path.text(), "must not already exist as a path in volumeMounts");
        }
        if !name.text().is_empty() {
            names.push(name.text());
        }
    }
}
