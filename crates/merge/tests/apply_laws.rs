//! Laws of apply that hold for all configurations.

mod support;

use concord_merge::{
    apply::Managed,
    fields::{FieldSet, Path},
    merge_patch,
    typed::set_of,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use support::{
    thing,
    versions::{apply, apply_with, at, manager, stored, thing_with},
};

/// Any spec whose fields all begin with a prefix where names are free, so that two can be kept apart.
fn spec(prefix: &'static str) -> impl Strategy<Value = Value> {
    let container = ("[a-c]", proptest::option::of("[xy]"), proptest::collection::vec("[xy]", 0..3))
        .prop_map(move |(name, image, args)| {
            let mut container = json!({"name": format!("{prefix}{name}"), "args": args});
            if let Some(image) = image {
                container["image"] = json!(image);
            }
            container
        });
    let containers = proptest::collection::vec(container, 0..4).prop_map(|mut items| {
        items.sort_by_key(|item| item["name"].to_string());
        items.dedup_by_key(|item| item["name"].to_string());
        items
    });
    let tags = proptest::collection::btree_set("[a-d]", 0..4)
        .prop_map(move |tags| tags.into_iter().map(|tag| format!("{prefix}{tag}")).collect::<Vec<_>>());
    let extra = proptest::collection::btree_map("[a-c]", 0..3_u8, 0..3).prop_map(move |values| {
        values.into_iter().map(|(key, value)| (format!("{prefix}{key}"), json!(value))).collect::<Map<_, _>>()
    });
    (containers, tags, extra).prop_map(|(containers, tags, extra)| {
        let mut spec = Map::new();
        for (name, value) in
            [("containers", json!(containers)), ("tags", json!(tags)), ("extra", json!(extra))]
        {
            if value != json!([]) && value != json!({}) {
                spec.insert(name.to_owned(), value);
            }
        }
        Value::Object(spec)
    })
}

fn owned_by(object: &Value, manager: &str) -> FieldSet {
    let managed = Managed::decode(&object["metadata"]["managedFields"]).expect("our own");
    let owned = managed.managers.into_iter().find(|(id, _)| id.manager == manager);
    owned.map(|(_, owned)| owned.fields).unwrap_or_default()
}

fn sorted(mut spec: Value) -> Value {
    for list in ["containers", "tags"] {
        if let Some(items) = spec.get_mut(list).and_then(Value::as_array_mut) {
            items.sort_by_key(Value::to_string);
        }
    }
    spec
}

/// The smallest merge patch from one object to another.
fn diff(old: &Value, new: &Value) -> Value {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return new.clone() };
    let removed = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = new.iter().filter(|(key, value)| old.get(*key) != Some(value));
    let changed = changed.map(|(key, value)| {
        (key.clone(), old.get(key).map_or_else(|| value.clone(), |old| diff(old, value)))
    });
    removed.chain(changed).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn apply_is_idempotent(first in spec(""), second in spec("")) {
        let live = apply(None, first, "a").expect("applied");
        let once = apply_with(Some(&live), second.clone(), "b", true).expect("applied");
        let twice = apply(Some(&once), second, "b").expect("applied");
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn an_applier_owns_exactly_what_it_applied(first in spec(""), second in spec(""), third in spec("")) {
        let object = apply(None, first, "a").expect("applied");
        let object = apply_with(Some(&object), second, "b", true).expect("applied");
        let object = apply_with(Some(&object), third.clone(), "b", true).expect("applied");
        let untracked: FieldSet = ["apiVersion", "kind"].map(|field| Path::of_fields([field])).into_iter()
            .chain(["name", "namespace"].map(|field| Path::of_fields(["metadata", field]))).collect();
        let applied = set_of(&thing_with(third), &thing()).difference(&untracked);
        prop_assert_eq!(owned_by(&object, "b"), applied);
    }

    #[test]
    fn a_lone_applier_gets_what_it_asked_for(first in spec(""), second in spec("")) {
        let object = apply(None, first, "a").expect("applied");
        let object = apply(Some(&object), second.clone(), "a").expect("applied");
        let left = object.get("spec").cloned().unwrap_or(json!({}));
        prop_assert_eq!(sorted(left), sorted(second));
    }

    #[test]
    fn appliers_that_do_not_overlap_need_no_order(first in spec("a-"), second in spec("b-")) {
        let one = apply(None, first.clone(), "a").expect("applied");
        let one = apply(Some(&one), second.clone(), "b").expect("applied");
        let other = apply(None, second, "b").expect("applied");
        let other = apply(Some(&other), first, "a").expect("applied");
        prop_assert_eq!(sorted(one["spec"].clone()), sorted(other["spec"].clone()));
        for manager in ["a", "b"] {
            prop_assert_eq!(owned_by(&one, manager), owned_by(&other, manager));
        }
    }

    /// Without any difference nothing is compared. A change of the name, which nobody owns, goes the long way.
    #[test]
    fn an_update_that_changes_nothing_leaves_what_one_of_the_name_does(first in spec(""), second in spec("")) {
        let entry = |name: &str, version: &str, fields: Value| json!({"manager": name, "operation": "Update",
            "apiVersion": format!("example.com/{version}"), "fieldsType": "FieldsV1", "fieldsV1": fields});
        let mut live = apply(None, first.clone(), "a").expect("applied");
        live = manager("v1").update(Some(&live), stored(thing_with(second)), "b", at(2));
        live = apply_with(Some(&live), first, "c", true).expect("applied");
        let entries = live["metadata"]["managedFields"].as_array_mut().expect("entries");
        entries.push(entry("of one that is gone", "v9", json!({"f:spec": {"f:count": {}}})));
        entries.push(entry("of nothing", "v1", json!({})));
        let mut renamed = live.clone();
        renamed["metadata"]["name"] = json!("u");
        let update = |new: Value| manager("v1").update(Some(&live), new, "d", at(3));
        let (same, renamed) = (update(live.clone()), update(renamed));
        prop_assert_eq!(&same["metadata"]["managedFields"], &renamed["metadata"]["managedFields"]);
        prop_assert_ne!(&same["metadata"]["managedFields"], &live["metadata"]["managedFields"]);
    }

    #[test]
    fn the_merge_patch_of_a_diff_gives_the_target(old in spec(""), new in spec("")) {
        prop_assert_eq!(merge_patch(old.clone(), &diff(&old, &new)).expect("a patch"), new);
    }
}
