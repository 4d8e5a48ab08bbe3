//! Nodes: what once configured their kubelets is not taken any more.

use concord_builtins::FeatureGates;
use concord_registry::{Context, Object, Part};
use serde_json::Value;

use super::{Hooks, member};

pub(super) const HOOKS: Hooks = Hooks { drop: Some(drop_source), update: Some(update), ..Hooks::NONE };

fn has(object: &Object, part: &str, name: &str) -> bool {
    object.get(part).and_then(|part| part.get(name)).is_some_and(|value| !value.is_null())
}

/// The configuration's source, unless there is one already; and what a new node says became of it.
fn drop_source(_: &FeatureGates, new: &mut Object, old: Option<&Object>) {
    if !old.is_some_and(|old| has(old, "spec", "configSource")) {
        member(new, "spec").remove("configSource");
    }
    if old.is_none() {
        drop_status(new);
    }
}

fn update(_: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
    if part == Part::Sub("status") && !has(old, "status", "config") {
        drop_status(new);
    }
}

fn drop_status(node: &mut Object) {
    if let Some(Value::Object(status)) = node.get_mut("status") {
        status.remove("config");
    }
}

#[cfg(test)]
mod tests {
    use concord_builtins::Release;
    use serde_json::json;

    use super::*;

    fn node(value: &Value) -> Object {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn configurations_are_left_out_unless_they_are_there() {
        let features = FeatureGates::of(Release::LATEST);
        let (plain, full) = (
            node(&json!({"spec": {}, "status": {}})),
            node(&json!({"spec": {"configSource": {}}, "status": {"config": {}}})),
        );
        for (old, kept) in
            [(None, json!({})), (Some(&plain), json!({})), (Some(&full), json!({"configSource": {}}))]
        {
            let mut new = full.clone();
            drop_source(&features, &mut new, old);
            assert_eq!(new["spec"], kept);
            assert_eq!(new["status"].get("config").is_some(), old.is_some());
        }
        let context = Context::of_the_server(concord_merge::apply::Time { unix: 0 });
        for (old, is_kept) in [(&plain, false), (&full, true)] {
            let mut new = full.clone();
            update(&context, Part::Sub("status"), &mut new, old);
            assert_eq!(new["status"].get("config").is_some(), is_kept);
        }
    }
}
