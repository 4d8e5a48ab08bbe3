//! Good and bad names, with upstream's words for what is wrong.

use proptest::prelude::*;

use super::*;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn check(rule: fn(&str) -> Vec<String>, value: &str, problems: &[&str]) {
    assert_eq!(rule(value), problems, "{value:?}");
}

#[test]
fn dns_names() {
    let long = "a".repeat(64);
    let longer = "a".repeat(254);
    for good in ["a", "0", "a-b", "123-abc", &long[1..]] {
        check(dns1123_label, good, &[]);
    }
    for bad in ["", "-a", "a-", "A", "a_b", "a..b", "ä", "a\0", "a b", "a/b"] {
        check(dns1123_label, bad, &[LABEL]);
        check(dns1123_subdomain, bad, &[SUBDOMAIN]);
    }
    check(dns1123_label, "a.b", &["must not contain dots"]);
    check(dns1123_label, &long, &["must be no more than 63 characters"]);
    for good in ["a.b", "example.com", "1.2.3", &long, &longer[1..]] {
        check(dns1123_subdomain, good, &[]);
    }
    check(dns1123_subdomain, ".a", &[SUBDOMAIN]);
    check(dns1123_subdomain, &longer, &["must be no more than 253 characters"]);
    check(dns1035_label, "a1", &[]);
    let dns1035 = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    for bad in ["1a", "", "a.b"] {
        check(dns1035_label, bad, &[dns1035]);
    }
}

#[test]
fn qualified_names() {
    for good in ["a", "A_b.c-1", "example.com/MyName", "1", "kubernetes.io/metadata.name"] {
        check(qualified_name, good, &[]);
    }
    check(qualified_name, "", &["name part must be non-empty", NAME_PART]);
    check(qualified_name, "a b", &[NAME_PART]);
    check(qualified_name, "-a", &[NAME_PART]);
    check(qualified_name, "/a", &["prefix part must be non-empty"]);
    check(qualified_name, "A/a", &[&format!("prefix part {SUBDOMAIN}")]);
    check(qualified_name, "a/", &["name part must be non-empty", NAME_PART]);
    check(qualified_name, &"a".repeat(64), &["name part must be no more than 63 bytes"]);
    let prefix = format!("{}/a", "a".repeat(254));
    check(qualified_name, &prefix, &["prefix part must be no more than 253 bytes"]);
    let key = NAME_PART.replacen("name part", "a valid label key", 1);
    let whole = format!("{key} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
    check(qualified_name, "a/b/c", &[&whole]);
}

#[test]
fn label_values_and_keys_of_config_maps() {
    for good in ["", "a", "A-b_c.1", "12345"] {
        check(label_value, good, &[]);
    }
    let value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    for bad in ["-", "a b", "_a", "a.", "a/b"] {
        check(label_value, bad, &[value]);
    }
    check(label_value, &"a".repeat(64), &["must be no more than 63 bytes"]);
    for good in ["a", ".dotfile", "-", "A_b", "..a".trim_start_matches('.')] {
        check(config_map_key, good, &[]);
    }
    check(config_map_key, ".", &["must not be '.'"]);
    check(config_map_key, "..", &["must not be '..'"]);
    check(config_map_key, "..a", &["must not start with '..'"]);
    let key = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
    for bad in ["", "a/b", "a b"] {
        check(config_map_key, bad, &[key]);
    }
}

#[test]
fn path_segments() {
    for good in ["system:node", "A b", "a.b", "..a", ""] {
        check(path_segment, good, &[]);
    }
    check(path_segment, ".", &["may not be '.'"]);
    check(path_segment, "..", &["may not be '..'"]);
    check(path_segment, "a/b%c", &["may not contain '/'", "may not contain '%'"]);
    assert!(NameRule::PathSegment.check_prefix(".").is_empty(), "a suffix will follow");
}

#[test]
fn a_prefix_may_end_in_a_dash() {
    for (prefix, good) in
        [("web-", true), ("web", true), ("-", false), ("a.-", true), ("Web-", false), ("é-", false)]
    {
        assert_eq!(NameRule::Dns1123Subdomain.check_prefix(prefix).is_empty(), good, "{prefix}");
    }
    assert!(!NameRule::Dns1123Subdomain.check("web-").is_empty());
    assert!(!NameRule::Dns1123Label.check("a.b").is_empty());
    assert!(!NameRule::Dns1035Label.check("1").is_empty());
}

#[test]
fn newer_rules_tell_bytes_and_ask_of_the_name_alone() {
    let long = "a".repeat(254);
    assert_eq!(NameRule::LongName.check(&long), ["must be no more than 253 bytes"]);
    assert_eq!(NameRule::LongName.check("A_B"), NameRule::Dns1123Subdomain.check("A_B"));
    assert!(NameRule::LongName.check("a.b").is_empty());
    assert!(NameRule::LongName.check_prefix("A_B-").is_empty());
}

#[test]
fn generated_names_are_cut_to_fit() {
    assert_eq!(generate("web-", "x2b4z"), "web-x2b4z");
    assert_eq!(generate(&"a".repeat(58), "x2b4z"), format!("{}x2b4z", "a".repeat(58)));
    assert_eq!(generate(&"a".repeat(100), "x2b4z").len(), 63);
    assert_eq!(generate(&"é".repeat(40), "x2b4z").len(), 63);
    assert_eq!(generate(&format!("a{}", "é".repeat(40)), "x2b4z").len(), 62, "never half a character");
}

proptest! {
    #[test]
    fn a_label_is_a_subdomain_and_a_label_value(value in "[-a-z0-9.A]{0,70}") {
        if dns1123_label(&value).is_empty() {
            prop_assert!(dns1123_subdomain(&value).is_empty());
            prop_assert!(label_value(&value).is_empty());
            prop_assert!(qualified_name(&value).is_empty());
        }
    }

    #[test]
    fn what_is_generated_from_a_good_prefix_is_good(prefix in "[a-z][-a-z0-9]{0,80}", suffix in "[a-z0-9]{5}") {
        let cut = &prefix[..prefix.len().min(63)];
        prop_assume!(NameRule::Dns1123Label.check_prefix(cut).is_empty());
        prop_assert!(dns1123_label(&generate(&prefix, &suffix)).is_empty());
    }

    #[test]
    fn any_text_is_answered(value in ".*") {
        let mut problems = [qualified_name(&value), label_value(&value), config_map_key(&value)].concat();
        for rule in [NameRule::Dns1123Subdomain, NameRule::LongName, NameRule::Dns1123Label, NameRule::Dns1035Label, NameRule::PathSegment] {
            problems.extend(rule.check(&value));
            problems.extend(rule.check_prefix(&value));
        }
        prop_assert!(problems.iter().all(|problem| !problem.is_empty()));
    }
}
