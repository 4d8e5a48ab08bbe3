//! What the defaults of a Deployment cost, and the tables at the first use.

use concord_builtins::schema;
use divan::{Bencher, black_box};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

fn deployment() -> serde_json::Map<String, Value> {
    let container = json!({
        "name": "web",
        "image": "registry.example.com/team/web:1.2.3",
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}},
        "livenessProbe": {"httpGet": {"path": "/live", "port": "http"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/web"}],
    });
    let object = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [container],
                    "volumes": [{"name": "config", "configMap": {"name": "web"}}, {"name": "tmp"}],
                },
            },
        },
    });
    let Value::Object(mut object) = object else { unreachable!("made as an object") };
    schema("apps", "v1", "Deployment").expect("known").normalize(&mut object).expect("normal");
    object
}

#[divan::bench]
fn fresh(bencher: Bencher<'_, '_>) {
    let defaults = concord_defaults::of("apps/v1", "Deployment").expect("has defaults");
    let object = deployment();
    bencher.with_inputs(|| object.clone()).bench_values(|mut object| {
        defaults.apply(black_box(&mut object));
        object
    });
}

/// As when an object is read, changed and written again.
#[divan::bench]
fn complete(bencher: Bencher<'_, '_>) {
    let defaults = concord_defaults::of("apps/v1", "Deployment").expect("has defaults");
    let mut object = deployment();
    defaults.apply(&mut object);
    bencher.bench_local(|| defaults.apply(black_box(&mut object)));
}

/// What the defaults are to be compared with.
#[divan::bench]
fn normalize(bencher: Bencher<'_, '_>) {
    let schema = schema("apps", "v1", "Deployment").expect("known");
    let object = deployment();
    bencher.with_inputs(|| object.clone()).bench_values(|mut object| {
        schema.normalize(black_box(&mut object)).expect("normal");
        object
    });
}
