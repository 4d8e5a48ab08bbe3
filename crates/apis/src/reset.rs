//! What a write through one door of an object leaves as it is.

use concord_builtins::ResourceFacts;
use concord_merge::{
    apply::ResetFields,
    fields::{FieldSet, Path},
};
use concord_registry::{Object, metadata, metadata_mut};
use serde_json::Value;

/// What one door leaves as it is.
pub(crate) struct Reset {
    paths: Vec<Vec<&'static str>>,
    pub(crate) fields: ResetFields,
}

impl Reset {
    /// Nothing is left as it is.
    pub(crate) fn none() -> Self {
        Self { paths: Vec::new(), fields: ResetFields::none() }
    }

    /// What a door, of the resource itself or of a subresource, leaves as it is in all versions.
    pub(crate) fn new(facts: &ResourceFacts, subresource: Option<&str>, versions: &[String]) -> Self {
        let named = facts.reset_fields(subresource);
        let names = |path: &&'static str| -> Vec<&'static str> { path.split('.').collect() };
        let paths = named.iter().filter(|path| !path.starts_with('~')).map(names).collect();
        let owned_by_nobody = named.iter().map(|path| path.trim_start_matches('~'));
        let set: FieldSet = owned_by_nobody.map(|path| Path::of_fields(path.split('.'))).collect();
        let fields = versions
            .iter()
            .fold(ResetFields::none(), |fields, version| fields.excluding(version.as_str(), set.clone()));
        Self { paths, fields }
    }

    /// Makes it what it was before.
    pub(crate) fn restore(&self, new: &mut Object, old: &Object) {
        // Who owns what has been recorded already, also where all other metadata stays as it is.
        let owners = metadata(new).get("managedFields").cloned();
        self.paths.iter().for_each(|path| restore(new, old, path));
        match owners {
            Some(owners) => drop(metadata_mut(new).insert("managedFields".to_owned(), owners)),
            None => drop(metadata_mut(new).remove("managedFields")),
        }
    }
}

/// Sets what is at a path to what it is in another object, or removes it if it is not there.
fn restore(new: &mut Object, old: &Object, path: &[&str]) {
    let Some((name, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        match old.get(*name) {
            Some(value) => drop(new.insert((*name).to_owned(), value.clone())),
            None => drop(new.remove(*name)),
        }
        return;
    }
    let empty = Object::new();
    let old = old.get(*name).and_then(Value::as_object).unwrap_or(&empty);
    if let Some(new) = new.get_mut(*name).and_then(Value::as_object_mut) {
        restore(new, old, rest);
    }
}
