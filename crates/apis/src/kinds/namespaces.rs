use concord_registry::{Context, Object, Part, metadata, metadata_mut};
use serde_json::{Value, json};

use super::{Hooks, keep, member};

/// What holds a namespace until its content is gone.
const FINALIZER: &str = "kubernetes";
/// The label by which a namespace can be selected by name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) const HOOKS: Hooks = Hooks {
    create: Some(create),
    update: Some(update),
    is_held: Some(is_held),
    begin_deletion: Some(begin_deletion),
    forbid_delete: Some(forbid_delete),
    ..Hooks::NONE
};

fn create(_: &Context, object: &mut Object) {
    let spec = member(object, "spec");
    let finalizers = spec.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.iter().any(|finalizer| finalizer == FINALIZER)
    {
        finalizers.push(FINALIZER.into());
    }
    label(object);
}

/// Only its own door changes the finalizers, so that nobody drops them by the way.
fn update(_: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
    let reset = if part == Part::Sub("finalize") { "status" } else { "spec" };
    keep(new, old, reset);
    label(new);
}

/// A default too, so that who writes the namespace owns the label; and again here once a name has been generated.
fn label(object: &mut Object) {
    let name = metadata(object).name().to_owned();
    if name.is_empty() {
        return;
    }
    member(metadata_mut(object), "labels").insert(NAME_LABEL.to_owned(), name.into());
}

fn is_held(object: &Object) -> bool {
    let finalizers = object.get("spec").and_then(|spec| spec.get("finalizers")).and_then(Value::as_array);
    finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}

fn begin_deletion(object: &mut Object) {
    member(object, "status").insert("phase".to_owned(), "Terminating".into());
}

fn forbid_delete(name: &str) -> Option<&'static str> {
    let immortal = ["default", "kube-system", "kube-public"].contains(&name);
    immortal.then_some("this namespace may not be deleted")
}
