use serde_json::{Value, json};

use super::*;

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

/// The errors about `{"spec": value}` where spec has this schema.
fn errors(spec: &Value, value: &Value) -> Vec<String> {
    let schema = schema(spec);
    texts(&schema.validate(&object(json!({"spec": value})), None))
}

fn schema(spec: &Value) -> Schema {
    Schema::compile(&json!({"type": "object", "properties": {"spec": spec}})).expect("a schema")
}

fn texts(errors: &[Error]) -> Vec<String> {
    errors.iter().map(|error| format!("{} {error}", error.error_type.cause())).collect()
}

fn update(spec: &Value, new: &Value, old: &Value) -> Vec<String> {
    let schema = schema(spec);
    texts(&schema.validate(&object(json!({"spec": new})), Some(&object(json!({"spec": old})))))
}

#[test]
fn types_are_checked_in_upstreams_words() {
    let wrong = |expected: &str, found: &str| {
        vec![format!(
            "FieldValueTypeInvalid spec: Invalid value: \"{found}\": spec in body must be of type {expected}: \"{found}\""
        )]
    };
    let table = [
        (json!({"type": "integer"}), json!("x"), wrong("integer", "string")),
        (json!({"type": "string"}), json!(1), wrong("string", "integer")),
        (json!({"type": "string"}), json!(1.5), wrong("string", "number")),
        (json!({"type": "string"}), json!(null), wrong("string", "null")),
        (json!({"type": "boolean"}), json!({}), wrong("boolean", "object")),
        (json!({"type": "object"}), json!([]), wrong("object", "array")),
        (json!({"type": "array", "items": {}}), json!(true), wrong("array", "boolean")),
        (json!({"x-kubernetes-int-or-string": true}), json!(true), wrong("integer,string", "boolean")),
        // With a format, what is not a text is told by the format of its Go type.
        (json!({"type": "string", "format": "date"}), json!(1), wrong("date", "int64")),
        (json!({"type": "integer", "format": "int32"}), json!("x"), wrong("integer", "string")),
        (json!({"type": "integer", "format": "int32"}), json!(true), wrong("int32", "")),
    ];
    for (spec, value, expected) in table {
        assert_eq!(errors(&spec, &value), expected, "{spec} {value}");
    }
    let good = [
        (json!({"type": "integer"}), json!(1.0)),
        (json!({"type": "number"}), json!(1)),
        (json!({"type": "string", "nullable": true}), json!(null)),
        (json!({"x-kubernetes-int-or-string": true}), json!("5%")),
        (json!({"x-kubernetes-preserve-unknown-fields": true}), json!([null])),
        (json!({"type": "string", "format": "nonsense"}), json!("x")),
        // Upstream's oddity: a list passes for a text with a format.
        (json!({"type": "string", "format": "date"}), json!([1])),
    ];
    for (spec, value) in good {
        assert_eq!(errors(&spec, &value), Vec::<String>::new(), "{spec} {value}");
    }
}

#[test]
fn bounds_are_checked_in_upstreams_words() {
    let invalid = |rest: &str| vec![format!("FieldValueInvalid spec: Invalid value: {rest}")];
    let table = [
        (
            json!({"type": "integer", "minimum": 3}),
            json!(2),
            invalid("2: spec in body should be greater than or equal to 3"),
        ),
        (
            json!({"type": "integer", "minimum": 3, "exclusiveMinimum": true}),
            json!(3),
            invalid("3: spec in body should be greater than 3"),
        ),
        (
            json!({"type": "number", "maximum": 1.5}),
            json!(2.25),
            invalid("2.25: spec in body should be less than or equal to 1.5"),
        ),
        (
            json!({"type": "number", "maximum": 2, "exclusiveMaximum": true}),
            json!(2.0),
            invalid("2: spec in body should be less than 2"),
        ),
        (
            json!({"type": "integer", "multipleOf": 2}),
            json!(3),
            invalid("3: spec in body should be a multiple of 2"),
        ),
        (
            json!({"type": "number", "multipleOf": 0.5}),
            json!(0.75),
            invalid("0.75: spec in body should be a multiple of 0.5"),
        ),
        (
            json!({"type": "number", "multipleOf": -1}),
            json!(1),
            invalid("-1: factor MultipleOf declared for spec must be positive: -1"),
        ),
        (
            json!({"type": "string", "minLength": 2}),
            json!("é"),
            invalid("\"é\": spec in body should be at least 2 chars long"),
        ),
        (
            json!({"type": "string", "pattern": "^a+$"}),
            json!("b"),
            invalid("\"b\": spec in body should match '^a+$'"),
        ),
        (
            json!({"type": "string", "maxLength": 1}),
            json!("éa"),
            vec!["FieldValueTooLong spec: Too long: may not be more than 1 byte".to_owned()],
        ),
        (
            json!({"type": "string", "format": "ipv4"}),
            json!("x"),
            vec![
                "FieldValueTypeInvalid spec: Invalid value: \"x\": spec in body must be of type ipv4: \"x\""
                    .to_owned(),
            ],
        ),
        (
            json!({"type": "array", "items": {"type": "integer"}, "minItems": 1}),
            json!([]),
            invalid("0: spec in body should have at least 1 items"),
        ),
        (
            json!({"type": "array", "items": {"type": "integer"}, "maxItems": 1}),
            json!([1, 2]),
            vec!["FieldValueTooMany spec: Too many: 2: must have at most 1 item".to_owned()],
        ),
        (
            json!({"type": "object", "minProperties": 1}),
            json!({}),
            invalid("0: spec in body should have at least 1 properties"),
        ),
        (
            json!({"type": "object", "maxProperties": 0}),
            json!({"a": 1}),
            vec!["FieldValueTooMany spec: Too many: 1: must have at most 0 items".to_owned()],
        ),
        (
            json!({"type": "object", "additionalProperties": false}),
            json!({"a": 1}),
            invalid("\"a\": spec.a in body is a forbidden property"),
        ),
    ];
    for (spec, value, expected) in table {
        assert_eq!(errors(&spec, &value), expected, "{spec} {value}");
    }
}

#[test]
fn a_number_that_its_type_cannot_hold_is_told_without_a_place() {
    let found = errors(&json!({"type": "integer", "format": "int32"}), &json!(3_000_000_000_i64));
    let text = "Checked value must be of type integer with format int32 in spec";
    assert_eq!(found, [format!("FieldValueInvalid <nil>: Invalid value: \"\": {text}")]);
    let found = errors(&json!({"type": "integer"}), &json!(1.5));
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(
        found[1],
        "FieldValueInvalid <nil>: Invalid value: \"\": Checked value must be of type integer (default format) in spec"
    );
}

#[test]
fn enumerations_compare_as_go_converts() {
    let spec = json!({"enum": ["a", 1, 2.5, null, {"x": 1}], "x-kubernetes-preserve-unknown-fields": true});
    for good in [json!("a"), json!(1), json!(1.9), json!(2.5), json!({"x": 1}), json!(97)] {
        assert_eq!(errors(&spec, &good), Vec::<String>::new(), "{good}");
    }
    let values = r#"supported values: "a", "1", "2.5", "null", "{\"x\":1}""#;
    for (bad, shown) in [(json!("b"), "\"b\""), (json!(null), "null"), (json!({}), "{}"), (json!(2), "2")] {
        let expected = format!("FieldValueNotSupported spec: Unsupported value: {shown}: {values}");
        assert_eq!(errors(&spec, &bad), [expected]);
    }
}

#[test]
fn places_are_told_as_upstream_writes_them() {
    let spec = json!({
        "type": "object",
        "required": ["needed"],
        "properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
    });
    let found = errors(&spec, &json!({"list": [{}, {"n": "x"}], "map": {"k": "y"}}));
    let fields: Vec<_> = found.iter().map(|text| text.split(' ').nth(1).unwrap_or_default()).collect();
    assert_eq!(fields, ["spec.list[1].n:", "spec.map.k:", "spec.needed:"]);
    let root = Schema::compile(&json!({"type": "object", "required": ["spec"]})).expect("a schema");
    let found = texts(&root.validate(&Object::new(), None));
    assert_eq!(found, ["FieldValueRequired spec: Required value"]);
}

#[test]
fn junctors_show_the_branch_that_fits_best() {
    let composite = |text: &str| format!("FieldValueInvalid <nil>: Invalid value: \"\": \"spec\" {text}");
    let short = "FieldValueInvalid spec: Invalid value: \"b\": spec in body should be at least 3 chars long";
    let pattern = "FieldValueInvalid spec: Invalid value: \"b\": spec in body should match '^a'";
    let branches = json!([{"minLength": 3}, {"pattern": "^a"}]);
    let table = [
        (
            json!({"anyOf": branches}),
            vec![composite("must validate at least one schema (anyOf)"), short.to_owned()],
        ),
        (
            json!({"oneOf": branches}),
            vec![
                composite("must validate one and only one schema (oneOf). Found none valid"),
                short.to_owned(),
            ],
        ),
        (
            json!({"allOf": branches}),
            vec![
                short.to_owned(),
                pattern.to_owned(),
                composite("must validate all the schemas (allOf). None validated"),
            ],
        ),
        (
            json!({"allOf": [{"minLength": 3}, {}]}),
            vec![short.to_owned(), composite("must validate all the schemas (allOf)")],
        ),
        (json!({"not": {"minLength": 1}}), vec![composite("must not validate the schema (not)")]),
        (
            json!({"oneOf": [{"minLength": 1}, {"maxLength": 9}, {"pattern": "^a"}]}),
            vec![composite("must validate one and only one schema (oneOf). Found 2 valid alternatives")],
        ),
        (json!({"anyOf": [{"pattern": "^a"}, {"pattern": "^b"}]}), vec![]),
        (json!({"oneOf": [{"pattern": "^a"}, {"pattern": "^b"}], "not": {"pattern": "c"}}), vec![]),
    ];
    for (junctor, expected) in table {
        let mut spec = junctor.clone();
        spec["type"] = "string".into();
        assert_eq!(errors(&spec, &json!("b")), expected, "{junctor}");
    }
    // More checks apply to the second branch, so that its error is the one to show.
    let spec = json!({"type": "object", "anyOf": [
        {"required": ["x"]},
        {"properties": {"a": {"minLength": 1}, "b": {"minLength": 5}}},
    ], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let found = errors(&spec, &json!({"a": "long", "b": "b"}));
    assert!(found[1].contains("spec.b in body should be at least 5"), "{found:?}");
}

#[test]
fn an_error_is_told_once() {
    let spec =
        json!({"type": "string", "minLength": 2, "anyOf": [{"minLength": 2}], "allOf": [{"minLength": 2}]});
    let found = errors(&spec, &json!("b"));
    assert_eq!(found.iter().filter(|text| text.contains("at least 2 chars")).count(), 1, "{found:?}");
}

#[test]
fn what_an_update_leaves_alone_is_not_wrong() {
    let item = json!({"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer", "minimum": 5}}});
    let map = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item});
    let atomic = json!({"type": "array", "items": item});
    let spec = json!({
        "type": "object",
        "required": ["r"],
        "properties": {
            "map": map, "atomic": atomic, "n": {"type": "integer", "minimum": 5}, "s": {"type": "string"},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "minProperties": 5},
            "any": {"type": "string", "anyOf": [{"minLength": 5}, {"pattern": "^x"}]},
        },
    });
    let old = json!({
        "map": [{"k": "a", "n": 1}, {"k": "b", "n": 1}], "atomic": [{"k": "a", "n": 1}], "n": 1, "free": {"u": 1},
        "any": "bad", "r": 1,
    });
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut new = old.clone();
        change(&mut new);
        update(&spec, &new, &old)
    };
    // An object with fields that the schema does not know is never the same.
    let free =
        "FieldValueInvalid spec.free: Invalid value: 1: spec.free in body should have at least 5 properties";
    assert_eq!(changed(&|_| {}), [free]);
    let only_known = |change: &dyn Fn(&mut Value)| {
        changed(&|new| {
            change(new);
            new["free"] = json!({"a": 1, "b": 1, "c": 1, "d": 1, "e": 1});
        })
    };
    assert_eq!(only_known(&|_| {}), Vec::<String>::new());
    // Items of a list map correlate by key, in any order.
    assert_eq!(
        only_known(&|new| new["map"] = json!([{"k": "b", "n": 1}, {"k": "c", "n": 6}, {"k": "a", "n": 1}])),
        Vec::<String>::new()
    );
    let found = only_known(&|new| new["map"][1]["n"] = json!(2));
    assert_eq!(
        found,
        [
            "FieldValueInvalid spec.map[1].n: Invalid value: 2: spec.map[1].n in body should be greater than or equal to 5"
        ]
    );
    // Other lists are the same as a whole or not at all.
    let found = only_known(&|new| new["atomic"] = json!([{"k": "a", "n": 1}, {"k": "b", "n": 7}]));
    assert_eq!(found.len(), 1, "{found:?}");
    let found = only_known(&|new| new["any"] = json!("wro"));
    assert_eq!(found.len(), 2, "{found:?}");
    // What is missing still makes the object around it wrong when that changed.
    let found = only_known(&|new| drop(new.as_object_mut().map(|new| new.remove("r"))));
    assert_eq!(found, ["FieldValueRequired spec.r: Required value"]);
}

#[test]
fn what_an_object_is_called_never_counts_as_unchanged() {
    let schema = Schema::compile(
        &json!({"type": "object", "properties": {"kind": {"type": "string", "maxLength": 1}}}),
    );
    let schema = schema.expect("a schema");
    let new = object(json!({"kind": "Long", "metadata": {}}));
    assert_eq!(schema.validate(&new, Some(&new)).len(), 1);
}

#[test]
fn the_status_is_checked_alone() {
    let schema = Schema::compile(&json!({"type": "object", "required": ["spec"], "properties": {
        "status": {"type": "object", "required": ["a"], "properties": {"n": {"type": "integer"}}},
    }}));
    let schema = schema.expect("a schema");
    let found = texts(&schema.validate_status(&json!({"n": "x"}), None));
    assert_eq!(
        found,
        [
            "FieldValueTypeInvalid status.n: Invalid value: \"string\": n in body must be of type integer: \"string\"",
            "FieldValueRequired status.a: Required value",
        ]
    );
    assert_eq!(texts(&schema.validate_status(&json!({}), Some(&json!({})))), Vec::<String>::new());
}

#[test]
fn errors_have_a_bound_and_do_not_leak_out_of_junctors() {
    let items = json!({"type": "array", "items": {"type": "integer"}});
    let many: Vec<_> = (0..MAX_ERRORS + 50).map(|n| json!(n.to_string())).collect();
    assert_eq!(errors(&items, &json!(many)).len(), MAX_ERRORS);
    let spec = json!({"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true},
        "anyOf": [items, {"minItems": 1}]});
    assert_eq!(errors(&spec, &json!(many)), Vec::<String>::new());
}
