//! The corners of ownership: schemas that change, duplicates, filters, scale.

mod support;

use std::collections::BTreeMap;

use concord_merge::{
    apply::{ApplyRequest, Managed, ResetFields, ScalePaths},
    fields::{Path, PathElement},
    typed::{compare, merge, remove, set_of},
};
use serde_json::{Value, json};
use support::{
    map_list, object, text,
    versions::{apply, at, manager, owners, stored, thing_with},
};

fn managed(manager: &str, operation: &str, fields: Value) -> Value {
    let mut entry = json!({
        "manager": manager, "operation": operation, "apiVersion": "example.com/v1", "fieldsType": "FieldsV1",
    });
    entry["fieldsV1"] = fields;
    entry
}

#[test]
fn who_owned_parts_of_what_became_atomic_owns_it_whole() {
    let mut live = stored(thing_with(json!({"selector": {"a": "1"}, "order": ["x"], "replicas": 1})));
    let fields = json!({"f:spec": {
        "f:selector": {".": {}, "f:a": {}},
        "f:order": {"v:\"x\"": {}},
        "f:replicas": {},
        "f:gone": {"f:since": {}},
    }});
    live["metadata"]["managedFields"] = json!([managed("a", "Apply", fields)]);
    let object = apply(Some(&live), json!({"replicas": 1}), "b").expect("applied");
    let expected =
        ["Apply a: .spec.order .spec.replicas .spec.selector .spec.gone.since", "Apply b: .spec.replicas"];
    assert_eq!(owners(&object), expected);
}

#[test]
fn an_update_may_leave_duplicates_but_an_apply_may_not() {
    let twice = json!({"containers": [{"name": "c", "image": "1"}, {"name": "c", "image": "2"}]});
    let object = stored(manager("v1").update(None, thing_with(twice.clone()), "u", at(0)));
    assert_eq!(owners(&object), ["Update u: .spec .spec.containers .spec.containers[name=\"c\"]"]);
    let error = apply(Some(&object), twice, "a").expect_err("duplicates");
    assert!(error.message().ends_with(".spec.containers: duplicate entries for key [name=\"c\"]"), "{error}");
    // Others may still apply elsewhere, and the duplicates can be cleaned up.
    let object = apply(Some(&object), json!({"replicas": 1}), "a").expect("applied");
    let mut clean = object.clone();
    clean["spec"]["containers"] = json!([{"name": "c", "image": "2"}]);
    let clean = manager("v1").update(Some(&object), clean, "w", at(1));
    let names = ".spec.containers[name=\"c\"].image .spec.containers[name=\"c\"].name";
    assert_eq!(owners(&clean)[2], format!("Update w: .spec.containers[name=\"c\"] {names}"));
}

#[test]
fn comparing_tells_what_came_went_and_changed() {
    let ty = support::thing();
    let paths = |set: &concord_merge::fields::FieldSet| {
        set.paths().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let old = json!({"spec": {"replicas": 1, "tags": ["a", "b"], "extra": {"x": 1, "y": {"z": 1}}, "strategy": {}}});
    let new =
        json!({"spec": {"replicas": 1.0, "tags": ["b", "c"], "extra": {"x": [1], "y": 2}, "strategy": {}}});
    let comparison = compare(&old, &new, &ty).expect("comparable");
    assert_eq!(paths(&comparison.removed), [".spec.extra.y.z", ".spec.tags[=\"a\"]"]);
    assert_eq!(paths(&comparison.modified), [".spec.extra.x", ".spec.extra.y"]);
    assert_eq!(paths(&comparison.added), [".spec.tags[=\"c\"]"]);
    let twice =
        json!({"spec": {"tags": ["a", "a"], "containers": [{"name": "c", "image": "1"}, {"name": "c"}]}});
    for same in [old, new, twice] {
        let comparison = compare(&same, &same, &ty).expect("comparable");
        assert_eq!(comparison, concord_merge::typed::Comparison::default(), "{same}");
    }
}

#[test]
fn nothing_is_lost_in_a_merge_and_only_the_named_in_a_cut() {
    let ty =
        object([("items", map_list(["name"], object([("name", text()), ("a", text()), ("b", text())])))]);
    let live = json!({"items": [{"name": "1", "a": "x"}, {"name": "2", "b": "y"}]});
    let merged = merge(&live, &json!({"items": [{"name": "2", "a": "z"}]}), &ty).expect("merged");
    assert_eq!(merged, json!({"items": [{"name": "1", "a": "x"}, {"name": "2", "a": "z", "b": "y"}]}));
    let second = PathElement::key(vec![("name".to_owned(), json!("2"))]);
    let cut =
        [Path(vec![PathElement::field("items"), second, PathElement::field("b")])].into_iter().collect();
    let expected = json!({"items": [{"name": "1", "a": "x"}, {"name": "2", "a": "z"}]});
    assert_eq!(remove(&merged, &cut, &ty), Some(expected));
    assert_eq!(remove(&merged, &set_of(&merged, &ty), &ty), None);
    // A null leaves what is there; an empty value meets an empty value.
    assert_eq!(merge(&live, &json!({"items": null}), &ty).expect("merged"), live);
    assert_eq!(
        merge(&json!({"items": null}), &json!({"items": []}), &ty).expect("merged"),
        json!({"items": []})
    );
}

#[test]
fn an_endpoint_may_take_only_some_paths() {
    let field = |name: &str| Some(PathElement::field(name));
    let mut resize = manager("v1");
    resize.reset_fields = ResetFields::none()
        .only("example.com/v1", vec![vec![field("spec"), field("containers"), None, field("image")]]);
    let object = apply(None, json!({"replicas": 1, "containers": [{"name": "c", "image": "1"}]}), "a")
        .expect("applied");
    let mut new = object.clone();
    new["spec"]["replicas"] = json!(2);
    new["spec"]["containers"][0]["image"] = json!("2");
    let object = resize.update(Some(&object), new, "u", at(2));
    let expected = [
        "Apply a: .spec.replicas .spec.containers[name=\"c\"] .spec.containers[name=\"c\"].name",
        "Update u: .spec.containers[name=\"c\"].image",
    ];
    assert_eq!(owners(&object), expected);
}

#[test]
fn scale_takes_the_replicas_and_gives_them_back() {
    let replicas = json!({"f:spec": {"f:replicas": {}, "f:paused": {}}});
    let other = json!({"f:spec": {"f:tags": {}}});
    let parent = json!([managed("a", "Apply", replicas), managed("b", "Update", other)]);
    let parent = Managed::decode(&parent).expect("managedFields");
    let paths = BTreeMap::from([("example.com/v1".to_owned(), Some(Path::of_fields(["spec", "replicas"])))]);
    let scale = ScalePaths { api_version: "example.com/v1".to_owned(), paths };

    let in_scale = scale.to_subresource(&parent);
    let expected = json!([{
        "manager": "a", "operation": "Apply", "apiVersion": "autoscaling/v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
    }]);
    assert_eq!(in_scale.encode(), Some(expected));
    assert_eq!(scale.to_parent(&parent, in_scale), parent);

    let mut taken = json!([managed("hpa", "Update", json!({"f:spec": {"f:replicas": {}}}))]);
    taken[0]["apiVersion"] = json!("autoscaling/v1");
    taken[0]["subresource"] = json!("scale");
    let after = scale.to_parent(&parent, Managed::decode(&taken).expect("managedFields")).encode();
    let mut hpa = managed("hpa", "Update", json!({"f:spec": {"f:replicas": {}}}));
    hpa["subresource"] = json!("scale");
    let expected = json!([
        managed("a", "Apply", json!({"f:spec": {"f:paused": {}}})),
        managed("b", "Update", json!({"f:spec": {"f:tags": {}}})),
        hpa,
    ]);
    assert_eq!(after, Some(expected));
}

#[test]
fn a_broken_record_is_refused_by_apply_and_survived_by_update() {
    let cases = [
        (json!([{"operation": "Frob"}]), "operation must be `Apply` or `Update`"),
        (json!([{"operation": "Apply"}]), "apiVersion must not be empty"),
        (json!([{"operation": "Apply", "apiVersion": "v1"}]), "missing fieldsType in managed fields entry 0"),
        (
            json!([{"operation": "Apply", "apiVersion": "v1", "fieldsType": "F"}]),
            "invalid fieldsType \"F\" in managed fields entry 0",
        ),
    ];
    for (entries, message) in cases {
        let mut live = stored(thing_with(json!({"replicas": 1})));
        live["metadata"]["managedFields"] = entries;
        let config = thing_with(json!({"replicas": 2}));
        let request = ApplyRequest { config: &config, manager: "a", force: false, now: at(1) };
        let error = manager("v1").apply(Some(&live), request).expect_err("refused");
        assert_eq!(error.message(), format!("failed to decode managed fields: {message}"));
        let updated = manager("v1").update(Some(&live), live.clone(), "u", at(1));
        assert_eq!(updated["metadata"].get("managedFields"), None);
    }
}
