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

/// From the object to a field.
type Path = Vec<Step>;

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
            let in_use = |old: &Object| paths.iter().any(|path| is_used(old, path));
            if !old.is_some_and(in_use) {
                paths.iter().for_each(|path| remove(new, path));
            }
        }
    }
}

/// A walk through the types of a kind.
struct Search<'a> {
    features: &'a FeatureGates,
    found: BTreeMap<String, Vec<Path>>,
    path: Path,
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
        self.within.push(place.go_name().to_owned());
        for field in fields {
            let step = Step::Field(field.name().into());
            if field.features().any(|feature| !self.features.enabled(feature)) {
                let path = self.path.iter().cloned().chain([step]).collect();
                let features: Vec<&str> = field.features().collect();
                self.found.entry(features.join("+")).or_default().push(path);
            } else {
                self.step(step, &place.at(field.ty()));
            }
        }
        self.within.pop();
    }

    fn step(&mut self, step: Step, place: &Place) {
        self.path.push(step);
        self.look(place);
        self.path.pop();
    }
}

/// Whether there is something at a path.
fn is_used(object: &Object, path: &[Step]) -> bool {
    let [Step::Field(name), rest @ ..] = path else { return false };
    object.get(&**name).is_some_and(|value| rest.is_empty() || is_used_in(value, rest))
}

fn is_used_in(value: &Value, path: &[Step]) -> bool {
    match (path.first(), value) {
        (Some(Step::Field(_)), Value::Object(object)) => is_used(object, path),
        (Some(Step::Each), Value::Array(items)) => items.iter().any(|item| is_used_in(item, &path[1..])),
        (Some(Step::Each), Value::Object(values)) => {
            values.values().any(|value| is_used_in(value, &path[1..]))
        }
        _ => false,
    }
}

/// Removes what is at a path.
fn remove(object: &mut Object, path: &[Step]) {
    match path {
        [Step::Field(name)] => drop(object.remove(&**name)),
        [Step::Field(name), rest @ ..] => {
            if let Some(value) = object.get_mut(&**name) {
                remove_in(value, rest);
            }
        }
        _ => {}
    }
}

fn remove_in(value: &mut Value, path: &[Step]) {
    match (path.first(), value) {
        (Some(Step::Field(_)), Value::Object(object)) => remove(object, path),
        (Some(Step::Each), Value::Array(items)) => {
            items.iter_mut().for_each(|item| remove_in(item, &path[1..]));
        }
        (Some(Step::Each), Value::Object(values)) => {
            values.values_mut().for_each(|value| remove_in(value, &path[1..]));
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
