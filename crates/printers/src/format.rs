//! Cells that several kinds share.

use concord_meta::Quantity;
use concord_meta::labels::{LabelSelector, LabelSelectorRequirement};
use jiff::Timestamp;
use serde_json::Value;

use crate::duration;
use crate::fields::Fields;

/// What stands for nothing.
pub(crate) const NONE: &str = "<none>";

/// What stands for a field that was not set.
pub(crate) const UNSET: &str = "<unset>";

/// How long the object exists.
pub(crate) fn age(object: Fields<'_>, now: Timestamp) -> String {
    duration::since(object.metadata().time("creationTimestamp"), now)
}

/// The text, or what stands for an empty one.
pub(crate) fn or(text: String, empty: &str) -> String {
    if text.is_empty() { empty.to_owned() } else { text }
}

/// Texts with something between them.
pub(crate) fn join<'a>(texts: impl IntoIterator<Item = &'a str>, separator: &str) -> String {
    Vec::from_iter(texts).join(separator)
}

/// The first texts, and how many more there are.
pub(crate) fn join_first(texts: &[String], most: usize) -> String {
    match texts.len().checked_sub(most) {
        Some(more @ 1..) => format!("{} + {more} more...", texts[..most].join(",")),
        _ => texts.join(","),
    }
}

/// Like [`join_first`] with three texts and a word for nothing.
pub(crate) fn join_three(texts: &[String]) -> String {
    or(join_first(texts, 3), UNSET)
}

/// Names and images of the containers of a pod.
pub(crate) fn containers(pod_spec: Fields<'_>) -> (String, String) {
    let all = |field| join(pod_spec.items("containers").map(|container| container.text(field)), ",");
    (all("name"), all("image"))
}

/// A map of labels. Sorted as upstream does it: `a-b=1` comes before `a=1`.
pub(crate) fn labels(object: Fields<'_>, field: &str) -> String {
    let mut pairs: Vec<String> = object.pairs(field).map(|(key, value)| format!("{key}={value}")).collect();
    pairs.sort();
    or(pairs.join(","), NONE)
}

/// A `LabelSelector` as one writes it on the command line; empty when there is none or it selects
/// everything, absent when it is invalid.
pub(crate) fn selector(object: Fields<'_>, field: &str) -> Option<String> {
    let selector = label_selector(object.at(field)).to_selector().ok()?;
    Some(selector.to_string())
}

/// [`selector`] with words for nothing and for an invalid one.
pub(crate) fn selector_or_none(object: Fields<'_>, field: &str) -> String {
    selector(object, field).map_or_else(|| "<error>".to_owned(), |text| or(text, NONE))
}

fn label_selector(selector: Fields<'_>) -> LabelSelector {
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let requirement = |expression: Fields<'_>| LabelSelectorRequirement {
        key: expression.text("key").to_owned(),
        operator: expression.text("operator").to_owned(),
        values: expression.texts("values").map(str::to_owned).collect(),
    };
    LabelSelector {
        match_labels: selector.pairs("matchLabels").map(owned).collect(),
        match_expressions: selector.items("matchExpressions").map(requirement).collect(),
    }
}

/// A `LabelSelector` as Go's generated code writes it, which is what upstream shows where nobody thought
/// of people.
pub(crate) fn selector_as_go(selector: Fields<'_>) -> String {
    let labels = selector.pairs("matchLabels").map(|(key, value)| format!("{key}: {value},"));
    let expressions = selector.items("matchExpressions").map(|expression| {
        format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            expression.text("key"),
            expression.text("operator"),
            join(expression.texts("values"), " "),
        )
    });
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{}}},}}",
        labels.collect::<String>(),
        expressions.collect::<String>(),
    )
}

/// A quantity in canonical form, if the field holds one.
pub(crate) fn optional_quantity(object: Fields<'_>, field: &str) -> Option<String> {
    let text = match object.value(field)? {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    // What is no quantity was never let in; if it is there nevertheless, it is shown.
    Some(text.parse::<Quantity>().map_or(text, |quantity| quantity.to_string()))
}

/// A quantity that is zero when absent.
pub(crate) fn quantity(object: Fields<'_>, field: &str) -> String {
    optional_quantity(object, field).unwrap_or_else(|| "0".to_owned())
}

/// In lower case, letter by letter as Go does it.
pub(crate) fn lower(text: &str) -> String {
    text.chars().filter_map(|letter| letter.to_lowercase().next()).collect()
}

/// A resource or kind with its group: `deployments.apps`, `pods`.
pub(crate) fn with_group(name: &str, group: &str) -> String {
    match group {
        "" => name.to_owned(),
        group => format!("{name}.{group}"),
    }
}

#[cfg(test)]
#[path = "format/tests.rs"]
mod tests;
