//! Service accounts: of what refers to their secrets only the names count.

use concord_registry::{Context, Object, Part};
use serde_json::{Value, json};

use super::Hooks;

pub(super) const HOOKS: Hooks = Hooks { create: Some(create), update: Some(update), ..Hooks::NONE };

fn create(_: &Context, object: &mut Object) {
    only_names(object);
}

fn update(_: &Context, _: Part<'_>, new: &mut Object, _: &Object) {
    only_names(new);
}

fn only_names(account: &mut Object) {
    let secrets = account.get_mut("secrets").and_then(Value::as_array_mut);
    for secret in secrets.into_iter().flatten() {
        let name = secret.get("name").and_then(Value::as_str).unwrap_or_default();
        *secret = if name.is_empty() { json!({}) } else { json!({"name": name}) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        let account = json!({"secrets": [{"name": "a", "namespace": "b", "kind": "Secret"}, {"kind": "x"}]});
        let mut account = account.as_object().expect("an object").clone();
        only_names(&mut account);
        assert_eq!(account["secrets"], json!([{"name": "a"}, {}]));
    }
}
