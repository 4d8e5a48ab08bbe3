//! What a typical rule of a custom resource costs to compile and to evaluate.

use concord_cel::{Activation, Budget, Decl, Env, Version};
use divan::{Bencher, black_box};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

const RULE: &str =
    "self.replicas <= self.maxReplicas && self.ports.all(p, p.port > 0 && p.name.matches('^[a-z-]+$'))";

fn env() -> Env {
    let schema = json!({
        "type": "object",
        "properties": {
            "replicas": {"type": "integer"},
            "maxReplicas": {"type": "integer"},
            "ports": {"type": "array", "maxItems": 10, "items": {
                "type": "object",
                "properties": {"name": {"type": "string", "maxLength": 15}, "port": {"type": "integer"}},
            }},
        },
    });
    let decl = Decl::from_schema(&schema, "selfType", false).expect("an object");
    Env::new(Version::CURRENT).variable("self", decl)
}

fn object() -> Value {
    let ports: Vec<Value> =
        ["http", "https", "metrics"].iter().map(|name| json!({"name": name, "port": 80})).collect();
    json!({"replicas": 3, "maxReplicas": 5, "ports": ports})
}

#[divan::bench]
fn compile(bencher: Bencher<'_, '_>) {
    let env = env();
    bencher.bench(|| env.compile(black_box(RULE)));
}

#[divan::bench]
fn evaluate(bencher: Bencher<'_, '_>) {
    let program = env().compile(RULE).expect("a valid rule");
    let object = object();
    bencher.bench(|| {
        let activation = Activation::new().json("self", black_box(&object));
        program.eval(&activation, &mut Budget::default()).map(|value| value.as_bool())
    });
}
