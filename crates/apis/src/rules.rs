//! Which rules a kind has in the emulated release, and the form of objects that they are about.

use std::borrow::Cow;

use concord_builtins::{FeatureGates, ResourceFacts};
use concord_registry::Object;
use concord_validation::{Gates, Validator};
use serde_json::Value;

/// The rules of a kind where these features are on.
pub(crate) fn validator(facts: &ResourceFacts, features: &FeatureGates) -> Option<Validator> {
    let gates = Gates::new(|name| features.enabled(name));
    concord_validation::of(facts.group, facts.kind).map(|validator| validator.with(gates))
}

/// Whether a status that is written with the object is ignored, as it is for every kind but one: before 1.36 nobody did so
/// for ServiceCIDRs.
pub(crate) fn wipes_status(facts: &ResourceFacts, features: &FeatureGates) -> bool {
    (facts.group, facts.plural) != ("networking.k8s.io", "servicecidrs")
        || features.enabled("ServiceCIDRStatusFieldWiping")
}

/// An object in the form that its rules are about. Devices are looked at as v1 has them, also where an earlier release is
/// emulated, which stores them in another version.
pub(crate) fn judged(object: &Object) -> Cow<'_, Object> {
    const NEWEST: &str = "resource.k8s.io/v1";
    let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    // A DeviceTaintRule has no v1, and what has no other form there needs no copy.
    if !["resource.k8s.io/v1beta1", "resource.k8s.io/v1alpha3"].contains(&version)
        || kind == "DeviceTaintRule"
    {
        return Cow::Borrowed(object);
    }
    let mut newest = object.clone();
    match concord_conversion::convert(&mut newest, version, NEWEST) {
        Ok(()) => {
            newest.insert("apiVersion".to_owned(), NEWEST.into());
            Cow::Owned(newest)
        }
        Err(_) => Cow::Borrowed(object),
    }
}

#[cfg(test)]
mod tests {
    use concord_builtins::Release;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_rules_know_the_features_of_the_newest_release_by_themselves() {
        let features = FeatureGates::of(Release::LATEST);
        assert_eq!(Gates::new(|name| features.enabled(name)), Gates::default());
    }

    #[test]
    fn devices_of_earlier_releases_have_the_rules_of_the_newest() {
        let claim = json!({
            "kind": "ResourceClaim",
            "apiVersion": "resource.k8s.io/v1beta1",
            "metadata": {"name": "a", "namespace": "b"},
            "spec": {"devices": {"requests": [
                {"name": "c", "deviceClassName": "A_B", "allocationMode": "ExactCount", "count": 1},
            ]}},
        });
        let validator = concord_validation::of("resource.k8s.io", "ResourceClaim").expect("a known kind");
        let errors = validator.create(&judged(claim.as_object().expect("an object")));
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["spec.devices.requests[0].exactly.deviceClassName"]);
    }
}
