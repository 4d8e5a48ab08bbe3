//! What an update may change in `metadata`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Meta, owners, validate_annotations, validate_labels, validate_managed_fields};
use crate::field::{BadValue, Error, Path};
use crate::go;

/// What is wrong with the new metadata at `path` of an object whose metadata is `old`, after the
/// members a client cannot change were restored.
///
/// Upstream checks the new metadata as for a create too, with
/// [`PathSegment`](crate::names::NameRule::PathSegment) names, and puts those errors first.
#[must_use]
pub fn validate_update(new: &Map<String, Value>, old: &Map<String, Value>, path: &Path) -> Vec<Error> {
    let (new, old) = (Meta(new), Meta(old));
    let mut errors = Vec::new();
    if is_set(old, "deletionTimestamp") {
        errors.extend(no_new_finalizers(new, old, path));
    }
    if new.text("resourceVersion").is_empty() {
        let detail = "must be specified for an update";
        errors.push(Error::invalid(&path.child("resourceVersion"), "", detail));
    }
    let generation = new.number("generation");
    if generation < old.number("generation") {
        errors.push(Error::invalid(&path.child("generation"), generation, "must not be decremented"));
    }
    errors.extend(immutable(new, old, path));
    errors.extend(validate_labels(new, path));
    errors.extend(validate_annotations(new, path));
    errors.extend(owners::validate(new.list("ownerReferences"), &path.child("ownerReferences")));
    errors.extend(validate_managed_fields(new.list("managedFields"), &path.child("managedFields")));
    errors
}

fn is_set(meta: Meta<'_>, name: &str) -> bool {
    meta.0.get(name).is_some_and(|value| !value.is_null())
}

fn no_new_finalizers(new: Meta<'_>, old: Meta<'_>, path: &Path) -> Option<Error> {
    let old = old.texts("finalizers");
    let added: BTreeSet<_> = new.texts("finalizers").into_iter().filter(|name| !old.contains(name)).collect();
    let added: Vec<_> = added.into_iter().collect();
    (!added.is_empty()).then(|| {
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers {}",
            go::string_slice(&added)
        );
        Error::forbidden(&path.child("finalizers"), detail)
    })
}

fn immutable<'a>(new: Meta<'a>, old: Meta<'a>, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut refuse = |name: &str, value: BadValue| {
        errors.push(Error::invalid(&path.child(name), value, "field is immutable"));
    };
    for name in ["name", "namespace", "uid"] {
        let value = new.text(name);
        if value != old.text(name) {
            refuse(name, if name == "uid" { BadValue::named(value) } else { value.into() });
        }
    }
    for name in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = |meta: Meta<'a>| meta.0.get(name).unwrap_or(&Value::Null);
        if value(new) != value(old) {
            refuse(name, BadValue::verbatim(go::json(value(new))));
        }
    }
    errors
}

/// The error of an update without a resource version, for kinds that demand one.
#[must_use]
pub fn resource_version_required() -> Error {
    let path = Path::new("metadata").child("resourceVersion");
    Error::invalid(&path, 0_i64, "must be specified for an update")
}
