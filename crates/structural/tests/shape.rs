//! What a schema makes of an object before it is looked at: in which order, and what is forgiven what was stored.

use concord_structural::{Malformed, Object, Schema};
use serde_json::{Value, json};

fn object(value: &Value) -> Object {
    value.as_object().cloned().expect("an object")
}

fn schema(spec: &Value) -> Schema {
    Schema::compile(&json!({"type": "object", "properties": {"spec": spec}})).expect("a schema")
}

/// What is left of a value of `spec`.
fn shaped(schema: &Schema, spec: &Value) -> Value {
    let mut shaped = object(&json!({ "spec": spec }));
    schema.shape(&mut shaped, Malformed::Refused).expect("no metadata");
    shaped["spec"].clone()
}

#[test]
fn what_is_unknown_goes_then_nulls_and_then_defaults_come() {
    let inner = json!({"type": "object", "properties": {"c": {"type": "integer", "default": 7}}});
    let with_default = |mut schema: Value, default: Value| {
        schema["default"] = default;
        schema
    };
    let text = with_default(json!({"type": "string"}), json!("d"));
    let table = [
        // A default is gone into; an absent parent is not made.
        (with_default(inner.clone(), json!({})), json!({}), json!({"f": {"c": 7}})),
        (inner.clone(), json!({}), json!({})),
        (inner.clone(), json!({"f": {}}), json!({"f": {"c": 7}})),
        // A null is replaced where there is a default, goes where it may not be, and stays where it may.
        (text.clone(), json!({"f": null}), json!({"f": "d"})),
        (json!({"type": "string"}), json!({"f": null}), json!({})),
        (json!({"type": "string", "nullable": true, "default": "d"}), json!({"f": null}), json!({"f": null})),
        // In maps as members do; in lists nothing goes.
        (
            json!({"type": "object", "additionalProperties": text}),
            json!({"f": {"k": null}}),
            json!({"f": {"k": "d"}}),
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"f": {"k": null}}),
            json!({"f": {}}),
        ),
        (json!({"type": "array", "items": text}), json!({"f": [null, "x"]}), json!({"f": ["d", "x"]})),
        (json!({"type": "array", "items": {"type": "string"}}), json!({"f": [null]}), json!({"f": [null]})),
        (
            json!({"type": "array", "items": with_default(inner, json!({}))}),
            json!({"f": [null, {"zz": 1}]}),
            json!({"f": [{"c": 7}, {"c": 7}]}),
        ),
    ];
    for (field, given, left) in table {
        let schema = schema(&json!({"type": "object", "properties": {"f": field}}));
        assert_eq!(shaped(&schema, &given), left, "{field} of {given}");
        assert_eq!(shaped(&schema, &left), left, "twice is once");
    }
}

#[test]
fn what_was_stored_with_malformed_metadata_loses_that_alone() {
    let raw = json!({
        "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
    });
    let schema = schema(&raw);
    let bad = json!({"name": "x", "labels": {"a": 1}, "annotations": {"b": "c"}, "generation": "no"});
    let left = json!({"name": "x", "annotations": {"b": "c"}});
    let stored = json!({"metadata": bad, "spec": {"apiVersion": 5, "kind": "Pod", "metadata": bad, "a": 1}});

    let mut read = object(&stored);
    schema.shape(&mut read, Malformed::Dropped).expect("it can be read");
    assert_eq!(
        Value::Object(read),
        json!({"metadata": left, "spec": {"kind": "Pod", "metadata": left, "a": 1}})
    );

    let refused = |object: &Value| {
        let mut object = object.as_object().cloned().expect("an object");
        schema.shape(&mut object, Malformed::Refused).expect_err("refused").to_string()
    };
    let mismatch = "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string";
    let own = refused(&json!({"metadata": {"labels": {"a": 1}}}));
    assert!(own.contains("cannot unmarshal number"), "{own}");
    let embedded =
        refused(&json!({"spec": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}}}));
    assert_eq!(embedded, format!("spec.metadata: Invalid value: {{\"labels\":{{\"a\":1}}}}: {mismatch}"));
}
