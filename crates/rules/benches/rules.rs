//! What the rules of an object cost: `cargo bench -p concord-rules`.

use std::sync::Arc;

use concord_rules::Rules;
use concord_structural::{Object, Schema};
use divan::{Bencher, black_box};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

/// A schema like an operator's, with a rule of the object, one of a list's items and one about a change.
fn schema() -> Arc<Schema> {
    let port = json!({
        "type": "object",
        "required": ["name", "port"],
        "properties": {"name": {"type": "string", "maxLength": 15}, "port": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.port > 0 && self.port < 65536"}],
    });
    let spec = json!({
        "type": "object",
        "properties": {
            "replicas": {"type": "integer"},
            "maxReplicas": {"type": "integer"},
            "class": {
                "type": "string",
                "maxLength": 63,
                "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "class is immutable"}],
            },
            "ports": {
                "type": "array", "maxItems": 10, "items": port,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            },
        },
        "x-kubernetes-validations": [{"rule": "self.replicas <= self.maxReplicas"}],
    });
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    Arc::new(Schema::compile(&schema).expect("a good schema"))
}

fn object() -> Object {
    let ports: Vec<Value> =
        ["http", "https", "metrics"].iter().map(|name| json!({"name": name, "port": 80})).collect();
    let spec = json!({"replicas": 3, "maxReplicas": 5, "class": "fast", "ports": ports});
    Object::from_iter([("spec".to_owned(), spec)])
}

/// With the first object, which is when rules are compiled.
#[divan::bench]
fn compile(bencher: Bencher<'_, '_>) {
    let (schema, object) = (schema(), object());
    bencher.bench(|| Rules::compile(black_box(&schema)).validate(black_box(&object), None, &[]));
}

#[divan::bench]
fn create(bencher: Bencher<'_, '_>) {
    let (rules, object) = (Rules::compile(&schema()), object());
    bencher.bench(|| rules.validate(black_box(&object), None, &[]));
}

#[divan::bench]
fn update(bencher: Bencher<'_, '_>) {
    let (rules, object) = (Rules::compile(&schema()), object());
    bencher.bench(|| rules.validate(black_box(&object), Some(black_box(&object)), &[]));
}
