//! A compiled schema declares what the schema itself does.

use concord_cel::Decl;
use concord_structural::Schema;
use serde_json::{Value, json};

use super::{MAX_NAME_BYTES, SELF_TYPE, is_visible, of, type_name};

fn schemas() -> Vec<Value> {
    let name = json!({"type": "string"});
    let metadata = json!({"type": "object", "properties": {"name": name, "generateName": name}});
    vec![
        json!({"type": "string"}),
        json!({"type": "string", "maxLength": 5}),
        json!({"type": "string", "maxLength": -5}),
        json!({"type": "string", "enum": ["a", "long"]}),
        json!({"type": "string", "format": "byte", "maxLength": 7}),
        json!({"type": "string", "format": "byte"}),
        json!({"type": "string", "format": "date"}),
        json!({"type": "string", "format": "date-time", "maxLength": 3}),
        json!({"type": "string", "format": "duration"}),
        json!({"type": "string", "format": "uuid"}),
        json!({"type": "integer", "format": "int32"}),
        json!({"type": "number"}),
        json!({"type": "boolean"}),
        json!({"x-kubernetes-int-or-string": true}),
        json!({"x-kubernetes-int-or-string": true, "maxLength": 4}),
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "array", "items": {"type": "boolean"}}),
        json!({"type": "array", "items": {"type": "boolean"}, "maxItems": 3, "x-kubernetes-list-type": "set"}),
        json!({"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true}}),
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
            "type": "object", "required": ["k"], "properties": {"k": {"type": "string"}},
        }}),
        json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        json!({"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 9}),
        json!({"type": "object", "additionalProperties": {"x-kubernetes-preserve-unknown-fields": true}}),
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "object", "required": ["a", "b", "if", "é"], "properties": {
            "a": {"type": "string"},
            "b": {"type": "integer", "default": 1},
            "if": {"type": "array", "items": {"type": "string"}},
            "a-b": {"type": "boolean"},
            "é": {"type": "boolean"},
            "hidden": {"x-kubernetes-preserve-unknown-fields": true},
        }}),
        json!({"type": "object", "properties": {"kind": {"type": "string", "maxLength": 3}, "metadata": metadata}}),
        json!({"type": "object", "required": ["metadata", "kind"], "properties": {
            "apiVersion": name, "kind": {"type": "string", "maxLength": 3}, "metadata": metadata,
        }}),
        json!({"type": "object", "properties": {"template": {
            "type": "object",
            "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
        }}}),
    ]
}

#[test]
fn a_compiled_schema_declares_what_the_schema_does() {
    for schema in schemas() {
        for is_resource in [false, true] {
            let compiled = Schema::compile(&schema).expect("a good schema");
            let ours = of(compiled.root(), is_resource);
            let expected = Decl::from_schema(&schema, SELF_TYPE, is_resource);
            assert_eq!(format!("{ours:?}"), format!("{expected:?}"), "{schema}");
            assert_eq!(ours.is_some(), is_visible(compiled.root()), "{schema}");
        }
    }
}

#[test]
fn names_of_deep_types_stay_short_and_differ() {
    let (mut names, mut name) = (std::collections::HashSet::new(), SELF_TYPE.to_owned());
    for _ in 0..500 {
        assert!(names.insert(type_name(&name, "left")));
        name = type_name(&name, "right");
        assert!(name.len() <= MAX_NAME_BYTES, "{name}");
        assert!(names.insert(name.clone()));
    }
    assert!(type_name(SELF_TYPE, &"x".repeat(5000)).len() <= MAX_NAME_BYTES);
}
