//! What the doors for ephemeral containers and for resources let through. Whoever may use one of them need not be allowed
//! to change pods: everything else stays as it is, whatever a client sends.

use concord_registry::{Object, metadata_mut};
use serde_json::Value;

use crate::kinds::{keep, member};

/// Only the ephemeral containers change.
pub(super) fn only_ephemeral_containers(new: &mut Object, old: &Object) {
    let containers = new.get("spec").and_then(|spec| spec.get("ephemeralContainers")).cloned();
    keep_all(new, old);
    let spec = member(new, "spec");
    match containers {
        Some(containers) => drop(spec.insert("ephemeralContainers".to_owned(), containers)),
        None => drop(spec.remove("ephemeralContainers")),
    }
}

/// Only the resources of the pod and its containers change, and what a change of them does to a container. Where
/// containers came or went everything is left as it was sent, so that validation says so.
pub(super) fn only_resources(new: &mut Object, old: &Object) {
    let spec = |pod: &Object| pod.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let (sent, before) = (spec(new), spec(old));
    let list =
        |spec: &Object, name: &str| spec.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let resized = ["containers", "initContainers"].map(|name| (name, list(&sent, name), list(&before, name)));
    if resized.iter().any(|(_, sent, before)| sent.len() != before.len()) {
        return;
    }
    keep_all(new, old);
    let spec = member(new, "spec");
    keep(spec, &sent, "resources");
    for (name, sent, before) in resized {
        if !sent.is_empty() {
            spec.insert(name.to_owned(), only_resources_of(sent, before).into());
        }
    }
}

/// Who writes the status need not know its class, nor which generation was seen: clients that are older than these fields
/// leave them out.
pub(super) fn keep_what_is_not_told(new: &mut Object, old: &Object) {
    let empty = Object::new();
    let before = old.get("status").and_then(Value::as_object).unwrap_or(&empty);
    let status = member(new, "status");
    if status.get("qosClass").is_none_or(|class| class == "") {
        keep(status, before, "qosClass");
    }
    keep_generation(status, before);
    let mut seen: Vec<&Object> = conditions(before).collect();
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        // Of several conditions of one type each takes after the one in its place.
        if let Some(at) = seen.iter().position(|old| old.get("type") == condition.get("type")) {
            keep_generation(condition, seen.remove(at));
        }
    }
}

fn conditions(status: &Object) -> impl Iterator<Item = &Object> {
    let conditions = status.get("conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().filter_map(Value::as_object)
}

fn keep_generation(new: &mut Object, old: &Object) {
    const GENERATION: &str = "observedGeneration";
    if new.get(GENERATION).and_then(Value::as_i64).unwrap_or_default() == 0 {
        keep(new, old, GENERATION);
    }
}

/// Containers in another order, or with other names, are left as they were sent, too.
fn only_resources_of(sent: Vec<Value>, before: Vec<Value>) -> Vec<Value> {
    if sent.iter().zip(&before).any(|(sent, before)| sent.get("name") != before.get("name")) {
        return sent;
    }
    let resized = |(sent, mut before): (Value, Value)| {
        if let (Some(sent), Some(before)) = (sent.as_object(), before.as_object_mut()) {
            ["resources", "resizePolicy"].iter().for_each(|name| keep(before, sent, name));
        }
        before
    };
    sent.into_iter().zip(before).map(resized).collect()
}

/// The pod stays as it is, but for the record of who owns what and what says which state the change was made from.
fn keep_all(new: &mut Object, old: &Object) {
    ["spec", "status"].iter().for_each(|name| keep(new, old, name));
    let empty = Object::new();
    let old = old.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    for name in ["annotations", "deletionTimestamp", "finalizers", "generation", "labels", "ownerReferences"]
    {
        keep(metadata_mut(new), old, name);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_status_does_not_say_stays() {
        let object = |value: Value| value.as_object().expect("an object").clone();
        let old = object(serde_json::json!({"status": {
            "qosClass": "Burstable", "observedGeneration": 3,
            "conditions": [{"type": "A", "observedGeneration": 1}, {"type": "A", "observedGeneration": 2}],
        }}));
        let mut new = object(serde_json::json!({"status": {
            "conditions": [{"type": "B"}, {"type": "A"}, {"type": "A", "observedGeneration": 7}],
        }}));
        keep_what_is_not_told(&mut new, &old);
        let expected = serde_json::json!({
            "qosClass": "Burstable", "observedGeneration": 3,
            "conditions": [
                {"type": "B"}, {"type": "A", "observedGeneration": 1}, {"type": "A", "observedGeneration": 7},
            ],
        });
        assert_eq!(new["status"], expected);
    }

    fn object(value: Value) -> Object {
        let Value::Object(object) = value else { panic!("not an object") };
        object
    }

    fn pod() -> Object {
        object(json!({
            "metadata": {"name": "a", "labels": {"app": "a"}, "generation": 1},
            "spec": {
                "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}],
                "initContainers": [{"name": "first", "image": "i"}],
                "restartPolicy": "Always",
            },
            "status": {"phase": "Running"},
        }))
    }

    /// A pod of which everything was changed.
    fn changed() -> Object {
        object(json!({
            "metadata": {
                "name": "a", "labels": {"app": "b"}, "annotations": {"a": "b"}, "finalizers": ["a/b"],
                "ownerReferences": [{"name": "o"}], "generation": 7, "managedFields": [{"manager": "m"}],
                "resourceVersion": "3", "deletionTimestamp": "2020-01-01T00:00:00Z",
            },
            "spec": {
                "containers": [{
                    "name": "c", "image": "evil", "securityContext": {"privileged": true},
                    "resources": {"limits": {"cpu": "2"}}, "resizePolicy": [{"resourceName": "cpu"}],
                }],
                "initContainers": [{"name": "first", "image": "evil", "resources": {"limits": {"cpu": "3"}}}],
                "ephemeralContainers": [{"name": "e", "image": "i"}],
                "resources": {"limits": {"cpu": "4"}},
                "hostNetwork": true, "hostPID": true, "nodeName": "n", "serviceAccountName": "admin",
            },
            "status": {"phase": "Failed"},
        }))
    }

    fn kept_metadata() -> Value {
        json!({
            "name": "a", "labels": {"app": "a"}, "generation": 1, "managedFields": [{"manager": "m"}],
            "resourceVersion": "3",
        })
    }

    #[test]
    fn through_one_door_come_only_ephemeral_containers() {
        let (old, mut new) = (pod(), changed());
        only_ephemeral_containers(&mut new, &old);
        let mut expected = old.clone();
        expected["spec"]["ephemeralContainers"] = json!([{"name": "e", "image": "i"}]);
        expected["metadata"] = kept_metadata();
        assert_eq!(new, expected);
        // To leave them out is to remove them, which is for validation to refuse.
        let mut without = old.clone();
        only_ephemeral_containers(&mut without, &expected);
        assert_eq!(without["spec"], old["spec"]);
    }

    #[test]
    fn through_the_other_come_only_resources() {
        let (old, mut new) = (pod(), changed());
        only_resources(&mut new, &old);
        let mut expected = old.clone();
        expected["metadata"] = kept_metadata();
        expected["spec"]["resources"] = json!({"limits": {"cpu": "4"}});
        expected["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "2"}});
        expected["spec"]["containers"][0]["resizePolicy"] = json!([{"resourceName": "cpu"}]);
        expected["spec"]["initContainers"][0]["resources"] = json!({"limits": {"cpu": "3"}});
        assert_eq!(new, expected);
    }

    #[test]
    fn other_containers_are_left_for_validation_to_refuse() {
        let old = pod();
        let mut more = changed();
        more["spec"]["containers"] = json!([{"name": "c"}, {"name": "d"}]);
        let sent = more.clone();
        only_resources(&mut more, &old);
        assert_eq!(more, sent);
        let mut renamed = changed();
        renamed["spec"]["containers"][0]["name"] = "d".into();
        let sent = renamed["spec"]["containers"].clone();
        only_resources(&mut renamed, &old);
        assert_eq!(renamed["spec"]["containers"], sent);
        assert_eq!(renamed["spec"].get("hostNetwork"), None);
    }
}
