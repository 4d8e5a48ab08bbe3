use concord_registry::{Context, Object, Part};
use serde_json::{Value, json};

use super::{Hooks, keep, member};

pub(super) const HOOKS: Hooks = Hooks { create: Some(create), update: Some(update), ..Hooks::NONE };

/// Who asks is said by the server, never by the request.
fn create(context: &Context, object: &mut Object) {
    let user = &context.user;
    let spec = member(object, "spec");
    for name in ["username", "uid", "groups", "extra"] {
        spec.remove(name);
    }
    spec.insert("username".to_owned(), user.name.as_str().into());
    if !user.uid.is_empty() {
        spec.insert("uid".to_owned(), user.uid.as_str().into());
    }
    if !user.groups.is_empty() {
        spec.insert("groups".to_owned(), user.groups.clone().into());
    }
    if !user.extra.is_empty() {
        spec.insert("extra".to_owned(), json!(user.extra));
    }
}

/// The door for approval changes the conditions of the status and nothing else of it.
fn update(_: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
    keep(new, old, "spec");
    if part != Part::Sub("approval") {
        return;
    }
    let conditions = new.get("status").and_then(|status| status.get("conditions")).cloned();
    keep(new, old, "status");
    match conditions {
        Some(conditions @ Value::Array(_)) => {
            member(new, "status").insert("conditions".to_owned(), conditions);
        }
        _ => drop(member(new, "status").remove("conditions")),
    }
}
