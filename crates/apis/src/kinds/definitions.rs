//! CustomResourceDefinitions.

use concord_meta::field;
use concord_registry::{Context, Object, Part, metadata, metadata_mut};
use concord_rules::RuleCompiler;
use concord_structural::crd;
use serde_json::{Value, json};

use super::{Hooks, member};

/// What holds a definition until the objects that it defines are gone.
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(super) const HOOKS: Hooks = Hooks {
    default: Some(crd::set_defaults),
    create: Some(create),
    update: Some(update),
    validate_create: Some(validate_create),
    validate_update: Some(validate_update),
    warnings: Some(warnings),
    is_held: Some(is_held),
    begin_deletion: Some(begin_deletion),
    ..Hooks::NONE
};

fn create(_: &Context, object: &mut Object) {
    crd::prepare_create(object);
}

fn update(_: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
    if part == Part::Main {
        crd::prepare_update(new, old);
    }
}

fn validate_create(object: &Object) -> Vec<field::Error> {
    crd::validate_create(object, &RuleCompiler)
}

fn validate_update(part: Part<'_>, new: &Object, old: &Object) -> Vec<field::Error> {
    match part {
        Part::Main => crd::validate_update(new, old, &RuleCompiler),
        Part::Sub(_) => crd::validate_status_update(new, old),
    }
}

fn warnings(new: &Object, old: Option<&Object>) -> Vec<String> {
    match old {
        None => crd::warnings_on_create(new),
        Some(old) => crd::warnings_on_update(new, old),
    }
}

/// Nobody's definition goes at once: somebody has to look for its objects first.
fn is_held(object: &Object) -> bool {
    !metadata(object).is_terminating()
}

fn begin_deletion(object: &mut Object) {
    let finalizers = metadata_mut(object).entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.iter().any(|finalizer| finalizer == FINALIZER)
    {
        finalizers.push(FINALIZER.into());
    }
    let since = metadata(object).get("deletionTimestamp").cloned().unwrap_or(Value::Null);
    let conditions = member(object, "status").entry("conditions").or_insert(Value::Null);
    if conditions.is_null() {
        *conditions = json!([]);
    }
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.retain(|condition| condition["type"] != "Terminating");
        conditions.push(json!({
            "type": "Terminating", "status": "True", "lastTransitionTime": since, "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        }));
    }
}
