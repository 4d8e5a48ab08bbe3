use concord_builtins::FeatureGates;
use concord_registry::Object;
use serde_json::Value;

use super::{Hooks, image_volumes::drop_image_volumes};

pub(super) const HOOKS: Hooks = Hooks { drop: Some(prepare), ..Hooks::NONE };

fn prepare(features: &FeatureGates, new: &mut Object, old: Option<&Object>) {
    drop_image_volumes(features, new, old);
    if features.enabled("MaxUnavailableStatefulSet") {
        default_unavailable(new);
    }
}

/// One pod at a time may be missing, unless more is said. The tables of defaults know no features, hence it stands here.
fn default_unavailable(object: &mut Object) {
    let strategy = object.get_mut("spec").and_then(|spec| spec.get_mut("updateStrategy"));
    let Some(Value::Object(strategy)) = strategy else { return };
    let rolling = strategy.get("type").is_some_and(|kind| kind == "RollingUpdate");
    if let Some(Value::Object(details)) = strategy.get_mut("rollingUpdate").filter(|_| rolling) {
        details.entry("maxUnavailable").or_insert_with(|| 1.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_pod_may_be_missing_in_a_rolling_update() {
        for (strategy, expected) in [
            (json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}), json!(1)),
            (json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "20%"}}), json!("20%")),
            (json!({"type": "RollingUpdate"}), Value::Null),
            (json!({"type": "OnDelete", "rollingUpdate": {}}), Value::Null),
        ] {
            let mut object =
                Object::from_iter([("spec".to_owned(), json!({"updateStrategy": strategy.clone()}))]);
            default_unavailable(&mut object);
            assert_eq!(
                object["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], expected,
                "{strategy}"
            );
        }
    }
}
