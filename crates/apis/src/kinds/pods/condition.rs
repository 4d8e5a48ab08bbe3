//! Conditions that the server gives to pods.

use concord_merge::apply::Time;
use concord_registry::Object;
use serde_json::Value;

use crate::kinds::member;

/// Gives a pod a condition, in the place of one of the same type. The time of the transition is that at which the status
/// of the condition last changed.
pub(crate) fn set_pod_condition(pod: &mut Object, now: Time, fields: &[(&str, &str)]) {
    let text = |(name, value): &(&str, &str)| ((*name).to_owned(), Value::from(*value));
    let mut condition: Object = fields.iter().map(text).collect();
    condition.insert("lastProbeTime".to_owned(), Value::Null);
    condition.insert("lastTransitionTime".to_owned(), now.to_string().into());
    let conditions = member(pod, "status").entry("conditions").or_insert_with(|| Value::Array(Vec::new()));
    if !conditions.is_array() {
        *conditions = Value::Array(Vec::new());
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|known| known.get("type") == condition.get("type")) {
        Some(known) => {
            if known.get("status") == condition.get("status") {
                let since = known.get("lastTransitionTime").cloned().unwrap_or_default();
                condition.insert("lastTransitionTime".to_owned(), since);
            }
            *known = Value::Object(condition);
        }
        None => conditions.push(Value::Object(condition)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_is_as_old_as_its_status() {
        let mut pod = Object::new();
        let mut set = |unix: i64, status: &str, reason: &str| {
            let fields = [("type", "A"), ("status", status), ("reason", reason)];
            set_pod_condition(&mut pod, Time { unix }, &fields);
            pod["status"]["conditions"].clone()
        };
        let is = |status: &str, reason: &str, since: &str| {
            json!([{"type": "A", "status": status, "reason": reason, "lastProbeTime": null,
                "lastTransitionTime": since}])
        };
        assert_eq!(set(0, "True", "x"), is("True", "x", "1970-01-01T00:00:00Z"));
        assert_eq!(set(1, "True", "y"), is("True", "y", "1970-01-01T00:00:00Z"));
        assert_eq!(set(2, "False", "y"), is("False", "y", "1970-01-01T00:00:02Z"));
        set_pod_condition(&mut pod, Time { unix: 3 }, &[("type", "B"), ("status", "True")]);
        assert_eq!(pod["status"]["conditions"].as_array().map(Vec::len), Some(2));
    }
}
