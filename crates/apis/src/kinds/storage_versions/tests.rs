use serde_json::{Value, json};

use super::*;

fn features() -> FeatureGates {
    FeatureGates::of(concord_builtins::Release::LATEST)
}

fn object(value: &Value) -> Object {
    value.as_object().expect("an object").clone()
}

fn name_errors(name: &str) -> Vec<String> {
    let errors = validate_create(&features(), &object(&json!({"metadata": {"name": name}})));
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn names_are_a_group_and_a_resource() {
    let (group, resource) = ("g".repeat(253), "r".repeat(63));
    for name in ["core.pods", "a.b.c", &format!("{group}.{resource}")] {
        assert_eq!(name_errors(name), [""; 0], "{name}");
    }
    for (name, complaint) in [
        ("pods".to_owned(), "name must be in the form of <group>.<resource>"),
        ("Core.pods".to_owned(), "the group segment a lowercase RFC 1123 subdomain"),
        (format!("{group}g.{resource}"), "the group segment must be no more than 253"),
        ("core.0".to_owned(), "the resource segment a DNS-1035 label"),
        (format!("g.{resource}r"), "the resource segment must be no more than 63"),
    ] {
        let errors = name_errors(&name);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(
            errors[0].starts_with("metadata.name: Invalid value: ") && errors[0].contains(complaint),
            "{errors:?}"
        );
    }
}

#[test]
fn finalizers_without_a_domain_are_kubernetes_own() {
    for (finalizer, found) in [("a", 2), ("orphan", 1), ("a.b/c", 1)] {
        let new = object(&json!({"metadata": {"name": "pods", "finalizers": [finalizer]}}));
        let errors = validate_create(&features(), &new);
        assert_eq!(errors.len(), found, "{errors:?}");
        assert_eq!(errors[0].field, "metadata.name", "names are looked at first");
    }
}

fn errors(status: &Value) -> Vec<String> {
    let new = object(&json!({"status": status}));
    let errors = validate_update(&features(), Part::Sub("status"), &new, &new);
    errors.iter().map(ToString::to_string).collect()
}

fn entry(id: &str, encoding: &str, decodable: &[&str], served: &[&str]) -> Value {
    json!({"apiServerID": id, "encodingVersion": encoding, "decodableVersions": decodable, "servedVersions": served})
}

#[test]
fn entries_contradict_neither_themselves_nor_each_other() {
    let good = entry("a", "apps/v1", &["apps/v1", "apps/v1beta1"], &["apps/v1"]);
    assert_eq!(errors(&json!({"storageVersions": [good], "commonEncodingVersion": "apps/v1"})), [""; 0]);
    assert_eq!(errors(&json!({})), [""; 0]);
    let same = json!([entry("a", "v1", &["v1"], &[]), entry("a", "v1", &["v1"], &[])]);
    assert_eq!(
        errors(&json!({"storageVersions": same, "commonEncodingVersion": "v1"})),
        [r#"status.storageVersions[1].apiServerID: Duplicate value: "a""#]
    );
    let bad = json!([entry("a", "v1", &["v2"], &["v3"])]);
    assert_eq!(
        errors(&json!({"storageVersions": bad, "commonEncodingVersion": "v1"})),
        [
            r#"status.storageVersions[0].decodableVersions: Invalid value: ["v2"]: decodableVersions must include encodingVersion v1"#,
            r#"status.storageVersions[0].servedVersions[0]: Invalid value: "v3": individual served version : v3 must be included in decodableVersions : [v2]"#,
        ]
    );
}

#[test]
fn the_common_version_is_what_follows_from_the_entries() {
    let (a1, b1, b2) =
        (entry("a", "v1", &["v1"], &[]), entry("b", "v1", &["v1"], &[]), entry("b", "v2", &["v2"], &[]));
    let differ = "should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported versions yet";
    for (entries, common, complaint) in [
        (json!([a1, b1]), json!("v1"), String::new()),
        (json!([a1, b2]), json!(null), String::new()),
        (json!([a1, b2]), json!("v1"), format!(r#""v1": {differ}"#)),
        (json!([]), json!("v1"), format!(r#""v1": {differ}"#)),
        (json!([a1, b1]), json!(null), "null: the common encoding version is v1".to_owned()),
        (json!([a1, b1]), json!("v2"), r#""v2": the actual common encoding version is v1"#.to_owned()),
    ] {
        let found = errors(&json!({"storageVersions": entries, "commonEncodingVersion": common}));
        let expected: Vec<String> = [complaint]
            .into_iter()
            .filter(|complaint| !complaint.is_empty())
            .map(|complaint| format!("status.commonEncodingVersion: Invalid value: {complaint}"))
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn conditions_are_told_where_upstream_tells_them() {
    let condition = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "message": "m", "lastTransitionTime": null});
    let found = errors(&json!({"conditions": [
        condition("A", "True", "R"), condition("A", "True", "R"), condition("B", "/", ""),
    ]}));
    assert_eq!(
        found[0],
        r#"status[1].type: Invalid value: "A": the type of the condition is not unique, it also appears in conditions[0]"#
    );
    assert!(found[1].starts_with(r#"status[2].status: Invalid value: "/": "#), "{found:?}");
    assert_eq!(found.last().map(String::as_str), Some("status[2].reason: Required value"));
}

#[test]
fn api_versions_have_upstreams_grammar() {
    for (version, complaint) in [
        ("v1", ""),
        ("apps/v1", ""),
        ("", "version part: must be non-empty"),
        ("/v1", "group part: must be non-empty"),
        ("apps/", "version part: must be non-empty"),
        ("apps/1", "version part: a DNS-1035 label"),
        ("Apps/v1", "group part: a lowercase RFC 1123 subdomain"),
        ("a/b/c", "an apiVersion is a DNS-1035 label"),
    ] {
        let problems = api_version_problems(version).join(",");
        assert!(
            problems.starts_with(complaint) && problems.is_empty() == complaint.is_empty(),
            "{version}: {problems}"
        );
    }
}
