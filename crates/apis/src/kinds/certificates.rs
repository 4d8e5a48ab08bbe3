use concord_registry::{Context, Object, Part};
use serde_json::{Value, json};

use super::{Hooks, keep, member};

pub(super) const HOOKS: Hooks = Hooks { create: Some(create), update: Some(update), ..Hooks::NONE };

/// Who asks is said by the server, never by the request.
fn create(context: &Context, object: &mut Object) {
    let user = &context.user;
    let spec = member(object, "spec");
    for name in ["username", "uid", "groups", "extra"] {
        spec.remove(name);
    }
    spec.insert("username".to_owned(), user.name.as_str().into());
    if !user.uid.is_empty() {
        spec.insert("uid".to_owned(), user.uid.as_str().into());
    }
    if !user.groups.is_empty() {
        spec.insert("groups".to_owned(), user.groups.clone().into());
    }
    if !user.extra.is_empty() {
        spec.insert("extra".to_owned(), json!(user.extra));
    }
}

/// The door for approval changes the conditions of the status and nothing else of it. That for the status changes neither
/// approval nor denial; who adds or removes one there is told so by validation.
fn update(context: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
    keep(new, old, "spec");
    match part {
        Part::Sub("approval") => {
            date(context, new, old);
            let conditions = new.get("status").and_then(|status| status.get("conditions")).cloned();
            keep(new, old, "status");
            match conditions {
                Some(conditions @ Value::Array(_)) => {
                    member(new, "status").insert("conditions".to_owned(), conditions);
                }
                _ => drop(member(new, "status").remove("conditions")),
            }
        }
        Part::Sub("status") => {
            ["Approved", "Denied"].into_iter().for_each(|decision| preserve(new, old, decision));
            date(context, new, old);
        }
        _ => {}
    }
}

fn conditions(object: &Object) -> impl Iterator<Item = &Value> {
    let all = object.get("status").and_then(|status| status.get("conditions")?.as_array());
    all.into_iter().flatten()
}

fn conditions_mut(object: &mut Object) -> impl Iterator<Item = &mut Value> {
    let all = object.get_mut("status").and_then(|status| status.get_mut("conditions")?.as_array_mut());
    all.into_iter().flatten()
}

/// Conditions of a type stay as they are, if there are as many as before.
fn preserve(new: &mut Object, old: &Object, kind: &str) {
    let of_kind = |condition: &&Value| condition["type"] == kind;
    if conditions(new).filter(of_kind).count() == conditions(old).filter(of_kind).count() {
        let ours = conditions_mut(new).filter(|condition| condition["type"] == kind);
        ours.zip(conditions(old).filter(of_kind)).for_each(|(new, old)| new.clone_from(old));
    }
}

/// Conditions without times were set now; one that has been there with the same status keeps the time of its transition.
fn date(context: &Context, new: &mut Object, old: &Object) {
    let now = Value::String(context.now.to_string());
    for condition in conditions_mut(new) {
        let same =
            |before: &&Value| before["type"] == condition["type"] && before["status"] == condition["status"];
        let before = conditions(old).filter(same).map(|before| &before["lastTransitionTime"]);
        let since = before.into_iter().find(|time| !time.is_null()).unwrap_or(&now).clone();
        for (field, time) in [("lastUpdateTime", now.clone()), ("lastTransitionTime", since)] {
            if condition.get(field).is_none_or(Value::is_null)
                && let Some(condition) = condition.as_object_mut()
            {
                condition.insert(field.to_owned(), time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use concord_merge::apply::Time;

    use super::*;

    fn request(conditions: &Value) -> Object {
        json!({"spec": {}, "status": {"conditions": conditions}}).as_object().expect("an object").clone()
    }

    fn written(door: &'static str, new: &Value, old: &Value) -> Value {
        let context = Context::of_the_server(Time { unix: 0 });
        let mut new = request(new);
        update(&context, Part::Sub(door), &mut new, &request(old));
        new["status"]["conditions"].clone()
    }

    #[test]
    fn conditions_are_dated_when_they_are_set() {
        let (then, now) = ("2020-01-01T00:00:00Z", "1970-01-01T00:00:00Z");
        let dated = |kind: &str, update: &str, transition: &str| {
            let times = json!({"lastUpdateTime": update, "lastTransitionTime": transition});
            json!({"type": kind, "status": "True", "lastUpdateTime": times["lastUpdateTime"],
                "lastTransitionTime": times["lastTransitionTime"]})
        };
        let new = json!([{"type": "Approved", "status": "True"}]);
        assert_eq!(written("approval", &new, &json!([])), json!([dated("Approved", now, now)]));
        let before = json!([dated("Approved", then, then)]);
        assert_eq!(written("approval", &new, &before), json!([dated("Approved", now, then)]));
        // The door for the status changes no decision.
        assert_eq!(written("status", &new, &before), before);
        assert_eq!(written("status", &new, &json!([])), json!([dated("Approved", now, now)]));
    }
}
