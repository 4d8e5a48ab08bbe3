//! Volumes and claims to them.

use concord_builtins::FeatureGates;
use concord_registry::{Context, Object, Part};
use serde_json::{Value, json};

use super::{Hooks, member};

pub(super) const VOLUMES: Hooks =
    Hooks { create: Some(create_volume), update: Some(update_volume), ..Hooks::NONE };
pub(super) const CLAIMS: Hooks = Hooks {
    drop: Some(drop_far_sources),
    create: Some(create_claim),
    update: Some(update_claim),
    ..Hooks::NONE
};

/// When the phase of a volume changed.
const SINCE: &str = "lastPhaseTransitionTime";

fn create_volume(context: &Context, object: &mut Object) {
    member(object, "status").insert(SINCE.to_owned(), context.now.to_string().into());
}

/// Who changes the phase may say when that was; otherwise it was now.
fn update_volume(context: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
    if part != Part::Sub("status") {
        return;
    }
    let of = |object: &Object, field: &str| {
        object.get("status").and_then(|status| status.get(field)).filter(|value| !value.is_null()).cloned()
    };
    let (told, before) = (of(new, SINCE), of(old, SINCE));
    let changed = of(new, "phase") != of(old, "phase");
    let since = match (changed, told) {
        (false, None) => before,
        (true, None) => Some(context.now.to_string().into()),
        (true, told) if told == before => Some(context.now.to_string().into()),
        (_, told) => told,
    };
    if let Some(since) = since {
        member(new, "status").insert(SINCE.to_owned(), since);
    }
}

fn create_claim(_: &Context, object: &mut Object) {
    settle_sources(member(object, "spec"), None);
}

fn update_claim(_: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
    if part == Part::Main {
        let old = old.get("spec").and_then(Value::as_object);
        settle_sources(member(new, "spec"), old);
    }
}

/// A source in another namespace is a feature of its own, which no release has on by default.
fn drop_far_sources(features: &FeatureGates, new: &mut Object, old: Option<&Object>) {
    let had_source =
        old.and_then(|old| old.get("spec")?.as_object()).is_some_and(|old| has(old, "dataSourceRef"));
    if had_source || features.enabled("CrossNamespaceVolumeDataSource") {
        return;
    }
    let spec = member(new, "spec");
    let far = spec.get("dataSourceRef").and_then(|source| source.get("namespace")?.as_str());
    if far.is_some_and(|namespace| !namespace.is_empty()) {
        spec.remove("dataSourceRef");
    }
}

fn has(spec: &Object, field: &str) -> bool {
    spec.get(field).is_some_and(|value| !value.is_null())
}

/// Where a claim's data comes from is said by two fields. The older one takes claims and snapshots only, and what is said
/// by one of them is said by the other.
fn settle_sources(spec: &mut Object, old: Option<&Object>) {
    let in_use = old.is_some_and(|old| has(old, "dataSource") || has(old, "dataSourceRef"));
    if !in_use && !has(spec, "dataSourceRef") && !spec.get("dataSource").is_some_and(is_claim_or_snapshot) {
        spec.remove("dataSource");
    }
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None | Some(Value::Null)) => mirror(spec, "dataSourceRef", &source),
        (None | Some(Value::Null), Some(source)) if source.get("namespace").is_none() => {
            mirror(spec, "dataSource", &source);
        }
        _ => {}
    }
}

fn is_claim_or_snapshot(source: &Value) -> bool {
    let text = |name: &str| source.get(name).and_then(Value::as_str).unwrap_or_default();
    let snapshots = "snapshot.storage.k8s.io";
    matches!((text("kind"), text("apiGroup")), ("PersistentVolumeClaim", ""))
        || (text("kind") == "VolumeSnapshot" && text("apiGroup") == snapshots)
}

fn mirror(spec: &mut Object, field: &str, source: &Value) {
    if source.is_null() {
        return;
    }
    let mut copy = json!({"kind": source["kind"], "name": source["name"]});
    copy["apiGroup"] = source.get("apiGroup").cloned().unwrap_or(Value::Null);
    spec.insert(field.to_owned(), copy);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(spec: &Value, old: Option<&Value>) -> Value {
        let mut spec = spec.as_object().expect("an object").clone();
        settle_sources(&mut spec, old.and_then(Value::as_object));
        Value::Object(spec)
    }

    #[test]
    fn both_fields_say_where_data_comes_from() {
        let claim = json!({"kind": "PersistentVolumeClaim", "name": "a"});
        let with_group = json!({"kind": "PersistentVolumeClaim", "name": "a", "apiGroup": null});
        assert_eq!(
            settled(&json!({"dataSource": claim}), None),
            json!({"dataSource": claim, "dataSourceRef": with_group})
        );
        let other = json!({"kind": "Other", "name": "a", "apiGroup": "x.io"});
        assert_eq!(settled(&json!({"dataSource": other}), None), json!({}));
        assert_eq!(
            settled(&json!({"dataSourceRef": other}), None),
            json!({"dataSource": other, "dataSourceRef": other})
        );
        let kept = settled(&json!({"dataSource": other}), Some(&json!({"dataSource": other})));
        assert_eq!(kept, json!({"dataSource": other, "dataSourceRef": other}));
    }

    #[test]
    fn sources_in_other_namespaces_need_a_feature() {
        let claim = json!({"spec": {"dataSourceRef": {"kind": "Other", "name": "a", "namespace": "b"}}});
        let claim = claim.as_object().expect("an object");
        let release = concord_builtins::Release::LATEST;
        let on =
            FeatureGates::parse(release, release, &["CrossNamespaceVolumeDataSource=true"]).expect("good");
        for (features, old, kept) in [
            (FeatureGates::of(release), None, false),
            (FeatureGates::of(release), Some(claim), true),
            (on, None, true),
        ] {
            let mut new = claim.clone();
            drop_far_sources(&features, &mut new, old);
            assert_eq!(new == *claim, kept);
        }
    }
}
