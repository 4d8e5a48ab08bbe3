//! APIServices.

use concord_registry::{Context, Object};
use serde_json::{Value, json};

use super::{Hooks, member};

pub(super) const HOOKS: Hooks = Hooks { create: Some(create), ..Hooks::NONE };

/// What this server serves itself needs nobody to find out whether it is there.
fn create(context: &Context, object: &mut Object) {
    let is_local = object.get("spec").and_then(|spec| spec.get("service")).is_none_or(Value::is_null);
    if is_local {
        let conditions = json!([{
            "type": "Available", "status": "True", "lastTransitionTime": context.now.to_string(),
            "reason": "Local", "message": "Local APIServices are always available",
        }]);
        member(object, "status").insert("conditions".to_owned(), conditions);
    }
}
