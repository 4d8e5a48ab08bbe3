//! What kube-apiserver says about these reviews.

use super::*;

fn read(review: Value) -> (Spec, Object) {
    let Value::Object(review) = review else { panic!("not an object") };
    let spec = review.get("spec").map(Spec::deserialize).transpose().expect("readable");
    (spec.unwrap_or_default(), review)
}

fn errors(whom: Whom, review: Value) -> Vec<String> {
    let (spec, review) = read(review);
    whom.errors(&spec, &review).iter().map(ToString::to_string).collect()
}

#[test]
fn a_review_asks_one_thing_about_somebody() {
    let one_of = "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified";
    let somebody = "spec.user: Invalid value: \"\": at least one of user or group must be specified";
    let both = "spec.nonResourceAttributes: Invalid value: {\"Path\":\"/a\",\"Verb\":\"get\"}: cannot be specified in combination with resourceAttributes";
    let paths = json!({"path": "/a", "verb": "get"});
    for (whom, review, expected) in [
        (Whom::Anybody, json!({}), vec![one_of, somebody]),
        (Whom::Oneself, json!({}), vec![one_of]),
        (Whom::Anybody, json!({"spec": {"groups": ["g"], "resourceAttributes": {}}}), vec![]),
        (
            Whom::Anybody,
            json!({"spec": {"user": "u", "resourceAttributes": {}, "nonResourceAttributes": paths}}),
            vec![both],
        ),
        (
            Whom::Oneself,
            json!({"metadata": {"name": "x"}, "spec": {"resourceAttributes": {}}}),
            vec!["metadata: Invalid value: {\"name\":\"x\"}: must be empty"],
        ),
        (
            Whom::Oneself,
            json!({"metadata": {"managedFields": [{}]}, "spec": {"resourceAttributes": {}}}),
            vec![],
        ),
        (
            Whom::AnybodyHere,
            json!({"metadata": {"namespace": "a"}, "spec": {"user": "u", "resourceAttributes": {"namespace": "b"}}}),
            vec!["spec.resourceAttributes.namespace: Invalid value: \"b\": must match metadata.namespace"],
        ),
        (
            Whom::AnybodyHere,
            json!({"metadata": {"namespace": "a", "labels": {"l": "v"}}, "spec": {"user": "u", "nonResourceAttributes": paths}}),
            vec![
                "metadata: Invalid value: {\"namespace\":\"a\",\"labels\":{\"l\":\"v\"}}: must be empty except for namespace",
                "spec.nonResourceAttributes: Invalid value: {\"Path\":\"/a\",\"Verb\":\"get\"}: disallowed on this kind of request",
            ],
        ),
    ] {
        assert_eq!(errors(whom, review.clone()), expected, "{whom:?} {review}");
    }
}

#[test]
fn selectors_are_checked_and_what_cannot_be_read_is_told() {
    let asked = |fields: Value, labels: Value| {
        let mut attributes = json!({});
        for (name, selector) in [("fieldSelector", fields), ("labelSelector", labels)] {
            if !selector.is_null() {
                attributes[name] = selector;
            }
        }
        json!({"spec": {"resourceAttributes": attributes}})
    };
    let (at, none) = ("spec.resourceAttributes", Value::Null);
    for (fields, labels, expected) in [
        (
            json!({}),
            json!({"rawSelector": "a", "requirements": [{"key": "k", "operator": "Exists"}]}),
            vec![
                format!(
                    "{at}.fieldSelector.requirements: Required value: when {at}.fieldSelector is specified, requirements or rawSelector is required"
                ),
                format!(
                    "{at}.labelSelector.rawSelector: Invalid value: \"a\": may not specified at the same time as requirements"
                ),
            ],
        ),
        (
            json!({"requirements": [{"key": "", "operator": "In"}]}),
            json!({"requirements": [{"key": "k", "operator": "Exists", "values": ["v"]}]}),
            vec![
                format!("{at}.fieldSelector.requirements[0].key: Required value: must be specified"),
                format!(
                    "{at}.fieldSelector.requirements[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
                ),
                format!(
                    "{at}.labelSelector.requirements[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                ),
            ],
        ),
    ] {
        assert_eq!(errors(Whom::Oneself, asked(fields, labels)), expected);
    }
    let requirement =
        |operator: &str, values: &[&str]| json!({"key": "k", "operator": operator, "values": values});
    for (fields, labels, expected) in [
        (json!({"rawSelector": "a=b"}), json!({"rawSelector": "a in (b)"}), vec![]),
        (none.clone(), json!({"rawSelector": "(("}), vec!["labelSelector ignored"]),
        (json!({"rawSelector": "a"}), none.clone(), vec!["fieldSelector ignored"]),
        (json!({"requirements": [requirement("In", &["v"])]}), none.clone(), vec![]),
        (
            json!({"requirements": [requirement("In", &["v"]), requirement("Exists", &[])]}),
            json!({"requirements": [requirement("New", &["v"])]}),
            vec!["fieldSelector partially ignored", "labelSelector ignored"],
        ),
        (
            json!({"requirements": [requirement("In", &["v", "w"])]}),
            json!({"requirements": [requirement("New", &["v"]), requirement("Exists", &[])]}),
            vec!["fieldSelector ignored", "labelSelector partially ignored"],
        ),
    ] {
        let (spec, _) = read(asked(fields, labels));
        let expected: Vec<String> =
            expected.iter().map(|what| format!("{at}.{what} due to parse error")).collect();
        assert_eq!(spec.evaluation_errors(), expected);
    }
}

#[test]
fn a_review_is_about_the_request_that_it_describes() {
    let (spec, _) = read(json!({"spec": {
        "user": "u", "groups": ["g"], "uid": "7", "extra": {"k": ["v"]},
        "resourceAttributes": {"verb": "get", "group": "apps", "resource": "deployments", "subresource": "scale", "namespace": "n", "name": "d"},
    }}));
    let request = spec.request();
    assert!(request.is_resource_request);
    assert_eq!((&*request.verb, &*request.api_group, &*request.api_version), ("get", "apps", "*"));
    assert_eq!((&*request.resource, &*request.subresource), ("deployments", "scale"));
    assert_eq!((&*request.namespace, &*request.name), ("n", "d"));
    let user = spec.somebody();
    assert_eq!(
        (&*user.name, &*user.uid, &user.groups[..], &user.extra["k"][..]),
        ("u", "7", &["g".to_owned()][..], &["v".to_owned()][..])
    );
    let (spec, _) = read(json!({"spec": {"nonResourceAttributes": {"path": "/a", "verb": "get"}}}));
    let request = spec.request();
    assert_eq!((request.is_resource_request, &*request.path, &*request.verb), (false, "/a", "get"));
}
