use concord_registry::Object;
use concord_schema::encode_base64;
use serde_json::Value;

use super::{Hooks, member};

pub(super) const HOOKS: Hooks = Hooks { default: Some(default), ..Hooks::NONE };

/// What is given as plain text becomes data: `stringData` is only ever written.
fn default(object: &mut Object) {
    let Some(Value::Object(texts)) = object.remove("stringData") else { return };
    let data = member(object, "data");
    for (name, text) in texts {
        if let Value::String(text) = text {
            data.insert(name, encode_base64(text.as_bytes()).into());
        }
    }
}
