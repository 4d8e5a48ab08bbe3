use concord_registry::{Context, Object, Part, metadata, metadata_mut};
use serde_json::Value;

use super::{Hooks, image_volumes::TEMPLATES, member};

pub(super) const HOOKS: Hooks =
    Hooks { default: Some(default), create: Some(create), update: Some(update), ..TEMPLATES };

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
    let template = |object: &Object| object.get("spec").and_then(|spec| spec.get("template")).cloned();
    let before = generation(old).unwrap_or_default();
    set(new, before.saturating_add(i64::from(template(new) != template(old))));
}

fn generation(object: &Object) -> Option<i64> {
    let annotations = metadata(object).get("annotations")?;
    annotations.get(GENERATION).and_then(Value::as_str)?.parse().ok()
}

fn set(object: &mut Object, generation: i64) {
    member(metadata_mut(object), "annotations").insert(GENERATION.to_owned(), generation.to_string().into());
}
