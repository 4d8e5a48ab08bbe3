//! Whatever a schema, its rules and an object are: there is an answer, and it comes in time.

use std::sync::Arc;

use concord_rules::{RuleCompiler, Rules};
use concord_structural::{Object, Schema, crd};
use proptest::prelude::*;
use serde_json::{Value, json};

const RULES: &[&str] = &[
    "self == oldSelf",
    "self > 1",
    "size(self) < 3",
    "self.all(x, x == x)",
    "self.a == self.b",
    "oldSelf.hasValue()",
    "self.matches('a+')",
    "has(self.a) && self.a > 1/0",
    "self[0] == self['a']",
    "",
    "self +",
    "type(self) == int",
];

fn rule() -> impl Strategy<Value = Value> {
    let text =
        prop_oneof![proptest::sample::select(RULES).prop_map(str::to_owned), "[self.()<>=a-c0-2' ]{0,12}"];
    let path = prop_oneof![Just(String::new()), "[.\\[\\]'\\\\ab]{0,8}"];
    let message =
        proptest::sample::select(&["", "'a'", "string(self)", "string(oldSelf)", "oldSelf.orValue('b')"][..]);
    (text, path, message, any::<Option<bool>>()).prop_map(|(rule, path, message, optional)| {
        json!({"rule": rule, "fieldPath": path, "messageExpression": message, "optionalOldSelf": optional})
    })
}

fn schema() -> impl Strategy<Value = Value> {
    let kinds = proptest::sample::select(&["string", "integer", "number", "boolean", ""][..]);
    let scalar = (kinds, proptest::collection::vec(rule(), 0..2))
        .prop_map(|(kind, rules)| json!({"type": kind, "x-kubernetes-validations": rules}));
    scalar.prop_recursive(3, 16, 3, |inner| {
        let lists = proptest::sample::select(&["atomic", "set", "map"][..]);
        (inner.clone(), inner, proptest::collection::vec(rule(), 0..3), lists, 0..3).prop_map(
            |(a, b, rules, list, shape)| match shape {
                0 => json!({
                    "type": "array", "items": a, "x-kubernetes-validations": rules,
                    "x-kubernetes-list-type": list, "x-kubernetes-list-map-keys": ["a"],
                }),
                1 => json!({"type": "object", "additionalProperties": a, "x-kubernetes-validations": rules}),
                _ => json!({"type": "object", "properties": {"a": a, "b": b}, "x-kubernetes-validations": rules}),
            },
        )
    })
}

fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..4).prop_map(Value::from),
        Just(json!(1.5)),
        "[ab]{0,3}".prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 24, 3, |inner| {
        let member = proptest::sample::select(&["a", "b", "c"][..]).prop_map(str::to_owned);
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(member, inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn around(value: Value) -> Object {
    Object::from_iter([("spec".to_owned(), value)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn there_is_always_an_answer(schema in schema(), new in value(), old in proptest::option::of(value())) {
        let root = json!({"type": "object", "properties": {"spec": schema}});
        let compiled = Arc::new(Schema::compile(&root).expect("compiles"));
        let rules = Rules::compile(&compiled);
        prop_assert_eq!(rules.is_empty(), !compiled.has_rules());
        let (new, old) = (around(new), old.map(around));
        let found = rules.check(&new, old.as_ref(), &[]);
        prop_assert!(old.is_some() || found.warnings.is_empty(), "only an update is excused");
        prop_assert_eq!(rules.validate(&new, old.as_ref(), &[]), found.errors);
    }

    #[test]
    fn definitions_always_get_an_answer(schema in schema(), default in value()) {
        let mut schema = schema;
        schema["default"] = default;
        let root = json!({"type": "object", "properties": {"spec": schema}});
        let definition = json!({"spec": {"versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": root}},
        ]}});
        let mut definition = definition.as_object().cloned().unwrap_or_default();
        crd::set_defaults(&mut definition);
        let errors = crd::validate_create(&definition, &RuleCompiler::compatible_with(35));
        prop_assert!(!errors.is_empty(), "it has no name");
    }
}
