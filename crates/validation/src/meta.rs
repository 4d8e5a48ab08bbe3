//! What holds for the metadata of every built-in kind, besides what holds for any object's.

use concord_meta::{
    field::Path,
    names::{self, NameRule},
    objectmeta::{self, Scope},
};
use serde_json::Value;

use crate::node::Root;

const STANDARD_FINALIZERS: [&str; 3] =
    ["kubernetes", objectmeta::FINALIZER_ORPHAN, objectmeta::FINALIZER_FOREGROUND];

/// Finalizers without a domain are Kubernetes' own.
pub(crate) fn finalizers(root: Root<'_>) {
    let finalizers = root.object().get("metadata").and_then(|metadata| metadata.get("finalizers"));
    if finalizers.is_none() {
        return;
    }
    root.metadata()
        .get("finalizers")
        .items()
        .for_each(|finalizer| kube_finalizer(finalizer, finalizer.text()));
}

/// One finalizer.
pub(crate) fn kube_finalizer(node: crate::node::Node<'_>, name: &str) {
    if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
        node.invalid(name, "name is neither a standard finalizer name nor is it fully qualified");
    }
}

/// What a name is used in that it may not suit, as a warning says it.
pub(crate) const POD_NAMES: &str = "Pod names and hostnames";

/// Warns about a new object's name that is no label.
pub(crate) fn warn_name(root: Root<'_>, used_in: &str) {
    let problems = names::dns1123_label(root.name());
    if !problems.is_empty() {
        let problems = problems.join(" ");
        root.warn(format!("metadata.name: this is used in {used_in}, which can result in surprising behavior; a DNS label is recommended: [{problems}]"));
    }
}

/// The rules for updates of metadata. Every object has been through most of them already; upstream repeats them with
/// those of the kind, and the causes of a failure with them.
pub(crate) fn update(new: Root<'_>, old: Root<'_>) {
    update_any_finalizers(new, old);
    finalizers(new);
}

/// The same for the few kinds whose finalizers may have any name.
pub(crate) fn update_any_finalizers(new: Root<'_>, old: Root<'_>) {
    if let (Some(new_meta), Some(old_meta)) = (metadata(new), metadata(old)) {
        new.extend(objectmeta::validate_update(new_meta, old_meta, &Path::new("metadata")));
    }
}

/// The rules for metadata of new objects, which upstream repeats in updates of some kinds.
pub(crate) fn whole(root: Root<'_>) {
    whole_any_finalizers(root);
    finalizers(root);
}

/// The same for the few kinds whose finalizers may have any name.
pub(crate) fn whole_any_finalizers(root: Root<'_>) {
    named(root, NameRule::PathSegment);
}

/// The same with a rule for names.
pub(crate) fn named(root: Root<'_>, rule: NameRule) {
    if let Some(metadata) = metadata(root) {
        let scope = if metadata.contains_key("namespace") { Scope::Namespaced } else { Scope::Cluster };
        root.extend(objectmeta::validate_create(metadata, scope, rule, &Path::new("metadata")));
    }
}

fn metadata(root: Root<'_>) -> Option<&serde_json::Map<String, Value>> {
    root.object().get("metadata").and_then(Value::as_object)
}
