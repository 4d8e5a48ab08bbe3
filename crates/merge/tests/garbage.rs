//! Whatever a client sends, or a store holds, is answered: nothing here may panic.

mod support;

use concord_merge::{
    JsonPatch,
    apply::{ApplyRequest, Managed},
    fields::FieldSet,
    merge_patch,
    strategic::strategic_merge,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::versions::{at, manager, stored, thing_with};

/// JSON whose names are those that mean something somewhere.
fn anything() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|flag| json!(flag)),
        any::<i64>().prop_map(|number| json!(number)),
        any::<f64>().prop_map(|number| json!(number)),
        "[a-c/~-]{0,3}".prop_map(|text| json!(text)),
        prop_oneof![
            Just("delete"),
            Just("replace"),
            Just("merge"),
            Just("Apply"),
            Just("FieldsV1"),
            Just("add")
        ]
        .prop_map(|word| json!(word)),
    ];
    let names = proptest::sample::select(vec![
        "$patch",
        "$retainKeys",
        "$setElementOrder/tags",
        "$setElementOrder/containers",
        "$setElementOrder",
        "$deleteFromPrimitiveList/tags",
        "$deleteFromPrimitiveList",
        "name",
        "containers",
        "tags",
        "ports",
        "port",
        "extra",
        "strategy",
        "selector",
        "order",
        "replicas",
        "op",
        "path",
        "from",
        "value",
        "operation",
        "apiVersion",
        "fieldsType",
        "fieldsV1",
        "time",
        ".",
        "f:spec",
        "f:tags",
        "v:1",
        "v:\"a\"",
        "i:0",
        "k:{\"name\":\"a\"}",
        "k:",
        "x:y",
        "",
    ]);
    scalar.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            proptest::collection::btree_map(names.clone(), inner, 0..6).prop_map(|fields| fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_patch_is_answered(live in anything(), change in anything()) {
        let spec = |spec: &Value| json!({"spec": spec});
        match strategic_merge(spec(&live), spec(&change), &support::thing()) {
            Ok(merged) => prop_assert!(merged.is_object()),
            Err(error) => prop_assert!([400, 422, 500].contains(&error.answer().code()), "{}", error.message()),
        }
        let operations = json!([change, {"op": "add", "path": "/a/-", "value": change}]);
        if let Err(error) = JsonPatch::decode(&operations).and_then(|patch| patch.apply(live.clone())) {
            prop_assert!([400, 422].contains(&error.answer().code()), "{}", error.message());
        }
        prop_assert_eq!(merge_patch(live, &change).is_ok(), change.is_object());
    }

    #[test]
    fn every_record_and_configuration_is_answered(entries in anything(), spec in anything(), other in anything()) {
        let mut live = stored(thing_with(other));
        live["metadata"]["managedFields"] = json!([{
            "manager": "m", "operation": "Update", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": entries},
        }]);
        let config = thing_with(spec.clone());
        let request = ApplyRequest { config: &config, manager: "a", force: true, now: at(1) };
        if let Ok(object) = manager("v1").apply(Some(&live), request) {
            prop_assert!(Managed::decode(&object["metadata"]["managedFields"]).is_ok());
        }
        let updated = manager("v1").update(Some(&live), config, "u", at(2));
        prop_assert_eq!(&updated["spec"], &spec);
        if let Ok(set) = FieldSet::decode(&entries) {
            prop_assert_eq!(FieldSet::decode(&set.to_value()), Ok(set));
        }
    }
}
