//! Schemas of version 2 in version 3.

use serde_json::{Map, Value, json};

/// Where version 3 has its schemas.
pub(super) const SCHEMAS: &str = "#/components/schemas/";
/// Where version 2 has them.
const DEFINITIONS: &str = "#/definitions/";

/// What a schema of version 3 can say, besides extensions, that is the same in version 2 and holds no schema.
const PLAIN: [&str; 26] = [
    "default",
    "deprecated",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "nullable",
    "pattern",
    "readOnly",
    "required",
    "title",
    "type",
    "uniqueItems",
    "xml",
];

/// A definition, which may be one of the types that the name alone tells.
pub(super) fn definition(name: &str, schema: &Value) -> Value {
    let mut converted = convert(schema);
    if name.ends_with(".api.resource.Quantity") && converted.get("type").is_some_and(|of| of == "string") {
        either(&mut converted, &json!([{"type": "string"}, {"type": "number"}]));
    }
    converted
}

/// A schema. It is as deep as its document, which is bounded.
pub(super) fn convert(schema: &Value) -> Value {
    let Value::Object(schema) = schema else { return json!({}) };
    let mut converted = Map::new();
    for (name, value) in schema {
        let value = match name.as_str() {
            "properties" => map(value),
            "items" => items(value),
            "additionalProperties" if value.is_boolean() => value.clone(),
            "additionalProperties" | "not" => convert(value),
            "allOf" | "anyOf" | "oneOf" => list(value),
            "discriminator" if value.is_string() => json!({"propertyName": value}),
            name if PLAIN.contains(&name) || name.starts_with("x-") => value.clone(),
            _ => continue,
        };
        converted.insert(name.clone(), value);
    }
    if converted.remove("x-nullable") == Some(Value::Bool(true)) {
        converted.insert("nullable".to_owned(), true.into());
    }
    one_type(&mut converted);
    let mut converted = Value::Object(converted);
    if is_int_or_string(&converted) {
        either(&mut converted, &json!([{"type": "integer"}, {"type": "string"}]));
    }
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => refer(reference, converted),
        None => converted,
    }
}

/// In version 3 nothing may stand beside a reference.
fn refer(reference: &str, mut beside: Value) -> Value {
    let reference = match reference.strip_prefix(DEFINITIONS) {
        Some(name) => format!("{SCHEMAS}{name}"),
        // What is somewhere else cannot be told.
        None => return beside,
    };
    let reference = json!({"$ref": reference});
    match beside.as_object_mut() {
        Some(members) if !members.is_empty() => {
            let all = members.entry("allOf").or_insert_with(|| json!([]));
            if let Some(all) = all.as_array_mut() {
                all.insert(0, reference);
            }
            beside
        }
        _ => reference,
    }
}

fn map(schemas: &Value) -> Value {
    let schemas = schemas.as_object().into_iter().flatten();
    schemas.map(|(name, schema)| (name.clone(), convert(schema))).collect::<Map<_, _>>().into()
}

fn list(schemas: &Value) -> Value {
    schemas.as_array().into_iter().flatten().map(convert).collect::<Vec<_>>().into()
}

/// Several schemas for the items in their order cannot be told; any of them may stand anywhere then.
fn items(schema: &Value) -> Value {
    if schema.is_array() { json!({"anyOf": list(schema)}) } else { convert(schema) }
}

/// Version 3 knows one type, whether there may be none, and no files.
fn one_type(schema: &mut Map<String, Value>) {
    match schema.get("type") {
        Some(Value::String(name)) if name == "file" => drop(schema.remove("type")),
        Some(Value::Array(types)) => {
            let is_null = |name: &&Value| **name == "null";
            let (nulls, others): (Vec<_>, Vec<_>) = types.iter().partition(is_null);
            let nullable = !nulls.is_empty();
            let one = if let [one] = others.as_slice() { Some((*one).clone()) } else { None };
            match one {
                Some(one) => drop(schema.insert("type".to_owned(), one)),
                None => drop(schema.remove("type")),
            }
            if nullable {
                schema.insert("nullable".to_owned(), true.into());
            }
        }
        _ => {}
    }
    if schema.get("type").is_some_and(|of| of == "array") {
        schema.entry("items").or_insert_with(|| json!({}));
    }
}

fn is_int_or_string(schema: &Value) -> bool {
    schema.get("type").is_some_and(|of| of == "string")
        && schema.get("format").is_some_and(|format| format == "int-or-string")
}

/// What version 2 called a string is one of these.
fn either(schema: &mut Value, types: &Value) {
    if let Value::Object(members) = schema {
        members.remove("type");
        members.insert("oneOf".to_owned(), types.clone());
    }
}
