use concord_meta::labels::LabelSelector;

use super::*;
use crate::policy::place;

fn rule(verb: &str) -> PolicyRule {
    PolicyRule { verbs: vec![verb.to_owned()], ..PolicyRule::default() }
}

fn role(labels: &[(&str, &str)], verbs: &[&str], aggregates: Option<&[(&str, &str)]>) -> ClusterRole {
    let owned = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let selector =
        |pair: &(&str, &str)| LabelSelector { match_labels: owned(&[*pair]), ..LabelSelector::default() };
    ClusterRole {
        labels: owned(labels),
        rules: verbs.iter().map(|verb| rule(verb)).collect(),
        aggregates: aggregates.map(|pairs| pairs.iter().map(selector).collect()),
        ..ClusterRole::default()
    }
}

fn outdated_in(roles: &[(&str, ClusterRole)]) -> Vec<(String, Vec<String>)> {
    let mut policy = Policy::default();
    for (name, role) in roles {
        policy.set_role(place("", name), Some(role.clone()));
    }
    // Roles of namespaces are never aggregated.
    policy.set_role(place("n", "local"), Some(role(&[("to", "all")], &["local"], None)));
    let verbs = |rules: Vec<PolicyRule>| rules.into_iter().flat_map(|rule| rule.verbs).collect();
    outdated(&policy).into_iter().map(|(name, rules)| (name.to_owned(), verbs(rules))).collect()
}

#[test]
fn aggregated_roles_have_the_rules_of_those_they_select() {
    let all = Some(&[("to", "all")][..]);
    let given = |name: &str, verbs: &[&str]| {
        (name.to_owned(), verbs.iter().map(|verb| (*verb).to_owned()).collect::<Vec<_>>())
    };
    let (b, a) = (role(&[("to", "all")], &["b", "both"], None), role(&[("to", "all")], &["a", "both"], None));
    // By name, each rule once; other labels do not count.
    let roles = [
        ("sum", role(&[], &[], all)),
        ("b", b.clone()),
        ("a", a.clone()),
        ("c", role(&[("to", "x")], &["c"], None)),
    ];
    assert_eq!(outdated_in(&roles), [given("sum", &["a", "both", "b"])]);
    // Up to date: nothing to do.
    assert_eq!(
        outdated_in(&[("sum", role(&[], &["a", "both", "b"], all)), ("b", b.clone()), ("a", a.clone())]),
        []
    );
    // Selector by selector.
    let two = role(&[], &[], Some(&[("to", "x"), ("to", "all")]));
    assert_eq!(
        outdated_in(&[("sum", two), ("a", a.clone()), ("c", role(&[("to", "x")], &["c"], None))]),
        [given("sum", &["c", "a", "both"])]
    );
    // What it selects of itself does not count, and what nobody gives goes away.
    assert_eq!(outdated_in(&[("sum", role(&[("to", "all")], &["own"], all))]), [given("sum", &[])]);
    // No selector selects nothing; a role that is not aggregated is left alone.
    assert_eq!(outdated_in(&[("sum", role(&[], &["own"], Some(&[]))), ("a", a)]), [given("sum", &[])]);
    assert_eq!(outdated_in(&[("plain", role(&[], &["own"], None)), ("b", b)]), []);
}
