//! What is wrong with a CustomResourceDefinition of apiextensions.k8s.io/v1.
//!
//! Upstream validates its internal form of a definition, and errors show that: what all versions have in common is
//! moved from the versions to the spec (so that the schema of a single version is at `spec.validation`), and values
//! are printed with the names of Go's fields. [`spec`] and [`internal`] are that form.
//!
//! An update is held only to rules that the stored definition keeps itself: `options` says which.

mod approval;
mod cel;
mod conversion;
mod defaulting;
mod defaults;
mod field_path;
mod internal;
mod names;
mod openapi;
mod options;
mod rules;
mod spec;
mod structural;
mod topology;
mod versions;
mod warnings;

use concord_meta::{
    field::{BadValue, Error, Path},
    names::NameRule,
    objectmeta::{self, Scope},
};
use serde_json::Value;

pub use approval::{Approval, approval};
pub use cel::{CelCompiler, CompiledRule, NoCel, RuleError, RulePlace};
pub use defaulting::{prepare_create, prepare_update, set_defaults};
pub use warnings::{warnings_on_create, warnings_on_update};

use crate::{Object, props::Props};
use options::Options;
use spec::Spec;

/// The estimated cost that one expression may have.
pub const EXPRESSION_COST_LIMIT: u64 = 10_000_000;
/// The estimated cost that all expressions of a schema may have together.
pub const SCHEMA_COST_LIMIT: u64 = 100_000_000;
/// How many selectable fields a version may have.
pub const MAX_SELECTABLE_FIELDS: usize = 8;

fn part<'a>(object: &'a Object, name: &str, empty: &'a Object) -> &'a Object {
    object.get(name).and_then(Value::as_object).unwrap_or(empty)
}

/// What is wrong with a definition to be created, after defaults were set and its status was prepared.
#[must_use]
pub fn validate_create(definition: &Object, cel: &dyn CelCompiler) -> Vec<Error> {
    let empty = Object::new();
    let spec = Spec::of(Props(part(definition, "spec", &empty)));
    let options = Options::for_create();
    let mut errors = create_metadata(part(definition, "metadata", &empty), &spec);
    errors.extend(spec::validate(&spec, &options, cel));
    errors.extend(status_errors(definition, &spec));
    errors.extend(approval::validate(definition, None));
    errors.extend(preserve_unknown_fields(&spec, None));
    errors
}

/// What is wrong with a definition that replaces another, after its status was restored.
#[must_use]
pub fn validate_update(definition: &Object, old: &Object, cel: &dyn CelCompiler) -> Vec<Error> {
    let empty = Object::new();
    let spec = Spec::of(Props(part(definition, "spec", &empty)));
    let old_spec = Spec::of(Props(part(old, "spec", &empty)));
    let options = Options::for_update(&spec, &old_spec, is_established(old));
    let mut errors = metadata_update(definition, old);
    errors.extend(spec::validate(&spec, &options, cel));
    errors.extend(immutable(&spec, &old_spec, options.immutable_names));
    errors.extend(status_errors(definition, &spec));
    errors.extend(approval::validate(definition, Some(old)));
    errors.extend(preserve_unknown_fields(&spec, Some(&old_spec)));
    errors
}

/// What is wrong with an update of the status of a definition.
#[must_use]
pub fn validate_status_update(definition: &Object, old: &Object) -> Vec<Error> {
    let mut errors = metadata_update(definition, old);
    errors.extend(accepted_names(definition));
    errors
}

/// Why the schemas of a definition are not structural: what the condition `NonStructuralSchema` says. `None` if they are.
/// No such definition is accepted, but one may have been stored by something else.
#[must_use]
pub fn non_structural(definition: &Object) -> Option<String> {
    let empty = Object::new();
    let spec = Spec::of(Props(part(definition, "spec", &empty)));
    let mut errors = Vec::new();
    if spec.preserves_unknown_fields() {
        let path = Path::new("spec").child("preserveUnknownFields");
        errors.push(Error::invalid(&path, true, "must be false"));
    }
    for (index, version) in spec.versions.iter().enumerate() {
        let schema = spec.schema_of(version).and_then(|schema| schema.schema("openAPIV3Schema"));
        let path = Path::new("spec").child("versions").index(index).child("schema").child("openAPIV3Schema");
        errors.extend(schema.into_iter().flat_map(|schema| structural::validate(schema, &path)));
    }
    (!errors.is_empty()).then(|| concord_meta::field::aggregate(&errors))
}

/// Whether the conversion webhook of a definition has a `caBundle` that is none: such a definition is stored, and not
/// established.
#[must_use]
pub fn has_invalid_ca_bundle(definition: &Object) -> bool {
    let empty = Object::new();
    let spec = Props(part(definition, "spec", &empty));
    options::has_invalid_ca_bundle(spec.schema("conversion"))
}

fn metadata_update(definition: &Object, old: &Object) -> Vec<Error> {
    let empty = Object::new();
    let (new, old) = (part(definition, "metadata", &empty), part(old, "metadata", &empty));
    objectmeta::validate_update(new, old, &Path::new("metadata"))
}

/// The metadata of a definition: its name follows from the names of the resource and of the group.
fn create_metadata(metadata: &Object, spec: &Spec<'_>) -> Vec<Error> {
    let path = Path::new("metadata");
    let mut errors = objectmeta::validate_create(metadata, Scope::Cluster, NameRule::Dns1123Subdomain, &path);
    let demanded = format!("{}.{}", spec.names().text("plural"), spec.group());
    let detail = r#"must be spec.names.plural+"."+spec.group"#;
    let mut at = 0;
    for name in ["generateName", "name"] {
        let field = path.child(name);
        let given = metadata.get(name).and_then(Value::as_str).unwrap_or_default();
        let own = errors[at..].iter().take_while(|error| error.field == field.to_string()).count();
        at += own;
        if !given.is_empty() && given != demanded {
            errors.insert(at, Error::invalid(&field, given, detail));
            at += 1;
        }
    }
    errors
}

fn status_errors(definition: &Object, spec: &Spec<'_>) -> Vec<Error> {
    let mut errors = accepted_names(definition);
    let empty = Object::new();
    let status = part(definition, "status", &empty);
    errors.extend(versions::stored(Props(status), spec));
    errors
}

fn accepted_names(definition: &Object) -> Vec<Error> {
    let empty = Object::new();
    let names = part(part(definition, "status", &empty), "acceptedNames", &empty);
    names::validate(Props(names), &Path::new("status").child("acceptedNames"))
}

fn is_established(definition: &Object) -> bool {
    let conditions = definition.get("status").and_then(|status| status.get("conditions"));
    let mut conditions = conditions.and_then(Value::as_array).into_iter().flatten();
    conditions
        .find(|condition| condition["type"] == "Established")
        .is_some_and(|found| found["status"] == "True")
}

fn immutable(spec: &Spec<'_>, old: &Spec<'_>, names: bool) -> Vec<Error> {
    let path = Path::new("spec");
    let mut errors = Vec::new();
    let mut check = |field: Path, new: &str, old: &str, shown: BadValue| {
        if new != old {
            errors.push(Error::invalid(&field, shown, "field is immutable"));
        }
    };
    let names_path = path.child("names");
    if names {
        let (new, old) = (spec.scope(), old.scope());
        check(path.child("scope"), new, old, BadValue::named(new));
    }
    let name = |spec: &Spec<'_>, name: &str| spec.names().text(name).to_owned();
    if names {
        let (new, old) = (name(spec, "kind"), name(old, "kind"));
        check(names_path.child("kind"), &new, &old, (&new).into());
    }
    check(path.child("group"), spec.group(), old.group(), spec.group().into());
    let (new, old) = (name(spec, "plural"), name(old, "plural"));
    check(names_path.child("plural"), &new, &old, (&new).into());
    errors
}

fn preserve_unknown_fields(spec: &Spec<'_>, old: Option<&Spec<'_>>) -> Option<Error> {
    let was = old.is_some_and(|old| old.preserves_unknown_fields());
    (spec.preserves_unknown_fields() && !was).then(|| {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        Error::invalid(&Path::new("spec").child("preserveUnknownFields"), true, detail)
    })
}

#[cfg(test)]
mod tests;
