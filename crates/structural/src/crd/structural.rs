//! Whether a schema is structural.
//!
//! Every field has one type, said once, outside of junctors; what junctors say is about fields that exist.

use concord_meta::field::{Error, Path};
use serde_json::{Value, json};

use crate::props::{OrBool, Props};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What keeps a schema from being structural, sorted by text.
pub(super) fn validate(schema: Props<'_>, path: &Path) -> Vec<Error> {
    let mut errors = Vec::new();
    node(schema, Level::Root, path, &mut errors);
    complete(schema, Some(schema), path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn node(schema: Props<'_>, level: Level, path: &Path, errors: &mut Vec<Error>) {
    if schema.kind() == "array" && schema.items().is_none() {
        errors.push(Error::required(&path.child("items"), "must be specified"));
    }
    if let Some(items) = schema.item() {
        node(items, Level::Item, &path.child("items"), errors);
    }
    let properties = path.child("properties");
    for (name, property) in schema.named("properties") {
        node(property, Level::Field, &properties.key(name), errors);
    }
    if let Some(additional) = schema.additional() {
        let path = path.child("additionalProperties");
        if level == Level::Root {
            errors.push(Error::forbidden(&path, "must not be used at the root"));
        }
        if let OrBool::Schema(values) = additional {
            node(values, Level::Field, &path, errors);
        }
    }
    extensions(schema, path, errors);
    let skip = Skip { any_of: is_int_or_string(schema), first_all_of: begins_with_int_or_string(schema) };
    values(schema, skip, path, errors);
    types(schema, level, path, errors);
    metadata(schema, level, path, errors);
    let is_embedded = schema.flag("x-kubernetes-embedded-resource");
    if is_embedded && !schema.flag("x-kubernetes-preserve-unknown-fields") && !schema.has("properties") {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(Error::required(&path.child("properties"), detail));
    }
}

fn extensions(schema: Props<'_>, path: &Path, errors: &mut Vec<Error>) {
    for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if schema.flag("x-kubernetes-int-or-string") && schema.flag(name) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(Error::invalid(&path.child(name), true, detail));
        }
    }
}

fn types(schema: Props<'_>, level: Level, path: &Path, errors: &mut Vec<Error>) {
    let (kind, path_of_type) = (schema.kind(), path.child("type"));
    let is_embedded = schema.flag("x-kubernetes-embedded-resource");
    let may_be_any =
        schema.flag("x-kubernetes-int-or-string") || schema.flag("x-kubernetes-preserve-unknown-fields");
    if is_embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(typed_error(&path_of_type, kind, detail));
    } else if kind.is_empty() && !may_be_any {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(Error::required(&path_of_type, detail));
    }
    if is_embedded && schema.additional().is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(Error::forbidden(&path.child("additionalProperties"), detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(Error::invalid(&path_of_type, kind, "must be object at the root"));
    }
}

/// An error about a type that should be another: required if there is none.
pub(super) fn typed_error(path: &Path, kind: &str, detail: &'static str) -> Error {
    if kind.is_empty() { Error::required(path, detail) } else { Error::invalid(path, kind, detail) }
}

fn metadata(schema: Props<'_>, level: Level, path: &Path, errors: &mut Vec<Error>) {
    let is_resource = level == Level::Root || schema.flag("x-kubernetes-embedded-resource");
    let properties = path.child("properties");
    let mut must_be = |property: Props<'_>, name: &str, kind: &str| {
        if is_resource && property.kind() != kind {
            let path = properties.key(name).child("type");
            errors.push(Error::invalid(&path, property.kind(), format!("must be {kind}")));
        }
    };
    for name in ["kind", "apiVersion"] {
        if let Some(property) = schema.property(name) {
            must_be(property, name, "string");
        }
    }
    let Some(metadata) = schema.property("metadata") else { return };
    must_be(metadata, "metadata", "object");
    if level == Level::Root && !only_names(metadata) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(Error::forbidden(&properties.key("metadata"), detail));
    }
}

/// Whether a schema of metadata says nothing but what names must be.
fn only_names(metadata: Props<'_>) -> bool {
    let says_something = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    };
    metadata.0.iter().all(|(key, value)| match key.as_str() {
        "type" | "default" => true,
        "properties" => metadata.named("properties").all(|(name, _)| matches!(name, "name" | "generateName")),
        _ => !says_something(value),
    })
}

/// The junctors that say what int-or-string means are allowed to name types.
#[derive(Clone, Copy, Default)]
struct Skip {
    any_of: bool,
    first_all_of: bool,
}

pub(super) fn is_int_or_string(schema: Props<'_>) -> bool {
    let [one, other] = schema.list("anyOf") else { return false };
    *one == json!({"type": "integer"}) && *other == json!({"type": "string"})
}

fn begins_with_int_or_string(schema: Props<'_>) -> bool {
    schema.schemas("allOf").next().is_some_and(is_int_or_string)
}

/// The parts of a schema that are about values.
fn values(schema: Props<'_>, skip: Skip, path: &Path, errors: &mut Vec<Error>) {
    for junctor in ["anyOf", "allOf", "oneOf"] {
        if junctor == "anyOf" && skip.any_of {
            continue;
        }
        let path = path.child(junctor);
        for (index, branch) in schema.schemas(junctor).enumerate() {
            let any_of = junctor == "allOf" && index == 0 && skip.first_all_of;
            nested(branch, Skip { any_of, first_all_of: false }, &path.index(index), errors);
        }
    }
    if let Some(not) = schema.schema("not") {
        nested(not, Skip::default(), &path.child("not"), errors);
    }
    let pattern = schema.text("pattern");
    if !pattern.is_empty()
        && let Err(error) = concord_re2::check(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(Error::invalid(&path.child("pattern"), pattern, detail));
    }
}

/// What a schema inside of a junctor must not have.
const NOT_NESTED: [(&str, &str); 11] = [
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
];

fn nested(schema: Props<'_>, skip: Skip, path: &Path, errors: &mut Vec<Error>) {
    values(schema, skip, path, errors);
    if let Some(items) = schema.item() {
        nested(items, Skip::default(), &path.child("items"), errors);
    }
    let properties = path.child("properties");
    for (name, property) in schema.named("properties") {
        nested(property, Skip::default(), &properties.key(name), errors);
    }
    // What allows nothing more says nothing to upstream.
    if !matches!(schema.additional(), None | Some(OrBool::Bool(false))) {
        let detail = "must be undefined to be structural";
        errors.push(Error::forbidden(&path.child("additionalProperties"), detail));
    }
    for (name, detail) in NOT_NESTED {
        let present = match schema.0.get(name) {
            None | Some(Value::Null) => false,
            Some(_) if name == "default" => true,
            Some(Value::Bool(value)) => *value,
            Some(Value::String(_)) if detail.contains("undefined") => true,
            Some(_) => schema.has(name),
        };
        if present {
            errors.push(Error::forbidden(&path.child(name), detail));
        }
    }
    if schema.has("x-kubernetes-validations") {
        let detail = "must be empty to be structural";
        errors.push(Error::forbidden(&path.child("x-kubernetes-validations"), detail));
    }
    if schema.property("metadata").is_some() {
        let detail = "must not be specified in a nested context";
        errors.push(Error::forbidden(&properties.key("metadata"), detail));
    }
}

/// Whether what the junctors of the root speak of exists outside of them.
fn complete(values: Props<'_>, schema: Option<Props<'_>>, at: &Path, named: &Path, errors: &mut Vec<Error>) {
    let Some(known) = schema else {
        errors.push(Error::required(at, format!("because it is defined in {named}")));
        return;
    };
    if let Some(not) = values.schema("not") {
        complete_nested(not, Some(known), at, &named.child("not"), errors);
    }
    for junctor in ["allOf", "anyOf", "oneOf"] {
        let named = named.child(junctor);
        for (index, branch) in values.schemas(junctor).enumerate() {
            complete_nested(branch, Some(known), at, &named.index(index), errors);
        }
    }
}

fn complete_nested(
    values: Props<'_>,
    schema: Option<Props<'_>>,
    at: &Path,
    named: &Path,
    errors: &mut Vec<Error>,
) {
    complete(values, schema, at, named, errors);
    let Some(known) = schema else { return };
    if let Some(items) = values.item() {
        complete_nested(items, known.item(), &at.child("items"), &named.child("items"), errors);
    }
    let (at, named) = (at.child("properties"), named.child("properties"));
    for (name, property) in values.named("properties") {
        complete_nested(property, known.property(name), &at.key(name), &named.key(name), errors);
    }
}
