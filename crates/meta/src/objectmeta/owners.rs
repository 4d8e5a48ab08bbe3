//! Owner references.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::Meta;
use crate::field::{BadValue, Error, Path};
use crate::{GroupVersionKind, go};

/// The members of an owner reference in the order upstream writes them.
const MEMBERS: [(&str, bool); 6] = [
    ("apiVersion", true),
    ("kind", true),
    ("name", true),
    ("uid", true),
    ("controller", false),
    ("blockOwnerDeletion", false),
];

pub(super) fn validate(references: &[Value], path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut controller: Option<String> = None;
    let empty = Map::new();
    for reference in references {
        let reference = Meta(reference.as_object().unwrap_or(&empty));
        errors.extend(validate_one(reference, path));
        if reference.0.get("controller") != Some(&Value::Bool(true)) {
            continue;
        }
        let this = format!("{}/{}", reference.text("kind"), reference.text("name"));
        match &controller {
            None => controller = Some(this),
            Some(first) => {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                );
                errors.push(Error::invalid(path, written_list(references), detail));
            }
        }
    }
    errors
}

fn validate_one(reference: Meta<'_>, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    let (api_version, kind) = (reference.text("apiVersion"), reference.text("kind"));
    let gvk = GroupVersionKind::from_api_version(api_version, kind);
    let gvk = gvk.unwrap_or_else(|_| GroupVersionKind::new("", "", kind));
    if gvk.version.is_empty() {
        errors.push(Error::invalid(&path.child("apiVersion"), api_version, "version must not be empty"));
    }
    for name in ["kind", "name", "uid"] {
        if reference.text(name).is_empty() {
            errors.push(Error::invalid(&path.child(name), "", "must not be empty"));
        }
    }
    // Events come and go too fast to own anything.
    if gvk == GroupVersionKind::new("", "v1", "Event") {
        let detail = format!("{gvk} is disallowed from being an owner");
        errors.push(Error::invalid(path, BadValue::verbatim(written(reference)), detail));
    }
    errors
}

fn written_list(references: &[Value]) -> BadValue {
    let references = references.iter().filter_map(Value::as_object).map(|reference| written(Meta(reference)));
    BadValue::verbatim(format!("[{}]", references.collect::<Vec<_>>().join(",")))
}

fn written(reference: Meta<'_>) -> String {
    let mut out = String::new();
    for (name, always) in MEMBERS {
        let value = match reference.0.get(name) {
            Some(value) if !value.is_null() => go::json(value),
            _ if always => r#""""#.to_owned(),
            _ => continue,
        };
        let comma = if out.is_empty() { "" } else { "," };
        write!(out, r#"{comma}"{name}":{value}"#).expect("writing to a String does not fail");
    }
    format!("{{{out}}}")
}

/// Removes owner references that stand in `metadata` twice and returns their uids, for the warning.
pub fn dedup_owner_references(metadata: &mut Map<String, Value>) -> Vec<String> {
    let Some(Value::Array(references)) = metadata.get_mut("ownerReferences") else { return Vec::new() };
    let mut kept: Vec<Value> = Vec::with_capacity(references.len());
    let mut removed = Vec::new();
    for reference in references.drain(..) {
        if kept.contains(&reference) {
            removed.push(reference["uid"].as_str().unwrap_or_default().to_owned());
        } else {
            kept.push(reference);
        }
    }
    *references = kept;
    removed
}

/// The warning about owner references that were removed. They are looked for before and after
/// mutating admission, and upstream says which it was.
#[must_use]
pub fn duplicate_owner_references_warning(uids: &[String], after_mutating_admission: bool) -> String {
    let after = if after_mutating_admission { " after mutating admission happens" } else { "" };
    format!(
        ".metadata.ownerReferences contains duplicate entries{after}; API server dedups owner references in 1.20+, \
         and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        uids.join(", ")
    )
}
