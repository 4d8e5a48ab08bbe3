//! What must differ between two servers is made equal.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use crate::expand::Variables;

/// Fields whose values are the server's own. What matters is whether they are there.
const OWN: [&str; 7] = [
    "continue",
    "creationTimestamp",
    "deletionTimestamp",
    "lastTransitionTime",
    "resourceVersion",
    "time",
    "uid",
];

static UID: LazyLock<Regex> = LazyLock::new(|| regex("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"));
static TIME: LazyLock<Regex> = LazyLock::new(|| regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"));
/// An object that a message quotes.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| regex(r#""\{(\\.|[^"\\])*\}""#));
/// Where a text speaks of a revision.
static CURRENT: LazyLock<Regex> = LazyLock::new(|| regex(r#"(current: |in record: |resourceVersion: ")\d+"#));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a valid pattern")
}

/// A text with what is the server's own, or of this run, replaced by its name.
pub(crate) fn text(text: &str, variables: &Variables) -> String {
    // Quoted objects have the order of their fields, which means nothing, and values of the server's own.
    let text = QUOTED.replace_all(text, |found: &Captures<'_>| sorted(&found[0], variables));
    let text = UID.replace_all(&text, "<some uid>");
    let text = TIME.replace_all(&text, "<some time>");
    let mut text = CURRENT.replace_all(&text, "${1}<some revision>").into_owned();
    for (name, value) in variables.iter().filter(|(_, value)| !value.is_empty()) {
        text = words(&text, value, &format!("<{name}>"));
    }
    text
}

fn sorted(quoted: &str, variables: &Variables) -> String {
    let object =
        serde_json::from_str::<String>(quoted).ok().and_then(|text| serde_json::from_str(&text).ok());
    object.map_or_else(
        || quoted.to_owned(),
        |object| Value::String(value(&object, variables).to_string()).to_string(),
    )
}

/// Replaces a value where it stands for itself: a revision of 12 is not the 12 of `3124`.
fn words(text: &str, value: &str, name: &str) -> String {
    if !text.contains(value) {
        return text.to_owned();
    }
    let pattern = format!("(^|[^0-9A-Za-z]){}($|[^0-9A-Za-z])", regex::escape(value));
    let Ok(pattern) = Regex::new(&pattern) else { return text.to_owned() };
    let replace = |text: &str| {
        pattern
            .replace_all(text, |found: &Captures<'_>| format!("{}{name}{}", &found[1], &found[2]))
            .into_owned()
    };
    // Twice, since neighbours share what is between them.
    replace(&replace(text))
}

/// An answer with the same.
pub(crate) fn value(value: &Value, variables: &Variables) -> Value {
    match value {
        Value::String(string) => Value::String(text(string, variables)),
        Value::Array(items) => items.iter().map(|item| self::value(item, variables)).collect(),
        Value::Object(fields) => {
            let masked = fields.iter().map(|(key, field)| {
                let own = OWN.contains(&key.as_str()) && field.as_str().is_some_and(|text| !text.is_empty());
                let masked = if own { format!("<some {key}>").into() } else { self::value(field, variables) };
                (text(key, variables), masked)
            });
            Value::Object(masked.collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn variables() -> Variables {
        let mut variables = Variables::default();
        variables.set("ns", "diff-1");
        variables.set("rv", "12");
        variables
    }

    #[test]
    fn what_is_of_this_run_has_its_name() {
        for (given, masked) in [
            ("in diff-1/x at 12", "in <ns>/x at <rv>"),
            (
                r#"value: "{\"b\":1,\"a\":{\"uid\":\"x\"}}": no"#,
                r#"value: "{\"a\":{\"uid\":\"<some uid>\"},\"b\":1}": no"#,
            ),
            (r#"not "{an object}""#, r#"not "{an object}""#),
            ("12,12 and 312 and 120", "<rv>,<rv> and 312 and 120"),
            ("6c84fb90-12c4-11e1-840d-7b25c5ee775a", "<some uid>"),
            ("2026-01-02T03:04:05Z", "<some time>"),
            (
                "Too large resource version: 9, current: 77",
                "Too large resource version: 9, current: <some revision>",
            ),
        ] {
            assert_eq!(text(given, &variables()), masked);
        }
    }

    #[test]
    fn fields_of_the_server_are_there_or_not() {
        let masked =
            value(&json!({"uid": "x", "continue": "", "time": null, "a": [{"b": "diff-1"}]}), &variables());
        assert_eq!(masked, json!({"uid": "<some uid>", "continue": "", "time": null, "a": [{"b": "<ns>"}]}));
    }
}
