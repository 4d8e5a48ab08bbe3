//! What the status of a namespace says about its deletion.

use std::collections::BTreeMap;

use concord_merge::apply::Time;
use serde_json::{Value, json};

use super::content::Totals;

/// A condition: its type, whether it holds, why and in which words.
type Condition = (&'static str, bool, &'static str, String);

/// The conditions that follow from what is left and from what could not be deleted, by resource.
fn wanted(left: &Totals, failures: &BTreeMap<String, String>) -> [Condition; 5] {
    [
        undiscovered(left),
        // What is served is known here without asking and needs no parsing, so this one never holds.
        fine(
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        failed(failures),
        content(&left.objects),
        finalizers(&left.finalizers),
    ]
}

fn fine(name: &'static str, reason: &'static str, message: &str) -> Condition {
    (name, false, reason, message.to_owned())
}

/// What is not served here is what upstream could not find out about, and so is what a server behind this one does not say.
fn undiscovered(left: &Totals) -> Condition {
    let name = "NamespaceDeletionDiscoveryFailure";
    let strangers = left.strangers.iter();
    let told = strangers
        .map(|(version, count)| format!("{version}: {count} resource instances are not served here"))
        .chain(left.undiscovered.iter().map(|(version, why)| format!("{version}: {why}")));
    let told: Vec<String> = told.collect();
    if told.is_empty() {
        return fine(name, "ResourcesDiscovered", "All resources successfully discovered");
    }
    let message = format!(
        "Discovery failed for some groups, {} failing: unable to retrieve the complete list of server APIs: {}",
        told.len(),
        told.join(", ")
    );
    (name, true, "DiscoveryFailed", message)
}

fn failed(failures: &BTreeMap<String, String>) -> Condition {
    let name = "NamespaceDeletionContentFailure";
    if failures.is_empty() {
        return fine(
            name,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        );
    }
    let mut texts: Vec<&str> = failures.values().map(String::as_str).collect();
    texts.sort_unstable();
    let (count, texts) = (failures.len(), texts.join(", "));
    let message = format!("Failed to delete all resource types, {count} remaining: {texts}");
    (name, true, "ContentDeletionFailed", message)
}

fn content(objects: &BTreeMap<String, usize>) -> Condition {
    let name = "NamespaceContentRemaining";
    if objects.is_empty() {
        return fine(name, "ContentRemoved", "All content successfully removed");
    }
    let message = format!("Some resources are remaining: {}", counted(objects, "has"));
    (name, true, "SomeResourcesRemain", message)
}

fn finalizers(counts: &BTreeMap<String, usize>) -> Condition {
    let name = "NamespaceFinalizersRemaining";
    if counts.is_empty() {
        return fine(name, "ContentHasNoFinalizers", "All content-preserving finalizers finished");
    }
    let counted = counted(counts, "in");
    let message = format!("Some content in the namespace has finalizers remaining: {counted}");
    (name, true, "SomeFinalizersRemain", message)
}

/// The texts in the order of upstream's: sorted as a whole.
fn counted(counts: &BTreeMap<String, usize>, between: &str) -> String {
    let text = |(what, count)| format!("{what} {between} {count} resource instances");
    let mut texts: Vec<String> = counts.iter().map(text).collect();
    texts.sort_unstable();
    texts.join(", ")
}

/// Brings the conditions up to date. False if they already are: the time alone is no change.
pub(super) fn update(
    conditions: &mut Vec<Value>,
    left: &Totals,
    failures: &BTreeMap<String, String>,
    now: Time,
) -> bool {
    let mut changed = false;
    for (name, holds, reason, message) in wanted(left, failures) {
        let status = if holds { "True" } else { "False" };
        let old = conditions.iter_mut().find(|condition| condition["type"] == name);
        let Some(old) = old else {
            conditions.push(json!({
                "type": name, "status": status, "lastTransitionTime": now.to_string(), "reason": reason, "message": message,
            }));
            changed = true;
            continue;
        };
        if old["status"] == status && old["reason"] == reason && old["message"] == message {
            continue;
        }
        let since = match old["status"] == status {
            true => old["lastTransitionTime"].clone(),
            false => Value::from(now.to_string()),
        };
        *old = json!({"type": name, "status": status, "lastTransitionTime": since, "reason": reason, "message": message});
        changed = true;
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLY: Time = Time { unix: 0 };
    const LATE: Time = Time { unix: 60 };

    fn texts(conditions: &[Value]) -> Vec<[&str; 3]> {
        fn text<'a>(condition: &'a Value, name: &str) -> &'a str {
            condition[name].as_str().unwrap_or_default()
        }
        assert!(conditions.iter().all(|condition| text(condition, "lastTransitionTime").len() == 20));
        conditions
            .iter()
            .map(|condition| ["status", "reason", "message"].map(|name| text(condition, name)))
            .collect()
    }

    #[test]
    fn an_empty_namespace_says_that_all_went_well() {
        let mut conditions = Vec::new();
        assert!(update(&mut conditions, &Totals::default(), &BTreeMap::new(), EARLY));
        assert_eq!(
            texts(&conditions),
            [
                ["False", "ResourcesDiscovered", "All resources successfully discovered"],
                ["False", "ParsedGroupVersions", "All legacy kube types successfully parsed"],
                [
                    "False",
                    "ContentDeleted",
                    "All content successfully deleted, may be waiting on finalization"
                ],
                ["False", "ContentRemoved", "All content successfully removed"],
                ["False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"],
            ]
        );
        assert!(!update(&mut conditions, &Totals::default(), &BTreeMap::new(), LATE), "nothing changed");
    }

    #[test]
    fn what_is_left_is_counted_and_the_time_is_that_of_the_change() {
        let mut conditions = Vec::new();
        update(&mut conditions, &Totals::default(), &BTreeMap::new(), EARLY);
        let left = Totals {
            objects: BTreeMap::from([("pods.".to_owned(), 2), ("deployments.apps".to_owned(), 1)]),
            finalizers: BTreeMap::from([("example.com/hold".to_owned(), 3)]),
            strangers: BTreeMap::from([("example.com/v1".to_owned(), 4)]),
            undiscovered: BTreeMap::from([("a.b/v1".to_owned(), "why".to_owned())]),
        };
        let failures =
            BTreeMap::from([("pods.".to_owned(), "no".to_owned()), ("a.b".to_owned(), "oh".to_owned())]);
        assert!(update(&mut conditions, &left, &failures, LATE));
        assert_eq!(
            texts(&conditions)[0],
            [
                "True",
                "DiscoveryFailed",
                "Discovery failed for some groups, 2 failing: unable to retrieve the complete list of server APIs: \
                 example.com/v1: 4 resource instances are not served here, a.b/v1: why"
            ]
        );
        assert_eq!(
            texts(&conditions)[2..],
            [
                ["True", "ContentDeletionFailed", "Failed to delete all resource types, 2 remaining: no, oh"],
                [
                    "True",
                    "SomeResourcesRemain",
                    "Some resources are remaining: deployments.apps has 1 resource instances, pods. has 2 resource instances"
                ],
                [
                    "True",
                    "SomeFinalizersRemain",
                    "Some content in the namespace has finalizers remaining: example.com/hold in 3 resource instances"
                ],
            ]
        );
        assert_eq!(conditions[1]["lastTransitionTime"], "1970-01-01T00:00:00Z");
        assert_eq!(conditions[3]["lastTransitionTime"], "1970-01-01T00:01:00Z");
        let fewer = Totals { objects: BTreeMap::from([("pods.".to_owned(), 1)]), ..Totals::default() };
        assert!(update(&mut conditions, &fewer, &BTreeMap::new(), Time { unix: 120 }));
        assert_eq!(conditions[3]["lastTransitionTime"], "1970-01-01T00:01:00Z", "it held before");
    }
}
