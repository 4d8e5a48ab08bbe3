//! What rules never do: be lost, be repeated without end, or belong to one thread.

use std::sync::Arc;

use concord_rules::Rules;
use concord_structural::{MAX_ERRORS, Object, Schema};
use serde_json::{Value, json};

fn rules(spec: &Value) -> Rules {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    Rules::compile(&Arc::new(Schema::compile(&schema).expect("a good schema")))
}

fn object(spec: Value) -> Object {
    Object::from_iter([("spec".to_owned(), spec)])
}

fn texts(rules: &Rules, new: Value, old: Option<Value>) -> Vec<String> {
    let errors = rules.validate(&object(new), old.map(object).as_ref(), &[]);
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn rules_are_shared_by_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Rules>();
}

#[test]
fn a_schema_without_rules_has_none() {
    let none = rules(&json!({"type": "object", "properties": {"a": {"type": "integer"}}}));
    assert!(none.is_empty());
    assert_eq!(texts(&none, json!({"a": 1}), None), Vec::<String>::new());
}

#[test]
fn a_rule_that_cannot_be_compiled_fails_where_its_field_is() {
    let bad = rules(&json!({"type": "object", "properties": {
        "a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self"}, {"rule": "self > 3"}]},
        "l": {"type": "array", "items": {
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-validations": [{"rule": "true"}],
        }},
    }}));
    let compile =
        r#"spec.a: Invalid value: "integer": rule compile error: cel expression must evaluate to a bool"#;
    assert_eq!(texts(&bad, json!({"a": 5}), None), [compile]);
    assert_eq!(
        texts(&bad, json!({"a": 1}), Some(json!({"a": 1}))),
        [compile],
        "a rule that cannot be evaluated is not excused, one that does not hold is"
    );
    assert_eq!(texts(&bad, json!({"l": []}), None), Vec::<String>::new());
    assert_eq!(
        texts(&bad, json!({"l": [1]}), None),
        Vec::<String>::new(),
        "expressions cannot see such a list"
    );
}

#[test]
fn errors_and_warnings_have_an_end() {
    let small = rules(&json!({"type": "array", "items": {
        "type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}],
    }}));
    let many = object(json!(vec![0; MAX_ERRORS + 50]));
    let found = small.check(&many, None, &[]);
    assert_eq!((found.errors.len(), found.warnings.len()), (MAX_ERRORS, 0));
    let found = small.check(&many, Some(&many), &[]);
    assert_eq!((found.errors.len(), found.warnings.len()), (0, MAX_ERRORS));
}
