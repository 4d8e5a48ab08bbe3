use concord_meta::go;
use concord_registry::{Context, Object, Part, metadata, metadata_mut};
use serde_json::Value;

use super::{Hooks, image_volumes::TEMPLATES};
use crate::generation::differ;

pub(super) const HOOKS: Hooks =
    Hooks { unreadable: Some(unreadable), default: Some(default), update: Some(update), ..TEMPLATES };

/// The revision to go back to: it was a field of versions before v1, and stands here since.
const ROLLBACK: &str = "deprecated.deployment.rollback.to";

fn unreadable(object: &Object) -> Option<String> {
    let said = annotation(object, ROLLBACK).filter(|said| !said.is_empty())?;
    let why = go::parse_int(said).err()?;
    Some(format!("failed to parse annotation[{ROLLBACK}]={said} as int64: {why}"))
}

/// What upstream's conversions there and back leave of it: a number, or nothing.
fn default(object: &mut Object) {
    let Some(said) = annotation(object, ROLLBACK) else { return };
    let number = said.parse::<i64>().ok().map(|number| number.to_string());
    let is_empty = said.is_empty();
    let Some(Value::Object(annotations)) = metadata_mut(object).get_mut("annotations") else { return };
    match number {
        Some(number) => drop(annotations.insert(ROLLBACK.to_owned(), number.into())),
        None if is_empty => drop(annotations.remove(ROLLBACK)),
        None => {}
    }
    if annotations.is_empty() {
        metadata_mut(object).remove("annotations");
    }
}

fn annotation<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
    metadata(object).get("annotations")?.get(name)?.as_str()
}

/// Other annotations are a new generation, too: the controller copies them to the ReplicaSets.
fn update(_: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
    let [now, then] = [&*new, old].map(|object| metadata(object).get("annotations"));
    let none = Value::Object(Object::new());
    if part == Part::Main && differ(now.or(Some(&none)), then.or(Some(&none))) {
        let next = metadata(old).generation().saturating_add(1);
        metadata_mut(new).insert("generation".to_owned(), next.into());
    }
}

#[cfg(test)]
mod tests {
    use concord_merge::apply::Time;
    use concord_meta::UserInfo;
    use serde_json::json;

    use super::*;

    fn deployment(annotations: &Value) -> Object {
        let metadata = json!({"generation": 4, "annotations": annotations});
        Object::from_iter([("metadata".to_owned(), metadata)])
    }

    #[test]
    fn a_revision_to_go_back_to_is_a_number() {
        let text = deployment(&json!({"deprecated.deployment.rollback.to": "x"}));
        let why = "failed to parse annotation[deprecated.deployment.rollback.to]=x as int64: strconv.ParseInt: parsing \
                   \"x\": invalid syntax";
        assert_eq!(unreadable(&text).as_deref(), Some(why));
        for (said, kept) in [("+03", Some(json!({"deprecated.deployment.rollback.to": "3"}))), ("", None)] {
            let mut object = deployment(&json!({"deprecated.deployment.rollback.to": said}));
            default(&mut object);
            assert_eq!(object["metadata"].get("annotations"), kept.as_ref(), "{said}");
        }
    }

    #[test]
    fn other_annotations_are_a_new_generation() {
        let context = Context::new(UserInfo::default(), Time { unix: 0 });
        for (before, after, part, generation) in [
            (json!({}), json!({"a": "b"}), Part::Main, 5),
            (json!({"a": "b"}), json!({"a": "c"}), Part::Main, 5),
            (json!({"a": "b"}), Value::Null, Part::Main, 5),
            (json!({}), Value::Null, Part::Main, 4),
            (json!({"a": "b"}), json!({"a": "b"}), Part::Main, 4),
            (json!({}), json!({"a": "b"}), Part::Sub("status"), 4),
        ] {
            let mut new = deployment(&after);
            update(&context, part, &mut new, &deployment(&before));
            assert_eq!(new["metadata"]["generation"], generation, "{before} {after}");
        }
    }
}
