use super::*;
use crate::Stage;

fn policy(text: &str) -> Policy {
    Policy::parse(text.as_bytes(), |warning| panic!("{warning}")).expect(text)
}

fn rules(rules: &str) -> Policy {
    policy(&format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{rules}]"))
}

/// `user groups verb what`, where what is a path, or `group/resource[/subresource] namespace name`.
fn level(policy: &Policy, request: &str) -> Level {
    let words: Vec<&str> = request.split(' ').collect();
    let word = |index: usize| words.get(index).copied().unwrap_or_default();
    let groups = word(1).split(',').map(str::to_owned).collect();
    let user = UserInfo { name: word(0).to_owned(), groups, ..UserInfo::default() };
    let is_resource = !word(3).starts_with('/');
    let mut parts = word(3).split('/');
    let mut part = || if is_resource { parts.next().unwrap_or_default() } else { "" };
    let (group, resource, subresource) = (part(), part(), part());
    let unknown = |text: &&str| *text != "-";
    let request = Attributes {
        user: Some(&user).filter(|user| user.name != "?"),
        verb: word(2),
        is_resource,
        path: word(3),
        group: Some(group).filter(unknown).unwrap_or_default(),
        resource,
        subresource,
        namespace: Some(word(4)).filter(unknown).unwrap_or_default(),
        name: word(5),
    };
    policy.decide(&request).level
}

#[test]
fn the_first_rule_that_matches_decides() {
    let policy = rules(
        r#"{level: None, users: ["system:kube-proxy"], verbs: [watch], resources: [{group: "", resources: [endpoints, services]}]},
           {level: None, userGroups: [nodes], nonResourceURLs: ["/api*", /version]},
           {level: Request, resources: [{group: "", resources: [configmaps], resourceNames: [lock]}], namespaces: [kube-system]},
           {level: Metadata, resources: [{group: "", resources: [secrets, configmaps, "pods/log"]}]},
           {level: Request, resources: [{group: apps}, {group: "*", resources: ["*/scale"]}, {group: "", resources: ["pods/*"]}]},
           {level: RequestResponse, namespaces: [""]},
           {level: None, verbs: [list]},
           {level: Metadata, nonResourceURLs: ["*"]}"#,
    );
    use Level::{Metadata, None, Request, RequestResponse};
    for (request, expected) in [
        ("system:kube-proxy g watch -/endpoints a", None),
        ("system:kube-proxy g get -/endpoints a", None),
        ("system:kube-proxy g get -/endpoints -", RequestResponse),
        ("bob nodes get /apis", None),
        ("bob x,nodes get /version", None),
        ("bob nodes get /versions", Metadata),
        ("? nodes get /version", Metadata),
        ("bob x get -/configmaps kube-system lock", Request),
        ("bob x get -/configmaps kube-system other", Metadata),
        ("bob x get -/secrets a b", Metadata),
        ("bob x get -/pods/log a b", Metadata),
        ("bob x get -/pods/exec a b", Request),
        ("bob x get -/pods a b", Request),
        ("bob x get apps/deployments a b", Request),
        ("bob x get batch/jobs/scale a b", Request),
        ("bob x get batch/jobs a b", None),
        ("bob x get -/nodes - b", RequestResponse),
        ("bob x list batch/jobs a", None),
    ] {
        assert_eq!(level(&policy, request), expected, "{request}");
    }
    assert_eq!(level(&rules("{level: Metadata, users: [x]}"), "bob g get /x"), None, "no rule, no line");
}

#[test]
fn what_is_secret_is_never_written_down() {
    let (all, nothing) = (rules("{level: RequestResponse}"), rules("{level: None}"));
    for (request, expected) in [
        ("bob g create -/secrets a", Level::Metadata),
        ("bob g get -/secrets a b", Level::Metadata),
        ("bob g create -/serviceaccounts/token a b", Level::Metadata),
        ("bob g create authentication.k8s.io/tokenreviews -", Level::Metadata),
        ("bob g create -/serviceaccounts a b", Level::RequestResponse),
        ("bob g create example.com/secrets a", Level::RequestResponse),
    ] {
        assert_eq!(level(&all, request), expected, "{request}");
        assert_eq!(level(&nothing, request), Level::None, "{request}");
    }
}

#[test]
fn stages_and_managed_fields_of_a_rule_and_of_all() {
    let text = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nomitManagedFields: true\n\
                rules:\n- {level: Metadata, verbs: [get], omitStages: [Panic], omitManagedFields: false}\n\
                - {level: Metadata, verbs: [list], omitManagedFields: null}\n";
    let policy = policy(text);
    let decide = |verb: &'static str| {
        let request = Attributes {
            verb,
            user: None,
            is_resource: false,
            path: "/",
            namespace: "",
            group: "",
            resource: "",
            subresource: "",
            name: "",
        };
        let decision = policy.decide(&request);
        (Stage::ALL.map(|stage| decision.omit_stages.contains(stage)), decision.omit_managed_fields)
    };
    assert_eq!(decide("get"), ([true, false, false, true], false));
    assert_eq!(decide("list"), ([true, false, false, false], true));
    assert_eq!(decide("other"), ([true, false, false, false], true));
}

#[test]
fn a_bad_policy_is_explained_in_upstreams_words() {
    let head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n";
    for (text, complaint) in [
        ("a: [".to_owned(), "failed decoding"),
        ("rules: []".to_owned(), "unknown group version field , Kind= in policy"),
        (
            "apiVersion: audit.k8s.io/v1beta1\nkind: Policy".to_owned(),
            "unknown group version field audit.k8s.io/v1beta1, Kind=Policy in policy",
        ),
        (head.to_owned(), "loaded illegal policy with 0 rules"),
        (format!("{head}rules: [{{}}]"), "rules[0].level: Required value"),
        (
            format!("{head}rules: [{{level: All}}]"),
            r#"rules[0].level: Unsupported value: "All": supported values: "None", "Metadata", "Request", "RequestResponse""#,
        ),
        (
            format!("{head}rules: [{{level: None, nonResourceURLs: [x, '/a*b', '*']}}]"),
            r#"[rules[0].nonResourceURLs[0]: Invalid value: "x": non-resource URL rules must begin with a '/' character, rules[0].nonResourceURLs[1]: Invalid value: "/a*b": non-resource URL wildcards '*' must be the final character of the rule]"#,
        ),
        (
            format!("{head}rules: [{{level: None, nonResourceURLs: [/x], namespaces: [a]}}]"),
            "rules cannot apply to both regular resources and non-resource URLs",
        ),
        (
            format!("{head}rules: [{{level: None, resources: [{{group: '', resourceNames: [a]}}]}}]"),
            r#"rules[0].resources.resourceNames: Invalid value: ["a"]: using resourceNames requires at least one resource"#,
        ),
        (
            format!("{head}rules: [{{level: None, resources: [{{group: apps/v1}}]}}]"),
            r#"rules[0].resources.group: Invalid value: "apps/v1""#,
        ),
        (
            format!("{head}omitStages: [Never]\nrules: [{{level: None}}]"),
            r#"omitStages[0]: Invalid value: "Never": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic"#,
        ),
    ] {
        let error = Policy::parse(text.as_bytes(), |_| {}).expect_err(&text).to_string();
        assert!(error.contains(complaint), "{error}\nshould have\n{complaint}");
    }
}

#[test]
fn typing_mistakes_are_told_and_the_rest_counts() {
    let text = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrule: []\n\
                rules: [{level: None, user: [a], resources: [{groups: x}]}]";
    let mut warnings = Vec::new();
    let policy = Policy::parse(text.as_bytes(), |warning| warnings.push(warning.to_owned()));
    assert!(policy.is_ok());
    let expected = ["rule", "rules[0].user", "rules[0].resources[0].groups"];
    assert_eq!(warnings, expected.map(|name| format!("unknown field \"{name}\"")));
}
