use serde_json::json;

use super::*;

fn jobs() -> serde_json::Value {
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": [
        {"metadata": {"name": "batch", "creationTimestamp": null}, "versions": [
            {"version": "v1", "freshness": "Current", "resources": [
                {"resource": "jobs", "responseKind": {"group": "", "version": "", "kind": "Job"}, "scope": "Namespaced",
                 "singularResource": "job", "verbs": ["create", "get"], "shortNames": null,
                 "subresources": [{"subresource": "status", "responseKind": {"kind": "Job"}, "verbs": ["get"]}]}]},
            {"version": "v2", "freshness": "Stale", "resources": [{"resource": "jobs", "verbs": ["get"]}]}]},
        {"metadata": {"name": "batch"}, "versions": [{"version": "v3"}]},
    ]})
}

fn wanted<'a>(version: &'a str, resource: &'a str, subresource: &'a str, verb: &'a str) -> Wanted<'a> {
    Wanted { group: "batch", version, resource, subresource, verb }
}

#[test]
fn a_document_says_what_a_server_has() {
    let groups = parse_groups(jobs().to_string().as_bytes()).expect("readable");
    let document = Document::new(Vec::new(), groups);
    for (wanted, has) in [
        (wanted("v1", "jobs", "", "get"), Has::Everything),
        (wanted("v1", "jobs", "", ""), Has::Everything),
        (wanted("v1", "jobs", "", "list"), Has::Endpoint),
        (wanted("v1", "jobs", "status", "get"), Has::Everything),
        (wanted("v1", "jobs", "status", "patch"), Has::Endpoint),
        (wanted("v1", "jobs", "scale", "get"), Has::Resource),
        (wanted("v1", "cronjobs", "", "get"), Has::Nothing),
        // What a server knows from hearsay it does not serve.
        (wanted("v2", "jobs", "", "get"), Has::Nothing),
    ] {
        assert_eq!(document.has(&wanted), has, "{wanted:?}");
    }
    // Of two groups with one name the first counts.
    assert_eq!(document.groups().len(), 1);
    assert_eq!(document.groups()[0].versions.len(), 2);
}

#[test]
fn what_is_taken_out_is_gone_from_lists_and_routes_also_where_it_was_empty() {
    let groups = parse_groups(jobs().to_string().as_bytes()).expect("readable");
    let document = Document::new(Vec::new(), groups);
    let is = |name: &'static str| move |version: &GroupVersion| version.version == name;
    assert!(document.mentions(is("v1")) && document.mentions(is("v2")) && !document.mentions(is("v3")));
    let without = document.without(is("v1"));
    assert_eq!(without.has(&wanted("v1", "jobs", "", "get")), Has::Nothing);
    assert_eq!(without.groups()[0].versions.len(), 1);
    assert!(without.without(is("v2")).groups().is_empty());
}

#[test]
fn fields_are_written_as_kube_apiserver_writes_them() {
    let groups = parse_groups(jobs().to_string().as_bytes()).expect("readable");
    let written = serde_json::to_string(&groups[0].versions[0]).expect("JSON");
    let expected = concat!(
        r#"{"version":"v1","resources":[{"resource":"jobs","responseKind":{"group":"","version":"","kind":"Job"},"#,
        r#""scope":"Namespaced","singularResource":"job","verbs":["create","get"],"subresources":[{"subresource":"status","#,
        r#""responseKind":{"group":"","version":"","kind":"Job"},"verbs":["get"]}]}],"freshness":"Current"}"#
    );
    assert_eq!(written, expected);
    assert_eq!(serde_json::to_string(&groups[1]).expect("JSON").find("creationTimestamp"), None);
}

#[test]
fn other_documents_are_refused() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (body, complaint) in [
        ("", "is not JSON"),
        ("404 page not found", "is not JSON"),
        (deep.as_str(), "is not JSON"),
        ("[]", "is not aggregated discovery"),
        (
            r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[7]}"#,
            "is not aggregated",
        ),
        (r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[]}"#, "is a APIGroupList of \"v1\""),
        (r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2beta1"}"#, "v2beta1"),
    ] {
        let error = parse_groups(body.as_bytes()).expect_err(complaint).to_string();
        assert!(error.contains(complaint), "{error} should say {complaint}");
    }
}
