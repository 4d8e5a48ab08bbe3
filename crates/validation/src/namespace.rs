//! Namespaces and service accounts.

use concord_meta::field::BadValue;

use crate::{
    meta,
    node::{Node, Root},
    rules::qualified_name,
};

fn finalizer(node: Node<'_>, name: &str) {
    node.check_text(name, qualified_name);
    meta::kube_finalizer(node, name);
}

pub(crate) fn namespace(root: Root<'_>) {
    let finalizers = root.get("spec").get("finalizers");
    finalizers.items().for_each(|name| finalizer(finalizers, name.text()));
}

pub(crate) fn namespace_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    if subresource.is_empty() {
        meta::whole(new);
        namespace(new);
    }
    meta::update(new, old);
    match subresource {
        "status" => phase(new),
        "finalize" => {
            new.get("spec").get("finalizers").items().for_each(|name| finalizer(name, name.text()));
        }
        _ => {}
    }
}

fn phase(new: Root<'_>) {
    let (expected, detail) = match new.metadata().has("deletionTimestamp") {
        false => ("Active", "may only be 'Active' if `deletionTimestamp` is empty"),
        true => ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty"),
    };
    let phase = new.get("status").str("phase");
    if phase != expected {
        new.child("status").child("Phase").invalid(BadValue::named(phase), detail);
    }
}

/// A kind without rules of its own: metadata, and in updates metadata twice.
pub(crate) fn nothing(_: Root<'_>) {}

pub(crate) fn service_account_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    meta::whole(new);
}

/// What to tell who writes a service account.
pub(crate) fn service_account_warnings<'v>(new: Root<'v>, old: Option<Root<'v>>) {
    const ENFORCED: &str = "kubernetes.io/enforce-mountable-secrets";
    let was = old.is_some_and(|old| old.annotation(ENFORCED).is_some());
    if !was && new.annotation(ENFORCED).is_some() {
        let advice = "prefer separate namespaces to isolate access to mounted secrets";
        new.warn(format!("metadata.annotations[{ENFORCED}]: deprecated in v1.32+; {advice}"));
    }
}
