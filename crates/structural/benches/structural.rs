//! What a custom object costs: `cargo bench -p concord-structural`.

use concord_structural::{Malformed, Object, Schema, crd};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

/// A schema like an operator's: 60 fields, some lists, some bounds.
fn sixty_fields() -> Value {
    let field = |n: usize| match n % 6 {
        0 => json!({"type": "string", "maxLength": 64, "pattern": "^[a-z0-9-]+$", "description": "a name"}),
        1 => json!({"type": "integer", "format": "int32", "minimum": 0, "default": 3}),
        2 => json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        3 => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        4 => json!({"type": "string", "enum": ["Always", "Never", "Sometimes"]}),
        _ => json!({"x-kubernetes-int-or-string": true, "description": "an amount"}),
    };
    let fields: serde_json::Map<_, _> = (0..60).map(|n| (format!("fieldNumber{n}"), field(n))).collect();
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}})
}

/// An object of about 2 KiB that fits.
fn sample() -> Object {
    let field = |n: usize| match n % 6 {
        0 => json!("some-name"),
        1 => json!(n),
        2 => json!(["one", "two", "three"]),
        3 => json!({"app": "web", "tier": "front"}),
        4 => json!("Always"),
        _ => json!("25%"),
    };
    let spec: Object = (0..60).map(|n| (format!("fieldNumber{n}"), field(n))).collect();
    let object = json!({"apiVersion": "g/v1", "kind": "Foo", "metadata": {"name": "x"}, "spec": spec});
    object.as_object().cloned().unwrap_or_default()
}

/// A schema of about a megabyte.
fn large() -> Value {
    let fields: serde_json::Map<_, _> =
        (0..170).map(|n| (format!("group{n}"), sixty_fields()["properties"]["spec"].clone())).collect();
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}})
}

#[divan::bench]
fn compile_sixty_fields(bencher: divan::Bencher<'_, '_>) {
    let schema = sixty_fields();
    bencher.bench(|| Schema::compile(&schema));
}

#[divan::bench(sample_count = 20)]
fn compile_a_megabyte(bencher: divan::Bencher<'_, '_>) {
    let schema = large();
    bencher.bench(|| Schema::compile(&schema));
}

#[divan::bench(sample_count = 20)]
fn validate_a_definition_of_a_megabyte(bencher: divan::Bencher<'_, '_>) {
    let definition = json!({"metadata": {"name": "foos.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": large()}}],
    }});
    let mut definition = definition.as_object().cloned().unwrap_or_default();
    crd::set_defaults(&mut definition);
    crd::prepare_create(&mut definition);
    bencher.bench(|| crd::validate_create(&definition, &crd::NoCel));
}

#[divan::bench]
fn shape_an_object(bencher: divan::Bencher<'_, '_>) {
    let schema = Schema::compile(&sixty_fields()).expect("a schema");
    bencher.with_inputs(sample).bench_values(|mut object| {
        schema.shape(&mut object, Malformed::Refused).expect("a good object");
        object
    });
}

#[divan::bench]
fn validate_an_object(bencher: divan::Bencher<'_, '_>) {
    let (schema, object) = (Schema::compile(&sixty_fields()).expect("a schema"), sample());
    bencher.bench(|| schema.validate_create(&object, None));
}

#[divan::bench]
fn validate_an_update(bencher: divan::Bencher<'_, '_>) {
    let (schema, object) = (Schema::compile(&sixty_fields()).expect("a schema"), sample());
    bencher.bench(|| schema.validate_update(&object, &object, None));
}

#[divan::bench(sample_count = 20)]
fn validate_three_megabytes(bencher: divan::Bencher<'_, '_>) {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "items": {"type": "array", "items": sixty_fields()["properties"]["spec"]},
    }}}});
    let schema = Schema::compile(&schema).expect("a schema");
    let items: Vec<_> = (0..1_500).map(|_| sample()["spec"].clone()).collect();
    let object = json!({"spec": {"items": items}}).as_object().cloned().unwrap_or_default();
    bencher.bench(|| schema.validate_create(&object, None));
}
