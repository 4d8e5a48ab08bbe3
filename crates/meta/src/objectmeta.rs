//! What `metadata` may contain.
//!
//! The checks read the JSON of an object and take members of a wrong type for absent: that the
//! types are right is the schema's business and checked before. Paths and texts are upstream's,
//! including that errors about labels name `metadata.labels` and not the key.

mod owners;
mod update;

use serde_json::{Map, Value};

use crate::field::{BadValue, Error, Path};
use crate::go;
use crate::names::{self, NameRule};

pub use owners::{dedup_owner_references, duplicate_owner_references_warning};
pub use update::{resource_version_required, validate_update};

/// The members, in the order in which Go shows them.
pub const MEMBERS: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// The bytes all annotations of an object may have together, keys and values.
pub const MAX_ANNOTATION_BYTES: usize = 256 * 1024;
/// The bytes the name of a field manager may have.
pub const MAX_FIELD_MANAGER_BYTES: usize = 128;
/// The bytes the name of a subresource in `managedFields` may have.
const MAX_SUBRESOURCE_BYTES: usize = 256;

/// The finalizer that orphans dependents.
pub const FINALIZER_ORPHAN: &str = "orphan";
/// The finalizer that keeps the object until its dependents are gone.
pub const FINALIZER_FOREGROUND: &str = "foregroundDeletion";

/// Whether objects of a kind live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// They do.
    Namespaced,
    /// They do not.
    Cluster,
}

/// The metadata of an object as it is.
#[derive(Clone, Copy)]
struct Meta<'a>(&'a Map<String, Value>);

impl<'a> Meta<'a> {
    fn text(self, name: &str) -> &'a str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn number(self, name: &str) -> i64 {
        self.0.get(name).and_then(Value::as_i64).unwrap_or_default()
    }

    fn list(self, name: &str) -> &'a [Value] {
        self.0.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn texts(self, name: &str) -> Vec<&'a str> {
        self.list(name).iter().filter_map(Value::as_str).collect()
    }

    fn pairs(self, name: &str) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let members = self.0.get(name).and_then(Value::as_object).into_iter().flatten();
        members.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
    }
}

/// What is wrong with the metadata at `path` of an object to be created, after its name was
/// generated and its namespace filled in.
#[must_use]
pub fn validate_create(
    metadata: &Map<String, Value>,
    scope: Scope,
    rule: NameRule,
    path: &Path,
) -> Vec<Error> {
    let meta = Meta(metadata);
    let mut errors = Vec::new();
    let invalid = |name: &str, problems: Vec<String>| {
        let error = |problem| Error::invalid(&path.child(name), meta.text(name), problem);
        problems.into_iter().map(error).collect::<Vec<_>>()
    };
    let generate = meta.text("generateName");
    if !generate.is_empty() {
        errors.extend(invalid("generateName", rule.check_prefix(generate)));
    }
    match meta.text("name") {
        "" => errors.push(Error::required(&path.child("name"), "name or generateName is required")),
        name => errors.extend(invalid("name", rule.check(name))),
    }
    match (scope, meta.text("namespace")) {
        (Scope::Namespaced, "") => errors.push(Error::required(&path.child("namespace"), "")),
        (Scope::Namespaced, name) => errors.extend(invalid("namespace", names::dns1123_label(name))),
        (Scope::Cluster, "") => {}
        (Scope::Cluster, _) => {
            errors.push(Error::forbidden(&path.child("namespace"), "not allowed on this type"));
        }
    }
    let generation = meta.number("generation");
    if generation < 0 {
        let detail = "must be greater than or equal to 0";
        errors.push(Error::invalid(&path.child("generation"), generation, detail));
    }
    errors.extend(validate_labels(meta, path));
    errors.extend(validate_annotations(meta, path));
    errors.extend(owners::validate(meta.list("ownerReferences"), &path.child("ownerReferences")));
    errors.extend(validate_finalizers(&meta.texts("finalizers"), &path.child("finalizers")));
    errors.extend(validate_managed_fields(meta.list("managedFields"), &path.child("managedFields")));
    errors
}

fn validate_labels(meta: Meta<'_>, path: &Path) -> Vec<Error> {
    validate_label_map(meta.pairs("labels"), &path.child("labels"))
}

/// What is wrong with the labels at `path`.
pub(crate) fn validate_label_map<'a>(
    labels: impl Iterator<Item = (&'a str, &'a str)>,
    path: &Path,
) -> Vec<Error> {
    let check = |(key, value): (&'a str, &'a str)| {
        let keys = names::qualified_name(key).into_iter().map(move |problem| (key, problem));
        keys.chain(names::label_value(value).into_iter().map(move |problem| (value, problem)))
    };
    labels.flat_map(check).map(|(value, problem)| Error::invalid(path, value, problem)).collect()
}

fn validate_annotations(meta: Meta<'_>, path: &Path) -> Vec<Error> {
    let path = path.child("annotations");
    let mut errors = Vec::new();
    let mut bytes = 0_usize;
    for (key, value) in meta.pairs("annotations") {
        // Annotations may have upper case where labels may not: in the prefix.
        let problems = names::qualified_name(&key.to_lowercase()).into_iter();
        errors.extend(problems.map(|problem| Error::invalid(&path, key, problem)));
        bytes = bytes.saturating_add(key.len()).saturating_add(value.len());
    }
    if bytes > MAX_ANNOTATION_BYTES {
        errors.push(Error::too_long(&path, MAX_ANNOTATION_BYTES));
    }
    errors
}

fn validate_finalizers(finalizers: &[&str], path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    for name in finalizers {
        let problems = names::qualified_name(name).into_iter();
        errors.extend(problems.map(|problem| Error::invalid(path, *name, problem)));
    }
    if [FINALIZER_ORPHAN, FINALIZER_FOREGROUND].iter().all(|name| finalizers.contains(name)) {
        let detail = format!("finalizer {FINALIZER_ORPHAN} and {FINALIZER_FOREGROUND} cannot be both set");
        errors.push(Error::invalid(path, BadValue::strings(finalizers), detail));
    }
    errors
}

/// That `managedFields` has the right form; what the sets in it say is not looked at.
fn validate_managed_fields(entries: &[Value], path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let (path, empty) = (path.index(at), Map::new());
        let entry = Meta(entry.as_object().unwrap_or(&empty));
        let operation = entry.text("operation");
        if !["Apply", "Update"].contains(&operation) {
            let value = BadValue::named(operation);
            errors.push(Error::invalid(&path.child("operation"), value, "must be `Apply` or `Update`"));
        }
        let fields_type = entry.text("fieldsType");
        if !["", "FieldsV1"].contains(&fields_type) {
            errors.push(Error::invalid(&path.child("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        errors.extend(validate_field_manager(entry.text("manager"), &path.child("manager")));
        if entry.text("subresource").len() > MAX_SUBRESOURCE_BYTES {
            errors.push(Error::too_long(&path.child("subresource"), MAX_SUBRESOURCE_BYTES));
        }
    }
    errors
}

/// What is wrong with the name of a field manager.
#[must_use]
pub fn validate_field_manager(manager: &str, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    if manager.len() > MAX_FIELD_MANAGER_BYTES {
        errors.push(Error::too_long(path, MAX_FIELD_MANAGER_BYTES));
    }
    let unprintable = manager.char_indices().filter(|(_, c)| !go::is_print(*c));
    errors.extend(unprintable.map(|(at, c)| {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
        Error::invalid(path, manager, detail)
    }));
    errors
}

#[cfg(test)]
#[path = "objectmeta/tests.rs"]
mod tests;
