use super::*;

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is not an object"),
    }
}

fn rule(verbs: &[&str]) -> Value {
    json!({"verbs": verbs, "apiGroups": [""], "resources": ["pods"]})
}

fn role_with(metadata: &Value, rules: &Value, aggregation: &Value) -> Object {
    let mut role = json!({"metadata": metadata, "rules": rules});
    if !aggregation.is_null() {
        role["aggregationRule"] = aggregation.clone();
    }
    object(role)
}

#[test]
fn roles_get_what_they_lack_and_keep_what_they_have() {
    let auto = || json!({"annotations": {AUTO_UPDATE: "true"}, "labels": {"a": "b"}});
    let by = |label: &str| json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
    let none = Value::Null;
    let expected = role_with(&auto(), &json!([rule(&["get", "list"])]), &none);
    let aggregated = role_with(&auto(), &none, &by("x"));
    for (what, existing, expected, step) in [
        ("all there", role_with(&auto(), &json!([rule(&["get", "list"])]), &none), &expected, Step::Keep),
        ("more is fine", role_with(&auto(), &json!([rule(&["*"])]), &none), &expected, Step::Keep),
        (
            "a verb is missing, one is extra",
            role_with(&auto(), &json!([rule(&["get", "delete"])]), &none),
            &expected,
            Step::Update(role_with(&auto(), &json!([rule(&["get", "delete"]), rule(&["list"])]), &none)),
        ),
        (
            "no rules at all",
            role_with(&auto(), &none, &none),
            &expected,
            Step::Update(role_with(&auto(), &json!([rule(&["get"]), rule(&["list"])]), &none)),
        ),
        (
            "a user changed the label and removed the annotation",
            role_with(&json!({"labels": {"a": "c", "d": "e"}}), &json!([rule(&["get", "list"])]), &none),
            &expected,
            Step::Update(role_with(
                &json!({"annotations": {AUTO_UPDATE: "true"}, "labels": {"a": "c", "d": "e"}}),
                &json!([rule(&["get", "list"])]),
                &none,
            )),
        ),
        (
            "a user wants it so",
            role_with(
                &json!({"annotations": {AUTO_UPDATE: "false"}, "labels": {"a": "b"}}),
                &json!([]),
                &none,
            ),
            &expected,
            Step::Protected,
        ),
        (
            "a user wants it so, and nothing is missing",
            role_with(
                &json!({"annotations": {AUTO_UPDATE: "false"}, "labels": {"a": "b"}}),
                &json!([rule(&["*"])]),
                &none,
            ),
            &expected,
            Step::Keep,
        ),
        (
            "aggregated rules are not ours",
            role_with(&auto(), &json!([rule(&["get"])]), &by("x")),
            &aggregated,
            Step::Keep,
        ),
        (
            "a selector is missing, one is extra",
            role_with(&auto(), &none, &by("y")),
            &aggregated,
            Step::Update(role_with(
                &auto(),
                &none,
                &json!({"clusterRoleSelectors": [{"matchLabels": {"y": "true"}}, {"matchLabels": {"x": "true"}}]}),
            )),
        ),
        (
            "it was not aggregated",
            role_with(&auto(), &json!([rule(&["get"])]), &none),
            &aggregated,
            Step::Update(role_with(&auto(), &json!([rule(&["get"])]), &by("x"))),
        ),
        (
            "it is not to be aggregated",
            role_with(&auto(), &json!([rule(&["*"])]), &by("x")),
            &expected,
            Step::Update(role_with(&auto(), &json!([rule(&["*"])]), &none)),
        ),
    ] {
        assert_eq!(role(&existing, expected), step, "{what}");
    }
}

#[test]
fn bindings_get_the_subjects_they_lack() {
    let user = |name: &str| json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name});
    let binding_of = |role: &str, subjects: Value, auto: &str| {
        object(json!({
            "metadata": {"annotations": {AUTO_UPDATE: auto}},
            "roleRef": {"kind": "ClusterRole", "name": role, "apiGroup": "rbac.authorization.k8s.io"},
            "subjects": subjects,
        }))
    };
    let expected = binding_of("r", json!([user("a"), user("b")]), "true");
    for (what, existing, step) in [
        ("all there, in another order", binding_of("r", json!([user("b"), user("a")]), "true"), Step::Keep),
        (
            "one is missing, one is extra",
            binding_of("r", json!([user("c"), user("a")]), "true"),
            Step::Update(binding_of("r", json!([user("c"), user("a"), user("b")]), "true")),
        ),
        (
            "none at all",
            binding_of("r", Value::Null, "true"),
            Step::Update(binding_of("r", json!([user("a"), user("b")]), "true")),
        ),
        ("a user wants it so", binding_of("r", Value::Null, "false"), Step::Protected),
        ("another role", binding_of("s", json!([user("a"), user("b")]), "true"), Step::Recreate),
        ("another role, and a user wants it so", binding_of("s", json!([]), "false"), Step::Protected),
    ] {
        assert_eq!(binding(&existing, &expected), step, "{what}");
    }
}
