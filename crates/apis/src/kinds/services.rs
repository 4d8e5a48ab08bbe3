use concord_registry::{Context, Object, Part};
use serde_json::Value;

use super::{Hooks, keep, member};

pub(super) const HOOKS: Hooks = Hooks { update: Some(update), ..Hooks::NONE };

/// The addresses stay with the service: a client that does not repeat them keeps them.
fn update(_: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
    let kind = |object: &Object| object.get("spec").and_then(|spec| spec.get("type")).cloned();
    if part != Part::Main || kind(new) != kind(old) {
        return;
    }
    let old = old.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let new = member(new, "spec");
    for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if new.get(name).is_none_or(|value| value == "" || value.is_null()) {
            keep(new, &old, name);
        }
    }
}
