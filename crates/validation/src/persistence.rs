//! Claims for persistent volumes.

use concord_meta::{Quantity, QuantityFormat, field::BadValue, names};
use serde_json::Value;

use crate::{
    gates::Gate,
    internal,
    labels::{Values, selector},
    meta,
    node::{Node, Root},
    resources,
    rules::{IMMUTABLE, qualified_name, same},
};

pub(crate) const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
pub(crate) const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// Why a class stays as it is while 1.33 is emulated.
pub(crate) const CLASSES_ARE_OFF: &str =
    "update is forbidden when the VolumeAttributesClass feature gate is disabled";

/// What an update of a claim may keep.
pub(crate) struct ClaimOptions {
    pub(crate) selector_values: Values,
    pub(crate) any_api_group: bool,
    pub(crate) class_in_use: bool,
    /// Whether a source of data that is of no known kind stays, where a new claim loses it.
    pub(crate) keeps_source: bool,
    /// Whether a failed expansion was recovered from before.
    pub(crate) expansion_recovers: bool,
}

impl Default for ClaimOptions {
    fn default() -> Self {
        Self {
            selector_values: Values::Labels,
            any_api_group: false,
            class_in_use: false,
            keeps_source: false,
            expansion_recovers: false,
        }
    }
}

/// The ways in which a volume can be mounted.
pub(crate) fn access_modes(modes: Node<'_>) {
    let (mut once_pod, mut other) = (false, false);
    for mode in modes.items() {
        modes.holding(mode.value()).one_of(&ACCESS_MODES);
        match mode.text() {
            "ReadWriteOncePod" => once_pod = true,
            text if ACCESS_MODES.contains(&text) => other = true,
            _ => {}
        }
    }
    if once_pod && other {
        modes.forbidden("may not use ReadWriteOncePod with other access modes");
    }
}

/// The spec of a claim or of a template for claims.
pub(crate) fn claim_spec(spec: Node<'_>, options: &ClaimOptions) {
    let modes = spec.get("accessModes");
    if modes.is_empty() {
        modes.required("at least 1 access mode is required");
    }
    selector(spec.get("selector"), options.selector_values);
    access_modes(modes);
    let storage = spec.child("resources").key("storage");
    let request = spec.get2("resources", "requests").raw("storage");
    match request.and_then(resources::quantity) {
        None => storage.required(""),
        Some(amount) => resources::positive(storage, &amount),
    }
    spec.get("storageClassName").optional_and(names::dns1123_subdomain);
    spec.get("volumeMode").optional_one_of(&VOLUME_MODES);
    let (source, reference) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    if is_old_source(source) || reference.is_set() || options.keeps_source {
        data_source(source, options);
    }
    data_source(reference, options);
    reference.get("namespace").optional_and(names::dns1123_label);
    sources_match(spec, source, reference);
    if spec.gate(Gate::VolumeAttributesClass) || options.class_in_use {
        spec.get("volumeAttributesClassName").optional_and(names::dns1123_subdomain);
    }
}

/// Sources of other kinds than these two are left out without a word where they do not stand in `dataSourceRef`.
fn is_old_source(source: Node<'_>) -> bool {
    matches!(
        (source.str("apiGroup"), source.str("kind")),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    )
}

fn data_source(source: Node<'_>, options: &ClaimOptions) {
    if !source.is_set() {
        return;
    }
    source.need(&["name", "kind"]);
    let group = source.get("apiGroup");
    if group.text().is_empty() && source.str("kind") != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        source.invalid(source.str("kind"), detail);
    }
    if !options.any_api_group {
        group.optional_and(names::dns1123_subdomain);
    }
}

/// Upstream shows the path of the field, not its value; a path has no members that JSON would print.
fn sources_match(spec: Node<'_>, source: Node<'_>, reference: Node<'_>) {
    if !source.is_set() || !reference.is_set() {
        return;
    }
    let refuse = |detail: &'static str| spec.invalid(BadValue::verbatim("{}"), detail);
    if !reference.str("namespace").is_empty() {
        refuse("may not be specified when dataSourceRef.namespace is specified");
    } else if ["apiGroup", "kind", "name"].iter().any(|name| source.raw(name) != reference.raw(name)) {
        refuse("must match dataSourceRef");
    }
}

pub(crate) fn claim(root: Root<'_>) {
    claim_spec(root.get("spec"), &ClaimOptions::default());
}

pub(crate) fn claim_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    if subresource == "status" {
        return claim_status(new, recovers(old));
    }
    let before = old.get("spec");
    let has_group = |name: &'static str| before.get(name).has("apiGroup");
    let broken = before.get("selector").breaks(|node| selector(node, Values::Labels));
    let options = ClaimOptions {
        selector_values: if broken { Values::Any } else { Values::Labels },
        any_api_group: has_group("dataSource") || has_group("dataSourceRef"),
        class_in_use: before.has("volumeAttributesClassName"),
        keeps_source: ["dataSource", "dataSourceRef"].iter().any(|name| before.has(name)),
        expansion_recovers: recovers(old),
    };
    meta::whole(new);
    let spec = new.get("spec");
    claim_spec(spec, &options);
    unchanged(new, old);
    shrunk(spec, before, old.get("status"), &options);
    let mode = spec.get("volumeMode");
    if !same(mode.value(), before.raw("volumeMode")) {
        let shown = mode.value().map_or_else(|| BadValue::verbatim("null"), |_| BadValue::named(mode.text()));
        new.child("volumeMode").invalid(shown, IMMUTABLE);
    }
    attributes_class(spec, before, old.get("status"));
}

/// The spec as it would be if only what may change had changed.
/// Whether a claim may get the name of its class where it had none; the annotation that names it may not change.
/// Whether something in the status says that an expansion was tried again.
fn recovers(old: Root<'_>) -> bool {
    let status = old.get("status");
    ["allocatedResources", "allocatedResourceStatuses"].iter().any(|name| status.has(name))
}

fn may_name_class<'v>(new: Root<'v>, old: Root<'v>) -> bool {
    let (old_class, new_class) = (old.annotation(CLASS_ANNOTATION), new.annotation(CLASS_ANNOTATION));
    let named = new.get("spec").raw("storageClassName").and_then(Value::as_str);
    let unnamed_before = !old.get("spec").has("storageClassName");
    let from_annotation = old_class.is_some()
        && unnamed_before
        && named == old_class
        && (new_class.is_none() || new_class == old_class);
    if !from_annotation && old_class.unwrap_or_default() != new_class.unwrap_or_default() {
        let at = new.metadata().child("annotations").child(CLASS_ANNOTATION);
        at.invalid(new_class.unwrap_or_default(), IMMUTABLE);
    }
    from_annotation || named.is_some() && unnamed_before && (old_class.is_none() || named == old_class)
}

fn unchanged<'v>(new: Root<'v>, old: Root<'v>) {
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let (Some(members), Some(old_members)) = (spec.object(), before.object()) else { return };
    let (mut munged, mut reference) = (members.clone(), old_members.clone());
    if before.str("volumeName").is_empty()
        && let Some(name) = members.get("volumeName")
    {
        reference.insert("volumeName".to_owned(), name.clone());
    }
    if may_name_class(new, old) {
        munged.remove("storageClassName");
    }
    if new.get("status").str("phase") == "Bound" {
        let old_request = before.get2("resources", "requests").raw("storage").cloned();
        let requests = munged.get_mut("resources").and_then(|resources| resources.get_mut("requests"));
        if let (Some(requests), Some(request)) = (requests.and_then(Value::as_object_mut), old_request) {
            requests.insert("storage".to_owned(), request);
        }
        match old_members.get("volumeAttributesClassName") {
            Some(class) => drop(munged.insert("volumeAttributesClassName".to_owned(), class.clone())),
            None => drop(munged.remove("volumeAttributesClassName")),
        }
    }
    let (munged, reference) = (Value::Object(munged), Value::Object(reference));
    if !same(Some(&munged), Some(&reference)) {
        let difference = internal::difference("PersistentVolumeClaimSpec", Some(&reference), Some(&munged));
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        spec.forbidden(format!("{why}\n{difference}"));
    }
}

fn shrunk(spec: Node<'_>, before: Node<'_>, old_status: Node<'_>, options: &ClaimOptions) {
    let storage = |list: Node<'_>| {
        let none = || Quantity::new(0, QuantityFormat::DecimalSi);
        list.get("storage").quantity().unwrap_or_else(none)
    };
    let request = |spec: Node<'_>| storage(spec.get2("resources", "requests"));
    let new = request(spec);
    let recovers = options.expansion_recovers || spec.gate(Gate::RecoverVolumeExpansionFailure);
    let at = spec.child("resources").child("requests").child("storage");
    match new < request(before) {
        true if !recovers => at.forbidden("field can not be less than previous value"),
        true if new <= storage(old_status.get("capacity")) => {
            at.forbidden("field can not be less than status.capacity");
        }
        _ => {}
    }
}

fn attributes_class(spec: Node<'_>, before: Node<'_>, old_status: Node<'_>) {
    let class = spec.get("volumeAttributesClassName");
    let changed = class.value() != before.raw("volumeAttributesClassName");
    if changed && !class.gate(Gate::VolumeAttributesClass) {
        class.forbidden(CLASSES_ARE_OFF);
    }
    let validated = class.gate(Gate::VolumeAttributesClass) || before.has("volumeAttributesClassName");
    if changed && validated && old_status.has("currentVolumeAttributesClassName") {
        if !class.is_set() {
            class.forbidden(
                "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil",
            );
        } else if class.text().is_empty() {
            let why =
                "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil";
            class.forbidden(why);
        }
    }
}

fn claim_status(new: Root<'_>, recovers: bool) {
    const RESIZE: [&str; 5] = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    if new.get("spec").get("accessModes").is_empty() {
        new.child("Spec").child("accessModes").required("");
    }
    let status = new.get("status");
    status.get("capacity").entries().for_each(|(_, amount)| resources::basic(amount));
    if !recovers && !new.gate(Gate::RecoverVolumeExpansionFailure) {
        return;
    }
    let statuses = status.get("allocatedResourceStatuses");
    for (name, value) in statuses.object().into_iter().flatten() {
        resource_key(statuses, name);
        if !value.as_str().is_some_and(|value| RESIZE.contains(&value)) {
            let mut supported = RESIZE;
            supported.sort_unstable();
            statuses.not_supported(BadValue::named(name), &supported);
        }
    }
    let allocated = status.get("allocatedResources");
    for (name, amount) in allocated.entries() {
        if resource_key(allocated, name) {
            let count = amount.errors();
            resources::basic(amount);
            if amount.errors() == count {
                resources::amount(amount, "storage");
            }
        }
    }
}

fn resource_key(node: Node<'_>, name: &str) -> bool {
    let count = node.errors();
    node.check_text(name, qualified_name);
    if node.errors() == count && resources::is_native(name) && name != "storage" {
        node.not_supported(name, &["storage"]);
    }
    node.errors() == count
}

/// Amounts that are no whole bytes.
pub(crate) fn claim_warnings(spec: Node<'_>) {
    for list in ["requests", "limits"] {
        let amounts = spec.get2("resources", list);
        if let Some(amount) = amounts.raw("storage").and_then(resources::quantity)
            && amount.milli_value() % 1000 != 0
        {
            let detail = format!("fractional byte value \"{amount}\" is invalid, must be an integer");
            amounts.key("storage").warn(&detail);
        }
    }
}

/// What to tell who writes a claim.
pub(crate) fn warnings<'v>(new: Root<'v>, _: Option<Root<'v>>) {
    if new.annotation(CLASS_ANNOTATION).is_some() {
        let at = new.metadata().child("annotations").key(CLASS_ANNOTATION);
        at.warn("deprecated since v1.8; use \"storageClassName\" attribute instead");
    }
    claim_warnings(new.get("spec"));
}
