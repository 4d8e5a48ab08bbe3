//! The list and map types of a schema, as server-side apply asks for them.

use std::sync::Arc;

use concord_merge::typed::{ListKind, MapKind, Scalar, Type};
use concord_structural::{MergeType, Schema};
use serde_json::json;

fn root() -> MergeType {
    let schema = Schema::compile(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": {"type": "string", "default": "d"}}}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "list": {"type": "array", "items": {"type": "integer"}},
            "atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "date": {"type": "string", "format": "date-time"},
            "amount": {"x-kubernetes-int-or-string": true},
        }}}}),
    );
    MergeType::new(Arc::new(schema.expect("a schema")))
}

#[test]
fn types_are_those_that_the_schema_declares() {
    let spec = root().field("spec").expect("a field");
    let field = |name: &str| spec.field(name).expect("a field");
    assert_eq!(field("map").kinds().list, Some(ListKind::Map(&["k".to_owned()])));
    assert_eq!(field("map").items().and_then(|item| item.default_of("k")), Some(json!("d")));
    assert_eq!(field("set").kinds().list, Some(ListKind::Set));
    assert_eq!(field("list").kinds().list, Some(ListKind::Atomic));
    assert_eq!(field("list").items().and_then(|item| item.kinds().scalar), Some(Scalar::Numeric));
    assert_eq!(field("atomic").kinds().map, Some(MapKind::Atomic));
    assert_eq!(field("date").kinds().scalar, Some(Scalar::Untyped));
    let amount = field("amount").kinds().scalar;
    assert_eq!(amount, Some(Scalar::Untyped));
    assert!(field("free").is_free_form());
    assert!(field("free").values().is_some());
}

#[test]
fn unknown_fields_are_allowed_only_where_they_stay() {
    let root = root();
    assert!(root.field("nonsense").is_none() && root.values().is_none());
    let labels = root.field("metadata").and_then(|metadata| metadata.field("labels")).expect("labels");
    assert_eq!(labels.kinds().map, Some(MapKind::Granular));
    assert_eq!(root.field("kind").and_then(|kind| kind.kinds().scalar), Some(Scalar::String));
}
