//! What kube-apiserver 1.36 answers, case by case: the tables in `upstream/` were taken from a running one.
//!
//! `definitions.jsonl`: a change of one good definition and the errors of its create. `objects.jsonl`: the schema of
//! a field, and for each value the errors, or what became of it. `updates.jsonl`: a schema and an object that was
//! stored before the schema was so strict; then changes of it and the errors of the update. Errors are sorted,
//! because kube-apiserver walks maps in no order.

use concord_meta::{field::Error, go};
use concord_structural::{Malformed, Object, Schema, crd};
use serde_json::{Value, json};

fn lines(table: &str) -> Vec<Value> {
    table.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn object(value: &Value) -> Object {
    value.as_object().cloned().unwrap_or_default()
}

/// The errors as a `Status` tells them.
fn texts(errors: &[Error]) -> Vec<String> {
    let mut texts: Vec<_> =
        errors.iter().map(|error| format!("{} {error}", error.error_type.cause())).collect();
    texts.sort();
    texts
}

fn expected(case: &Value) -> Vec<String> {
    let errors = case["errors"].as_array().into_iter().flatten();
    errors.filter_map(|error| error.as_str().map(str::to_owned)).collect()
}

/// All cases that came out otherwise, told together.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn compare(&mut self, case: &Value, ours: &Value, upstream: &Value) {
        if ours != upstream {
            self.0.push(format!("{case}\n    ours:     {ours}\n    upstream: {upstream}"));
        }
    }

    fn none(&self) {
        assert!(self.0.is_empty(), "{} cases differ:\n{}", self.0.len(), self.0.join("\n"));
    }
}

fn changed(value: &Value, change: &Value) -> Value {
    concord_merge::merge_patch(value.clone(), change).expect("a change that fits")
}

#[test]
fn definitions_are_refused_as_upstream_refuses_them() {
    let good = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.structural.example.com"},
        "spec": {
            "group": "structural.example.com",
            "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
            }}}],
        },
    });
    for case in lines(include_str!("upstream/definitions.jsonl")) {
        let mut definition = object(&changed(&good, &case["change"]));
        crd::set_defaults(&mut definition);
        crd::prepare_create(&mut definition);
        assert_eq!(
            texts(&crd::validate_create(&definition, &crd::NoCel)),
            expected(&case),
            "{}",
            case["case"]
        );
    }
}

#[test]
fn objects_are_shaped_and_refused_as_upstream_does() {
    let mut differences = Differences::default();
    for case in lines(include_str!("upstream/objects.jsonl")) {
        let schema = json!({"type": "object", "properties":
            {"spec": {"type": "object", "properties": {"t": case["schema"]}}}});
        let schema = Schema::compile(&schema).expect("a schema");
        for value in case["values"].as_array().into_iter().flatten() {
            let what = json!([value["value"], case["schema"]]);
            differences.compare(&what, &outcome(&schema, &value["value"]), &expected_outcome(value));
        }
    }
    differences.none();
}

/// What becomes of a value: `refused`, or `errors`, or what is left of it and the unknown fields.
fn outcome(schema: &Schema, value: &Value) -> Value {
    let mut object = object(&json!({"spec": {"t": value}}));
    let unknown = match schema.shape(&mut object, Malformed::Refused) {
        Ok(unknown) => unknown,
        Err(error) => return json!({"refused": error.to_string()}),
    };
    let errors = texts(&schema.validate_create(&object, None));
    if errors.is_empty() {
        return json!({"left": object["spec"].get("t").map(go::json), "unknown": unknown});
    }
    json!({ "errors": errors })
}

fn expected_outcome(case: &Value) -> Value {
    if let Some(refused) = case.get("refused") {
        return json!({ "refused": refused });
    }
    let errors = expected(case);
    if !errors.is_empty() {
        return json!({ "errors": errors });
    }
    let left = case.get("result").unwrap_or(&case["value"]);
    let left = if case["gone"] == true { None } else { Some(go::json(left)) };
    json!({"left": left, "unknown": case.get("unknown").cloned().unwrap_or(json!([]))})
}

#[test]
fn updates_are_refused_only_for_what_they_change() {
    let mut cases = lines(include_str!("upstream/updates.jsonl"));
    let first = cases.remove(0);
    let schema = json!({"type": "object", "properties": {"spec": first["schema"]}});
    let schema = Schema::compile(&schema).expect("a schema");
    let old = object(&json!({"spec": first["old"]}));
    for case in cases {
        let mut new = object(&json!({"spec": changed(&first["old"], &case["change"])}));
        schema.shape(&mut new, Malformed::Refused).expect("no metadata");
        let errors = texts(&schema.validate_update(&new, &old, None));
        assert_eq!(errors, expected(&case), "{}", case["change"]);
    }
}
