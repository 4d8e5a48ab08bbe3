//! Declarations from OpenAPI schemas, with the sizes that upstream estimates.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::decl::{Decl, DeclKind, FieldDecl, ListSemantics, ObjectDecl};
use crate::escape::escape;
use crate::types::Type;

/// The largest request that upstream assumes when a schema has no bound of its own.
pub const MAX_REQUEST_BYTES: u64 = 3 * 1024 * 1024;

const MAX_DURATION: u64 = 32;
const MAX_DATE_TIME: u64 = 32;
const DATE: u64 = 12;
const MIN_DURATION: u64 = 3;
const MIN_DATE_TIME: u64 = 21;
const MIN_STRING: u64 = 2;

impl Decl {
    /// The declaration of a structural schema, or none when expressions cannot see values of it.
    ///
    /// `name` is the name of its type; `root` says that it is the root of a resource, whose `apiVersion`, `kind` and
    /// `metadata` with `name` and `generateName` are always visible.
    pub fn from_schema(schema: &Value, name: &str, root: bool) -> Option<Self> {
        let schema = schema.as_object()?;
        if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
            let max_elements = number(schema, "maxLength").map_or(MAX_REQUEST_BYTES - 2, |max| max * 4);
            return Some(Self { max_elements, ..Self::simple(Type::Dyn) });
        }
        let with_meta;
        let schema = if root {
            with_meta = with_type_and_object_meta(schema);
            &with_meta
        } else {
            schema
        };
        match schema.get("type")?.as_str()? {
            "array" => from_array(schema, name),
            "object" => from_object(schema, name),
            "string" => Some(from_string(schema)),
            "boolean" => Some(Self { min_serialized_size: 4, ..Self::simple(Type::Bool) }),
            "number" => Some(Self::simple(Type::Double)),
            "integer" => Some(Self::simple(Type::Int)),
            _ => None,
        }
    }

    /// How often a value of this type can occur in one request: what the cost of a rule is multiplied with when the
    /// value is inside of lists or maps without bounds.
    pub fn max_cardinality(&self) -> u64 {
        MAX_REQUEST_BYTES / (self.min_serialized_size + 1)
    }
}

/// A bound of a schema; a negative one counts as zero.
fn number(schema: &Map<String, Value>, key: &str) -> Option<u64> {
    let value = schema.get(key)?;
    value.as_u64().or_else(|| value.as_i64().map(|_| 0))
}

fn is_embedded(schema: &Value) -> bool {
    schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true))
}

fn from_array(schema: &Map<String, Value>, name: &str) -> Option<Decl> {
    let items = schema.get("items")?;
    let element = Decl::from_schema(items, &format!("{name}.@idx"), is_embedded(items))?;
    let max_elements =
        number(schema, "maxItems").unwrap_or((MAX_REQUEST_BYTES - 2) / (element.min_serialized_size + 1));
    let kind = DeclKind::List(Arc::new(element), list_semantics(schema));
    // The smallest list is [].
    Some(Decl { kind, max_elements, min_serialized_size: 2 })
}

fn list_semantics(schema: &Map<String, Value>) -> ListSemantics {
    match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListSemantics::Set,
        Some("map") => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let names = keys.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
            ListSemantics::Map(names.collect())
        }
        _ => ListSemantics::Atomic,
    }
}

fn from_object(schema: &Map<String, Value>, name: &str) -> Option<Decl> {
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        let value = Decl::from_schema(values, &format!("{name}.@elem"), is_embedded(values))?;
        let max_elements = number(schema, "maxProperties")
            .unwrap_or((MAX_REQUEST_BYTES - 2) / (value.min_serialized_size + 6));
        return Some(Decl { kind: DeclKind::Map(Arc::new(value)), max_elements, min_serialized_size: 2 });
    }
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut fields = BTreeMap::new();
    let mut min_serialized_size = 2;
    for (property, value) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let Some(decl) = Decl::from_schema(value, &format!("{name}.{property}"), is_embedded(value)) else {
            continue;
        };
        // A default is filled in by the server, so it takes nothing from the request.
        if required.contains(&property.as_str()) && value.get("default").is_none() {
            min_serialized_size += property.len() as u64 + decl.min_serialized_size + 4;
        }
        if let Some(field) = escape(property) {
            fields.insert(field, FieldDecl { decl: Arc::new(decl), property: property.clone() });
        }
    }
    let object = ObjectDecl { name: name.to_owned(), fields };
    Some(Decl { kind: DeclKind::Object(Arc::new(object)), max_elements: 0, min_serialized_size })
}

fn from_string(schema: &Map<String, Value>) -> Decl {
    let max_length = number(schema, "maxLength");
    let unbounded = MAX_REQUEST_BYTES - 2;
    let (simple, max_elements, min_serialized_size) = match schema.get("format").and_then(Value::as_str) {
        Some("byte") => (Type::Bytes, max_length.unwrap_or(unbounded), MIN_STRING),
        Some("duration") => (Type::Duration, MAX_DURATION, MIN_DURATION),
        Some("date") => (Type::Timestamp, DATE, DATE),
        Some("date-time") => (Type::Timestamp, MAX_DATE_TIME, MIN_DATE_TIME),
        _ => {
            let longest_value = || {
                let values = schema.get("enum")?.as_array().filter(|values| !values.is_empty())?;
                Some(values.iter().filter_map(Value::as_str).map(str::len).max().unwrap_or(0) as u64)
            };
            // Lengths are in characters, and a character takes up to four bytes.
            let max = max_length.map(|max| max * 4).or_else(longest_value).unwrap_or(unbounded);
            (Type::String, max, MIN_STRING)
        }
    };
    Decl { kind: DeclKind::Simple(simple), max_elements, min_serialized_size }
}

/// The schema with the fields that are visible at the root of every resource.
fn with_type_and_object_meta(schema: &Map<String, Value>) -> Map<String, Value> {
    let is = |value: Option<&Value>, kind: &str| {
        value.and_then(|value| value.get("type")).and_then(Value::as_str) == Some(kind)
    };
    let properties = schema.get("properties");
    let get = |name: &str| properties.and_then(|properties| properties.get(name));
    let meta = |name: &str| get("metadata").and_then(|meta| meta.get("properties")?.get(name));
    let complete = is(get("kind"), "string")
        && is(get("apiVersion"), "string")
        && is(get("metadata"), "object")
        && is(meta("name"), "string")
        && is(meta("generateName"), "string");
    let mut result = schema.clone();
    if complete {
        return result;
    }
    let string = || serde_json::json!({"type": "string"});
    let metadata = serde_json::json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
    });
    let mut properties = properties.and_then(Value::as_object).cloned().unwrap_or_default();
    properties.insert("kind".to_owned(), string());
    properties.insert("apiVersion".to_owned(), string());
    properties.insert("metadata".to_owned(), metadata);
    result.insert("properties".to_owned(), Value::Object(properties));
    result
}
