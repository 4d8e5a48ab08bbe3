//! FieldsV1 and the algebra of sets.

use concord_merge::fields::{FieldSet, Path, PathElement};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn sets_are_read_and_written() {
    let fields = json!({
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        "f:spec": {
            "f:ports": {
                "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
                "k:{\"port\":443,\"protocol\":\"TCP\"}": {},
            },
            "f:tags": {"v:\"a\"": {}, "i:3": {}},
        },
    });
    let set = FieldSet::decode(&fields).expect("FieldsV1");
    assert_eq!(set.to_value(), fields);
    let printed: Vec<String> = set.paths().iter().map(ToString::to_string).collect();
    let expected = [
        ".metadata.labels",
        ".metadata.labels.app",
        ".spec.ports[port=80,protocol=\"TCP\"]",
        ".spec.ports[port=443,protocol=\"TCP\"]",
        ".spec.ports[port=80,protocol=\"TCP\"].port",
        ".spec.tags[=\"a\"]",
        ".spec.tags[3]",
    ];
    assert_eq!(printed, expected);
}

#[test]
fn the_text_has_upstreams_order_and_escapes() {
    let keys = [json!(443), json!(80), json!("<"), json!(1.0)];
    let set: FieldSet =
        keys.iter().map(|key| Path(vec![PathElement::key(vec![("p".to_owned(), key.clone())])])).collect();
    let expected = r#"{"k:{\"p\":1}":{},"k:{\"p\":80}":{},"k:{\"p\":443}":{},"k:{\"p\":\"\\u003c\"}":{}}"#;
    assert_eq!(set.to_json(), expected);
}

#[test]
fn what_a_later_release_may_write_is_skipped_and_nonsense_refused() {
    let set = FieldSet::decode(&json!({"z:new": {"f:a": {}}, "f:b": {}})).expect("FieldsV1");
    assert_eq!(set.to_value(), json!({"f:b": {}}));
    for fields in [
        json!([]),
        json!({"f": {}}),
        json!({"fb": {}}),
        json!({"v:{": {}}),
        json!({"k:1": {}}),
        json!({"i:x": {}}),
        json!({"f:a": 1}),
    ] {
        assert!(FieldSet::decode(&fields).is_err(), "{fields}");
    }
}

fn element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        "[a-c<.]{0,2}".prop_map(PathElement::field),
        (0..3_i64).prop_map(|port| PathElement::key(vec![("port".to_owned(), json!(port))])),
        ("[a-c]", any::<bool>()).prop_map(|(name, flag)| PathElement::key(vec![
            ("n".to_owned(), json!(name)),
            ("b".to_owned(), json!(flag))
        ])),
        prop_oneof![Just(json!("a")), Just(json!(1)), Just(json!(1.5)), Just(json!(true)), Just(json!(null))]
            .prop_map(PathElement::Value),
        (0..3_i64).prop_map(PathElement::Index),
    ]
}

fn set() -> impl Strategy<Value = FieldSet> {
    let path = proptest::collection::vec(element(), 1..4).prop_map(Path);
    proptest::collection::vec(path, 0..8).prop_map(|paths| paths.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn encoding_loses_nothing(set in set()) {
        prop_assert_eq!(&FieldSet::decode(&set.to_value()).expect("our own"), &set);
        let text: Value = serde_json::from_str(&set.to_json()).expect("JSON");
        prop_assert_eq!(&FieldSet::decode(&text).expect("our own"), &set);
        prop_assert_eq!(set.paths().into_iter().collect::<FieldSet>(), set);
    }

    #[test]
    fn sets_behave_like_sets(a in set(), b in set(), c in set()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert_eq!(a.difference(&b.union(&c)), a.difference(&b).difference(&c));
        prop_assert_eq!(a.intersection(&b.union(&c)), a.intersection(&b).union(&a.intersection(&c)));
        let recursive = a.recursive_difference(&b);
        prop_assert_eq!(recursive.difference(&a.difference(&b)), FieldSet::new());
    }

    #[test]
    fn membership_agrees_with_the_paths(a in set(), b in set()) {
        for path in a.paths() {
            prop_assert!(a.contains(&path.0));
            prop_assert_eq!(a.difference(&b).contains(&path.0), !b.contains(&path.0));
            prop_assert_eq!(a.intersection(&b).contains(&path.0), b.contains(&path.0));
        }
    }
}
