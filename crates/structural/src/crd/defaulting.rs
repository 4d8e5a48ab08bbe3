//! What the server fills in.

use serde_json::{Map, Value, json};

use crate::Object;

fn member<'a>(object: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    object.get_mut(name).and_then(Value::as_object_mut)
}

fn text(object: &Object, name: &str) -> String {
    object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Gives a definition its defaults: the singular name, the kind of lists, how versions are converted, the port of a
/// webhook's service, and the storage version among the stored ones if there are none.
pub fn set_defaults(definition: &mut Object) {
    let Some(spec) = member(definition, "spec") else { return };
    if let Some(names) = member(spec, "names") {
        let kind = text(names, "kind");
        if text(names, "singular").is_empty() && !kind.is_empty() {
            names.insert("singular".to_owned(), kind.to_lowercase().into());
        }
        if text(names, "listKind").is_empty() && !kind.is_empty() {
            names.insert("listKind".to_owned(), format!("{kind}List").into());
        }
    }
    match spec.get_mut("conversion").and_then(Value::as_object_mut) {
        None => drop(spec.insert("conversion".to_owned(), json!({"strategy": "None"}))),
        Some(conversion) => {
            let config = member(conversion, "webhook").and_then(|webhook| member(webhook, "clientConfig"));
            if let Some(service) = config.and_then(|config| member(config, "service")) {
                service.entry("port").or_insert_with(|| 443.into());
            }
        }
    }
    let storage = storage_version(definition);
    let status = definition.entry("status").or_insert_with(|| Value::Object(Map::new()));
    if let (Some(storage), Some(status)) = (storage, status.as_object_mut()) {
        let stored = status.get("storedVersions").and_then(Value::as_array);
        if stored.is_none_or(Vec::is_empty) {
            status.insert("storedVersions".to_owned(), json!([storage]));
        }
    }
}

/// The first version that is marked as the storage version.
fn storage_version(definition: &Object) -> Option<String> {
    let versions = definition.get("spec")?.get("versions")?.as_array()?;
    let storage = versions.iter().find(|version| version["storage"] == true)?;
    storage["name"].as_str().map(str::to_owned)
}

/// Adds the storage version to the stored ones.
fn note_storage_version(definition: &mut Object) {
    let Some(storage) = storage_version(definition) else { return };
    let status = definition.entry("status").or_insert_with(|| Value::Object(Map::new()));
    let Some(status) = status.as_object_mut() else { return };
    let stored = status.entry("storedVersions").or_insert_with(|| json!([]));
    match stored {
        Value::Array(stored) if stored.iter().all(|version| version.as_str() != Some(&storage)) => {
            stored.push(storage.into());
        }
        Value::Null => *stored = json!([storage]),
        _ => {}
    }
}

/// Clears what a client cannot say about a new definition and notes its storage version. What nobody has decided yet is
/// written out, as upstream does.
pub fn prepare_create(definition: &mut Object) {
    let unknown = json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}});
    definition.insert("status".to_owned(), unknown);
    set_generation(definition, 1);
    note_storage_version(definition);
}

/// Restores what an update cannot change, counts changes of the spec and notes the storage version.
pub fn prepare_update(definition: &mut Object, old: &Object) {
    match old.get("status") {
        Some(status) => drop(definition.insert("status".to_owned(), status.clone())),
        None => drop(definition.remove("status")),
    }
    if definition.get("spec") != old.get("spec") {
        let before =
            old.get("metadata").and_then(|metadata| metadata.get("generation")).and_then(Value::as_i64);
        set_generation(definition, before.unwrap_or(0) + 1);
    }
    note_storage_version(definition);
}

fn set_generation(definition: &mut Object, generation: i64) {
    let metadata = definition.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("generation".to_owned(), generation.into());
    }
}
