//! What documents say about types and fields besides their structure: descriptions, enums, defaults.
//!
//! An annotation is a part of an OpenAPI schema; the whole is an object of them by the names of definitions, written as
//! JSON and compressed.

use std::{error::Error, io::Write as _};

use flate2::{Compression, write::DeflateEncoder};
use serde_json::{Map, Value, json};

use crate::{
    compile::{Named, go_type, lists, scalar_definition, structure},
    fact::{Facts, Struct},
    fields::presence,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

pub(crate) fn annotations(definitions: &Map<String, Value>, facts: &Facts) -> Result<Vec<u8>> {
    let mut all = Map::new();
    for (name, schema) in definitions {
        all.insert(name.clone(), definition(structure(name)?, schema, facts)?);
    }
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&serde_json::to_vec(&all)?)?;
    Ok(encoder.finish()?)
}

fn definition(of: Struct<'_>, schema: &Value, facts: &Facts) -> Result<Value> {
    let mut annotation = described(schema);
    let mut properties = Map::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let required = lists(&schema["required"], name);
        let value = self::field(of, name, field, required, facts);
        properties.insert(name.clone(), value.into());
    }
    for (word, value) in facts.documents(of) {
        match word {
            "union" => drop(annotation.insert("x-kubernetes-unions".to_owned(), union(value))),
            "atomic" => properties[value]["x-kubernetes-list-type"] = word.into(),
            "granular" => properties[value]["x-kubernetes-map-type"] = word.into(),
            name => properties[name]["default"] = serde_json::from_str(value)?,
        }
    }
    if !properties.is_empty() {
        annotation.insert("properties".to_owned(), properties.into());
    }
    Ok(annotation.into())
}

fn described(schema: &Value) -> Map<String, Value> {
    let description = schema["description"].as_str().map(str::trim_end);
    description.map(|text| ("description".to_owned(), text.into())).into_iter().collect()
}

fn field(of: Struct<'_>, name: &str, schema: &Value, required: bool, facts: &Facts) -> Map<String, Value> {
    let known = facts.field(of, name);
    let mut annotation = described(schema);
    let always = known.presence.unwrap_or_else(|| presence(name, schema, required, is_struct(schema))) == 'a';
    if let Some(zero) = zero(schema).filter(|_| always) {
        annotation.insert("default".to_owned(), zero);
    }
    let values = go_type(of, &known, Named::Scalar).map_or_else(Vec::new, |go| facts.values(of, &go));
    if !values.is_empty() {
        tell(&mut annotation, &values);
    }
    let values = annotation.remove("enum");
    annotate_inner(&mut annotation, schema, values);
    annotation
}

/// Says of items or members what there is to say. What the values are is said of the innermost.
fn annotate_inner(annotation: &mut Map<String, Value>, schema: &Value, values: Option<Value>) {
    let Some(inner) = ["items", "additionalProperties"].into_iter().find(|inner| schema[inner].is_object())
    else {
        return annotation.extend(values.map(|values| ("enum".to_owned(), values)));
    };
    let schema = &schema[inner];
    let mut of_inner: Map<String, Value> =
        zero(schema).map(|zero| ("default".to_owned(), zero)).into_iter().collect();
    annotate_inner(&mut of_inner, schema, values);
    annotation.insert(inner.to_owned(), of_inner.into());
}

/// Upstream lists the values in the description, too.
fn tell(annotation: &mut Map<String, Value>, values: &[String]) {
    if let Some(Value::String(description)) = annotation.get_mut("description") {
        description.push_str("\n\nPossible enum values:");
        values.iter().for_each(|value| description.push_str(&format!("\n - `\"{value}\"`")));
    }
    annotation.insert("enum".to_owned(), values.into());
}

fn is_struct(schema: &Value) -> bool {
    let definition = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    definition.is_some_and(|name| scalar_definition(name).is_none())
}

/// The default of what Go always writes, if documents tell one.
fn zero(schema: &Value) -> Option<Value> {
    if is_struct(schema) {
        // Which of several things it is cannot be told.
        let either = schema["$ref"].as_str().is_some_and(|name| name.contains("JSONSchemaPropsOr"));
        return (!either).then(|| json!({}));
    }
    match schema["type"].as_str()? {
        "string" if schema["format"] != "byte" => Some(json!("")),
        "integer" | "number" => Some(json!(0)),
        "boolean" => Some(json!(false)),
        _ => None,
    }
}

/// `kind:user,group`: the field that tells which is given, and those of which one is.
fn union(text: &str) -> Value {
    let (discriminator, fields) = text.split_once(':').unwrap_or(("", text));
    let capitalised = |name: &str| name[..1].to_uppercase() + &name[1..];
    let fields: Map<String, Value> =
        fields.split(',').map(|name| (name.to_owned(), capitalised(name).into())).collect();
    let mut union = json!({"fields-to-discriminateBy": fields});
    if !discriminator.is_empty() {
        union["discriminator"] = discriminator.into();
    }
    json!([union])
}
