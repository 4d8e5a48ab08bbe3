use serde_json::json;

use super::*;

/// Prunes `{"spec": value}` where spec has this schema, and answers what is left and what was unknown.
fn pruned(spec: &Value, value: Value) -> (Value, Vec<String>) {
    let schema = Schema::compile(&json!({"type": "object", "properties": {"spec": spec}})).expect("a schema");
    let mut object = Object::from_iter([("spec".to_owned(), value)]);
    let unknown = schema.prune(&mut object);
    (object["spec"].take(), unknown)
}

#[test]
fn unknown_fields_go_and_are_told() {
    let known = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let table = [
        (known.clone(), json!({"a": 1, "b": {"c": 1}}), json!({"a": 1}), vec!["spec.b"]),
        (
            json!({"type": "array", "items": known}),
            json!([{"a": 1}, {"x": 1, "b": 2}]),
            json!([{"a": 1}, {}]),
            vec!["spec[1].b", "spec[1].x"],
        ),
        (
            json!({"type": "object", "additionalProperties": known}),
            json!({"k": {"a": 1, "b": 1}}),
            json!({"k": {"a": 1}}),
            vec!["spec.k.b"],
        ),
        // Of what may be anything, objects lose all.
        (
            json!({"type": "object", "additionalProperties": true}),
            json!({"k": {"a": 1}, "s": 1, "l": [[{"z": 1}]]}),
            json!({"k": {}, "s": 1, "l": [[{}]]}),
            vec!["spec.k.a", "spec.l[0][0].z"],
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"in": known}}),
            json!({"u": {"v": 1}, "in": {"b": 1}}),
            json!({"u": {"v": 1}, "in": {}}),
            vec!["spec.in.b"],
        ),
        (
            json!({"x-kubernetes-preserve-unknown-fields": true, "type": "array", "items": known}),
            json!([{"b": 1}]),
            json!([{"b": 1}]),
            vec![],
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": known}}),
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"x": 1}, "spec": {"b": 1}, "u": 1}),
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"x": 1}, "spec": {}}),
            vec!["spec.spec.b", "spec.u"],
        ),
    ];
    for (spec, value, left, unknown) in table {
        let unknown: Vec<_> = unknown.into_iter().map(str::to_owned).collect();
        assert_eq!(pruned(&spec, value), (left, unknown), "{spec}");
    }
}

#[test]
fn the_root_keeps_what_every_object_has() {
    let schema = Schema::compile(&json!({"type": "object"})).expect("a schema");
    let object = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x"}, "spec": 1});
    let Value::Object(mut object) = object else { panic!("an object") };
    assert_eq!(schema.prune(&mut object), ["spec"]);
    assert_eq!(object.len(), 3);
}

#[test]
fn nulls_go_where_they_can_neither_stay_nor_be_replaced() {
    let schema = Schema::compile(&json!({"type": "object", "properties": {
        "plain": {"type": "string"}, "nullable": {"type": "string", "nullable": true},
        "default": {"type": "string", "default": "d"},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "list": {"type": "array", "items": {"type": "string"}},
    }}));
    let schema = schema.expect("a schema");
    let object = json!({"plain": null, "nullable": null, "default": null, "map": {"a": null}, "list": [null], "u": null});
    let Value::Object(mut object) = object else { panic!("an object") };
    schema.prune_nulls(&mut object);
    let left = json!({"nullable": null, "default": null, "map": {}, "list": [null], "u": null});
    assert_eq!(Value::Object(object.clone()), left);
    schema.default(&mut object);
    assert_eq!(object["default"], "d");
}

#[test]
fn a_definition_may_ask_that_nothing_is_pruned() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
    let schema = Schema::compile(&schema).expect("a schema").preserving_unknown_fields();
    let object = json!({"spec": {"a": {"b": 1}}, "x": 2});
    let mut kept = object.as_object().expect("an object").clone();
    assert_eq!(schema.prune(&mut kept), Vec::<String>::new());
    assert_eq!(Value::Object(kept), object);
}
