//! Conditions of the common form.

use concord_meta::field::BadValue;

use crate::{
    node::Node,
    rules::{pattern, qualified_name},
};

const MAX_REASON: usize = 1024;
const MAX_MESSAGE: usize = 32 * 1024;

/// Conditions, each of a type of its own.
pub(crate) fn conditions(conditions: Node<'_>) {
    conditions_of(conditions, "lastTransitionTime", "");
}

/// The same where the time is called so, and this is said about what is missing.
pub(crate) fn conditions_of(conditions: Node<'_>, time: &str, missing: &'static str) {
    let mut seen: Vec<&str> = Vec::new();
    for condition in conditions.items() {
        let kind = condition.get("type");
        match seen.contains(&kind.text()) {
            true => kind.duplicate(kind.text()),
            false => seen.push(kind.text()),
        }
        kind.check(qualified_name);
        condition.get("status").one_of(&["False", "True", "Unknown"]);
        let generation = condition.get("observedGeneration");
        if let Some(number) = generation.int().filter(|number| *number < 0) {
            generation.invalid(number, "must be greater than or equal to zero");
        }
        if !condition.has(time) {
            condition.child("lastTransitionTime").required(missing);
        }
        reason(condition.get("reason"), missing);
        if condition.str("message").len() > MAX_MESSAGE {
            condition.child("message").too_long(MAX_MESSAGE);
        }
    }
}

fn reason(node: Node<'_>, missing: &'static str) {
    const REGEX: &str = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?";
    const TEXT: &str = "a condition reason must start with alphabetic character, optionally followed by a string of \
        alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'";
    let text = node.text();
    if text.is_empty() {
        return node.required(missing);
    }
    let bytes = text.as_bytes();
    let fits = bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"_,:".contains(b));
    if !fits {
        let examples = ["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"];
        node.invalid(BadValue::from(text), pattern(TEXT, REGEX, &examples));
    }
    if text.len() > MAX_REASON {
        node.too_long(MAX_REASON);
    }
}
