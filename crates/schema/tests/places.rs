//! What strict decoding, apply and strategic merge patches learn from a place.

mod support;

use concord_codec::{FieldValidation, Options, decode};
use concord_merge::{
    strategic::{PatchSchema, PatchStrategy, strategic_merge},
    typed::{Duplicates, ListKind, MapKind, Scalar, Type, validate},
};
use serde_json::{Value, json};
use support::{object, thing};

#[test]
fn unknown_and_duplicate_fields_are_found() {
    let schema = thing();
    let options =
        Options { validation: FieldValidation::Strict, fields: Some(schema.fields()), ..Options::default() };
    let body = br#"{"kind":"Thing","x":1,"metadata":{"labels":{"a":"1","a":"2"}},
        "spec":{"raw":{"any":1,"any":2},"ports":[{"port":1,"y":1}],"props":{"additional":{"z":1}}}}"#;
    let decoded = decode(body, &options).expect("JSON");
    let told: Vec<_> = decoded.violations.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["unknown field \"x\"", "duplicate field \"metadata.labels.a\"", "unknown field \"spec.ports[0].y\""]
    );
}

#[test]
fn apply_learns_kinds_and_keys() {
    let place = thing().place().clone();
    let at = |path: &str| {
        path.split('.').fold(place.clone(), |place, name| Type::field(&place, name).expect("a known field"))
    };
    let ports = at("spec.ports");
    assert_eq!(ports.kinds().list, Some(ListKind::Map(&["port".to_owned(), "protocol".to_owned()])));
    let port = ports.items().expect("a list");
    assert_eq!(port.default_of("protocol"), Some(json!("TCP")));
    assert_eq!(port.default_of("port"), None);
    assert_eq!(at("metadata.finalizers").kinds().list, Some(ListKind::Set));
    assert_eq!(at("metadata.labels").kinds().map, Some(MapKind::Granular));
    assert_eq!(at("spec.raw").kinds().map, Some(MapKind::Atomic));
    assert_eq!(at("spec.divisor").kinds().scalar, Some(Scalar::Untyped));
    assert_eq!(at("spec.count").kinds().scalar, Some(Scalar::Numeric));
    assert!(at("spec.props.additional").is_free_form());
    assert!(!at("spec.raw").is_free_form());
    let twice = object(json!({"spec": {"ports": [{"port": 1}, {"port": 1}]}}));
    assert!(validate(&Value::Object(twice), &place, Duplicates::Refused).is_err());
}

#[test]
fn patches_learn_strategies() {
    let schema = thing();
    let spec = PatchSchema::field(schema.patch_schema(), "spec").expect("a known field").schema;
    assert_eq!(PatchSchema::name(&spec), "ThingSpec");
    let ports = PatchSchema::field(&spec, "ports").expect("a known field");
    assert_eq!((ports.strategy, ports.merge_key.as_deref()), (PatchStrategy::Merge, Some("port")));
    assert_eq!(PatchSchema::name(&ports.schema), "ThingPort");
    let merge = |live: Value, patch: Value| strategic_merge(live, patch, schema.patch_schema());
    let live = json!({"spec": {"ports": [{"port": 1, "name": "a"}], "rules": ["a"]}});
    let patch = json!({"spec": {"ports": [{"port": 2}], "rules": ["b"]}});
    let merged = merge(live, patch).expect("it merges");
    assert_eq!(merged["spec"]["rules"], json!(["b"]));
    assert_eq!(merged["spec"]["ports"].as_array().map(Vec::len), Some(2));
}
