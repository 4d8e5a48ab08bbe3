//! What has to be changed about an object for it to give all that it is meant to. Additive: what users added stays.

use concord_registry::{Object, metadata, metadata_mut};

use serde_json::{Value, json};

use crate::{PolicyRule, Subject, covers::covers};

/// The annotation by which a user says that an object is to be left alone.
pub(crate) const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// What is to be done about an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Keep,
    /// A user wants it to stay as it is, though something is missing.
    Protected,
    /// It is to be this.
    Update(Object),
    /// It has to be made again: the role that a binding refers to cannot be changed.
    Recreate,
}

/// What is to be done about a role.
pub(crate) fn role(existing: &Object, expected: &Object) -> Step {
    let mut changed = existing.clone();
    merge_metadata(&mut changed, expected);
    let missing = covers(&rules(existing), &rules(expected));
    if !missing.parts.is_empty() {
        let all: Vec<PolicyRule> = rules(existing).into_iter().chain(missing.parts).collect();
        changed.insert("rules".to_owned(), json!(all));
    }
    let (old, new) = (selectors(existing), selectors(expected));
    match (old, new) {
        (Some(_), None) => drop(changed.remove("aggregationRule")),
        (old, Some(new)) => {
            let mut all = old.cloned().unwrap_or_default();
            let before = all.len();
            all.extend(new.iter().filter(|selector| !old.is_some_and(|old| old.contains(selector))).cloned());
            if all.len() > before {
                changed.insert("aggregationRule".to_owned(), json!({ "clusterRoleSelectors": all }));
            }
        }
        (None, None) => {}
    }
    step(existing, changed)
}

/// What is to be done about a binding.
pub(crate) fn binding(existing: &Object, expected: &Object) -> Step {
    if existing.get("roleRef") != expected.get("roleRef") {
        return if is_protected(existing) { Step::Protected } else { Step::Recreate };
    }
    let mut changed = existing.clone();
    merge_metadata(&mut changed, expected);
    let old = subjects(existing);
    let mut all = old.clone();
    for subject in subjects(expected) {
        if !all.contains(&subject) {
            all.push(subject);
        }
    }
    if all.len() > old.len() {
        changed.insert("subjects".to_owned(), json!(all));
    }
    step(existing, changed)
}

fn step(existing: &Object, changed: Object) -> Step {
    match changed == *existing {
        true => Step::Keep,
        false if is_protected(existing) => Step::Protected,
        false => Step::Update(changed),
    }
}

fn is_protected(existing: &Object) -> bool {
    let annotations = metadata(existing).get("annotations");
    annotations.and_then(|annotations| annotations.get(AUTO_UPDATE)).is_some_and(|value| value == "false")
}

/// Adds labels and annotations that are missing. What users made of those that are there stays.
fn merge_metadata(object: &mut Object, expected: &Object) {
    for name in ["annotations", "labels"] {
        let Some(Value::Object(expected)) = metadata(expected).get(name) else { continue };
        let found = metadata_mut(object).entry(name).or_insert_with(|| json!({}));
        let Value::Object(found) = found else { continue };
        for (key, value) in expected {
            found.entry(key).or_insert_with(|| value.clone());
        }
    }
}

fn rules(object: &Object) -> Vec<PolicyRule> {
    list(object, "rules")
}

fn subjects(object: &Object) -> Vec<Subject> {
    list(object, "subjects")
}

fn list<T: serde::de::DeserializeOwned>(object: &Object, name: &str) -> Vec<T> {
    let items = object.get(name).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(|item| T::deserialize(item).ok()).collect()
}

fn selectors(object: &Object) -> Option<&Vec<Value>> {
    static NONE: Vec<Value> = Vec::new();
    let rule = object.get("aggregationRule").filter(|rule| !rule.is_null())?;
    Some(rule.get("clusterRoleSelectors").and_then(Value::as_array).unwrap_or(&NONE))
}

#[cfg(test)]
mod tests;
