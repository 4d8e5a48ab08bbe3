//! The volume that has a token, the authority to trust, and the namespace.

use concord_registry::Object;
use rand::RngExt as _;
use serde_json::{Value, json};

use super::spec_mut;
use crate::token_request::INJECTED_SECONDS;

/// What the names of such volumes begin with.
const VOLUME: &str = "kube-api-access-";
/// Where clients in pods look.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// As the server generates names: no vowels, so that no words come out.
const NAME_CHARACTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Gives each container of the pod a mount of the volume, unless something is mounted there already, and the pod the
/// volume, if any container needs it.
pub(super) fn mount_token(pod: &mut Object) {
    let Some(spec) = spec_mut(pod) else { return };
    let existing = volume_name(spec);
    let name = existing.clone().unwrap_or_else(generate_name);
    let mut needed = false;
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            needed |= mount(container, &name);
        }
    }
    if needed && existing.is_none() {
        append(spec, "volumes", json!({"name": name, "projected": projected()}));
    }
}

/// The name of a volume of this kind that the pod has.
fn volume_name(spec: &Object) -> Option<String> {
    let volumes = spec.get("volumes").and_then(Value::as_array);
    let mut names = volumes.into_iter().flatten().filter_map(|volume| volume["name"].as_str());
    names.find(|name| name.starts_with(VOLUME)).map(str::to_owned)
}

fn generate_name() -> String {
    let mut random = rand::rng();
    let character = |_| char::from(NAME_CHARACTERS[random.random_range(0..NAME_CHARACTERS.len())]);
    format!("{VOLUME}{}", (0..5).map(character).collect::<String>())
}

/// True if the volume was mounted.
fn mount(container: &mut Object, name: &str) -> bool {
    let mounts = container.get("volumeMounts").and_then(Value::as_array);
    if mounts.into_iter().flatten().any(|mount| mount["mountPath"] == MOUNT_PATH) {
        return false;
    }
    append(container, "volumeMounts", json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH}));
    true
}

fn append(object: &mut Object, list: &str, item: Value) {
    match object.get_mut(list).and_then(Value::as_array_mut) {
        Some(items) => items.push(item),
        None => drop(object.insert(list.to_owned(), vec![item].into())),
    }
}

fn projected() -> Value {
    json!({
        "defaultMode": 0o644,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": INJECTED_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [
                {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
            ]}},
        ],
    })
}
