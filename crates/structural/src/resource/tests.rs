use serde_json::json;

use super::*;

fn object(value: &Value) -> Object {
    value.as_object().cloned().unwrap_or_default()
}

fn texts(errors: &[Error]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn an_object_must_be_what_it_is_sent_as() {
    let errors = validate_type(&object(&json!({"kind": "Bar", "apiVersion": "g/v2"})), "Foo", "g/v1");
    assert_eq!(
        texts(&errors),
        ["kind: Invalid value: \"Bar\": must be Foo", "apiVersion: Invalid value: \"g/v2\": must be g/v1",]
    );
}

#[test]
fn replicas_are_numbers_that_fit() {
    let scale = Scale {
        spec_replicas: ".spec.replicas".into(),
        status_replicas: ".status.replicas".into(),
        label_selector: Some(".status.selector".into()),
    };
    let table = [
        (json!({"spec": {"replicas": 1}}), vec![]),
        (json!({}), vec![]),
        (
            json!({"spec": {"replicas": -1}}),
            vec![".spec.replicas: Invalid value: -1: should be a non-negative integer"],
        ),
        (
            json!({"status": {"replicas": 2_147_483_648_i64}}),
            vec![".status.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647"],
        ),
        (
            json!({"spec": {"replicas": {"a": [1, null]}}, "status": 5}),
            vec![
                ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: map[a:[1 <nil>]] is of the type \
                 map[string]interface {}, expected int64",
                ".status.replicas: Invalid value: 0: .status.replicas accessor error: 5 is of the type int64, \
                 expected map[string]interface{}",
                ".status.selector: Invalid value: \"\": .status.selector accessor error: 5 is of the type int64, \
                 expected map[string]interface{}",
            ],
        ),
    ];
    for (value, expected) in table {
        assert_eq!(texts(&scale.validate(&object(&value))), expected, "{value}");
    }
}

#[test]
fn embedded_resources_have_a_type_and_good_metadata() {
    let schema = Schema::compile(&json!({"type": "object", "properties": {
        "raw": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
    }}));
    let schema = schema.expect("a schema");
    let errors = |raw: Value| texts(&schema.validate_embedded(&object(&json!({"raw": raw}))));
    assert_eq!(
        errors(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a b"}})),
        Vec::<String>::new()
    );
    assert_eq!(errors(json!({})), ["raw.apiVersion: Required value", "raw.kind: Required value"]);
    assert_eq!(
        errors(json!({"apiVersion": "a/b/c", "kind": "", "metadata": {"name": "a/b"}})),
        [
            "raw.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
            "raw.kind: Invalid value: \"\": must not be empty",
            "raw.metadata.name: Invalid value: \"a/b\": may not contain '/'",
        ]
    );
    assert!(
        errors(json!({"apiVersion": 1, "kind": "a_b"}))[1]
            .contains("may have mixed case, but should otherwise match")
    );
}

#[test]
fn items_that_occur_twice_are_told_once() {
    let schema = Schema::compile(&json!({"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"x-kubernetes-int-or-string": true}},
        "one": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object"}},
        "two": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "l"],
            "items": {"type": "object"}},
        "map": {"type": "object", "additionalProperties":
            {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}},
    }}));
    let schema = schema.expect("a schema");
    let errors = |value: Value| texts(&schema.validate_lists(&object(&value)));
    assert_eq!(errors(json!({"set": ["a", 1, "1", "a", "a"]})), ["set[3]: Duplicate value: \"a\""]);
    let one = json!({"one": [{"k": 1, "x": 1}, {"k": 2}, {"k": 1}, {}, null]});
    assert_eq!(errors(one), ["one[2]: Duplicate value: {\"k\":1}", "one[4]: Duplicate value: {}"]);
    let two = json!({"two": [{"k": 1}, {"k": 1, "l": 2}, {"l": 2, "k": 1}]});
    assert_eq!(errors(two), ["two[2]: Duplicate value: {\"k\":1,\"l\":2}"]);
    let strange = "one[0]: Invalid value: 5: must be an object for an array of list-type map";
    assert_eq!(errors(json!({"one": [5]})), [strange]);
    assert_eq!(errors(json!({"map": {"k": ["a", "a"]}})), ["map[k][1]: Duplicate value: \"a\""]);
}

#[test]
fn rules_wait_for_other_errors() {
    let path = Path::new("spec");
    let others = [
        Error::invalid(&path, "", ""),
        Error::duplicate(&path, ""),
        Error::forbidden(&path, ""),
        Error::not_found(&path, ""),
        Error::internal(&path, ""),
    ];
    assert_eq!(unchecked_rules(&others), None);
    let text = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; \
                correct the existing errors to complete validation";
    for error in [
        Error::not_supported(&path, "", &["a"]),
        Error::required(&path, ""),
        Error::too_long(&path, 1),
        Error::too_many(&path, 2, 1),
        Error::type_invalid(&path, "", ""),
    ] {
        let told = unchecked_rules(&[others[0].clone(), error.clone()]).map(|error| error.to_string());
        assert_eq!(told.as_deref(), Some(text), "{error}");
    }
}
