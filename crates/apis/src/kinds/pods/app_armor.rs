//! Profiles of AppArmor, which older clients say in annotations.

use concord_registry::{Context, Object, metadata};
use serde_json::{Value, json};

use crate::kinds::member;

const KEY: &str = "container.apparmor.security.beta.kubernetes.io/";

/// The most bytes that the name of a profile may have.
const LONGEST: usize = 4095;

/// What an annotation says about a container becomes what the field says, unless it says something already.
pub(super) fn annotations_become_fields(context: &Context, pod: &mut Object) {
    let annotations =
        metadata(pod).get("annotations").and_then(Value::as_object).cloned().unwrap_or_default();
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    if spec.get("os").is_some_and(|os| os["name"] == "windows") {
        return;
    }
    let of_pod = spec.get("securityContext").and_then(|of| of.get("appArmorProfile")).cloned();
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            let key = format!("{KEY}{}", container.get("name").and_then(Value::as_str).unwrap_or_default());
            let Some(annotation) = annotations.get(&key).and_then(Value::as_str) else { continue };
            if annotation_becomes_field(annotation, of_pod.as_ref(), container) {
                context.warn(&format!(
                    "metadata.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead"
                ));
            }
        }
    }
}

/// Whether the client is to be told that the field should have been used.
fn annotation_becomes_field(annotation: &str, of_pod: Option<&Value>, container: &mut Object) -> bool {
    let own = container.get("securityContext").and_then(|context| context.get("appArmorProfile"));
    if own.is_some_and(|own| !own.is_null()) {
        return false;
    }
    // What is no profile is left for validation to refuse.
    let Some(profile) = profile(annotation) else { return true };
    if Some(&profile) == of_pod {
        return false;
    }
    member(container, "securityContext").insert("appArmorProfile".to_owned(), profile);
    true
}

fn profile(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        other => {
            let name = other.strip_prefix("localhost/")?;
            let fits = !name.is_empty() && name.trim() == name && name.len() <= LONGEST;
            fits.then(|| json!({"type": "Localhost", "localhostProfile": name}))
        }
    }
}

#[cfg(test)]
mod tests {
    use concord_merge::apply::Time;

    use super::*;

    #[test]
    fn annotations_count_where_no_field_says_anything() {
        let runtime = json!({"type": "RuntimeDefault"});
        let unconfined = json!({"type": "Unconfined"});
        let none = json!(null);
        for (annotation, of_pod, own, becomes, warns) in [
            ("unconfined", &none, &none, unconfined.clone(), true),
            ("runtime/default", &none, &none, runtime.clone(), true),
            ("localhost/a", &none, &none, json!({"type": "Localhost", "localhostProfile": "a"}), true),
            ("localhost/ a", &none, &none, none.clone(), true),
            ("localhost/", &none, &none, none.clone(), true),
            ("other", &none, &none, none.clone(), true),
            ("runtime/default", &runtime, &none, none.clone(), false),
            ("unconfined", &runtime, &none, unconfined.clone(), true),
            ("unconfined", &none, &runtime, runtime.clone(), false),
        ] {
            let mut pod = json!({
                "metadata": {"annotations": {format!("{KEY}c"): annotation}},
                "spec": {"containers": [{"name": "c"}, {"name": "d"}]},
            });
            if !of_pod.is_null() {
                pod["spec"]["securityContext"]["appArmorProfile"] = of_pod.clone();
            }
            if !own.is_null() {
                pod["spec"]["containers"][0]["securityContext"]["appArmorProfile"] = own.clone();
            }
            let mut windows = pod.clone();
            let context = Context::of_the_server(Time { unix: 0 });
            annotations_become_fields(&context, pod.as_object_mut().expect("an object"));
            let containers = &pod["spec"]["containers"];
            assert_eq!(containers[0]["securityContext"]["appArmorProfile"], becomes, "{annotation}");
            assert_eq!(containers[1], json!({"name": "d"}));
            assert_eq!(!context.warning_headers().is_empty(), warns, "{annotation}");
            windows["spec"]["os"]["name"] = "windows".into();
            let before = windows.clone();
            annotations_become_fields(&context, windows.as_object_mut().expect("an object"));
            assert_eq!(windows, before);
        }
    }
}
