//! What a custom object must be beside fitting its schema.

use concord_meta::{
    GroupVersion,
    field::{Error, ErrorType, Path},
    names::{self, NameRule},
    objectmeta::{self, Scope},
};
use serde_json::Value;

use crate::{
    Object,
    schema::{Node, Schema},
};

/// The paths of the scale subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// `specReplicasPath`.
    pub spec_replicas: String,
    /// `statusReplicasPath`.
    pub status_replicas: String,
    /// `labelSelectorPath`.
    pub label_selector: Option<String>,
}

/// Whether an object is of the kind that it is sent as. If not, nothing else is checked.
#[must_use]
pub fn validate_type(object: &Object, kind: &str, api_version: &str) -> Vec<Error> {
    let mut errors = Vec::new();
    for (name, expected) in [("kind", kind), ("apiVersion", api_version)] {
        let given = object.get(name).and_then(Value::as_str).unwrap_or_default();
        if given != expected {
            errors.push(Error::invalid(&Path::new(name), given, format!("must be {expected}")));
        }
    }
    errors
}

/// The error that stands for the rules that were not checked, if other errors keep them from being checked.
#[must_use]
pub fn unchecked_rules(errors: &[Error]) -> Option<Error> {
    use ErrorType::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    let blocks =
        |error: &Error| matches!(error.error_type, NotSupported | Required | TooLong | TooMany | TypeInvalid);
    errors.iter().any(blocks).then(|| {
        let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                      errors to complete validation";
        Error::invalid(&Path::nil(), &Value::Null, detail)
    })
}

impl Schema {
    /// What is wrong with a new object, apart from its type and metadata, which are checked before, and its rules,
    /// which are checked after.
    #[must_use]
    pub fn validate_create(&self, object: &Object, scale: Option<&Scale>) -> Vec<Error> {
        let mut errors = self.validate(object, None);
        errors.extend(scale.into_iter().flat_map(|scale| scale.validate(object)));
        errors.extend(self.validate_embedded(object));
        errors.extend(self.validate_lists(object));
        errors
    }

    /// The same of an object that replaces another.
    #[must_use]
    pub fn validate_update(&self, object: &Object, old: &Object, scale: Option<&Scale>) -> Vec<Error> {
        let mut errors = self.validate(object, Some(old));
        errors.extend(scale.into_iter().flat_map(|scale| scale.validate(object)));
        errors.extend(self.validate_embedded(object));
        errors.extend(self.new_duplicates(object, old));
        errors
    }

    /// The same of an update of the status.
    #[must_use]
    pub fn validate_status_update(&self, object: &Object, old: &Object, scale: Option<&Scale>) -> Vec<Error> {
        let status = object.get("status");
        let mut errors =
            status.map_or_else(Vec::new, |status| self.validate_status(status, old.get("status")));
        errors.extend(scale.into_iter().flat_map(|scale| scale.validate_status(object)));
        errors.extend(self.new_duplicates(object, old));
        errors
    }

    fn new_duplicates(&self, object: &Object, old: &Object) -> Vec<Error> {
        if self.validate_lists(old).is_empty() { self.validate_lists(object) } else { Vec::new() }
    }

    /// What is wrong with the types and the metadata of embedded resources.
    #[must_use]
    pub fn validate_embedded(&self, object: &Object) -> Vec<Error> {
        let mut errors = Vec::new();
        let root = self.root();
        embedded_members(&Path::nil(), object, root, root.is_embedded_resource(), &mut errors);
        errors
    }
}

/// What is wrong with the resources in a default.
pub(crate) fn embedded_errors(path: &Path, value: &Value, node: Node<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    embedded(path, value, node, &mut errors);
    errors
}

/// What is wrong with a default that is a whole resource, or with an object around a default of its own metadata.
pub(crate) fn resource_errors(path: &Path, object: &Object, node: Node<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    embedded_members(path, object, node, true, &mut errors);
    errors
}

fn embedded(path: &Path, value: &Value, node: Node<'_>, errors: &mut Vec<Error>) {
    match value {
        Value::Object(members) => {
            embedded_members(path, members, node, node.is_embedded_resource(), errors);
        }
        Value::Array(items) => {
            let Some(node) = node.items() else { return };
            for (index, item) in items.iter().enumerate() {
                embedded(&path.index(index), item, node, errors);
            }
        }
        _ => {}
    }
}

fn embedded_members(
    path: &Path,
    members: &Object,
    node: Node<'_>,
    is_resource: bool,
    errors: &mut Vec<Error>,
) {
    if is_resource {
        errors.extend(embedded_resource(path, members));
    }
    for (name, value) in members {
        match (node.property(name), node.additional().schema()) {
            (Some(property), _) if property.has_embedded_below() => {
                embedded(&path.child(name), value, property, errors);
            }
            (None, Some(additional)) if additional.has_embedded_below() => {
                embedded(&path.key(name), value, additional, errors);
            }
            _ => {}
        }
    }
}

fn embedded_resource(path: &Path, members: &Object) -> Vec<Error> {
    let mut errors = Vec::new();
    for (name, problem) in
        [("apiVersion", api_version_problem as fn(&str) -> Option<String>), ("kind", kind_problem)]
    {
        let field = path.child(name);
        match members.get(name) {
            None => errors.push(Error::required(&field, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(Error::invalid(&field, text, "must not be empty"));
            }
            Some(Value::String(text)) => {
                errors.extend(problem(text).map(|problem| Error::invalid(&field, text, problem)));
            }
            Some(other) => errors.push(Error::invalid(&field, other, "must be a string")),
        }
    }
    let metadata = members.get("metadata").and_then(Value::as_object);
    errors.extend(metadata.into_iter().flat_map(|metadata| metadata_errors(path, metadata)));
    errors
}

fn api_version_problem(text: &str) -> Option<String> {
    text.parse::<GroupVersion>().err().map(|error| error.to_string())
}

pub(crate) fn kind_problem(text: &str) -> Option<String> {
    let problems = names::dns1035_label(&text.to_lowercase());
    let text = format!("may have mixed case, but should otherwise match: {}", problems.join(","));
    (!problems.is_empty()).then_some(text)
}

fn metadata_errors(path: &Path, metadata: &Object) -> Vec<Error> {
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
    let scope = if text("namespace").is_empty() { Scope::Cluster } else { Scope::Namespaced };
    let path = path.child("metadata");
    if text("name").is_empty() {
        let mut named = metadata.clone();
        named.insert("name".to_owned(), "fakename".into());
        return objectmeta::validate_create(&named, scope, NameRule::PathSegment, &path);
    }
    objectmeta::validate_create(metadata, scope, NameRule::PathSegment, &path)
}

impl Scale {
    fn validate(&self, object: &Object) -> Vec<Error> {
        let mut errors = Vec::from_iter(replicas_error(object, &self.spec_replicas));
        errors.extend(self.validate_status(object));
        errors
    }

    fn validate_status(&self, object: &Object) -> Vec<Error> {
        let mut errors = Vec::from_iter(replicas_error(object, &self.status_replicas));
        let selector = self.label_selector.iter().filter_map(|path| {
            let found = nested(object, path, |value| value.as_str().map(drop), "string");
            found.err().map(|error| Error::invalid(&Path::new(path.as_str()), "", error))
        });
        errors.extend(selector);
        errors
    }
}

fn replicas_error(object: &Object, path: &str) -> Option<Error> {
    let field = Path::new(path);
    match nested(object, path, Value::as_i64, "int64") {
        Err(error) => Some(Error::invalid(&field, 0_i64, error)),
        Ok(Some(replicas)) if replicas < 0 => {
            Some(Error::invalid(&field, replicas, "should be a non-negative integer"))
        }
        Ok(Some(replicas)) if replicas > i64::from(i32::MAX) => {
            Some(Error::invalid(&field, replicas, format!("should be less than or equal to {}", i32::MAX)))
        }
        Ok(_) => None,
    }
}

/// The value at a path of dots, or upstream's text about what is in the way.
fn nested<T>(
    object: &Object,
    path: &str,
    read: impl FnOnce(&Value) -> Option<T>,
    expected: &str,
) -> Result<Option<T>, String> {
    let path = path.strip_prefix('.').unwrap_or(path);
    let fields: Vec<_> = path.split('.').collect();
    let wrong = |len: usize, value: &Value, expected: &str| {
        let at = fields[..len].join(".");
        let (text, found) = (go_print(value), go_type(value));
        format!(".{at} accessor error: {text} is of the type {found}, expected {expected}")
    };
    let Some(mut value) = object.get(fields[0]) else { return Ok(None) };
    for (at, field) in fields.iter().enumerate().skip(1) {
        value = match value {
            Value::Null => return Ok(None),
            Value::Object(members) => match members.get(*field) {
                Some(value) => value,
                None => return Ok(None),
            },
            other => return Err(wrong(at + 1, other, "map[string]interface{}")),
        };
    }
    read(value).map(Some).ok_or_else(|| wrong(fields.len(), value, expected))
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go's `%v` prints it.
pub(crate) fn go_print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => crate::go::float(number.as_f64().unwrap_or_default()),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(go_print).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(members) => {
            let members: Vec<_> =
                members.iter().map(|(name, value)| format!("{name}:{}", go_print(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests;
