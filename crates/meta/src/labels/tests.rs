//! Selectors in, canonical selectors or upstream's complaints out.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;

const KEY_TEXT: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_TEXT: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn labels(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split_terminator(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[test]
fn good_selectors_have_a_canonical_form() {
    let table = [
        ("", ""),
        (" \t\r\n", ""),
        ("a", "a"),
        ("!a", "!a"),
        ("! a", "!a"),
        ("a=b", "a=b"),
        ("a = b", "a=b"),
        ("a==b", "a==b"),
        ("a!=b", "a!=b"),
        ("a=", "a="),
        ("a=,b", "a=,b"),
        ("x>5", "x>5"),
        ("x < 5", "x<5"),
        ("c,b=1,a!=2", "a!=2,b=1,c"),
        ("x in (c,a,b,a)", "x in (a,b,c)"),
        ("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()"),
        ("x in (,)", "x in ()"),
        ("x in (a,)", "x in (,a)"),
        ("x in ( , a)", "x in (,a)"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("notin", "notin"),
        ("a=in", "a=in"),
        ("example.com/a=b", "example.com/a=b"),
        ("a\0", "a"),
        ("\0garbage(", ""),
    ];
    for (text, canonical) in table {
        assert_eq!(Selector::parse(text).expect(text).to_string(), canonical, "{text:?}");
    }
}

#[test]
fn bad_selectors_get_upstreams_complaint() {
    let operators = "expected: in, notin, =, ==, !=, gt, lt";
    let key = format!(r#"unable to parse requirement: <nil>: Invalid value: "-a": {KEY_TEXT}"#);
    let value = format!(r#"unable to parse requirement: values[0][a]: Invalid value: "-b": {VALUE_TEXT}"#);
    let both = format!(
        r#"unable to parse requirement: [values[0]: Invalid value: "x-": for 'Gt', 'Lt' operators, the value must be an integer, values[0][a]: Invalid value: "x-": {VALUE_TEXT}]"#
    );
    let no_integer = r#"unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer"#;
    let table = [
        ("=", "found '=', expected: !, identifier, or 'end of string'".to_owned()),
        (",a", "found ',', expected: !, identifier, or 'end of string'".to_owned()),
        ("!", "unable to parse requirement: found '', expected: identifier".to_owned()),
        ("!=a", "found '!=', expected: !, identifier, or 'end of string'".to_owned()),
        ("!!a", "unable to parse requirement: found '!', expected: identifier".to_owned()),
        ("a,", "found '', expected: identifier after ','".to_owned()),
        ("a,,b", "found ',', expected: identifier after ','".to_owned()),
        ("a b", format!("unable to parse requirement: found 'b', {operators}")),
        ("a\0b", format!("unable to parse requirement: found 'b', {operators}")),
        ("a!b", format!("unable to parse requirement: found '!', {operators}")),
        ("a(", format!("unable to parse requirement: found '(', {operators}")),
        ("a=b=c", "found '=', expected: ',' or 'end of string'".to_owned()),
        ("a=b c", "found 'c', expected: ',' or 'end of string'".to_owned()),
        ("!a=b", "found '=', expected: ',' or 'end of string'".to_owned()),
        ("a===b", "unable to parse requirement: found '=', expected: identifier".to_owned()),
        ("a>=1", "unable to parse requirement: found '=', expected: identifier".to_owned()),
        ("a=(", "unable to parse requirement: found '(', expected: identifier".to_owned()),
        ("a in", "unable to parse requirement: found '' expected: '('".to_owned()),
        ("a in b", "unable to parse requirement: found 'b' expected: '('".to_owned()),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier".to_owned()),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'".to_owned()),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'".to_owned()),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier".to_owned()),
        ("a in (b,=)", "unable to parse requirement: found '=', expected: ',', or identifier".to_owned()),
        ("a in (b))", "found ')', expected: ',' or 'end of string'".to_owned()),
        ("-a", key),
        ("a=-b", value),
        ("a>x", no_integer.to_owned()),
        ("a>x-", both),
    ];
    for (text, complaint) in table {
        assert_eq!(Selector::parse(text).expect_err(text).to_string(), complaint, "{text:?}");
    }
}

#[test]
fn selectors_select() {
    let table = [
        ("", "", true),
        ("a", "a=1", true),
        ("a", "b=1", false),
        ("!a", "b=1", true),
        ("!a", "a=", false),
        ("a=1", "a=1", true),
        ("a=1", "a=2", false),
        ("a=1", "", false),
        ("a=", "a=", true),
        ("a=", "", false),
        ("a!=1", "a=2", true),
        ("a!=1", "", true),
        ("a!=1", "a=1", false),
        ("a in (1,2)", "a=2", true),
        ("a in (1,2)", "", false),
        ("a notin (1,2)", "", true),
        ("a notin (1,2)", "a=2", false),
        ("a>5", "a=6", true),
        ("a>5", "a=5", false),
        ("a>5", "a=x", false),
        ("a<5", "a=4", true),
        ("a<5", "", false),
        ("a=1,b=2", "a=1,b=2", true),
        ("a=1,b=2", "a=1", false),
        ("a=1,a=2", "a=1", false),
    ];
    for (selector, object, selected) in table {
        let selector = Selector::parse(selector).expect(selector);
        assert_eq!(selector.matches(&labels(object)), selected, "{selector} on {object}");
    }
    assert!(!Selector::nothing().matches(&labels("")));
    assert!(!Selector::nothing().is_everything() && Selector::everything().is_everything());
    let none: Option<&Map<String, Value>> = None;
    assert!(Selector::parse("!a").expect("good").matches(&none));
    let object = json!({"a": "1", "b": 2});
    let object = object.as_object().expect("an object");
    assert!(Selector::parse("a=1,!b").expect("good").matches(object));
}

#[test]
fn an_exact_match_is_found() {
    let table = [
        ("a=1", Some("1")),
        ("a==1", Some("1")),
        ("a in (1)", Some("1")),
        ("a in (1,2)", None),
        ("a!=1", None),
        ("b=1", None),
    ];
    for (text, value) in table {
        assert_eq!(Selector::parse(text).expect(text).requires_exact_match("a"), value, "{text}");
    }
}

fn object_form(value: Value) -> LabelSelector {
    serde_json::from_value(value).expect("a label selector")
}

#[test]
fn selectors_in_objects_become_requirements() {
    let selector = object_form(json!({
        "matchLabels": {"b": "1", "a": "2"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["y", "x"]},
            {"key": "a", "operator": "NotIn", "values": ["z"]},
            {"key": "d", "operator": "Exists"},
            {"key": "e", "operator": "DoesNotExist"},
        ],
    }));
    let text = selector.to_selector().expect("valid").to_string();
    assert_eq!(text, "a=2,a notin (z),b=1,c in (x,y),d,!e");
    assert!(selector.validate(&Path::new("spec").child("selector")).is_empty());
    assert!(object_form(json!({})).to_selector().expect("valid").is_everything());
}

#[test]
fn bad_selectors_in_objects_get_upstreams_complaint() {
    let in_what = r#"values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"#;
    let exists = r#"values: Invalid value: ["x"]: values set must be empty for exists and does not exist"#;
    let table = [
        (json!({"key": "a", "operator": "In"}), in_what.to_owned(), "s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'".to_owned()),
        (json!({"key": "a", "operator": "Exists", "values": ["x"]}), exists.to_owned(), "s.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'".to_owned()),
        (json!({"key": "a", "operator": "Gt"}), r#""Gt" is not a valid label selector operator"#.to_owned(), r#"s.matchExpressions[0].operator: Invalid value: "Gt": not a valid selector operator"#.to_owned()),
        (json!({"key": "-", "operator": "Exists"}), format!(r#"key: Invalid value: "-": {KEY_TEXT}"#), format!(r#"s.matchExpressions[0].key: Invalid value: "-": {KEY_TEXT}"#)),
        (json!({"key": "a", "operator": "In", "values": ["b", "-"]}), format!(r#"values[1][a]: Invalid value: "-": {VALUE_TEXT}"#), format!(r#"s.matchExpressions[0].values[1]: Invalid value: "-": {VALUE_TEXT}"#)),
    ];
    for (requirement, conversion, validation) in table {
        let selector = object_form(json!({"matchExpressions": [requirement]}));
        assert_eq!(selector.to_selector().expect_err("bad").to_string(), conversion);
        assert_eq!(field::aggregate(&selector.validate(&Path::new("s"))), validation);
    }
    let labels = object_form(json!({"matchLabels": {"a": "-"}})).validate(&Path::new("s"));
    assert_eq!(field::aggregate(&labels), format!(r#"s.matchLabels: Invalid value: "-": {VALUE_TEXT}"#));
}

#[test]
fn the_number_of_values_must_suit_the_operator() {
    let two = || vec!["1".to_owned(), "2".to_owned()];
    let table = [
        (
            Operator::Equals,
            vec![],
            "values: Invalid value: null: exact-match compatibility requires one single value",
        ),
        (
            Operator::NotEquals,
            two(),
            r#"values: Invalid value: ["1","2"]: exact-match compatibility requires one single value"#,
        ),
        (
            Operator::LessThan,
            two(),
            r#"values: Invalid value: ["1","2"]: for 'Gt', 'Lt' operators, exactly one value is required"#,
        ),
    ];
    for (operator, values, complaint) in table {
        let errors = Requirement::new("a", operator, values).expect_err("bad");
        assert_eq!(field::aggregate(&errors), complaint);
    }
}

proptest! {
    #[test]
    fn nothing_panics_and_the_canonical_form_means_the_same(
        text in "([ab!=<>(),]|in|notin|x| ){0,12}",
        object in "((a|b|x)=(1|a|b|),){0,3}",
    ) {
        if let Ok(selector) = Selector::parse(&text) {
            let again = Selector::parse(&selector.to_string()).expect("canonical");
            prop_assert_eq!(again.matches(&labels(&object)), selector.matches(&labels(&object)));
            prop_assert_eq!(again.to_string(), selector.to_string());
        }
    }

    #[test]
    fn any_text_is_answered(text in ".*") {
        if let Err(error) = Selector::parse(&text) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
