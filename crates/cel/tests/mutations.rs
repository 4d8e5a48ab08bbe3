//! What the mutations of admission policies are made of.

use concord_cel::{
    Activation, Budget, Type, Val,
    admission::{Optional, apply_configuration, compile, environment, json_patch},
};
use serde_json::{Value, json};

/// The value of an expression as JSON, and what is misplaced in it; or why there is none.
fn evaluate(source: &str, expected: &Type) -> Result<(Value, Vec<String>), String> {
    let env = environment(Optional::default()).with_patch_types();
    let program = compile(&env, source, std::slice::from_ref(expected))?;
    let object = json!({"spec": {"replicas": 3, "image": "a/b"}, "metadata": {"labels": {"a": "b"}}});
    let activation = Activation::new().json("object", &object);
    let value = program.eval(&activation, &mut Budget::default()).map_err(|error| error.to_string())?;
    let misplaced = match &value {
        Val::Message(message) => message.misplaced(),
        _ => Vec::new(),
    };
    Ok((value.to_json().map_err(|error| error.to_string())?, misplaced))
}

fn applied(source: &str) -> Result<(Value, Vec<String>), String> {
    evaluate(source, &apply_configuration())
}

#[test]
fn configurations_are_made_of_parts() {
    for (source, expect) in [
        ("Object{}", json!({})),
        ("Object{spec: Object.spec{replicas: object.spec.replicas + 1}}", json!({"spec": {"replicas": 4}})),
        (
            "Object{metadata: Object.metadata{labels: object.metadata.labels, namespace: 'x'}}",
            json!({"metadata": {"labels": {"a": "b"}, "namespace": "x"}}),
        ),
        (
            "Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: 'a', args: ['x']}]}}",
            json!({"spec": {"initContainers": [{"name": "a", "args": ["x"]}]}}),
        ),
        ("Object{?spec: object.?missing, a: 1.5, b: 2.0, c: null}", json!({"a": 1.5, "b": 2, "c": null})),
        ("object.spec.replicas > 1 ? Object{a: true} : Object{}", json!({"a": true})),
        (
            "Object{a: Object.a{} == Object.a{}, b: dyn(Object.a{}) == dyn(Object.b{})}",
            json!({"a": true, "b": false}),
        ),
    ] {
        assert_eq!(applied(source), Ok((expect, Vec::new())), "{source}");
    }
}

#[test]
fn parts_are_named_after_where_they_are() {
    let (_, misplaced) =
        applied("Object{spec: Object.spec{selector: [Object.spec.wrong{}], other: {'a': Object{}}}}")
            .expect("a value");
    let told = |found: &str, expected: &str| {
        format!(
            "unexpected type name \"{found}\", expected \"{expected}\", which matches field name path from root Object type"
        )
    };
    assert_eq!(
        misplaced,
        [told("Object", "Object.spec.other"), told("Object.spec.wrong", "Object.spec.selector")]
    );
}

#[test]
fn patches_are_lists_of_operations() {
    let source = "[JSONPatch{op: 'test', path: '/spec/replicas', value: 3}, JSONPatch{op: 'copy', from: '/a', \
                  path: '/metadata/labels/' + jsonpatch.escapeKey('k8s.io/my~label')}, \
                  JSONPatch{op: 'add', path: '/x', value: Object.x{y: {'z': [1u]}}}]";
    let expect = json!([
        {"op": "test", "path": "/spec/replicas", "value": 3},
        {"op": "copy", "from": "/a", "path": "/metadata/labels/k8s.io~1my~0label"},
        {"op": "add", "path": "/x", "value": {"y": {"z": [1]}}},
    ]);
    assert_eq!(evaluate(source, &json_patch()), Ok((expect, Vec::new())));
}

#[test]
fn wrong_types_are_told() {
    for (source, of, expect) in [
        ("{}", apply_configuration(), "must evaluate to Object but got map(dyn, dyn)"),
        ("Object.spec{}", apply_configuration(), "must evaluate to Object but got Object.spec"),
        ("[Object{}]", json_patch(), "must evaluate to list(JSONPatch) but got list(Object)"),
        (
            "[JSONPatch{op: 1}]",
            json_patch(),
            "compilation failed: ERROR: <input>:1:14: expected type of field 'op' is 'string' but provided type is \
             'int'\n | [JSONPatch{op: 1}]\n | .............^",
        ),
        (
            "Unknown{}",
            apply_configuration(),
            "compilation failed: ERROR: <input>:1:8: undeclared reference to 'Unknown' (in container '')\n | \
             Unknown{}\n | .......^",
        ),
    ] {
        assert_eq!(evaluate(source, &of), Err(expect.to_owned()), "{source}");
    }
    let dynamic = evaluate("[JSONPatch{op: dyn(1)}]", &json_patch());
    assert_eq!(dynamic, Err("unexpected type int for JSONPatchType 'op' field".to_owned()));
}

#[test]
fn only_mutations_have_these_types() {
    let env = environment(Optional::default());
    for source in ["Object{}", "JSONPatch{}", "jsonpatch.escapeKey('a')"] {
        assert!(compile(&env, source, &[]).is_err(), "{source}");
    }
}

#[test]
fn a_message_costs_what_upstream_charges() {
    let env = environment(Optional::default()).with_patch_types();
    let program = compile(&env, "Object{spec: Object.spec{a: 1}}", &[]).expect("it compiles");
    let mut budget = Budget::default();
    let value = program.eval(&Activation::new(), &mut budget).expect("a value");
    assert!(matches!(&value, Val::Message(message) if message.get("spec").is_some()));
    assert_eq!(Budget::PER_OBJECT - budget.remaining(), 80);
}
