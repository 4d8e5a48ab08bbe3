//! The conditions of a definition.

use concord_merge::apply::Time;
use concord_registry::Object;
use serde_json::{Value, json};

/// A condition: its type, its status, why and in which words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) name: &'static str,
    pub(crate) holds: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// Sets a condition of a status. False if it is so already; the time is that of the last change of its status.
pub(crate) fn set(status: &mut Value, condition: Condition, now: Time) -> bool {
    let Condition { name, holds, reason, message } = condition;
    let holds = if holds { "True" } else { "False" };
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else { return false };
    let now = Value::from(now.to_string());
    let Some(old) = conditions.iter_mut().find(|condition| condition["type"] == name) else {
        conditions.push(json!({
            "type": name, "status": holds, "lastTransitionTime": now, "reason": reason, "message": message,
        }));
        return true;
    };
    if old["status"] == holds && old["reason"] == reason && old["message"] == message {
        return false;
    }
    let since = if old["status"] == holds { old["lastTransitionTime"].clone() } else { now };
    for (name, value) in [
        ("status", Value::from(holds)),
        ("lastTransitionTime", since),
        ("reason", reason.into()),
        ("message", message.into()),
    ] {
        old[name] = value;
    }
    true
}

impl Condition {
    /// Whether a definition says this.
    pub(crate) fn is_in(&self, definition: &Object) -> bool {
        let conditions = definition.get("status").and_then(|status| status["conditions"].as_array());
        let status = if self.holds { "True" } else { "False" };
        conditions.into_iter().flatten().any(|given| {
            given["type"] == self.name
                && given["status"] == status
                && given["reason"] == self.reason
                && given["message"] == *self.message
        })
    }
}

/// Removes a condition of a status. False if there is none.
pub(crate) fn remove(status: &mut Value, name: &str) -> bool {
    let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) else { return false };
    let before = conditions.len();
    conditions.retain(|condition| condition["type"] != name);
    conditions.len() != before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(holds: bool, reason: &'static str) -> Condition {
        Condition { name: "Established", holds, reason, message: "m".to_owned() }
    }

    #[test]
    fn a_condition_changes_its_time_with_its_status_alone() {
        let mut status = json!({});
        assert!(set(&mut status, condition(false, "Installing"), Time { unix: 0 }));
        assert!(!set(&mut status, condition(false, "Installing"), Time { unix: 9 }), "nothing new");
        assert!(set(&mut status, condition(false, "Other"), Time { unix: 9 }));
        assert_eq!(status["conditions"][0]["lastTransitionTime"], "1970-01-01T00:00:00Z");
        assert!(set(&mut status, condition(true, "Other"), Time { unix: 9 }));
        assert_eq!(status["conditions"][0]["lastTransitionTime"], "1970-01-01T00:00:09Z");
        assert_eq!(status["conditions"].as_array().map(Vec::len), Some(1));
    }
}
