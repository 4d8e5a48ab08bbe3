//! JSON patch as clients of kube-apiserver know it.

use concord_merge::{JsonPatch, JsonPatchError, MAX_OPERATIONS};
use serde_json::{Value, json};

fn patch(object: Value, operations: &Value) -> Result<Value, JsonPatchError> {
    JsonPatch::decode(operations)?.apply(object)
}

#[test]
fn operations_change_the_object() {
    let cases = [
        (json!({"a": 1}), json!([{"op": "add", "path": "/b", "value": 2}]), json!({"a": 1, "b": 2})),
        (json!({"a": [1, 3]}), json!([{"op": "add", "path": "/a/1", "value": 2}]), json!({"a": [1, 2, 3]})),
        (json!({"a": [1]}), json!([{"op": "add", "path": "/a/-", "value": 2}]), json!({"a": [1, 2]})),
        (json!({"a": [1]}), json!([{"op": "add", "path": "/a/-1", "value": 2}]), json!({"a": [1, 2]})),
        (json!({"a": 1}), json!([{"op": "remove", "path": "/a"}]), json!({})),
        (json!({"a": [1, 2]}), json!([{"op": "remove", "path": "/a/-1"}]), json!({"a": [1]})),
        (json!({"a/b": {"~": 1}}), json!([{"op": "remove", "path": "/a~1b/~0"}]), json!({"a/b": {}})),
        (json!({"a": 1}), json!([{"op": "replace", "path": "/a", "value": null}]), json!({"a": null})),
        (json!({}), json!([{"op": "replace", "path": "/a", "value": 1}]), json!({"a": 1})),
        (json!({"a": 1}), json!([{"op": "replace", "path": "", "value": {"b": 1}}]), json!({"b": 1})),
        (
            json!({"a": {"b": 1}}),
            json!([{"op": "move", "from": "/a/b", "path": "/c"}]),
            json!({"a": {}, "c": 1}),
        ),
        (
            json!({"a": {"b": 1}}),
            json!([{"op": "copy", "from": "/a", "path": "/c"}]),
            json!({"a": {"b": 1}, "c": {"b": 1}}),
        ),
        (json!({"a": 1}), json!([{"op": "test", "path": "/a", "value": 1}]), json!({"a": 1})),
        (json!({}), json!([{"op": "test", "path": "/a", "value": null}]), json!({})),
        (json!({"a": 1}), json!([{"op": "test", "path": "", "value": {"a": 1}}]), json!({"a": 1})),
        (json!({"a": 1}), json!([]), json!({"a": 1})),
    ];
    for (object, operations, expected) in cases {
        assert_eq!(patch(object, &operations).expect("it applies"), expected, "{operations}");
    }
}

#[test]
fn what_does_not_apply_is_refused_without_a_reason() {
    let cases = [
        json!([{"op": "remove", "path": "/b"}]),
        json!([{"op": "remove", "path": "/list/5"}]),
        json!([{"op": "remove", "path": "/list/-4"}]),
        json!([{"op": "add", "path": "/list/4", "value": 1}]),
        json!([{"op": "add", "path": "/list/x", "value": 1}]),
        json!([{"op": "add", "path": "/b/c", "value": 1}]),
        json!([{"op": "add", "path": "/a/c", "value": 1}]),
        json!([{"op": "add", "path": "", "value": {}}]),
        json!([{"op": "add", "value": {}}]),
        json!([{"op": "replace", "path": "/list/3", "value": 1}]),
        json!([{"op": "replace", "path": "", "value": 1}]),
        json!([{"op": "move", "from": "/b", "path": "/c"}]),
        json!([{"op": "move", "path": "/c"}]),
        json!([{"op": "copy", "from": "/b/c", "path": "/c"}]),
        json!([{"op": "test", "path": "/a", "value": 2}]),
        json!([{"op": "test", "path": "/a", "value": null}]),
        json!([{"op": "frobnicate", "path": "/a"}]),
        json!([{}]),
        json!([null]),
    ];
    for operations in cases {
        let error = patch(json!({"a": 1, "list": [1, 2, 3]}), &operations).expect_err("it does not apply");
        assert_eq!(error.answer().code(), 422, "{operations}");
        assert_eq!(error.answer().reason(), Some("Invalid"));
        assert_eq!(error.message(), "the server rejected our request due to an error in our request");
    }
}

#[test]
fn what_is_no_patch_is_a_bad_request() {
    let cases = [
        (json!({}), "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        (json!([1]), "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        (
            json!([{"op": 1}]),
            "json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
        ),
        (
            json!([{"path": []}]),
            "json: cannot unmarshal array into Go struct field jsonPatchOp.path of type string",
        ),
    ];
    for (operations, expected) in cases {
        let error = patch(json!({}), &operations).expect_err("no patch");
        assert_eq!(error.answer().code(), 400);
        assert_eq!(error.message(), format!("error decoding patch: {expected}"));
    }
}

#[test]
fn the_number_of_operations_is_limited() {
    let operations = |count| Value::Array(vec![json!({"op": "test", "path": "/a", "value": null}); count]);
    assert_eq!(patch(json!({}), &operations(MAX_OPERATIONS)), Ok(json!({})));
    let error = patch(json!({}), &operations(20_000)).expect_err("too many");
    assert_eq!(error.answer().code(), 413);
    let expected =
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 20000";
    assert_eq!(error.message(), expected);
}

#[test]
fn copies_cannot_blow_up_an_object() {
    let copy = json!({"op": "copy", "from": "/a", "path": "/a/-"});
    let doubling = Value::Array(vec![copy; 64]);
    let error = patch(json!({"a": ["x".repeat(100)]}), &doubling).expect_err("too much");
    assert_eq!(error.answer().code(), 422);
}

#[test]
fn an_object_cannot_become_too_deep() {
    let mut deepen = vec![json!({"op": "add", "path": "/a", "value": {}})];
    let mut path = "/a".to_owned();
    for _ in 0..200 {
        path.push_str("/a");
        deepen.push(json!({"op": "add", "path": path, "value": {}}));
    }
    let error = patch(json!({}), &Value::Array(deepen)).expect_err("too deep");
    assert_eq!(error.answer().code(), 422);

    let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!({"a": inner}));
    let under = format!("{}/b", "/a".repeat(100));
    let operations = json!([{"op": "move", "from": "/b", "path": under}]);
    let object = |depth| {
        let mut object = nested(101);
        object.as_object_mut().expect("an object").insert("b".to_owned(), nested(depth));
        object
    };
    assert!(patch(object(20), &operations).is_ok());
    assert!(patch(object(60), &operations).is_err());
}

#[test]
fn null_is_a_patch_without_operations() {
    let patch = JsonPatch::decode(&Value::Null).expect("no operations");
    assert_eq!(patch.apply(json!({"a": 1})), Ok(json!({"a": 1})));
}
