//! Fields of features that are off.

use std::{collections::BTreeMap, sync::Arc};

use concord_builtins::FeatureGates;
use concord_registry::Object;
use concord_schema::{Place, Schema, Shape};
use serde_json::Value;

/// The fields of one kind that belong to features which this server does not have.
pub(crate) struct Gated {
    /// For each feature, or set of features, the places of its fields.
    features: Vec<Vec<Path>>,
}

/// A field, and the way to it from the object.
struct Path {
    steps: Vec<Step>,
    /// A value that the field may have without the feature.
    kept: Option<&'static str>,
}

/// One step into an object.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A member.
    Field(Arc<str>),
    /// Every item of a list, or value of a map.
    Each,
}

impl Gated {
    /// What of a kind belongs to features that are off.
    pub(crate) fn new(schema: &Schema, features: &FeatureGates) -> Self {
        let mut search = Search { features, found: BTreeMap::new(), path: Vec::new(), within: Vec::new() };
        search.look(schema.place());
        Self { features: search.found.into_values().collect() }
    }

    /// Drops what a client says in such fields, unless the object that it changes has the feature in use already: as for
    /// upstream, what was stored while the feature was on can still be changed.
    pub(crate) fn drop(&self, new: &mut Object, old: Option<&Object>) {
        for paths in &self.features {
            let in_use = |old: &Object| paths.iter().any(|path| is_used(old, &path.steps, path.kept));
            if !old.is_some_and(in_use) {
                paths.iter().for_each(|path| remove(new, &path.steps, path.kept));
            }
        }
    }
}

/// A walk through the types of a kind.
struct Search<'a> {
    features: &'a FeatureGates,
    found: BTreeMap<String, Vec<Path>>,
    path: Vec<Step>,
    /// The names of the types on the way: a type that contains itself is not entered again.
    within: Vec<String>,
}

impl Search<'_> {
    fn look(&mut self, place: &Place) {
        match place.shape() {
            Shape::Struct { .. } => self.look_into(place),
            Shape::Map { values, .. } => self.step(Step::Each, &place.at(*values)),
            Shape::List { items, .. } => self.step(Step::Each, &place.at(*items)),
            Shape::Either { .. } | Shape::Scalar(_) => {}
        }
    }

    fn look_into(&mut self, place: &Place) {
        let Shape::Struct { fields, .. } = place.shape() else { return };
        if self.within.iter().any(|name| name == place.go_name()) {
            return;
        }
        // As upstream's, templates of claims keep what the claims that are made of them lose.
        let in_template = self.path.len() > 1 && place.go_name().contains("PersistentVolumeClaim");
        self.within.push(place.go_name().to_owned());
        for field in fields {
            let step = Step::Field(field.name().into());
            if !in_template && field.features().any(|feature| !self.features.enabled(feature)) {
                let kept = self.kept(field.name());
                let steps = self.path.iter().cloned().chain([step]).collect();
                let features: Vec<&str> = field.features().collect();
                self.found.entry(features.join("+")).or_default().push(Path { steps, kept });
            } else {
                self.step(step, &place.at(field.ty()));
            }
        }
        self.within.pop();
    }

    /// Sidecars are init containers that are always restarted, which needs no feature; any other policy does.
    fn kept(&self, field: &str) -> Option<&'static str> {
        let of_init =
            matches!(&self.path[..], [.., Step::Field(list), Step::Each] if **list == *"initContainers");
        (of_init && field == "restartPolicy").then_some("Always")
    }

    fn step(&mut self, step: Step, place: &Place) {
        self.path.push(step);
        self.look(place);
        self.path.pop();
    }
}

/// Whether there is something at a path that is there for the feature.
fn is_used(object: &Object, path: &[Step], kept: Option<&str>) -> bool {
    let [Step::Field(name), rest @ ..] = path else { return false };
    object.get(&**name).is_some_and(|value| match rest {
        [] => kept.is_none_or(|kept| value != kept),
        rest => is_used_in(value, rest, kept),
    })
}

fn is_used_in(value: &Value, path: &[Step], kept: Option<&str>) -> bool {
    match (path.first(), value) {
        (Some(Step::Field(_)), Value::Object(object)) => is_used(object, path, kept),
        (Some(Step::Each), Value::Array(items)) => {
            items.iter().any(|item| is_used_in(item, &path[1..], kept))
        }
        (Some(Step::Each), Value::Object(values)) => {
            values.values().any(|value| is_used_in(value, &path[1..], kept))
        }
        _ => false,
    }
}

/// Removes what is at a path.
fn remove(object: &mut Object, path: &[Step], kept: Option<&str>) {
    match path {
        [Step::Field(name)]
            if kept.is_none_or(|kept| object.get(&**name).is_some_and(|value| value != kept)) =>
        {
            object.remove(&**name);
        }
        [Step::Field(_)] => {}
        [Step::Field(name), rest @ ..] => {
            if let Some(value) = object.get_mut(&**name) {
                remove_in(value, rest, kept);
            }
        }
        _ => {}
    }
}

fn remove_in(value: &mut Value, path: &[Step], kept: Option<&str>) {
    match (path.first(), value) {
        (Some(Step::Field(_)), Value::Object(object)) => remove(object, path, kept),
        (Some(Step::Each), Value::Array(items)) => {
            items.iter_mut().for_each(|item| remove_in(item, &path[1..], kept));
        }
        (Some(Step::Each), Value::Object(values)) => {
            values.values_mut().for_each(|value| remove_in(value, &path[1..], kept));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use concord_builtins::{Release, schema, schema_in};
    use serde_json::json;

    use super::*;

    fn pod(spec: &Value) -> Object {
        json!({"spec": spec}).as_object().expect("an object").clone()
    }

    fn gated(release: &str, flags: &[&str]) -> Gated {
        let release: Release = release.parse().expect("a release");
        let features = FeatureGates::parse(release, release, flags).expect("good gates");
        Gated::new(&schema_in(release, "", "v1", "Pod").expect("a kind"), &features)
    }

    #[test]
    fn what_no_feature_has_is_dropped_unless_it_is_in_use() {
        let with = |signal: &str| pod(&json!({"containers": [{"lifecycle": {"stopSignal": signal}}]}));
        let without = pod(&json!({"containers": [{"lifecycle": {}}]}));
        let gated_off = gated("1.36", &[]);
        let mut new = with("SIGINT");
        gated_off.drop(&mut new, None);
        assert_eq!(new, without);
        let mut new = with("SIGINT");
        gated_off.drop(&mut new, Some(&without));
        assert_eq!(new, without);
        let mut new = with("SIGINT");
        gated_off.drop(&mut new, Some(&with("SIGTERM")));
        assert_eq!(new, with("SIGINT"));
        gated("1.36", &["ContainerStopSignals=true"]).drop(&mut new, None);
        assert_eq!(new, with("SIGINT"));
    }

    #[test]
    fn a_field_counts_from_its_release_on_and_a_feature_from_its_own() {
        let spec =
            json!({"hostnameOverride": "a", "containers": [{"env": [{"valueFrom": {"fileKeyRef": {}}}]}]});
        // Both came with 1.34, where only alpha features had them; 1.35 has them on.
        for (release, kept) in [("1.34", false), ("1.35", true), ("1.36", true)] {
            let mut new = pod(&spec);
            gated(release, &[]).drop(&mut new, None);
            assert_eq!(new == pod(&spec), kept, "{release}");
        }
        let known = |release: Release| {
            schema_in(release, "", "v1", "Pod").expect("a kind").place().fields().any(|(name, place)| {
                name == "spec" && place.fields().any(|(name, _)| name == "hostnameOverride")
            })
        };
        assert!(!known(Release::OLDEST) && known(Release::LATEST));
    }

    #[test]
    fn claims_of_devices_are_fields_of_a_feature_that_the_oldest_release_has_off() {
        let spec = json!({
            "resourceClaims": [{"name": "a"}],
            "containers": [{"resources": {"limits": {}, "claims": [{"name": "a"}]}}],
        });
        for (release, flags, kept) in [
            ("1.33", &[][..], false),
            ("1.33", &["DynamicResourceAllocation=true"], true),
            ("1.34", &[], true),
        ] {
            let mut new = pod(&spec);
            gated(release, flags).drop(&mut new, None);
            let without = pod(&json!({"containers": [{"resources": {"limits": {}}}]}));
            assert_eq!(new, if kept { pod(&spec) } else { without }, "{release} {flags:?}");
        }
    }

    #[test]
    fn sidecars_are_restarted_without_the_feature_that_other_policies_need() {
        let with = |init: &Value, main: &Value| pod(&json!({"initContainers": [init], "containers": [main]}));
        let (none, always, never) =
            (json!({}), json!({"restartPolicy": "Always"}), json!({"restartPolicy": "Never"}));
        for (release, init, main, kept) in [
            ("1.33", &always, &always, (&always, &none)),
            ("1.34", &never, &never, (&none, &none)),
            ("1.35", &never, &never, (&never, &never)),
        ] {
            let mut new = with(init, main);
            gated(release, &[]).drop(&mut new, None);
            assert_eq!(new, with(kept.0, kept.1), "{release}");
        }
        // A sidecar does not use the feature; an init container with another policy does.
        for (old, kept) in [(&always, &none), (&never, &never)] {
            let mut new = with(&always, &never);
            gated("1.34", &[]).drop(&mut new, Some(&with(old, &none)));
            assert_eq!(new, with(&always, kept));
        }
    }

    #[test]
    fn every_kind_can_be_looked_through() {
        let features = FeatureGates::parse(Release::LATEST, Release::LATEST, &["AllBeta=false"]);
        // Some features of the release need others, so that not all of a stage can be off.
        let features = features.unwrap_or_else(|_| FeatureGates::of(Release::OLDEST));
        let paths = |kind: &(&str, &str, &str)| {
            let schema = schema(kind.0, kind.1, kind.2).expect("a kind");
            Gated::new(&schema, &features).features.len()
        };
        assert!(concord_builtins::schemas().map(|kind| paths(&kind)).max() > Some(5));
    }
}
