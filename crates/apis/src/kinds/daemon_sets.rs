use concord_meta::go;
use concord_registry::{Context, Object, Part, metadata, metadata_mut};
use serde_json::Value;

use super::{Hooks, image_volumes::TEMPLATES, member};
use crate::generation::differ;

pub(super) const HOOKS: Hooks = Hooks {
    unreadable: Some(unreadable),
    default: Some(default),
    create: Some(create),
    update: Some(update),
    ..TEMPLATES
};

/// Where the number of the template stands: it was a field of versions before v1, and is stored there.
const GENERATION: &str = "deprecated.daemonset.template.generation";

/// What upstream's conversion writes, so that who makes a set owns it.
fn default(object: &mut Object) {
    if generation(object).is_none() {
        set(object, 0);
    }
}

fn create(_: &Context, object: &mut Object) {
    let given = generation(object).unwrap_or_default();
    set(object, given.max(1));
}

/// The number is the server's: it counts changes of the template.
fn update(_: &Context, _: Part<'_>, new: &mut Object, old: &Object) {
    let [now, then] = [&*new, old].map(|object| object.get("spec").and_then(|spec| spec.get("template")));
    let changed = differ(now, then);
    let before = generation(old).unwrap_or_default();
    set(new, before.saturating_add(i64::from(changed)));
}

fn said(object: &Object) -> Option<&str> {
    metadata(object).get("annotations")?.get(GENERATION).and_then(Value::as_str)
}

fn unreadable(object: &Object) -> Option<String> {
    go::parse_int(said(object)?).err()
}

fn generation(object: &Object) -> Option<i64> {
    said(object)?.parse().ok()
}

fn set(object: &mut Object, generation: i64) {
    member(metadata_mut(object), "annotations").insert(GENERATION.to_owned(), generation.to_string().into());
}

#[cfg(test)]
mod tests {
    use concord_merge::apply::Time;
    use concord_meta::UserInfo;
    use serde_json::json;

    use super::*;

    fn set_with(generation: &str, memory: &str) -> Object {
        let container = json!({"resources": {"requests": {"memory": memory}}});
        let object = json!({
            "metadata": {"annotations": {GENERATION: generation}},
            "spec": {"template": {"spec": {"containers": [container]}}},
        });
        object.as_object().expect("an object").clone()
    }

    #[test]
    fn templates_are_counted_by_what_they_mean() {
        let context = Context::new(UserInfo::default(), Time { unix: 0 });
        for (memory, generation) in [("1Ki", "4"), ("1024", "4"), ("2Ki", "5")] {
            let mut new = set_with("9", memory);
            update(&context, Part::Main, &mut new, &set_with("4", "1Ki"));
            assert_eq!(new["metadata"]["annotations"][GENERATION], generation, "{memory}");
        }
        let why = "strconv.ParseInt: parsing \"x\": invalid syntax";
        assert_eq!(unreadable(&set_with("x", "1")).as_deref(), Some(why));
    }
}
