//! What holds for every schema and every object.

use concord_structural::{Malformed, Object, Schema, crd};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Names that schemas and objects share, so that they meet.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "kind", "metadata", "apiVersion", "spec"])
        .prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..12).prop_map(Value::from),
        (-2.0_f64..2.0).prop_map(Value::from),
        Just(json!(1e300)),
        Just(json!(i64::MAX)),
        prop::sample::select(vec!["", "a", "b", "true", "2014-12-15", "1.2.3.4"]).prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn object() -> impl Strategy<Value = Object> {
    prop::collection::btree_map(name(), value(), 0..5).prop_map(|map| map.into_iter().collect())
}

/// One keyword of a schema, sensible or not.
fn keyword() -> impl Strategy<Value = (String, Value)> {
    let text = |name: &'static str, values: Vec<&'static str>| {
        prop::sample::select(values).prop_map(move |value| (name.to_owned(), Value::from(value)))
    };
    let number =
        |name: &'static str| (-1_i64..5).prop_map(move |value| (name.to_owned(), Value::from(value)));
    let flag =
        |name: &'static str| any::<bool>().prop_map(move |value| (name.to_owned(), Value::from(value)));
    prop_oneof![
        text("type", vec!["object", "array", "string", "integer", "number", "boolean"]),
        text("type", vec!["object", "array"]),
        text("type", vec!["object"]),
        text("format", vec!["date", "ipv4", "int32", "float", "email", "uri", "duration", "hostname"]),
        text("pattern", vec!["^a", "[", "(a|b)+$"]),
        text("x-kubernetes-list-type", vec!["set", "map", "atomic"]),
        text("x-kubernetes-map-type", vec!["atomic", "granular"]),
        Just(("x-kubernetes-list-map-keys".to_owned(), json!(["a", "b"]))),
        Just(("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true))),
        Just(("required".to_owned(), json!(["a", "zz"]))),
        flag("nullable"),
        flag("x-kubernetes-embedded-resource"),
        flag("x-kubernetes-int-or-string"),
        flag("uniqueItems"),
        flag("exclusiveMinimum"),
        number("minimum"),
        number("maximum"),
        number("multipleOf"),
        number("minLength"),
        number("maxLength"),
        number("maxItems"),
        number("minProperties"),
        value().prop_map(|value| ("default".to_owned(), value)),
        prop::collection::vec(value(), 1..3).prop_map(|values| ("enum".to_owned(), Value::from(values))),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf =
        prop::collection::vec(keyword(), 0..5).prop_map(|words| Value::Object(words.into_iter().collect()));
    leaf.prop_recursive(4, 32, 4, |inner| {
        let member = prop_oneof![
            prop::collection::btree_map(name(), inner.clone(), 0..4)
                .prop_map(|map| ("properties".to_owned(), json!(map))),
            prop::collection::btree_map(name(), inner.clone(), 0..4)
                .prop_map(|map| ("properties".to_owned(), json!(map))),
            inner.clone().prop_map(|schema| ("items".to_owned(), schema)),
            inner.clone().prop_map(|schema| ("additionalProperties".to_owned(), schema)),
            any::<bool>().prop_map(|allows| ("additionalProperties".to_owned(), Value::from(allows))),
            prop::collection::vec(inner.clone(), 1..3)
                .prop_map(|schemas| ("anyOf".to_owned(), Value::from(schemas))),
            prop::collection::vec(inner.clone(), 1..3)
                .prop_map(|schemas| ("oneOf".to_owned(), Value::from(schemas))),
            prop::collection::vec(inner.clone(), 1..3)
                .prop_map(|schemas| ("allOf".to_owned(), Value::from(schemas))),
            inner.prop_map(|schema| ("not".to_owned(), schema)),
        ];
        let words = prop::collection::vec(keyword(), 0..4);
        (words, prop::collection::vec(member, 0..3))
            .prop_map(|(words, members)| Value::Object(words.into_iter().chain(members).collect()))
    })
}

fn definition(schema: &Value) -> Object {
    let definition = json!({
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let mut definition = definition.as_object().cloned().unwrap_or_default();
    crd::set_defaults(&mut definition);
    crd::prepare_create(&mut definition);
    definition
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn pruning_and_defaulting_twice_is_doing_it_once(schema in schema(), object in object()) {
        let schema = Schema::compile(&schema).expect("nothing unsupported");
        let mut once = object;
        schema.prune(&mut once);
        let mut twice = once.clone();
        prop_assert_eq!(schema.prune(&mut twice), Vec::<String>::new());
        prop_assert_eq!(&twice, &once);
        schema.prune_nulls(&mut once);
        schema.default(&mut once);
        let mut twice = once.clone();
        schema.default(&mut twice);
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn nothing_panics_and_errors_are_told_once(schema in schema(), object in object(), old in object()) {
        let schema = Schema::compile(&schema).expect("nothing unsupported");
        for before in [None, Some(&old)] {
            let errors = schema.validate(&object, before);
            let mut texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
            let all = texts.len();
            texts.sort();
            texts.dedup();
            prop_assert_eq!(texts.len(), all);
        }
        drop(schema.validate_create(&object, None));
        drop(schema.validate_update(&object, &old, None));
        drop(schema.validate_status_update(&object, &old, None));
        let mut shaped = object;
        drop(schema.shape(&mut shaped, Malformed::Dropped));
    }

    #[test]
    fn ratcheting_only_takes_errors_away(schema in schema(), object in object(), old in object()) {
        let schema = Schema::compile(&schema).expect("nothing unsupported");
        let all: Vec<_> = schema.validate(&object, None).iter().map(ToString::to_string).collect();
        for error in schema.validate(&object, Some(&old)) {
            prop_assert!(all.contains(&error.to_string()), "{error} is new");
        }
    }

    #[test]
    fn a_definition_that_is_accepted_stays_acceptable(schema in schema(), other in schema()) {
        let definition = definition(&schema);
        let errors = crd::validate_create(&definition, &crd::NoCel);
        let mut renewed = definition.clone();
        renewed["metadata"]["resourceVersion"] = "1".into();
        if errors.is_empty() {
            prop_assert_eq!(crd::validate_update(&renewed, &definition, &crd::NoCel), vec![]);
        }
        drop(crd::validate_update(&self::definition(&other), &definition, &crd::NoCel));
    }
}
