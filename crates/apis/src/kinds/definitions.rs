//! CustomResourceDefinitions.

use concord_builtins::FeatureGates;
use concord_meta::field;
use concord_registry::{Context, Object, Part, RuleWork, metadata, metadata_mut, timed_rules};
use concord_rules::RuleCompiler;
use concord_structural::crd::{self, CelCompiler, CompiledRule, RulePlace};
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

/// New rules use nothing that an older server on the same store does not have.
fn rules(features: &FeatureGates) -> RuleCompiler {
    RuleCompiler::compatible_with(features.min_compatibility().minor())
}

/// Tells how long it takes.
struct Timed(RuleCompiler);

impl CelCompiler for Timed {
    fn compile(&self, place: &RulePlace<'_>) -> Result<Vec<CompiledRule>, String> {
        timed_rules(RuleWork::Compilation, || self.0.compile(place))
    }

    fn validate_default(
        &self,
        place: &RulePlace<'_>,
        default: &Value,
        path: &field::Path,
        budget: i64,
    ) -> (Vec<field::Error>, i64) {
        timed_rules(RuleWork::Evaluation, || self.0.validate_default(place, default, path, budget))
    }
}

fn validate_create(features: &FeatureGates, object: &Object) -> Vec<field::Error> {
    crd::validate_create(object, &Timed(rules(features)))
}

fn validate_update(features: &FeatureGates, part: Part<'_>, new: &Object, old: &Object) -> Vec<field::Error> {
    match part {
        Part::Main => crd::validate_update(new, old, &Timed(rules(features))),
        Part::Sub(_) => crd::validate_status_update(new, old),
    }
}

fn warnings(features: &FeatureGates, new: &Object, old: Option<&Object>) -> Vec<String> {
    let minor = features.min_compatibility().minor();
    match old {
        None => crd::warnings_on_create(new, minor),
        Some(old) => crd::warnings_on_update(new, old, minor),
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

#[cfg(test)]
mod tests {
    use super::*;
    use concord_builtins::Release;

    fn definition() -> Object {
        let name = json!({"type": "string", "format": "k8s-short-name"});
        let list = json!({"type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 9},
                          "x-kubernetes-validations": [{"rule": "self.distinct().size() == self.size()"}]});
        let names = json!({"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"});
        let object = json!({
            "metadata": {"name": "foos.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "conversion": {"strategy": "None"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"name": name, "list": list},
                }}}]},
            "status": {"storedVersions": ["v1"]},
        });
        object.as_object().expect("an object").clone()
    }

    #[test]
    fn new_definitions_use_what_the_oldest_server_on_the_store_has() {
        let definition = definition();
        for (release, is_known) in [("1.33", false), ("1.34", false), ("1.35", true), ("1.36", true)] {
            let release: Release = release.parse().expect("a release");
            let features = FeatureGates::of(release);
            let errors = validate_create(&features, &definition);
            assert_eq!(errors.is_empty(), is_known, "{release}: {errors:?}");
            let told = warnings(&features, &definition, None);
            assert_eq!(told.is_empty(), is_known, "{release}: {told:?}");
            let mut stored = definition.clone();
            metadata_mut(&mut stored).insert("resourceVersion".to_owned(), "1".into());
            assert_eq!(validate_update(&features, Part::Main, &stored, &stored), [], "{release}");
        }
        let features = FeatureGates::of(Release::OLDEST);
        let told = warnings(&features, &definition, None);
        assert_eq!(told, ["unrecognized format \"k8s-short-name\""]);
        assert!(
            validate_create(&features, &definition)[0]
                .to_string()
                .contains("undeclared reference to 'distinct'")
        );
    }
}
