//! Nothing that can be decoded makes validation panic, whatever its types.

use std::{fs, path::Path};

use concord_validation::Validator;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The valid objects of all tables, with their kinds' rules.
fn subjects() -> Vec<(Validator, Value)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let files = fs::read_dir(directory).expect("cases").map(|file| file.expect("a file").path());
    files
        .map(|file| {
            let name = file.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
            let (group, kind) = name.rsplit_once('.').expect("group.Kind");
            let group = if group == "core" { "" } else { group };
            let text = fs::read_to_string(&file).expect("a readable file");
            let (object, _) = text.split_once("\n\n").expect("an object and rows");
            let validator = concord_validation::of(group, kind).expect("a kind with rules");
            (validator, serde_json::from_str(object).expect("JSON"))
        })
        .collect()
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum::<usize>(),
        Value::Object(members) => members.values().map(count).sum::<usize>(),
        _ => 0,
    }
}

/// Puts something else at the place with this number, counted from the top.
fn replace(value: &mut Value, at: &mut usize, with: &Value) {
    if *at == 0 {
        *value = with.clone();
    }
    *at = at.wrapping_sub(1);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, at, with)),
        Value::Object(members) => members.values_mut().for_each(|member| replace(member, at, with)),
        _ => {}
    }
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop_oneof!["[0-9.:/*-]{0,12}", "(../|/|\\*|%|é){0,4}"].prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("(name|key|path|.{0,3})", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_object_is_answered(at in any::<prop::sample::Index>(), with in anything()) {
        for (validator, valid) in subjects() {
            let mut changed = valid.clone();
            replace(&mut changed, &mut at.index(count(&valid)), &with);
            let (valid, changed) = (object(&valid), object(&changed));
            let errors = validator.create(&changed);
            prop_assert!(errors.iter().all(|error| !error.body().is_empty()));
            for subresource in ["", "status", "resize", "ephemeralcontainers", "approval", "finalize"] {
                drop(validator.update(subresource, &changed, &valid));
                drop(validator.update(subresource, &valid, &changed));
            }
            drop(validator.warnings("", &changed, Some(&valid)));
            drop(validator.warnings("status", &changed, Some(&valid)));
            drop(validator.warnings("", &changed, None));
        }
    }
}
