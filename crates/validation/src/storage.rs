//! Classes of storage, attachments and drivers.

use concord_meta::{field::BadValue, names};
use serde_json::Value;

use crate::{
    gates::Gate,
    labels::{self, Values, selector},
    meta,
    node::{Node, Root},
    pod::sources::csi_driver_name,
    resources,
    rules::{IMMUTABLE, MAX_INT32, qualified_name, range, same},
    volume,
};

const MAX_PARAMETERS: usize = 512;
const MAX_PARAMETER_BYTES: usize = 256 * 1024;
const MAX_ERROR_BYTES: usize = 1024;
const MAX_NODE_ID: usize = 256;

fn provisioner(node: Node<'_>) {
    match node.text() {
        "" => node.required(""),
        name => node.check_text(&name.to_lowercase(), qualified_name),
    }
}

fn parameters(node: Node<'_>, may_be_empty: bool) {
    if node.len() > MAX_PARAMETERS {
        return node.too_long(MAX_PARAMETERS);
    }
    let mut bytes = 0;
    for (key, value) in node.object().into_iter().flatten() {
        if key.is_empty() {
            node.invalid("", "field can not be empty.");
        }
        bytes += key.len() + value.as_str().unwrap_or_default().len();
    }
    if bytes > MAX_PARAMETER_BYTES {
        node.too_long(MAX_PARAMETER_BYTES);
    }
    if !may_be_empty && node.is_empty() {
        node.required("must contain at least one key/value pair");
    }
}

pub(crate) fn storage_class(root: Root<'_>) {
    provisioner(root.get("provisioner"));
    parameters(root.get("parameters"), true);
    let policy = root.get("reclaimPolicy");
    if !policy.text().is_empty() {
        policy.one_of(&["Delete", "Retain"]);
    }
    let mode = root.get("volumeBindingMode");
    match mode.is_set() {
        true => mode.one_of(&["Immediate", "WaitForFirstConsumer"]),
        false => mode.required(""),
    }
    topologies(root.get("allowedTopologies"));
}

fn topologies(topologies: Node<'_>) {
    let mut seen: Vec<Vec<(&str, Vec<&str>)>> = Vec::new();
    for term in topologies.items() {
        let expressions = term.get("matchLabelExpressions");
        let mut keys: Vec<(&str, Vec<&str>)> = Vec::new();
        for expression in expressions.items() {
            let (key, values) = (expression.get("key"), expression.get("values"));
            if values.is_empty() {
                values.required("");
            }
            let mut known: Vec<&str> = Vec::new();
            for value in values.items() {
                if known.contains(&value.text()) {
                    value.duplicate(value.text());
                }
                known.push(value.text());
            }
            key.check(qualified_name);
            if keys.iter().any(|(known, _)| *known == key.text()) {
                key.duplicate(key.text());
            }
            known.sort_unstable();
            known.dedup();
            keys.retain(|(before, _)| *before != key.text());
            keys.push((key.text(), known));
        }
        keys.sort_unstable();
        // Upstream compares with each before it, and with as many empty ones as there are terms.
        let empty = if keys.is_empty() { topologies.len() } else { 0 };
        let equal = seen.iter().filter(|before| **before == keys).count();
        (0..empty + equal).for_each(|_| expressions.duplicate(""));
        seen.push(keys);
    }
}

fn shown_text(node: Node<'_>) -> BadValue {
    if node.is_set() { BadValue::named(node.text()) } else { BadValue::verbatim("null") }
}

pub(crate) fn storage_class_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::whole(new);
    storage_class(new);
    meta::update(new, old);
    for name in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        let (node, before) = (new.get(name), old.get(name));
        if !same(node.value(), before.value()) {
            let shown = if name == "parameters" { node.shown() } else { shown_text(node) };
            node.invalid(shown, IMMUTABLE);
        }
    }
}

/// What to tell who writes a storage class.
pub(crate) fn storage_class_warnings<'v>(new: Root<'v>, _: Option<Root<'v>>) {
    for term in new.get("allowedTopologies").items() {
        for expression in term.get("matchLabelExpressions").items() {
            if let Some(warning) = crate::pod::node_label(expression.str("key")) {
                expression.child("key").warn(warning);
            }
        }
    }
}

pub(crate) fn volume_attachment(root: Root<'_>) {
    let spec = root.get("spec");
    csi_driver_name(spec.get("attacher"), spec.str("attacher"));
    let source = spec.get("source");
    let (inline, name) = (source.get("inlineVolumeSpec"), source.get("persistentVolumeName"));
    let exactly_one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (inline.is_set(), name.is_set()) {
        (false, false) => source.required(exactly_one),
        (true, true) => source.forbidden(exactly_one),
        (false, true) if name.text().is_empty() => {
            name.required("must specify non empty persistentVolumeName")
        }
        (false, true) => {}
        (true, false) => volume::inline_spec(inline),
    }
    spec.get("nodeName").check(names::dns1123_subdomain);
    attachment_status(root.get("status"));
    if name.is_set() {
        name.check(names::dns1123_subdomain);
    }
}

fn attachment_status(status: Node<'_>) {
    let metadata = status.get("attachmentMetadata");
    let size = |(key, value): (&String, &Value)| key.len() + value.as_str().unwrap_or_default().len();
    if metadata.object().into_iter().flatten().map(size).sum::<usize>() > MAX_PARAMETER_BYTES {
        metadata.too_long(MAX_PARAMETER_BYTES);
    }
    for error in ["attachError", "detachError"]
        .into_iter()
        .filter(|name| status.has(name))
        .map(|name| status.get(name))
    {
        if error.str("message").len() > MAX_ERROR_BYTES {
            // Upstream names the wrong limit.
            error.child("message").too_long(MAX_PARAMETER_BYTES);
        }
        let code = error.get("errorCode");
        if let Some(number) = code.int().filter(|number| *number < 0) {
            code.invalid(number, range(0, MAX_INT32));
        }
    }
}

pub(crate) fn volume_attachment_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::whole(new);
    volume_attachment(new);
    let spec = new.get("spec");
    if !same(spec.value(), old.get("spec").value()) {
        spec.invalid(crate::internal::shown("VolumeAttachmentSpec", spec.value()), IMMUTABLE);
    }
}

pub(crate) fn csi_driver(root: Root<'_>) {
    let spec = root.get("spec");
    for (name, called) in [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ] {
        if !spec.has(name) {
            spec.child(called).required("");
        }
    }
    spec.get("fsGroupPolicy").optional_one_of(&["File", "None", "ReadWriteOnceWithFSType"]);
    let requests = spec.get("tokenRequests");
    token_requests(requests);
    let modes = spec.get("volumeLifecycleModes");
    modes.items().for_each(|mode| modes.holding(mode.value()).one_of(&["Persistent", "Ephemeral"]));
    if !spec.has("seLinuxMount") && spec.gate(Gate::SELinuxMountReadWriteOncePod) {
        spec.child("seLinuxMount").required("");
    }
    let period = spec.get("nodeAllocatableUpdatePeriodSeconds");
    if let Some(seconds) = period.int().filter(|seconds| *seconds < 10) {
        period.invalid(seconds, "must be greater than or equal to 10 seconds");
    }
    let in_secrets = spec.get("serviceAccountTokenInSecrets");
    if in_secrets.is_set() && requests.is_empty() {
        in_secrets.wrong("serviceAccountTokenInSecrets is set but no tokenRequests are specified");
    }
}

fn token_requests(requests: Node<'_>) {
    let mut seen: Vec<&str> = Vec::new();
    for request in requests.items() {
        let audience = request.get("audience");
        if seen.contains(&audience.text()) {
            audience.duplicate(audience.text());
            continue;
        }
        seen.push(audience.text());
        let seconds = request.get("expirationSeconds");
        match seconds.int() {
            Some(number) if number < 600 => {
                seconds.invalid(number, "may not specify a duration less than 10 minutes");
            }
            Some(number) if number > 1 << 32 => {
                seconds.invalid(number, "may not specify a duration larger than 2^32 seconds");
            }
            _ => {}
        }
    }
}

pub(crate) fn csi_driver_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    csi_driver(new);
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let attach = spec.child("attachedRequired").holding(spec.raw("attachRequired"));
    if attach.value() != before.raw("attachRequired") {
        attach.wrong(IMMUTABLE);
    }
    let modes = spec.get("volumeLifecycleModes");
    if !same(modes.value(), before.raw("volumeLifecycleModes")) {
        modes.wrong(IMMUTABLE);
    }
}

/// What to tell who writes a CSIDriver whose tokens may be logged.
pub(crate) fn csi_driver_warnings<'v>(new: Root<'v>, old: Option<Root<'v>>) {
    const UNSET: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";
    let (spec, requests) = (new.get("spec"), |root: Root<'v>| root.get("spec").get("tokenRequests"));
    let changed = old.is_none_or(|old| !same(requests(new).value(), requests(old).value()));
    if new.gate(Gate::CSIServiceAccountTokenSecrets)
        && changed
        && !requests(new).is_empty()
        && !spec.has("serviceAccountTokenInSecrets")
    {
        new.warn(UNSET);
    }
}

pub(crate) fn csi_node(root: Root<'_>) {
    let mut seen: Vec<&str> = Vec::new();
    for driver in root.get("spec").get("drivers").items() {
        let (name, id) = (driver.get("name"), driver.get("nodeID"));
        csi_driver_name(name, name.text());
        if id.text().is_empty() {
            id.required("");
        }
        if id.text().len() > MAX_NODE_ID {
            id.invalid(id.text(), format!("must be {MAX_NODE_ID} characters or less"));
        }
        driver.get2("allocatable", "count").nonnegative();
        if seen.contains(&name.text()) {
            name.duplicate(name.text());
        }
        seen.push(name.text());
        let mut keys: Vec<&str> = Vec::new();
        for key in driver.get("topologyKeys").items().map(Node::text) {
            if key.is_empty() {
                driver.required("");
            }
            if keys.contains(&key) {
                driver.duplicate(key);
            }
            keys.push(key);
            driver.check_text(key, qualified_name);
        }
    }
}

pub(crate) fn csi_node_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::whole(new);
    csi_node(new);
    let drivers = new.get("spec").get("drivers");
    let mutable_count = new.gate(Gate::MutableCSINodeAllocatableCount);
    let fixed = |driver: &Value| {
        let mut driver = driver.clone();
        if mutable_count && let Some(members) = driver.as_object_mut() {
            members.remove("allocatable");
        }
        driver
    };
    for before in old.get("spec").get("drivers").list() {
        for driver in drivers.list().iter().filter(|driver| driver.get("name") == before.get("name")) {
            let driver = fixed(driver);
            if !same(Some(&driver), Some(&fixed(before))) {
                drivers.invalid(crate::internal::shown("CSINodeDriver", Some(&driver)), IMMUTABLE);
            }
        }
    }
}

/// What to tell who writes about the room that a driver has.
pub(crate) fn csi_storage_capacity_warnings<'v>(new: Root<'v>, _: Option<Root<'v>>) {
    let topology = new.get("nodeTopology");
    for expression in topology.get("matchExpressions").items() {
        let key = expression.str("key");
        if let Some(warning) = crate::pod::node_label(key) {
            expression.child("key").warn(&format!("{key} is {warning}"));
        }
    }
    let labels = topology.get("matchLabels");
    for (label, _) in labels.object().into_iter().flatten() {
        if let Some(warning) = crate::pod::node_label(label) {
            labels.child(label).warn(warning);
        }
    }
}

pub(crate) fn csi_storage_capacity(root: Root<'_>) {
    capacity(root, Values::Labels);
}

fn capacity(root: Root<'_>, values: Values) {
    selector(root.get("nodeTopology"), values);
    root.get("storageClassName").check(names::dns1123_subdomain);
    let amount = root.get("capacity");
    if let Some(quantity) = amount.quantity() {
        resources::nonnegative(amount, &quantity);
    }
}

pub(crate) fn csi_storage_capacity_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    let broken = old.get("nodeTopology").breaks(|node| selector(node, Values::Labels));
    meta::whole(new);
    capacity(new, if broken { Values::Any } else { Values::Labels });
    meta::update(new, old);
    let (topology, class) = (new.get("nodeTopology"), new.get("storageClassName"));
    if !same(topology.value(), old.get("nodeTopology").value()) {
        topology.invalid(labels::shown(topology), IMMUTABLE);
    }
    if class.text() != old.get("storageClassName").text() {
        class.invalid(class.text(), IMMUTABLE);
    }
}

pub(crate) fn volume_attributes_class(root: Root<'_>) {
    provisioner(root.get("driverName"));
    parameters(root.get("parameters"), false);
}

pub(crate) fn volume_attributes_class_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    for name in ["driverName", "parameters"] {
        if !same(new.get(name).value(), old.get(name).value()) {
            new.child(name).forbidden(format!("updates to {name} are forbidden."));
        }
    }
    meta::whole(new);
    volume_attributes_class(new);
}
