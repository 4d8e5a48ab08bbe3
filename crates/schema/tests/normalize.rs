//! Objects in, objects or Go's words out.

mod support;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use support::{object, thing};

fn normal(value: Value) -> Value {
    let mut object = object(value);
    thing().normalize(&mut object).expect("it fits");
    Value::Object(object)
}

fn with_spec(spec: Value) -> Map<String, Value> {
    Map::from_iter([("spec".to_owned(), spec)])
}

/// What the spec of a thing becomes.
fn check(spec: Value, expect: Value) {
    let mut complete =
        json!({"at": null, "divisor": "0", "target": 0, "raw": null, "rules": null, "secret": null});
    complete.as_object_mut().expect("an object").extend(object(expect));
    assert_eq!(normal(Value::Object(with_spec(spec)))["spec"], complete);
}

fn refused(spec: Value, expect: &str) {
    let error = thing().normalize(&mut with_spec(spec)).expect_err("it does not fit");
    assert_eq!(error.to_string(), expect);
}

#[test]
fn an_empty_object_gets_what_is_always_written() {
    let expect = json!({
        "kind": "Thing", "apiVersion": "v1", "metadata": {},
        "spec": {"at": null, "divisor": "0", "target": 0, "raw": null, "rules": null, "secret": null},
    });
    assert_eq!(thing().empty("Thing", "v1"), expect);
    assert_eq!(normal(json!({"kind": "Thing", "apiVersion": "v1"})), expect);
}

#[test]
fn zeros_nulls_and_unknown_fields_go() {
    check(json!({"replicas": 0, "weight": 0.0}), json!({"replicas": 0, "weight": 0.0}));
    check(json!({"replicas": null, "count": 0, "on": false, "ports": [], "amounts": {}}), json!({}));
    check(json!({"unknown": {"a": 1}, "Replicas": 3}), json!({}));
    check(json!({"rules": []}), json!({}));
    check(json!({"rules": [null, "a"]}), json!({"rules": ["", "a"]}));
    check(json!({"ports": [null, {"port": 1, "x": 1}]}), json!({"ports": [{"port": 0}, {"port": 1}]}));
    check(json!({"raw": {"a": null, "b": 0}}), json!({"raw": {"a": null, "b": 0}}));
    let meta = normal(json!({"metadata": {"creationTimestamp": null, "labels": {"a": null}}}));
    assert_eq!(meta["metadata"], json!({"labels": {"a": ""}}));
}

#[test]
fn empty_lists_stay_where_they_are_kept() {
    let given = object(json!({"spec": {"rules": [], "data": {"a": null}}}));
    let mut kept = given.clone();
    thing().keeping_empty_lists().normalize(&mut kept).expect("it fits");
    assert_eq!((&kept["spec"]["rules"], &kept["spec"]["data"]), (&json!([]), &json!({"a": null})));
    let mut lost = given;
    thing().normalize(&mut lost).expect("it fits");
    assert_eq!((&lost["spec"]["rules"], &lost["spec"]["data"]), (&Value::Null, &json!({"a": ""})));
}

#[test]
fn values_are_written_as_go_writes_them() {
    check(
        json!({"amounts": {"cpu": 1, "memory": "1.5Gi", "x": null}}),
        json!({"amounts": {"cpu": "1", "memory": "1536Mi", "x": "0"}}),
    );
    check(json!({"at": "2026-11-15T23:46:35.5+01:00"}), json!({"at": "2026-11-15T22:46:35Z"}));
    check(
        json!({"atMicro": "2026-11-15T23:46:35.000000Z"}),
        json!({"atMicro": "2026-11-15T23:46:35.000000Z"}),
    );
    check(json!({"data": {"a": "YQ\n=="}}), json!({"data": {"a": "YQ=="}}));
    check(json!({"data": {"a": [97, null]}}), json!({"data": {"a": "YQA="}}));
    check(json!({"target": "http"}), json!({"target": "http"}));
    check(
        json!({"props": {"additional": false, "more": {"type": "", "additional": {"x": 1}}}}),
        json!({"props": {"additional": false, "more": {"additional": {}}}}),
    );
}

#[test]
fn wrong_kinds_are_refused_in_gos_words() {
    let field = |found: &str, field: &str, ty: &str| {
        format!("json: cannot unmarshal {found} into Go struct field {field} of type {ty}")
    };
    refused(json!({"replicas": "3"}), &field("string", "ThingSpec.spec.replicas", "int32"));
    refused(
        json!({"replicas": 3_000_000_000_u64}),
        &field("number 3000000000", "ThingSpec.spec.replicas", "int32"),
    );
    refused(json!({"replicas": 1.5}), &field("number 1.5", "ThingSpec.spec.replicas", "int32"));
    refused(json!({"count": 1e20}), &field("number 100000000000000000000", "ThingSpec.spec.count", "int64"));
    refused(json!({"on": 1}), &field("number", "ThingSpec.spec.on", "bool"));
    refused(json!({"data": ["a"]}), &field("array", "ThingSpec.spec.data", "map[string][]uint8"));
    refused(json!({"ports": {}}), &field("object", "ThingSpec.spec.ports", "[]v1.ThingPort"));
    refused(
        json!({"ports": [{"protocol": 1}]}),
        &field("number", "ThingPort.spec.ports.protocol", "v1.Protocol"),
    );
    refused(json!({"ports": [true]}), &field("bool", "ThingSpec.spec.ports", "v1.ThingPort"));
    refused(json!({"secret": true}), &field("bool", "ThingSpec.spec.ThingSource.secret", "string"));
    refused(json!({"at": 5}), &field("number", "ThingSpec.spec.at", "string"));
    refused(json!({"data": {"a": [1, 300]}}), &field("number 300", "ThingSpec.spec.data", "uint8"));
    refused(json!({"target": true}), &field("bool", "ThingSpec.spec.target", "int32"));
    refused(json!({"target": 1e10}), &field("number 10000000000.0", "ThingSpec.spec.target", "int32"));
    refused(json!({"props": {"additional": 1}}), "boolean or JSON schema expected");
    let inner = json!({"props": {"additional": {"more": {"type": 1}}}});
    refused(inner, &field("number", "Props.spec.props.additional.more.type", "string"));
}

#[test]
fn bad_texts_are_refused_in_gos_words() {
    refused(json!({"data": {"a": "!"}}), "illegal base64 data at input byte 0");
    refused(
        json!({"divisor": "x"}),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    );
    refused(
        json!({"at": "x"}),
        "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"",
    );
}

#[test]
fn a_bad_time_wins_over_a_wrong_kind() {
    let both = json!({"atMicro": "x", "amounts": [], "replicas": "x"});
    refused(
        both,
        "parsing time \"x\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"x\" as \"2006\"",
    );
}

#[test]
fn what_patches_put_together_is_refused_in_other_words() {
    for (spec, expect) in [
        (json!({"replicas": "x"}), "unrecognized type: int32"),
        (json!({"replicas": 1.5}), "cannot convert float64 to int32"),
        (json!({"on": 1}), "unrecognized type: bool"),
        (json!({"secret": 1}), "cannot convert int64 to string"),
        (json!({"secret": 1.5}), "unrecognized type: string"),
        (json!({"ports": [{"protocol": 1}]}), "cannot convert int64 to v1.Protocol"),
        (json!({"ports": [1]}), "cannot restore struct from: int64"),
        (json!({"ports": "x"}), "cannot restore slice from string"),
        (json!({"amounts": []}), "cannot restore map from slice"),
        (json!({"data": {"a": "!"}}), "error decoding from json: illegal base64 data at input byte 0"),
        (json!({"data": {"a": 1}}), "cannot restore slice from int64"),
        (json!({"target": true}), "json: cannot unmarshal bool into Go value of type int32"),
    ] {
        let error = thing().normalize_unstructured(&mut with_spec(spec)).expect_err("it does not fit");
        assert_eq!(error.to_string(), expect);
    }
    let mut numbers = with_spec(json!({"replicas": 99_999_999_999_i64, "count": 3.0, "x": 1}));
    let unknown = thing().normalize_unstructured(&mut numbers).expect("it fits");
    assert_eq!((&numbers["spec"]["replicas"], &numbers["spec"]["count"]), (&json!(1_215_752_191), &json!(3)));
    assert_eq!(unknown[0].to_string(), "unknown field \"spec.x\"");
}

#[test]
fn dropped_fields_are_told_on_request() {
    let mut object =
        object(json!({"spec": {"ports": [{"port": 1}, {"port": 2, "x": 1}], "y": {"z": 1}}, "a": 1}));
    let unknown = thing().normalize_strict(&mut object).expect("it fits");
    let told: Vec<_> = unknown.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["unknown field \"a\"", "unknown field \"spec.ports[1].x\"", "unknown field \"spec.y\""]
    );
}

#[test]
fn what_nests_too_deep_is_refused() {
    let nested = |levels: usize| (0..levels).fold(json!({}), |props, _| json!({"more": props}));
    // The object and its spec are levels too.
    check(json!({"props": nested(497)}), json!({"props": nested(497)}));
    refused(json!({"props": nested(498)}), "exceeded max depth");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..3_i64).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "(|[a-z]{1,3}|[0-9]{1,3}(Mi|m)?|YQ==|2026-11-15T23:46:35Z)".prop_map(Value::from),
    ];
    let name = "(metadata|spec|labels|name|replicas|on|at|divisor|amounts|target|raw|ports|port|rules|data|props|more|additional)";
    leaf.prop_recursive(5, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn normal_objects_stay_as_they_are(value in any_json()) {
        let schema = thing();
        let mut object = object(json!({"spec": value.clone(), "metadata": value}));
        if schema.normalize(&mut object).is_ok() {
            let once = object.clone();
            let unknown = schema.normalize_strict(&mut object);
            prop_assert_eq!(unknown, Ok(Vec::new()));
            prop_assert_eq!(object, once);
        }
    }
}
