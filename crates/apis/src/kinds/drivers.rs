use concord_builtins::FeatureGates;
use concord_registry::{Context, Object, Part, metadata, metadata_mut};
use serde_json::Value;

use super::{Hooks, member};

pub(super) const HOOKS: Hooks = Hooks { drop: Some(default_of_feature), update: Some(update), ..Hooks::NONE };

/// The one default of a CSIDriver that only a feature gives it.
fn default_of_feature(features: &FeatureGates, new: &mut Object, _: Option<&Object>) {
    if features.enabled("VolumeLimitScaling") {
        let prevents = member(new, "spec").entry("preventPodSchedulingIfMissing").or_insert(Value::Null);
        if prevents.is_null() {
            *prevents = Value::Bool(false);
        }
    }
}

/// A CSIDriver has no generation until it changes for the first time.
fn update(_: &Context, _: Part<'_>, new: &mut Object, old: &Object) {
    if new.get("spec") != old.get("spec") {
        let next = metadata(old).generation().saturating_add(1);
        metadata_mut(new).insert("generation".to_owned(), next.into());
    }
}

#[cfg(test)]
mod tests {
    use concord_builtins::Release;
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_not_kept_from_nodes_unless_a_driver_says_so() {
        let on = FeatureGates::parse(Release::LATEST, Release::LATEST, &["VolumeLimitScaling=true"])
            .expect("good");
        let off = FeatureGates::of(Release::LATEST);
        for (features, spec, expected) in [
            (&on, json!({}), json!({"preventPodSchedulingIfMissing": false})),
            (
                &on,
                json!({"preventPodSchedulingIfMissing": true}),
                json!({"preventPodSchedulingIfMissing": true}),
            ),
            (&off, json!({}), json!({})),
        ] {
            let mut driver = Object::from_iter([("spec".to_owned(), spec)]);
            default_of_feature(features, &mut driver, None);
            assert_eq!(driver["spec"], expected);
        }
    }
}
