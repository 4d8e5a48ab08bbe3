//! Metadata in, complaints out.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::field::aggregate;

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("metadata is an object") };
    map
}

fn create(metadata: Value) -> String {
    let path = Path::new("metadata");
    aggregate(&validate_create(&object(metadata), Scope::Namespaced, NameRule::Dns1123Subdomain, &path))
}

/// A good object with one member changed.
fn with(name: &str, value: Value) -> Value {
    let mut metadata = json!({"name": "web", "namespace": "default"});
    metadata[name] = value;
    metadata
}

#[test]
fn good_metadata_passes() {
    let metadata = json!({
        "name": "web", "generateName": "web-", "namespace": "default", "generation": 3,
        "labels": {"app": "web", "example.com/tier": ""},
        "annotations": {"Example.com/Note": "any <text>", "a": ""},
        "finalizers": ["kubernetes", "example.com/hold"],
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": true}],
        "managedFields": [{"manager": "kubectl", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {}}],
    });
    assert_eq!(create(metadata), "");
}

#[test]
fn bad_names_are_refused() {
    let subdomain = names::dns1123_subdomain("-").remove(0);
    let label = names::dns1123_label("A").remove(0);
    let table = [
        (
            json!({"namespace": "default"}),
            "metadata.name: Required value: name or generateName is required".to_owned(),
        ),
        (with("name", json!("-")), format!(r#"metadata.name: Invalid value: "-": {subdomain}"#)),
        (with("name", json!("a\0")), format!(r#"metadata.name: Invalid value: "a\x00": {subdomain}"#)),
        (
            with("generateName", json!("Web-")),
            format!(r#"metadata.generateName: Invalid value: "Web-": {subdomain}"#),
        ),
        (json!({"name": "web"}), "metadata.namespace: Required value".to_owned()),
        (with("namespace", json!("A")), format!(r#"metadata.namespace: Invalid value: "A": {label}"#)),
        (
            with("name", json!(7)),
            "metadata.name: Required value: name or generateName is required".to_owned(),
        ),
    ];
    for (metadata, complaint) in table {
        assert_eq!(create(metadata), complaint);
    }
    let cluster = object(json!({"name": "web", "namespace": "x"}));
    let errors = validate_create(&cluster, Scope::Cluster, NameRule::PathSegment, &Path::new("metadata"));
    assert_eq!(aggregate(&errors), "metadata.namespace: Forbidden: not allowed on this type");
}

#[test]
fn bad_members_are_refused() {
    let key = names::qualified_name("-").remove(0);
    let value = names::label_value("-").remove(0);
    let long = "x".repeat(MAX_ANNOTATION_BYTES);
    let table = [
        (with("generation", json!(-1)), "metadata.generation: Invalid value: -1: must be greater than or equal to 0".to_owned()),
        (with("labels", json!({"-": "a"})), format!(r#"metadata.labels: Invalid value: "-": {key}"#)),
        (with("labels", json!({"a": "-"})), format!(r#"metadata.labels: Invalid value: "-": {value}"#)),
        (with("annotations", json!({"-": "a"})), format!(r#"metadata.annotations: Invalid value: "-": {key}"#)),
        (with("annotations", json!({"a": long})), "metadata.annotations: Too long: may not be more than 262144 bytes".to_owned()),
        (with("finalizers", json!(["-"])), format!(r#"metadata.finalizers: Invalid value: "-": {key}"#)),
        (
            with("finalizers", json!(["foregroundDeletion", "orphan"])),
            r#"metadata.finalizers: Invalid value: ["foregroundDeletion","orphan"]: finalizer orphan and foregroundDeletion cannot be both set"#.to_owned(),
        ),
        (
            with("managedFields", json!([{"operation": "Merge", "fieldsType": "V2", "manager": "a\u{7}", "subresource": "s".repeat(257)}])),
            "[metadata.managedFields[0].operation: Invalid value: \"Merge\": must be `Apply` or `Update`, \
             metadata.managedFields[0].fieldsType: Invalid value: \"V2\": must be `FieldsV1`, \
             metadata.managedFields[0].manager: Invalid value: \"a\\a\": invalid character U+0007 (at position 1), \
             metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes]".to_owned(),
        ),
        (
            with("managedFields", json!([{"operation": "Apply", "manager": "m".repeat(129)}])),
            "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes".to_owned(),
        ),
    ];
    for (metadata, complaint) in table {
        assert_eq!(create(metadata), complaint);
    }
    assert_eq!(create(with("annotations", json!({"a": &long[1..]}))), "", "exactly the limit");
}

#[test]
fn bad_owners_are_refused() {
    let owner = |name: &str, controller: bool| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u", "controller": controller});
    let table = [
        (
            json!([{}]),
            r#"[metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty, metadata.ownerReferences.kind: Invalid value: "": must not be empty, metadata.ownerReferences.name: Invalid value: "": must not be empty, metadata.ownerReferences.uid: Invalid value: "": must not be empty]"#,
        ),
        (
            json!([{"apiVersion": "a/b/c", "kind": "K", "name": "n", "uid": "u"}]),
            r#"metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not be empty"#,
        ),
        (
            json!([{"uid": "u", "name": "n", "kind": "Event", "apiVersion": "v1"}]),
            r#"metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"n","uid":"u"}: /v1, Kind=Event is disallowed from being an owner"#,
        ),
        (
            json!([owner("a", true), owner("b", false), owner("c", true)]),
            r#"metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Pod","name":"a","uid":"u","controller":true},{"apiVersion":"v1","kind":"Pod","name":"b","uid":"u","controller":false},{"apiVersion":"v1","kind":"Pod","name":"c","uid":"u","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for Pod/a and Pod/c"#,
        ),
    ];
    for (owners, complaint) in table {
        assert_eq!(create(with("ownerReferences", owners)), complaint);
    }
}

#[test]
fn duplicate_owners_are_removed() {
    let mut metadata = object(
        json!({"ownerReferences": [{"uid": "a"}, {"uid": "b"}, {"uid": "a"}, {"uid": "a", "name": "n"}]}),
    );
    let removed = dedup_owner_references(&mut metadata);
    assert_eq!(removed, ["a"]);
    assert_eq!(
        Value::from(metadata),
        json!({"ownerReferences": [{"uid": "a"}, {"uid": "b"}, {"uid": "a", "name": "n"}]})
    );
    let warning = duplicate_owner_references_warning(&removed, false);
    assert_eq!(
        warning,
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: a"
    );
    assert!(
        duplicate_owner_references_warning(&removed, true)
            .contains("entries after mutating admission happens; API")
    );
    assert!(dedup_owner_references(&mut object(json!({"ownerReferences": "x"}))).is_empty());
}

fn update(new: Value, old: Value) -> String {
    aggregate(&validate_update(&object(new), &object(old), &Path::new("metadata")))
}

#[test]
fn an_update_cannot_change_what_is_fixed() {
    let old = json!({"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5", "generation": 2,
        "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]});
    let change = |name: &str, value: Value| {
        let mut new = old.clone();
        new[name] = value;
        update(new, old.clone())
    };
    assert_eq!(update(old.clone(), old.clone()), "");
    let table = [
        ("name", json!("b"), r#"metadata.name: Invalid value: "b": field is immutable"#),
        ("namespace", json!(null), r#"metadata.namespace: Invalid value: "": field is immutable"#),
        ("uid", json!("w"), r#"metadata.uid: Invalid value: "w": field is immutable"#),
        (
            "resourceVersion",
            json!(""),
            r#"metadata.resourceVersion: Invalid value: "": must be specified for an update"#,
        ),
        ("generation", json!(1), "metadata.generation: Invalid value: 1: must not be decremented"),
        (
            "creationTimestamp",
            json!(null),
            "metadata.creationTimestamp: Invalid value: null: field is immutable",
        ),
        (
            "deletionTimestamp",
            json!("2026-01-01T00:00:00Z"),
            r#"metadata.deletionTimestamp: Invalid value: "2026-01-01T00:00:00Z": field is immutable"#,
        ),
        (
            "deletionGracePeriodSeconds",
            json!(30),
            "metadata.deletionGracePeriodSeconds: Invalid value: 30: field is immutable",
        ),
        ("finalizers", json!(["x/y", "new/one"]), ""),
    ];
    for (name, value, complaint) in table {
        assert_eq!(change(name, value), complaint);
    }
    assert_eq!(
        resource_version_required().to_string(),
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    );
}

#[test]
fn no_finalizer_is_added_to_what_is_being_deleted() {
    let old =
        json!({"resourceVersion": "5", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a"]});
    let mut new = old.clone();
    new["finalizers"] = json!(["c", "a", "b"]);
    assert_eq!(
        update(new.clone(), old),
        r#"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"b", "c"}"#
    );
    new["finalizers"] = json!([]);
    assert_eq!(update(new.clone(), new), "");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("(name|uid|kind|apiVersion|operation|.{0,3})", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_metadata_is_answered(members in prop::collection::btree_map(
        "(name|generateName|namespace|labels|annotations|finalizers|ownerReferences|managedFields|uid)", any_json(), 0..6)
    ) {
        let mut metadata: Map<String, Value> = members.into_iter().collect();
        let path = Path::new("metadata");
        let errors = validate_create(&metadata, Scope::Cluster, NameRule::Dns1123Label, &path);
        prop_assert!(errors.iter().all(|error| error.field.starts_with("metadata.")));
        let errors = validate_update(&metadata, &metadata, &path);
        prop_assert!(errors.iter().all(|error| error.detail != "field is immutable"));
        dedup_owner_references(&mut metadata);
        prop_assert!(dedup_owner_references(&mut metadata).is_empty());
    }
}
