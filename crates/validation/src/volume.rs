//! Persistent volumes.

use concord_meta::{field::BadValue, names};
use serde_json::{Map, Value};

use crate::{
    gates::Gate,
    internal,
    labels::Values,
    meta,
    node::{Node, Root},
    persistence::{CLASSES_ARE_OFF, VOLUME_MODES, access_modes},
    pod::{self, sources::*},
    resources,
    rules::{IMMUTABLE, no_backsteps, same},
};

const INLINE: &str = "may not be specified in the context of inline volumes";
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";

/// Sources that know mount options given by annotation.
const WITH_MOUNT_OPTIONS: [&str; 13] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];

const SOURCES: [Source; 22] = [
    source("hostPath", host_path),
    Source { inner: "persistentDisk", ..source("gcePersistentDisk", gce_persistent_disk) },
    source("awsElasticBlockStore", aws_elastic_block_store),
    source("glusterfs", glusterfs_volume),
    source("flocker", flocker),
    source("nfs", nfs),
    source("rbd", rbd),
    source("quobyte", quobyte),
    Source { outer: "cephFS", ..source("cephfs", cephfs) },
    source("iscsi", nothing),
    source("cinder", |node| with_namespace(node, cinder)),
    source("fc", fc),
    Source { beside: true, ..source("flexVolume", flex_volume) },
    source("azureFile", azure_file_volume),
    source("vsphereVolume", vsphere_volume),
    source("photonPersistentDisk", photon_persistent_disk),
    source("portworxVolume", portworx_volume),
    source("azureDisk", azure_disk),
    source("scaleIO", scale_io),
    source("local", local),
    source("storageos", |node| with_namespace(node, storageos)),
    source("csi", csi_volume),
];

fn glusterfs_volume(node: Node<'_>) {
    glusterfs(node);
    let namespace = node.get("endpointsNamespace");
    match namespace.text() {
        _ if !namespace.is_set() => {}
        "" => namespace.invalid("", "if the endpointnamespace is set, it must be a valid namespace name"),
        _ => namespace.check(names::dns1123_label),
    }
}

fn with_namespace(node: Node<'_>, rule: Rule) {
    rule(node);
    if node.has("secretRef") {
        node.get("secretRef").need(&["namespace"]);
    }
}

fn iscsi_volume(node: Node<'_>, name: &str) {
    let rule = Iscsi { unknown_form: "must be valid format" };
    node.need(&["targetPortal"]);
    let portal = node.str("targetPortal");
    if node.has("initiatorName") && name.len() + 1 + portal.len() > 64 {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
        node.child("targetportal").invalid(portal, detail);
    }
    rule.members(node);
    if node.has("secretRef") {
        node.get("secretRef").need(&["name"]);
    }
    let initiator = node.get_as("initiatorName", "initiatorname");
    if initiator.is_set() {
        rule.check(initiator, initiator.text());
    }
}

fn azure_file_volume(node: Node<'_>) {
    azure_file(node);
    let namespace = node.get("secretNamespace");
    if namespace.is_set() && namespace.text().is_empty() {
        namespace.required("");
    }
}

fn local(node: Node<'_>) {
    let path = node.get("path");
    match path.text() {
        "" => path.required(""),
        text => no_backsteps(path, text),
    }
}

fn csi_volume(node: Node<'_>) {
    csi_driver_name(node.get("driver"), node.str("driver"));
    node.need(&["volumeHandle"]);
    for name in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        secret_reference(node.get(name));
    }
}

pub(crate) fn persistent_volume(root: Root<'_>) {
    whole(root, Values::Labels);
    mount_options(root);
}

fn whole(root: Root<'_>, values: Values) {
    spec_of_volume(root.get("spec"), Some(root.name()), values);
}

/// A volume that stands in an attachment.
pub(crate) fn inline_spec(spec: Node<'_>) {
    spec_of_volume(spec, None, Values::Labels);
}

fn spec_of_volume(spec: Node<'_>, name: Option<&str>, values: Values) {
    let inline = name.is_none();
    if inline {
        for name in ["claimRef", "capacity"] {
            let node = spec.get(name);
            if if name == "capacity" { !node.is_empty() } else { node.is_set() } {
                node.forbidden(INLINE);
            }
        }
        if !spec.has("csi") {
            spec.child("csi").required("has to be specified in the context of inline volumes");
        }
    }
    let modes = spec.get("accessModes");
    if modes.is_empty() {
        modes.required("");
    }
    access_modes(modes);
    if !inline {
        capacity(spec.get("capacity"));
    }
    reclaim_policy(spec, inline);
    let affinity = node_affinity(spec, inline, values);
    sources(spec, name.unwrap_or_default(), affinity);
    let path = spec.get("hostPath").str("path");
    let is_root = path.starts_with('/') && is_root(path);
    if is_root && spec.str("persistentVolumeReclaimPolicy") == "Recycle" {
        spec.child("persistentVolumeReclaimPolicy")
            .forbidden("may not be 'recycle' for a hostPath mount of '/'");
    }
    classes(spec, inline);
}

fn capacity(capacity: Node<'_>) {
    if capacity.is_empty() {
        capacity.required("");
    }
    if !capacity.has("storage") || capacity.len() > 1 {
        capacity.not_supported(capacity.shown(), &["storage"]);
    }
    for (_, amount) in capacity.entries() {
        resources::basic(amount);
        if let Some(quantity) = amount.quantity() {
            resources::positive(amount, &quantity);
        }
    }
}

fn reclaim_policy(spec: Node<'_>, inline: bool) {
    let policy = spec.get("persistentVolumeReclaimPolicy");
    match policy.text() {
        "" => {}
        "Retain" if inline => {}
        _ if inline => policy.forbidden("may only be Retain in the context of inline volumes"),
        _ => policy.one_of(&["Delete", "Recycle", "Retain"]),
    }
}

/// Whether the volume says which nodes can use it.
fn node_affinity(spec: Node<'_>, inline: bool, values: Values) -> bool {
    let affinity = spec.get("nodeAffinity");
    if !affinity.is_set() {
        return false;
    }
    if inline {
        affinity.forbidden(INLINE);
        return false;
    }
    let required = affinity.get("required");
    match required.is_set() {
        true => pod::node_selector(required, values),
        false => required.required("must specify required node constraints"),
    }
    true
}

fn sources(spec: Node<'_>, name: &str, has_affinity: bool) {
    let found = exactly_one(spec, &SOURCES, |source, first| match source {
        "iscsi" if first => iscsi_volume(spec.get("iscsi"), name),
        "local" if first && !has_affinity => {
            spec.child("nodeAffinity").required("Local volume requires node affinity");
        }
        _ => {}
    });
    if !found {
        spec.required("must specify a volume type");
    }
}

/// Whether an absolute path leads to the root, as it is written.
fn is_root(path: &str) -> bool {
    let mut depth = 0_usize;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => depth = depth.saturating_sub(1),
            _ => depth += 1,
        }
    }
    depth == 0
}

fn classes(spec: Node<'_>, inline: bool) {
    let (class, mode) = (spec.get("storageClassName"), spec.get("volumeMode"));
    if inline {
        if !class.text().is_empty() {
            class.forbidden(INLINE);
        }
        if mode.is_set() && mode.text() != "Filesystem" {
            mode.forbidden(
                "may not specify volumeMode other than Filesystem in the context of inline volumes",
            );
        }
        return;
    }
    class.optional_and(names::dns1123_subdomain);
    mode.optional_one_of(&VOLUME_MODES);
    let attributes = spec.get("volumeAttributesClassName");
    if attributes.is_set() {
        match attributes.text() {
            "" => attributes.required("an empty string is disallowed"),
            _ => attributes.check(names::dns1123_subdomain),
        }
        if !spec.has("csi") {
            spec.child("csi").required("has to be specified when using volumeAttributesClassName");
        }
    }
}

fn mount_options(root: Root<'_>) {
    let spec = root.get("spec");
    if root.annotation(MOUNT_OPTIONS).is_some() && !WITH_MOUNT_OPTIONS.iter().any(|name| spec.has(name)) {
        let at = root.child("metadata").child("annotations").child(MOUNT_OPTIONS);
        at.forbidden("may not specify mount options for this volume type");
    }
}

pub(crate) fn persistent_volume_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    if subresource == "status" {
        return meta::update(new, old);
    }
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let terms = before.get("nodeAffinity").get2("required", "nodeSelectorTerms");
    let values = if pod::has_invalid_values(terms) { Values::Any } else { Values::Labels };
    meta::whole(new);
    whole(new, values);
    mount_options(new);
    // Upstream does all of it twice.
    meta::whole(new);
    whole(new, values);
    unchanged(new, spec, before);
}

fn unchanged<'v>(new: Root<'v>, spec: Node<'v>, before: Node<'v>) {
    let source = |spec: Node<'v>| -> Map<String, Value> {
        let members = spec.object().into_iter().flatten();
        let sources = members.filter(|(name, _)| SOURCES.iter().any(|source| source.name == name.as_str()));
        sources.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let (mut now, then) = (source(spec), source(before));
    // A secret for the expansion may still be added.
    if let (Some(csi), Some(old)) = (now.get_mut("csi").and_then(Value::as_object_mut), then.get("csi"))
        && old.get("controllerExpandSecretRef").is_none()
    {
        csi.remove("controllerExpandSecretRef");
    }
    let (now, then) = (Value::Object(now), Value::Object(then));
    if !same(Some(&now), Some(&then)) {
        let difference = internal::difference("PersistentVolumeSource", Some(&then), Some(&now));
        let at = spec.child("persistentvolumesource");
        at.forbidden(format!("spec.persistentvolumesource is immutable after creation\n{difference}"));
    }
    let mode = spec.get("volumeMode");
    if mode.value() != before.raw("volumeMode") {
        let shown = if mode.is_set() { BadValue::named(mode.text()) } else { BadValue::verbatim("null") };
        new.child("volumeMode").invalid(shown, IMMUTABLE);
    }
    let (affinity, old_affinity) = (spec.get("nodeAffinity"), before.get("nodeAffinity"));
    let fixed = old_affinity.is_set() && !spec.gate(Gate::MutablePVNodeAffinity);
    if fixed && !same(affinity.value(), renamed(affinity, old_affinity).as_ref()) {
        let shown = match affinity.is_set() {
            true => internal::shown("VolumeNodeAffinity", affinity.value()),
            false => affinity.shown(),
        };
        let detail = format!("{IMMUTABLE}, except for updating from beta label to GA");
        new.child("nodeAffinity").invalid(shown, detail);
    }
    let class = spec.get("volumeAttributesClassName");
    if class.value() != before.raw("volumeAttributesClassName") && !class.gate(Gate::VolumeAttributesClass) {
        class.forbidden(CLASSES_ARE_OFF);
    }
    if before.has("volumeAttributesClassName") && !class.is_set() {
        class.forbidden("update from non-nil value to nil is forbidden");
    }
}

/// The old affinity, with labels under their present names where the new one has those.
fn renamed(new: Node<'_>, old: Node<'_>) -> Option<Value> {
    const NAMES: [(&str, &str); 5] = [
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
    ];
    let mut old = old.value().cloned()?;
    let terms = new.get2("required", "nodeSelectorTerms").list();
    let olds = old.pointer_mut("/required/nodeSelectorTerms").and_then(Value::as_array_mut);
    for (old, new) in olds.into_iter().flatten().zip(terms) {
        for list in ["matchExpressions", "matchFields"] {
            let news = new.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let olds = old.get_mut(list).and_then(Value::as_array_mut);
            for (old, new) in olds.into_iter().flatten().zip(news) {
                let key =
                    |value: &Value| value.get("key").and_then(Value::as_str).unwrap_or_default().to_owned();
                let (was, is) = (key(old), key(new));
                // Upstream finds no new name for most names, and takes an absent one for it.
                let lost = is.is_empty() && !NAMES.iter().any(|(old, _)| *old == was);
                if lost || NAMES.contains(&(was.as_str(), is.as_str())) {
                    old["key"] = key(new).into();
                }
            }
        }
    }
    Some(old)
}

/// What to tell who writes a volume.
pub(crate) fn warnings<'v>(new: Root<'v>, _: Option<Root<'v>>) {
    const ANNOTATIONS: [(&str, &str); 2] = [
        (
            "volume.beta.kubernetes.io/storage-class",
            "deprecated since v1.8; use \"storageClassName\" attribute instead",
        ),
        (MOUNT_OPTIONS, "deprecated since v1.31; use \"mountOptions\" attribute instead"),
    ];
    const VOLUMES: [(&str, &str, &str); 6] = [
        ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ];
    for (key, warning) in ANNOTATIONS.into_iter().filter(|(key, _)| new.annotation(key).is_some()) {
        new.metadata().child("annotations").key(key).warn(warning);
    }
    let spec = new.get("spec");
    if spec.str("persistentVolumeReclaimPolicy") == "Recycle" {
        spec.child("persistentVolumeReclaimPolicy").warn("The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.");
    }
    let terms = spec.get("nodeAffinity").get2("required", "nodeSelectorTerms");
    terms.items().for_each(|term| pod::node_term(term, false));
    for (_, called, warning) in VOLUMES.into_iter().filter(|(name, ..)| spec.has(name)) {
        spec.child(called).warn(warning);
    }
}
