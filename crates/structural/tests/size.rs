//! Hostile and large schemas and objects: bounded in memory, and in time by what they are made of.

use std::time::{Duration, Instant};

use concord_structural::{Object, Schema, crd};
use serde_json::{Value, json};

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

fn definition(schema: &Value) -> Object {
    let mut definition = object(json!({
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    }));
    crd::set_defaults(&mut definition);
    crd::prepare_create(&mut definition);
    definition
}

#[test]
fn a_schema_of_sixty_fields_is_small() {
    let field = |n: usize| match n % 4 {
        0 => json!({"type": "string", "description": "words ".repeat(20), "maxLength": 64}),
        1 => json!({"type": "integer", "format": "int32", "minimum": 0, "default": 3}),
        2 => json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        _ => json!({"type": "string", "enum": ["Always", "Never"], "pattern": "^[A-Z]"}),
    };
    let fields: Object = (0..60).map(|n| (format!("aFieldWithAName{n}"), field(n))).collect();
    let schema = Schema::compile(&json!({"type": "object", "properties": fields})).expect("a schema");
    assert!(schema.footprint() <= 10 * 1024, "{} bytes", schema.footprint());
}

#[test]
fn fields_that_are_alike_share_what_they_have() {
    let schema = |length: fn(usize) -> usize| {
        let field = |n: usize| (format!("f{n:03}"), json!({"type": "string", "maxLength": length(n)}));
        let fields: Object = (0..100).map(field).collect();
        Schema::compile(&json!({"type": "object", "properties": fields})).expect("a schema")
    };
    let (alike, different) = (schema(|_| 64), schema(|n| n));
    assert!(alike.footprint() * 3 < different.footprint(), "{} bytes", alike.footprint());
    for (n, (name, field)) in different.root().properties().enumerate() {
        assert_eq!((name, field.max_length()), (&*format!("f{n:03}"), i64::try_from(n).ok()));
    }
}

#[test]
fn a_schema_of_two_hundred_levels_is_walked() {
    let mut schema = json!({"type": "string", "default": "x"});
    let mut value = json!("leaf");
    for _ in 0..200 {
        schema = json!({"type": "object", "properties": {"a": schema}});
        value = json!({"a": value});
    }
    assert_eq!(crd::validate_create(&definition(&schema), &crd::NoCel), vec![]);
    let schema = Schema::compile(&schema).expect("a schema");
    let mut value = object(value);
    schema.prune(&mut value);
    schema.default(&mut value);
    assert_eq!(schema.validate_create(&value, None), vec![]);
    assert_eq!(schema.validate_update(&value, &value, None), vec![]);
}

#[test]
fn five_thousand_properties_are_nothing_special() {
    let fields: Object =
        (0..5_000).map(|n| (format!("f{n}"), json!({"type": "integer", "default": n}))).collect();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
    assert_eq!(crd::validate_create(&definition(&schema), &crd::NoCel), vec![]);
    let schema = Schema::compile(&schema).expect("a schema");
    let mut value = object(json!({"spec": {}}));
    schema.default(&mut value);
    assert_eq!(value["spec"]["f4999"], 4_999);
    assert_eq!(schema.validate_create(&value, None), vec![]);
}

/// How long the best of three runs takes.
fn time(run: impl Fn()) -> Duration {
    let runs = (0..3).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    runs.min().unwrap_or_default()
}

#[test]
fn time_grows_with_the_object_and_not_with_its_square() {
    let item = json!({"type": "object", "required": ["r"], "properties": {"k": {"type": "string"}, "n": {"type": "integer"}}});
    let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item});
    let schema = Schema::compile(&json!({"type": "object", "properties": {"l": list}})).expect("a schema");
    // Every item lacks a field, so that every item is an error and is compared with the old one.
    let objects = |count: usize| {
        let items: Vec<_> = (0..count).map(|n| json!({"k": n.to_string(), "n": n})).collect();
        let mut changed = items.clone();
        changed[count - 1]["n"] = json!(-1);
        (object(json!({"l": items})), object(json!({"l": changed})))
    };
    let (small, small_changed) = objects(1_000);
    let (large, large_changed) = objects(16_000);
    let small = time(|| assert_eq!(schema.validate_update(&small_changed, &small, None).len(), 1));
    let large = time(|| assert_eq!(schema.validate_update(&large_changed, &large, None).len(), 1));
    // Sixteen times the work; its square would be 256 times. The rest is for a machine that does other things too.
    assert!(large < small * 100, "{small:?} for a sixteenth of what takes {large:?}");
}
