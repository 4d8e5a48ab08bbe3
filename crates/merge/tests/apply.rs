//! Server-side apply and the ownership of fields, on a small kind.

mod support;

use concord_merge::apply::{ApplyRequest, Managed};
use serde_json::{Value, json};
use support::versions::{apply, apply_with, at, manager, owners, stored, thing_with};

#[test]
fn an_apply_creates_and_owns_what_it_names() {
    let spec = json!({"replicas": 1, "selector": {"a": "b"}, "containers": [{"name": "c", "image": "i"}], "tags": ["x"]});
    let object = apply(None, spec.clone(), "a").expect("applied");
    assert_eq!(object["spec"], spec);
    let expected = json!([{
        "manager": "a",
        "operation": "Apply",
        "apiVersion": "example.com/v1",
        "time": "2023-11-14T22:14:20Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:tags": {"v:\"x\"": {}},
            "f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {}}},
        }},
    }]);
    assert_eq!(object["metadata"]["managedFields"], expected);
}

#[test]
fn conflicts_name_manager_version_and_field() {
    let object =
        manager("v1").update(None, thing_with(json!({"replicas": 1, "paused": true})), "kubectl", at(0));
    let object = stored(object);
    let error = apply(Some(&object), json!({"replicas": 2, "paused": true}), "a").expect_err("a conflict");
    assert_eq!((error.answer().code(), error.answer().reason()), (409, Some("Conflict")));
    let expected =
        "Apply failed with 1 conflict: conflict with \"kubectl\" using example.com/v1: .spec.replicas";
    assert_eq!(error.message(), expected);
    let concord_merge::apply::ApplyError::Conflicts(conflicts) = error else { panic!("not a conflict") };
    let causes = conflicts.causes();
    assert_eq!(causes[0].message, "conflict with \"kubectl\" using example.com/v1");
    assert_eq!(causes[0].field, ".spec.replicas");

    let error =
        apply(Some(&object), json!({"replicas": 2, "paused": false}), "a").expect_err("two conflicts");
    let expected = "Apply failed with 2 conflicts: conflicts with \"kubectl\" using example.com/v1:\n\
                    - .spec.paused\n- .spec.replicas";
    assert_eq!(error.message(), expected);
}

#[test]
fn equal_values_are_shared_and_force_takes() {
    let object = apply(None, json!({"replicas": 1}), "a").expect("applied");
    let shared = apply(Some(&object), json!({"replicas": 1}), "b").expect("applied");
    assert_eq!(owners(&shared), ["Apply a: .spec.replicas", "Apply b: .spec.replicas"]);
    let error = apply(Some(&shared), json!({"replicas": 2}), "b").expect_err("a conflict");
    assert_eq!(error.message(), "Apply failed with 1 conflict: conflict with \"a\": .spec.replicas");
    let forced = apply_with(Some(&shared), json!({"replicas": 2}), "b", true).expect("applied");
    assert_eq!(forced["spec"], json!({"replicas": 2}));
    assert_eq!(owners(&forced), ["Apply b: .spec.replicas"]);
}

#[test]
fn what_is_no_longer_applied_goes_unless_another_owns_it() {
    let spec = json!({
        "replicas": 1, "paused": true, "tags": ["x", "y"],
        "containers": [{"name": "c", "image": "i"}, {"name": "d"}],
        "strategy": {"type": "s"},
    });
    let object = apply(None, spec, "a").expect("applied");
    let object = apply(Some(&object), json!({"paused": true, "tags": ["y"]}), "b").expect("applied");
    let object =
        apply(Some(&object), json!({"replicas": 1, "containers": [{"name": "d"}]}), "a").expect("applied");
    let expected = json!({"replicas": 1, "paused": true, "tags": ["y"], "containers": [{"name": "d"}]});
    assert_eq!(object["spec"], expected);
    let expected = [
        "Apply a: .spec.replicas .spec.containers[name=\"d\"] .spec.containers[name=\"d\"].name",
        "Apply b: .spec.paused .spec.tags[=\"y\"]",
    ];
    assert_eq!(owners(&object), expected);
}

#[test]
fn what_nobody_owns_stays_as_long_as_its_struct_does() {
    let spec = json!({"replicas": 1, "paused": true, "strategy": {"type": "s"}});
    let mut object = apply(None, spec, "a").expect("applied");
    object["spec"]["order"] = json!(["by the server"]);
    object["spec"]["strategy"]["rolling"] = json!("by the server");
    let spec = json!({"replicas": 1, "strategy": {"type": "s"}});
    let object = apply(Some(&object), spec, "a").expect("applied");
    let strategy = json!({"type": "s", "rolling": "by the server"});
    assert_eq!(object["spec"], json!({"replicas": 1, "order": ["by the server"], "strategy": strategy}));
    let object = apply(Some(&object), json!({"replicas": 1}), "a").expect("applied");
    assert_eq!(object["spec"], json!({"replicas": 1, "order": ["by the server"]}));
}

#[test]
fn an_update_takes_what_it_changes_and_nothing_else() {
    let object = apply(None, json!({"replicas": 1, "paused": true}), "a").expect("applied");
    let mut new = object.clone();
    new["spec"]["replicas"] = json!(2);
    new["metadata"]["labels"] = json!({"l": "1"});
    new["metadata"]["resourceVersion"] = json!("7");
    new["status"] = json!({"ready": 1});
    let object = manager("v1").update(Some(&object), new, "u", at(2));
    let expected = ["Apply a: .spec.paused", "Update u: .metadata.labels .metadata.labels.l .spec.replicas"];
    assert_eq!(owners(&object), expected);
    assert_eq!(object["metadata"]["managedFields"][1]["time"], json!("2023-11-14T22:15:20Z"));

    let again = manager("v1").update(Some(&object), object.clone(), "u", at(3));
    assert_eq!(again, object);
    let mut removed = object.clone();
    removed["spec"].as_object_mut().expect("an object").remove("paused");
    let removed = manager("v1").update(Some(&object), removed, "w", at(3));
    assert_eq!(owners(&removed), ["Update u: .metadata.labels .metadata.labels.l .spec.replicas"]);
}

#[test]
fn tracking_starts_with_the_first_apply() {
    let object = stored(thing_with(json!({"replicas": 1, "paused": true})));
    let untouched = manager("v1").update(Some(&object), object.clone(), "u", at(1));
    assert_eq!(untouched, object);
    let applied = apply(Some(&object), json!({"replicas": 1}), "a").expect("applied");
    let expected =
        ["Apply a: .spec.replicas", "Update before-first-apply: .spec .spec.paused .spec.replicas"];
    assert_eq!(owners(&applied), expected);
    // The apply changed nothing, so it has no time.
    assert_eq!(applied["metadata"]["managedFields"][0].get("time"), None);
}

#[test]
fn an_empty_apply_owns_nothing() {
    let config = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}});
    let request = ApplyRequest { config: &config, manager: "a", force: false, now: at(1) };
    let object = manager("v1").apply(None, request).expect("applied");
    assert_eq!(object["metadata"].get("managedFields"), None);
}

#[test]
fn clients_may_reset_but_not_lose_the_record() {
    let object = apply(None, json!({"replicas": 1}), "a").expect("applied");
    let with = |entries: Option<Value>| {
        let mut new = object.clone();
        match entries {
            Some(entries) => new["metadata"]["managedFields"] = entries,
            None => drop(new["metadata"].as_object_mut().expect("an object").remove("managedFields")),
        }
        manager("v1").update(Some(&object), new, "u", at(2))
    };
    assert_eq!(with(None), object);
    assert_eq!(with(Some(json!([{"operation": "Frobnicate"}]))), object);
    for reset in [json!([]), json!([{}])] {
        assert_eq!(with(Some(reset))["metadata"].get("managedFields"), None);
    }
}

#[test]
fn bad_configurations_have_the_known_texts() {
    let live = stored(thing_with(json!({})));
    let cases = [
        (
            json!({"foo": 1}),
            "failed to create typed patch object (n/t; example.com/v1, Kind=Thing): .spec.foo: field not declared in schema",
        ),
        (
            json!({"replicas": "1"}),
            "failed to create typed patch object (n/t; example.com/v1, Kind=Thing): .spec.replicas: expected numeric (int or float), got string",
        ),
        (
            json!({"order": [1]}),
            "failed to create typed patch object (n/t; example.com/v1, Kind=Thing): .spec.order[0]: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            json!({"paused": "x"}),
            "failed to create typed patch object (n/t; example.com/v1, Kind=Thing): .spec.paused: expected boolean, got &{x}",
        ),
        (
            json!({"tags": ["x", "x"]}),
            "failed to create typed patch object (n/t; example.com/v1, Kind=Thing): .spec.tags: duplicate entries for key [=\"x\"]",
        ),
        (
            json!({"containers": [{}]}),
            "failed to create typed patch object (n/t; example.com/v1, Kind=Thing): .spec.containers: element 0: associative list with keys has an element that omits all key fields [\"name\"] (and doesn't have default values for any key fields)",
        ),
        (
            json!({"paused": 1, "replicas": []}),
            "failed to create typed patch object (n/t; example.com/v1, Kind=Thing): errors:\n  .spec.paused: expected boolean, got &{1}\n  .spec.replicas: expected numeric (int or float), got []interface {}",
        ),
    ];
    for (spec, message) in cases {
        let error = apply(Some(&live), spec, "a").expect_err("refused");
        assert_eq!((error.answer().code(), error.answer().reason()), (500, None));
        assert_eq!(error.message(), message);
    }
    let refused = |config: Value| {
        let request = ApplyRequest { config: &config, manager: "a", force: false, now: at(1) };
        let error = manager("v1").apply(Some(&live), request).expect_err("refused");
        (error.answer().code(), error.message())
    };
    let other = json!({"apiVersion": "v1", "kind": "Pod"});
    assert_eq!(refused(other), (400, "invalid object type: /v1, Kind=Pod".to_owned()));
    let mut owning = thing_with(json!({}));
    owning["metadata"]["managedFields"] = json!([]);
    assert_eq!(refused(owning), (400, "metadata.managedFields must be nil".to_owned()));
}

#[test]
fn list_items_are_found_by_their_default_keys() {
    let ports = |ports: Value| json!({"containers": [{"name": "c", "ports": ports}]});
    let object = apply(None, ports(json!([{"port": 80}])), "a").expect("applied");
    let object = apply(Some(&object), ports(json!([{"port": 80, "protocol": "TCP", "name": "web"}])), "b");
    let object = object.expect("applied");
    let expected = json!([{"port": 80, "protocol": "TCP", "name": "web"}]);
    assert_eq!(object["spec"]["containers"][0]["ports"], expected);
}

#[test]
fn merged_lists_keep_both_orders() {
    let object = apply(None, json!({"tags": ["a", "b", "c", "d"]}), "a").expect("applied");
    let object = apply(Some(&object), json!({"tags": ["n", "c", "m", "b"]}), "b").expect("applied");
    assert_eq!(object["spec"]["tags"], json!(["a", "n", "c", "d", "m", "b"]));
}

#[test]
fn versions_meet_in_the_middle() {
    let object = apply(None, json!({"replicas": 1}), "a").expect("applied");
    let config = json!({"apiVersion": "example.com/v2", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"count": 2}});
    let request = |manager, force| ApplyRequest { config: &config, manager, force, now: at(2) };
    let mut live = object.clone();
    live["apiVersion"] = json!("example.com/v2");
    live["spec"] = json!({"count": 1});
    live["metadata"].as_object_mut().expect("an object").remove("namespace");
    let error = manager("v2").apply(Some(&live), request("b", false)).expect_err("a conflict");
    assert_eq!(error.message(), "Apply failed with 1 conflict: conflict with \"a\": .spec.replicas");
    // Who changes nothing in one version takes nothing from those who wrote another.
    let unchanged = manager("v2").update(Some(&live), live.clone(), "b", at(2));
    assert_eq!(owners(&unchanged), ["Apply a: .spec.replicas"]);
    // The same manager moves on to the new version without a conflict with itself.
    let moved = manager("v2").apply(Some(&live), request("a", false)).expect("applied");
    assert_eq!(moved["spec"], json!({"count": 2}));
    assert_eq!(owners(&moved), ["Apply a: .spec.count"]);

    let mut obsolete = live.clone();
    obsolete["metadata"]["managedFields"][0]["apiVersion"] = json!("example.com/v0");
    let forgotten = manager("v2").apply(Some(&obsolete), request("b", false)).expect("applied");
    assert_eq!(owners(&forgotten), ["Apply b: .spec.count"]);
    let forgotten = manager("v2").update(Some(&obsolete), obsolete.clone(), "b", at(2));
    assert_eq!(owners(&forgotten), [""; 0]);
}

#[test]
fn a_subresource_has_its_own_entries_and_resets_the_rest() {
    let mut status = manager("v1");
    status.subresource = "status".to_owned();
    let spec = [concord_merge::fields::Path::of_fields(["spec"])].into_iter().collect();
    status.reset_fields = concord_merge::apply::ResetFields::none().excluding("example.com/v1", spec);
    let object = apply(None, json!({"replicas": 1}), "a").expect("applied");
    let mut new = object.clone();
    new["status"] = json!({"ready": 1});
    let object = status.update(Some(&object), new, "c", at(2));
    let entry = &object["metadata"]["managedFields"][1];
    assert_eq!(entry["subresource"], json!("status"));
    assert_eq!(entry["fieldsV1"], json!({"f:status": {".": {}, "f:ready": {}}}));

    let mut config = thing_with(json!({"replicas": 9}));
    config["status"] = json!({"ready": 2});
    let request = ApplyRequest { config: &config, manager: "b", force: false, now: at(3) };
    let error = status.apply(Some(&object), request).expect_err("a conflict");
    let expected = "Apply failed with 1 conflict: conflict with \"c\" with subresource \"status\" using \
                    example.com/v1: .status.ready";
    assert_eq!(error.message(), expected);
}

#[test]
fn old_updaters_are_merged() {
    let mut object = apply(None, json!({"extra": {}}), "a").expect("applied");
    for number in 0..15 {
        let mut new = object.clone();
        new["spec"]["extra"][format!("k{number:02}")] = json!(number);
        object = manager("v1").update(Some(&object), new, &format!("m{number:02}"), at(number + 2));
    }
    let managed = Managed::decode(&object["metadata"]["managedFields"]).expect("our own");
    assert_eq!(managed.managers.len(), 11);
    let owners = owners(&object);
    assert_eq!(
        owners[1],
        "Update ancient-changes: .spec.extra.k00 .spec.extra.k01 .spec.extra.k02 .spec.extra.k03 .spec.extra.k04 .spec.extra.k05"
    );
    assert!(owners[10].starts_with("Update m14"), "{owners:?}");
}

#[test]
fn kubectl_moves_from_client_side_to_server_side_apply() {
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let mut created = thing_with(json!({"replicas": 1}));
    let last = created.to_string();
    created["metadata"]["annotations"] = json!({annotation: last});
    let object = stored(manager("v1").update(None, created, "kubectl-client-side-apply", at(0)));

    let error = apply(Some(&object), json!({"replicas": 2}), "other").expect_err("a conflict");
    assert!(error.message().contains("kubectl-client-side-apply"), "{error}");
    let applied = apply(Some(&object), json!({"replicas": 2}), "kubectl").expect("applied");
    assert_eq!(applied["spec"], json!({"replicas": 2}));
    let expected = format!("{}\n", thing_with(json!({"replicas": 2})));
    assert_eq!(applied["metadata"]["annotations"][annotation], json!(expected));
}
