use serde_json::json;

use super::*;

#[test]
fn long_lists_are_cut() {
    let texts =
        |count: usize| Vec::from_iter(["a", "b", "c", "d", "e"].map(str::to_owned)[..count].iter().cloned());
    assert_eq!(join_first(&texts(0), 3), "");
    assert_eq!(join_first(&texts(3), 3), "a,b,c");
    assert_eq!(join_first(&texts(5), 3), "a,b,c + 2 more...");
    assert_eq!(join_three(&texts(4)), "a,b,c + 1 more...");
    assert_eq!(join_three(&texts(0)), "<unset>");
    assert_eq!(join_three(&[String::new()]), "<unset>");
}

#[test]
fn labels_are_sorted_with_their_values() {
    let object = json!({"labels": {"a": "1", "a-b": "2"}, "empty": {}});
    assert_eq!(labels(Fields::of(&object), "labels"), "a-b=2,a=1");
    assert_eq!(labels(Fields::of(&object), "empty"), "<none>");
    assert_eq!(labels(Fields::of(&object), "absent"), "<none>");
}

#[test]
fn selectors_are_written_as_on_the_command_line() {
    let object = json!({
        "both": {
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["b", "a"]},
                                 {"key": "canary", "operator": "DoesNotExist"}],
        },
        "empty": {},
        "nulls": {"matchLabels": null, "matchExpressions": null},
        "bad": {"matchExpressions": [{"key": "tier", "operator": "Like", "values": ["a"]}]},
    });
    let object = Fields::of(&object);
    assert_eq!(selector_or_none(object, "both"), "app=web,!canary,tier notin (a,b)");
    for nothing in ["empty", "nulls", "absent"] {
        assert_eq!(selector_or_none(object, nothing), "<none>");
        assert_eq!(selector(object, nothing).as_deref(), Some(""));
    }
    assert_eq!(selector_or_none(object, "bad"), "<error>");
    assert_eq!(selector(object, "bad"), None);
}

#[test]
fn selectors_can_look_like_go() {
    let selector = json!({
        "matchLabels": {"b": "2", "a": "1"},
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["x", "y"]}],
    });
    let expected = "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},\
                    MatchExpressions:[]LabelSelectorRequirement{\
                    LabelSelectorRequirement{Key:tier,Operator:In,Values:[x y],},},}";
    assert_eq!(selector_as_go(Fields::of(&selector)), expected);
}

#[test]
fn quantities_are_canonical() {
    let object = json!({"a": "1.5Gi", "b": 3, "c": "0.5", "bad": "much", "wrong": []});
    let object = Fields::of(&object);
    let shown = ["a", "b", "c", "bad", "wrong", "absent"].map(|field| quantity(object, field));
    assert_eq!(shown, ["1536Mi", "3", "500m", "much", "0", "0"]);
}

#[test]
fn letters_are_lowered_one_by_one() {
    assert_eq!(lower("ReplicaSet"), "replicaset");
    assert_eq!(lower("\u{130}Σ"), "iσ");
}
