//! FieldsV1: a set as an object whose keys are path elements. `.` says that the parent is a member itself;
//! an empty object says it too.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{FieldSet, PathElement};
use crate::go;

/// Why a FieldsV1 could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// A place of the tree is not an object.
    #[error("expected an object, got {0}")]
    NotAnObject(&'static str),
    /// A key that is no path element.
    #[error("parsing key as path element: {0}")]
    BadElement(String),
}

impl FieldSet {
    /// Reads a FieldsV1. Kinds of path elements that a later release may bring are skipped.
    pub fn decode(fields: &Value) -> Result<Self, FieldsError> {
        Ok(decode_place(fields)?.1)
    }

    /// The FieldsV1 as a value, for an object in memory.
    pub fn to_value(&self) -> Value {
        Value::Object(
            self.places.iter().map(|(element, place)| (encode_element(element), place.to_value())).collect(),
        )
    }

    /// The FieldsV1 as JSON text with the members in upstream's order, which is by meaning: port 80 comes
    /// before port 443.
    pub fn to_json(&self) -> String {
        let mut json = String::new();
        self.write(false, &mut json);
        json
    }

    fn write(&self, member: bool, json: &mut String) {
        json.push('{');
        if member && !self.is_empty() {
            json.push_str("\".\":{}");
        }
        for (element, place) in &self.places {
            if !json.ends_with('{') {
                json.push(',');
            }
            write!(json, "{}:", go::json(&Value::String(encode_element(element))))
                .expect("a String takes everything");
            place.below.write(place.member, json);
        }
        json.push('}');
    }
}

impl super::Place {
    fn to_value(&self) -> Value {
        let mut value = self.below.to_value();
        if let Some(fields) = value.as_object_mut().filter(|fields| self.member && !fields.is_empty()) {
            fields.insert(".".to_owned(), Value::Object(Map::new()));
        }
        value
    }
}

fn decode_place(value: &Value) -> Result<(bool, FieldSet), FieldsError> {
    let empty = Map::new();
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null => &empty,
        other => return Err(FieldsError::NotAnObject(go::json_type(other))),
    };
    let mut places = Vec::new();
    for (key, value) in fields.iter().filter(|(key, _)| *key != ".") {
        if let Some(element) = decode_element(key)? {
            let (member, below) = decode_place(value)?;
            places.push((element, member, below));
        }
    }
    let below = FieldSet::from_first_level(places);
    Ok((below.is_empty() || fields.contains_key("."), below))
}

fn decode_element(key: &str) -> Result<Option<PathElement>, FieldsError> {
    let bad = |why: &dyn std::fmt::Display| FieldsError::BadElement(format!("{key}: {why}"));
    let Some((kind, content)) = key.split_at_checked(2) else { return Err(bad(&"too short")) };
    let element = match kind {
        "f:" => PathElement::field(content),
        "v:" => PathElement::Value(serde_json::from_str(content).map_err(|error| bad(&error))?),
        "k:" => {
            let fields: Map<String, Value> = serde_json::from_str(content).map_err(|error| bad(&error))?;
            PathElement::key(fields.into_iter().collect())
        }
        "i:" => PathElement::Index(content.parse().map_err(|error| bad(&error))?),
        other if other.ends_with(':') => return Ok(None),
        _ => return Err(bad(&"missing colon")),
    };
    Ok(Some(element))
}

fn encode_element(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => format!("f:{name}"),
        PathElement::Key(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{}:{}", go::json(&name.as_str().into()), go::json(value)))
                .collect();
            format!("k:{{{}}}", fields.join(","))
        }
        PathElement::Value(value) => format!("v:{}", go::json(value)),
        PathElement::Index(index) => format!("i:{index}"),
    }
}
