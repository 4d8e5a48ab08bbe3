use concord_server::RequestInfo;
use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

fn list(text: &str) -> Vec<String> {
    match text {
        "" => Vec::new(),
        text => text.split(',').map(|word| word.replace("core", "")).collect(),
    }
}

/// `verbs groups resources names urls`; a dash for none.
fn rule(text: &str) -> PolicyRule {
    let words: Vec<Vec<String>> = text.split(' ').map(|word| list(word.trim_matches('-'))).collect();
    let word = |at: usize| words.get(at).cloned().unwrap_or_default();
    PolicyRule {
        verbs: word(0),
        api_groups: word(1),
        resources: word(2),
        resource_names: word(3),
        non_resource_urls: word(4),
    }
}

#[test]
fn what_is_missing_is_told_as_upstream_does() {
    for (owner, servant, missing) in [
        (&[][..], &[][..], ""),
        (&["* * *"], &["get core pods"], ""),
        (&["get core pods"], &["get core pods a"], ""),
        (&["get core pods a"], &["get core pods"], r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#),
        (&["get core pods a,b"], &["get core pods b"], ""),
        (
            &["get core pods a"],
            &["get core pods a,b"],
            r#"{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}"#,
        ),
        (&["get core */scale"], &["get core pods/scale"], ""),
        (
            &["get core pods"],
            &["get core pods/log"],
            r#"{APIGroups:[""], Resources:["pods/log"], Verbs:["get"]}"#,
        ),
        (&["get - - - /api*"], &["get - - - /api,/apis/x"], ""),
        (&["get - - - /api/*"], &["get - - - /api"], r#"{NonResourceURLs:["/api"], Verbs:["get"]}"#),
        // Stars of the servant need stars of the owner.
        (&["get,list core pods"], &["* core pods"], r#"{APIGroups:[""], Resources:["pods"], Verbs:["*"]}"#),
        // One rule has to cover each part; which one does not matter.
        (&["get core pods", "list core pods"], &["get,list core pods"], ""),
        // The verbs of one thing stand together; the lines are sorted.
        (
            &["get core pods"],
            &["get,list,watch core pods,services", "get - - - /metrics"],
            "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"watch\"]}\n\
             {APIGroups:[\"\"], Resources:[\"services\"], Verbs:[\"get\" \"list\" \"watch\"]}\n\
             {NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}",
        ),
    ] {
        let rules = |texts: &[&str]| texts.iter().map(|text| rule(text)).collect::<Vec<_>>();
        let found = covers(&rules(owner), &rules(servant));
        assert_eq!(describe_missing(&found), missing, "{owner:?} covers {servant:?}");
    }
}

/// So many words that begin with a letter.
fn many(letter: char, count: usize) -> String {
    (0..count).map(|number| format!("{letter}{number}")).collect::<Vec<_>>().join(",")
}

#[test]
fn a_rule_that_stands_for_more_than_anybody_can_look_at_costs_little() {
    let huge = rule(&format!("{} {} {} {}", many('v', 100), many('g', 100), many('r', 100), many('n', 100)));
    let alike = std::slice::from_ref(&huge);
    let missing = covers(&[], alike);
    assert!(missing.more && missing.parts.len() < 20_000, "{}", missing.parts.len());
    let text = describe_missing(&missing);
    assert!(text.len() < 4 * MAX_TOLD && text.ends_with("\nand more"), "{}", text.len());
    assert!(covers(alike, alike).is_nothing(), "one rule has all of it");
    // Of somebody who has it all in two rules, nobody finds that out in time.
    let half = |from: usize, to: usize| PolicyRule { verbs: huge.verbs[from..to].to_vec(), ..huge.clone() };
    let begun = std::time::Instant::now();
    assert!(!covers(&[half(0, 50), half(50, 100)], alike).is_nothing());
    assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", begun.elapsed());
    let long = rule(&format!("get {} {}", "g".repeat(2 << 20), many('r', 1000)));
    assert!(covers(&[], &[long]).parts.is_empty(), "one word alone is too long to be told");
}

fn words(words: &'static [&'static str], most: usize) -> impl Strategy<Value = Vec<String>> {
    vec(select(words).prop_map(ToOwned::to_owned), 0..=most)
}

/// A rule is about resources or about paths; nobody can store one that is about both.
fn any_rule() -> impl Strategy<Value = PolicyRule> {
    let verbs = || words(&["get", "list", "*"], 2);
    let groups = words(&["", "apps", "*"], 2);
    let resources = words(&["pods", "pods/log", "*/log", "*"], 2);
    let names = words(&["a", "b"], 2);
    let urls = words(&["/x", "/x/*", "/x/y", "*"], 2);
    let of_resources = (verbs(), groups, resources, names);
    prop_oneof![
        of_resources.prop_map(|(verbs, api_groups, resources, resource_names)| PolicyRule {
            verbs,
            api_groups,
            resources,
            resource_names,
            ..PolicyRule::default()
        }),
        (verbs(), urls).prop_map(|(verbs, non_resource_urls)| PolicyRule {
            verbs,
            non_resource_urls,
            ..PolicyRule::default()
        }),
    ]
}

fn requests() -> Vec<RequestInfo> {
    let mut all = Vec::new();
    for verb in ["get", "list"] {
        for path in ["/x", "/x/y", "/z"] {
            all.push(RequestInfo { verb: verb.into(), path: path.to_owned(), ..RequestInfo::default() });
        }
        for (group, resource, subresource, name) in [
            ("", "pods", "", "a"),
            ("", "pods", "log", "b"),
            ("apps", "pods", "", ""),
            ("apps", "x", "log", "c"),
        ] {
            all.push(RequestInfo {
                is_resource_request: true,
                verb: verb.into(),
                api_group: group.to_owned(),
                resource: resource.to_owned(),
                subresource: subresource.to_owned(),
                name: name.to_owned(),
                ..RequestInfo::default()
            });
        }
    }
    all
}

proptest! {
    #[test]
    fn whatever_is_covered_is_allowed(owner in vec(any_rule(), 0..4), servant in vec(any_rule(), 0..3)) {
        if covers(&owner, &servant).is_nothing() {
            for request in requests() {
                let allows = |rules: &[PolicyRule]| rules.iter().any(|rule| rule.allows(&request));
                prop_assert!(!allows(&servant) || allows(&owner), "{request:?}");
            }
        }
    }

    #[test]
    fn rules_cover_themselves_and_what_they_cover_covers(
        a in vec(any_rule(), 0..3), b in vec(any_rule(), 0..3), c in vec(any_rule(), 0..3),
    ) {
        prop_assert!(covers(&a, &a).is_nothing());
        prop_assert!(covers(&a, &[]).is_nothing());
        if covers(&a, &b).is_nothing() && covers(&b, &c).is_nothing() {
            prop_assert!(covers(&a, &c).is_nothing());
        }
        let both: Vec<PolicyRule> = a.iter().chain(&b).cloned().collect();
        prop_assert!(covers(&both, &b).is_nothing());
    }

    #[test]
    fn what_is_missing_is_all_that_is_missing(owner in vec(any_rule(), 0..3), servant in vec(any_rule(), 0..3)) {
        let missing = covers(&owner, &servant);
        let both: Vec<PolicyRule> = owner.iter().chain(&missing.parts).cloned().collect();
        prop_assert!(covers(&both, &servant).is_nothing());
    }
}
