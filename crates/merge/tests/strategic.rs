//! Strategic merge patch: directives, lists by key, order, texts.

mod support;

use concord_merge::strategic::{StrategicMergeError, strategic_merge};
use proptest::prelude::*;
use serde_json::{Value, json};

fn patch(object: Value, patch: Value) -> Result<Value, StrategicMergeError> {
    let spec = |spec: Value| json!({"spec": spec});
    strategic_merge(spec(object), spec(patch), &support::thing()).map(|mut patched| patched["spec"].take())
}

#[test]
fn objects_merge_and_obey_directives() {
    let cases = [
        (
            json!({"replicas": 1, "paused": true}),
            json!({"replicas": 2}),
            json!({"replicas": 2, "paused": true}),
        ),
        (json!({"replicas": 1}), json!({"replicas": null, "paused": null}), json!({})),
        (
            json!({"strategy": {"type": "a", "rolling": "x"}}),
            json!({"strategy": {"$patch": "replace", "type": "b"}}),
            json!({"strategy": {"type": "b"}}),
        ),
        (
            json!({"strategy": {"type": "a"}}),
            json!({"strategy": {"$patch": "delete"}}),
            json!({"strategy": {}}),
        ),
        (
            json!({"strategy": {"type": "a", "rolling": "x"}}),
            json!({"strategy": {"$retainKeys": ["type"], "type": "b"}}),
            json!({"strategy": {"type": "b"}}),
        ),
        (json!({"swapped": {"a": "1"}}), json!({"swapped": {"b": "2"}}), json!({"swapped": {"b": "2"}})),
        (json!({"order": ["a"]}), json!({"order": ["b"]}), json!({"order": ["b"]})),
        // Nothing to merge with: nulls and directives do not stay behind.
        (
            json!({}),
            json!({"strategy": {"$retainKeys": ["type"], "type": "b", "rolling": null}}),
            json!({"strategy": {"type": "b"}}),
        ),
        (json!({}), json!({"strategy": {"$patch": "delete"}}), json!({})),
        (json!({}), json!({"$deleteFromPrimitiveList/tags": ["a"]}), json!({})),
    ];
    for (object, change, expected) in cases {
        assert_eq!(patch(object, change.clone()).expect("it applies"), expected, "{change}");
    }
}

#[test]
fn lists_merge_by_key_and_obey_directives() {
    let live =
        json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}], "tags": ["x", "y"]});
    let cases = [
        (
            json!({"containers": [{"name": "b", "image": "3"}, {"name": "c"}]}),
            json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "3"}, {"name": "c"}]}),
        ),
        (
            json!({"containers": [{"name": "a", "$patch": "delete"}]}),
            json!({"containers": [{"name": "b", "image": "2"}]}),
        ),
        (
            json!({"containers": [{"$patch": "replace"}, {"name": "z"}]}),
            json!({"containers": [{"name": "z"}]}),
        ),
        (
            json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}),
            json!({"containers": [{"name": "b", "image": "2"}, {"name": "a", "image": "1"}]}),
        ),
        (
            json!({
                "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
                "containers": [{"name": "c", "image": "4"}, {"name": "b", "$patch": "delete"}],
            }),
            json!({"containers": [{"name": "c", "image": "4"}, {"name": "a", "image": "1"}]}),
        ),
        (json!({"tags": ["z", "x"]}), json!({"tags": ["z", "x", "y"]})),
        (json!({"$deleteFromPrimitiveList/tags": ["x"]}), json!({"tags": ["y"]})),
        (
            json!({"$deleteFromPrimitiveList/tags": ["x"], "tags": ["z"], "$setElementOrder/tags": ["z", "y"]}),
            json!({"tags": ["z", "y"]}),
        ),
    ];
    for (change, expected) in cases {
        let mut all = live.clone();
        for (key, value) in expected.as_object().expect("an object") {
            all[key] = value.clone();
        }
        assert_eq!(patch(live.clone(), change.clone()).expect("it applies"), all, "{change}");
    }
}

#[test]
fn errors_have_the_known_texts() {
    let cases = [
        (
            json!({"strategy": {"$patch": "merge"}}),
            500,
            "unknown patch type: merge in map: map[$patch:merge]",
        ),
        (json!({"strategy": {"$retainKeys": "type"}}), 400, "invalid patch format of retainKeys"),
        (json!({"strategy": {"$retainKeys": [], "type": "b"}}), 400, "invalid patch format of retainKeys"),
        (json!({"$deleteFromPrimitiveList": ["x"]}), 400, "invalid patch format of primitive list"),
        (json!({"$setElementOrder": ["x"]}), 400, "invalid patch format of setElementOrder list"),
        (json!({"$setElementOrder/tags": "x"}), 500, "expected a []interface {}, but received a string"),
        (
            json!({"containers": [{"image": "x"}]}),
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"$patch": "merge", "name": "a"}]}),
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (json!({"tags": [1]}), 500, "list element types are not identical: [[x] [1]]"),
        (json!({"tags": [["x"]]}), 500, "list element types are not identical: [[x] [[x]]]"),
        (
            json!({"$setElementOrder/tags": ["a", "b"], "tags": ["b", "a"]}),
            500,
            "The order in patch list:\n[b a]\n doesn't match $setElementOrder list:\n[a b]\n",
        ),
        (
            json!({"unknown": {"a": 1}}),
            500,
            "unable to find api field in struct Thing for the json field \"unknown\"",
        ),
    ];
    let live =
        json!({"strategy": {"type": "a"}, "tags": ["x"], "containers": [{"name": "a"}], "unknown": {}});
    for (change, code, message) in cases {
        let error = patch(live.clone(), change.clone()).expect_err("it does not apply");
        assert_eq!((error.answer().code(), error.message().as_str()), (code, message), "{change}");
    }
    let error = patch(json!({"tags": []}), json!({"tags": [["x"]]})).expect_err("a list of lists");
    let opaque = "the server rejected our request due to an error in our request";
    assert_eq!((error.answer().code(), error.message().as_str()), (422, opaque));
    let error = strategic_merge(json!({}), json!([]), &support::thing()).expect_err("not an object");
    assert_eq!(error.message(), "json: cannot unmarshal array into Go value of type map[string]interface {}");
}

/// Items by name, each name once.
fn containers() -> impl Strategy<Value = Vec<(u8, u8)>> {
    proptest::collection::btree_map(0..8_u8, any::<u8>(), 0..6)
        .prop_map(|items| items.into_iter().collect::<Vec<_>>())
        .prop_shuffle()
}

fn list(items: &[(u8, u8)]) -> Value {
    items.iter().map(|(name, image)| json!({"name": name.to_string(), "image": image.to_string()})).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// The merged list has every item once, the patch's value where it has one, the patch's items in the patch's
    /// order and the others in theirs.
    #[test]
    fn lists_merge_like_maps(live in containers(), change in containers()) {
        let patched = patch(json!({"containers": list(&live)}), json!({"containers": list(&change)}));
        let patched = patched.expect("it applies")["containers"].take();
        let names = |items: &Value, keep: &dyn Fn(&str) -> bool| -> Vec<String> {
            let names = items.as_array().into_iter().flatten().filter_map(|item| item["name"].as_str());
            names.filter(|name| keep(name)).map(str::to_owned).collect()
        };
        let changed = |name: &str| change.iter().any(|(other, _)| other.to_string() == name);
        prop_assert_eq!(names(&patched, &changed), names(&list(&change), &|_| true));
        prop_assert_eq!(names(&patched, &|name| !changed(name)), names(&list(&live), &|name| !changed(name)));
        for item in patched.as_array().expect("a list") {
            let (before, after) = (list(&live), list(&change));
            let has = |items: &Value| items.as_array().is_some_and(|items| items.contains(item));
            prop_assert!(has(&after) || (has(&before) && !changed(item["name"].as_str().expect("a name"))));
        }
    }

    #[test]
    fn patching_twice_is_patching_once(live in containers(), change in containers()) {
        let change = json!({"containers": list(&change)});
        let once = patch(json!({"containers": list(&live)}), change.clone()).expect("it applies");
        prop_assert_eq!(patch(once.clone(), change).expect("it applies"), once);
    }
}
