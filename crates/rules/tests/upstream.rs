//! What kube-apiserver 1.36 answers, case by case: the tables in `upstream/` were taken from a running one.
//!
//! `definitions.jsonl`: the schema of `spec`, rules of the root and the errors of a definition with it. `objects.jsonl`: the schema of
//! `spec` and rules of the root, then values of `spec`, the ones they replace, and the errors and warnings. `redefinitions.jsonl`: a
//! definition as an older or a careless server may have stored it, another `spec` for it, and the errors of the update. Errors are
//! sorted, because kube-apiserver walks maps in no order.

use std::sync::Arc;

use concord_meta::field::Error;
use concord_rules::{RuleCompiler, Rules};
use concord_structural::{Object, Schema, crd};
use serde_json::{Value, json};

fn lines(table: &str) -> Vec<Value> {
    table.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("not an object: {other}"),
    }
}

fn sorted(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut texts: Vec<_> = texts.collect();
    texts.sort();
    texts
}

/// The whole schema of a case.
fn root(case: &Value) -> Value {
    let mut root = object(json!({"type": "object", "properties": {"spec": case["schema"]}}));
    root.extend(case["root"].as_object().cloned().unwrap_or_default());
    Value::Object(root)
}

/// The errors as a `Status` tells them.
fn texts(errors: &[Error]) -> Vec<String> {
    sorted(errors.iter().map(|error| format!("{} {error}", error.error_type.cause())))
}

fn expected(texts: &Value) -> Vec<String> {
    sorted(texts.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned))
}

/// All cases that came out otherwise, told together.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn compare(&mut self, case: &Value, ours: &[String], upstream: &[String]) {
        if ours != upstream {
            self.0.push(format!("{case}\n    ours:     {ours:#?}\n    upstream: {upstream:#?}"));
        }
    }

    fn none(&self) {
        assert!(self.0.is_empty(), "{} cases differ:\n{}", self.0.len(), self.0.join("\n"));
    }
}

#[test]
fn definitions_are_refused_as_upstream_refuses_them() {
    let mut differences = Differences::default();
    for case in lines(include_str!("upstream/definitions.jsonl")) {
        let schema = root(&case);
        let mut definition = object(json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.rules.example.com"},
            "spec": {
                "group": "rules.example.com",
                "scope": "Cluster",
                "names": {"plural": "things", "singular": "things", "kind": "Thing", "listKind": "ThingList"},
                "versions": [
                    {"name": "v2", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}},
                ],
            },
        }));
        crd::set_defaults(&mut definition);
        crd::prepare_create(&mut definition);
        let errors = crd::validate_create(&definition, &RuleCompiler::compatible_with(35));
        differences.compare(&case["schema"], &texts(&errors), &expected(&case["errors"]));
    }
    differences.none();
}

#[test]
fn definitions_are_changed_as_upstream_lets_them() {
    let mut differences = Differences::default();
    for case in lines(include_str!("upstream/redefinitions.jsonl")) {
        let definition = |spec: &Value, status: &Value| {
            let plural = spec["names"]["plural"].as_str().expect("a name");
            let name = format!("{plural}.{}", spec["group"].as_str().expect("a group"));
            object(json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": name, "uid": "1", "resourceVersion": "1", "generation": 1},
                "spec": spec,
                "status": status,
            }))
        };
        let old = definition(&case["old"]["spec"], &case["old"]["status"]);
        let mut new = definition(&case["new"], &case["old"]["status"]);
        crd::set_defaults(&mut new);
        crd::prepare_update(&mut new, &old);
        let errors = crd::validate_update(&new, &old, &RuleCompiler::compatible_with(35));
        differences.compare(&case["case"], &texts(&errors), &expected(&case["errors"]));
    }
    differences.none();
}

/// What was stored with functions that the release before does not know stays as it is; whoever writes anew does without.
#[test]
fn new_rules_use_what_the_release_before_knows() {
    let definition = |rule: &str, message: &str| {
        let rules = json!([{"rule": rule, "messageExpression": message}]);
        let schema = json!({"type": "object", "properties": {
            "s": {"type": "string", "maxLength": 9, "x-kubernetes-validations": rules},
        }});
        let mut definition = object(json!({
            "metadata": {"name": "foos.example.com", "resourceVersion": "1"},
            "spec": {
                "group": "example.com", "scope": "Cluster", "names": {"plural": "foos", "kind": "Foo"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
            },
        }));
        crd::set_defaults(&mut definition);
        crd::prepare_create(&mut definition);
        definition
    };
    let plain = definition("true", "'a'");
    let before = RuleCompiler::compatible_with(29);
    for (known, function) in
        [(definition("isIP(self)", "'a'"), "isIP"), (definition("true", "string(ip('::1'))"), "ip")]
    {
        assert_eq!(crd::validate_create(&known, &RuleCompiler::compatible_with(30)), []);
        assert_eq!(crd::validate_update(&known, &known, &before), [], "it is stored");
        let errors = texts(&crd::validate_update(&known, &plain, &before));
        assert_eq!(errors, texts(&crd::validate_create(&known, &before)));
        let unknown = format!("undeclared reference to '{function}' (in container '')");
        assert!(errors.len() == 1 && errors[0].contains(&unknown), "{errors:#?}");
    }
}

fn thing(spec: &Value) -> Object {
    object(json!({
        "apiVersion": "rules.example.com/v2",
        "kind": "Thing",
        "metadata": {"name": "x", "uid": "1"},
        "spec": spec,
    }))
}

#[test]
fn objects_are_refused_as_upstream_refuses_them() {
    let mut differences = Differences::default();
    for case in lines(include_str!("upstream/objects.jsonl")) {
        let schema = Arc::new(Schema::compile(&root(&case)).expect("a good schema"));
        let rules = Rules::compile(&schema);
        for step in case["objects"].as_array().into_iter().flatten() {
            let new = thing(&step["new"]);
            let old = step.get("old").map(thing);
            let mut errors = match &old {
                None => schema.validate_create(&new, None),
                Some(old) => schema.validate_update(&new, old, None),
            };
            let found = rules.check(&new, old.as_ref(), &errors);
            errors.extend(found.errors);
            let told = json!({"schema": case["schema"], "new": step["new"], "old": step["old"]});
            differences.compare(&told, &texts(&errors), &expected(&step["errors"]));
            let warnings = sorted(found.warnings.iter().map(Error::to_string));
            differences.compare(&told, &warnings, &expected(&step["warnings"]));
        }
    }
    differences.none();
}
