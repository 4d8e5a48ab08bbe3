use async_trait::async_trait;
use concord_meta::{Quantity, Status};
use concord_registry::{Admission, Attributes, Object, Operation};
use serde_json::Value;

use crate::{Objects, at, concerns, forbidden, member};

/// Gives pods what their runtime class says: where they can run, and what they cost on top.
pub struct RuntimeClass {
    classes: Objects,
}

impl RuntimeClass {
    /// Among these runtime classes.
    pub fn new(classes: Objects) -> Self {
        Self { classes }
    }

    async fn class(&self, attributes: &Attributes<'_>, pod: &Object) -> Result<Option<Object>, Status> {
        let Some(name) = at(pod, &["spec", "runtimeClassName"]).and_then(Value::as_str) else {
            return Ok(None);
        };
        let class = self.classes.find(name).await?;
        let unknown = || forbidden(attributes, &format!("pod rejected: RuntimeClass {name:?} not found"));
        class.ok_or_else(unknown).map(Some)
    }
}

#[async_trait]
impl Admission for RuntimeClass {
    fn name(&self) -> &'static str {
        "RuntimeClass"
    }

    async fn admit(&self, attributes: &Attributes<'_>, object: Option<&mut Object>) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| concerned(attributes)) else { return Ok(()) };
        let Some(class) = self.class(attributes, pod).await? else { return Ok(()) };
        let Some(spec) = member(pod, "spec") else { return Ok(()) };
        set_overhead(spec, &class)
            .and_then(|()| set_scheduling(spec, &class))
            .map_err(|why| forbidden(attributes, &why))
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| concerned(attributes)) else { return Ok(()) };
        let class = self.class(attributes, pod).await?;
        let wanted = class.as_ref().and_then(overhead);
        let given = at(pod, &["spec", "overhead"]).and_then(Value::as_object);
        match (wanted, given) {
            (None, None) => Ok(()),
            (Some(wanted), Some(given)) if equal(wanted, given) => Ok(()),
            (Some(_), _) => Err(forbidden(attributes, MISMATCH)),
            (None, Some(_)) => Err(forbidden(
                attributes,
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            )),
        }
    }
}

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

fn concerned(attributes: &Attributes<'_>) -> bool {
    attributes.operation == Operation::Create && concerns(attributes, "", "pods", "")
}

fn overhead(class: &Object) -> Option<&Object> {
    at(class, &["overhead", "podFixed"]).and_then(Value::as_object)
}

/// Whether two lists of amounts are the same, however they are written.
fn equal(one: &Object, other: &Object) -> bool {
    let amount = |value: &Value| value.as_str().and_then(|text| text.parse::<Quantity>().ok());
    one.len() == other.len()
        && one.iter().all(|(name, value)| other.get(name).map(amount) == Some(amount(value)))
}

fn set_overhead(spec: &mut Object, class: &Object) -> Result<(), String> {
    let Some(wanted) = overhead(class) else { return Ok(()) };
    let given = spec.get("overhead").and_then(Value::as_object).filter(|given| !given.is_empty());
    if given.is_some_and(|given| !equal(wanted, given)) {
        return Err(MISMATCH.to_owned());
    }
    spec.insert("overhead".to_owned(), Value::Object(wanted.clone()));
    Ok(())
}

fn set_scheduling(spec: &mut Object, class: &Object) -> Result<(), String> {
    let Some(scheduling) = class.get("scheduling").and_then(Value::as_object) else { return Ok(()) };
    if let Some(wanted) = scheduling.get("nodeSelector").and_then(Value::as_object)
        && let Some(selector) = member(spec, "nodeSelector")
    {
        for (key, value) in wanted {
            if let Some(given) = selector.get(key).filter(|given| *given != value) {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                return Err(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                    text(value),
                    text(given)
                ));
            }
            selector.insert(key.clone(), value.clone());
        }
    }
    merge_tolerations(spec, scheduling.get("tolerations").and_then(Value::as_array));
    Ok(())
}

/// Adds tolerations, unless one that is there covers them; those that a new one covers go.
fn merge_tolerations(spec: &mut Object, more: Option<&Vec<Value>>) {
    let own = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    let all: Vec<Value> = own.into_iter().chain(more.into_iter().flatten().cloned()).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (at, toleration) in all.iter().enumerate() {
        let covered = merged.iter().any(|other| covers(other, toleration))
            || all[at + 1..].iter().any(|other| other != toleration && covers(other, toleration));
        if !covered {
            merged.push(toleration.clone());
        }
    }
    if !merged.is_empty() {
        spec.insert("tolerations".to_owned(), merged.into());
    }
}

/// Whether whatever the second toleration bears, the first does too.
fn covers(one: &Value, other: &Value) -> bool {
    if one == other {
        return true;
    }
    let text = |toleration: &Value, name: &str| {
        toleration.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let any_key = text(one, "key").is_empty() && text(one, "operator") == "Exists";
    let any_effect = text(one, "effect").is_empty();
    if (text(one, "key") != text(other, "key") && !any_key)
        || (text(one, "effect") != text(other, "effect") && !any_effect)
    {
        return false;
    }
    let seconds = |toleration: &Value| toleration.get("tolerationSeconds").and_then(Value::as_i64);
    if let Some(borne) = seconds(one).filter(|_| text(one, "effect") == "NoExecute")
        && seconds(other).is_none_or(|longer| longer > borne)
    {
        return false;
    }
    match text(one, "operator").as_str() {
        "" | "Equal" => text(other, "operator") == "Equal" && text(one, "value") == text(other, "value"),
        "Exists" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn admitted(spec: &Value, class: &Value) -> Result<Value, String> {
        let mut spec = spec.as_object().expect("an object").clone();
        let class = class.as_object().expect("an object");
        set_overhead(&mut spec, class)?;
        set_scheduling(&mut spec, class)?;
        Ok(Value::Object(spec))
    }

    #[test]
    fn a_pod_gets_what_its_class_says() {
        let class = json!({
            "overhead": {"podFixed": {"cpu": "100m"}},
            "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "x", "operator": "Exists"}]},
        });
        let whole = json!({
            "overhead": {"cpu": "100m"}, "nodeSelector": {"a": "b"},
            "tolerations": [{"key": "x", "operator": "Exists"}],
        });
        assert_eq!(admitted(&json!({}), &class), Ok(whole.clone()));
        assert_eq!(admitted(&json!({"overhead": {"cpu": "0.1"}}), &class), Ok(whole));
        assert_eq!(admitted(&json!({"overhead": {"cpu": "1"}}), &class), Err(MISMATCH.to_owned()));
        let conflict = admitted(&json!({"nodeSelector": {"a": "c"}}), &class);
        assert_eq!(
            conflict,
            Err("conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c"
                .to_owned())
        );
    }

    #[test]
    fn a_toleration_that_another_covers_is_not_needed() {
        let class = json!({"scheduling": {"tolerations": [{"operator": "Exists"}]}});
        let given = json!({"tolerations": [{"key": "x", "operator": "Equal", "value": "1"}]});
        assert_eq!(admitted(&given, &class), Ok(json!({"tolerations": [{"operator": "Exists"}]})));
    }
}
