//! Volumes of images, where they are a feature that is off: without its source a volume could not be at all, so that it goes
//! as a whole, and with it where it is mounted.

use std::collections::BTreeSet;

use concord_builtins::FeatureGates;
use concord_registry::Object;
use serde_json::Value;

use super::Hooks;

/// What kinds do that make pods from a template and have nothing else to do.
pub(super) const TEMPLATES: Hooks = Hooks { drop: Some(drop_image_volumes), ..Hooks::NONE };

/// Where kinds have the spec of a pod.
const SPECS: [&[&str]; 4] = [
    &["spec"],
    &["spec", "template", "spec"],
    &["spec", "jobTemplate", "spec", "template", "spec"],
    &["template", "spec"],
];

/// Drops volumes of images, unless there were some before.
pub(super) fn drop_image_volumes(features: &FeatureGates, new: &mut Object, old: Option<&Object>) {
    if features.enabled("ImageVolume") {
        return;
    }
    for path in SPECS {
        let in_use = old.and_then(|old| find(old, path)).is_some_and(|spec| !image_volumes(spec).is_empty());
        if let Some(spec) = find_mut(new, path).filter(|_| !in_use) {
            drop_from(spec);
        }
    }
}

fn find<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Object> {
    path.iter().try_fold(object, |object, name| object.get(*name)?.as_object())
}

fn find_mut<'a>(object: &'a mut Object, path: &[&str]) -> Option<&'a mut Object> {
    path.iter().try_fold(object, |object, name| object.get_mut(*name)?.as_object_mut())
}

fn is_of_an_image(volume: &Value) -> bool {
    volume.get("image").is_some_and(|image| !image.is_null())
}

fn name(of: &Value) -> &str {
    of.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The names of the volumes that are images.
fn image_volumes(spec: &Object) -> BTreeSet<String> {
    let volumes = spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
    volumes.filter(|volume| is_of_an_image(volume)).map(|volume| name(volume).to_owned()).collect()
}

fn drop_from(spec: &mut Object) {
    let names = image_volumes(spec);
    if names.is_empty() {
        return;
    }
    retain(spec, "volumes", |volume| !is_of_an_image(volume));
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            retain(container, "volumeMounts", |mount| !names.contains(name(mount)));
        }
    }
}

/// Keeps some of a list, and no list where none is left.
fn retain(object: &mut Object, list: &str, keep: impl Fn(&Value) -> bool) {
    let Some(items) = object.get_mut(list).and_then(Value::as_array_mut) else { return };
    items.retain(keep);
    if items.is_empty() {
        object.remove(list);
    }
}

#[cfg(test)]
mod tests {
    use concord_builtins::Release;
    use serde_json::json;

    use super::*;

    fn spec(images: bool) -> Value {
        let mut spec = json!({
            "volumes": [{"name": "a", "emptyDir": {}}],
            "containers": [{"name": "c", "volumeMounts": [{"name": "a"}]}],
            "initContainers": [{"name": "i"}],
        });
        if images {
            spec["volumes"] =
                json!([{"name": "b", "image": {"reference": "r"}}, {"name": "a", "emptyDir": {}}]);
            spec["containers"][0]["volumeMounts"] = json!([{"name": "a"}, {"name": "b"}]);
            spec["initContainers"][0]["volumeMounts"] = json!([{"name": "b"}]);
        }
        spec
    }

    #[test]
    fn volumes_of_images_go_with_their_mounts_where_there_is_no_such_feature() {
        let of_kinds: [fn(Value) -> Value; 4] = [
            |spec| json!({"spec": spec}),
            |spec| json!({"spec": {"template": {"spec": spec}}}),
            |spec| json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}}}),
            |spec| json!({"template": {"spec": spec}}),
        ];
        for kind in of_kinds {
            let object = |images: bool| kind(spec(images)).as_object().expect("an object").clone();
            for (release, old, kept) in [
                (Release::OLDEST, None, false),
                (Release::OLDEST, Some(object(false)), false),
                (Release::OLDEST, Some(object(true)), true),
                (Release::LATEST, None, true),
            ] {
                let mut new = object(true);
                drop_image_volumes(&FeatureGates::of(release), &mut new, old.as_ref());
                assert_eq!(new, object(kept), "{release}");
            }
        }
    }
}
