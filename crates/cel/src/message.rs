//! What the mutations of admission policies are made of: `Object{...}` with its parts, and `JSONPatch{...}`.
//!
//! Upstream checks these types as far as their names tell: any field of an `Object` may have any value. That its parts are
//! named after where they are is checked once there is a value, see [`Message::misplaced`].

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Number, Value};

use crate::ast::Name;
use crate::error::EvalError;
use crate::eval::Work;
use crate::types::Type;
use crate::value::{List, MapValue, Text, Val, equal};

/// The type of an apply configuration; those of its parts begin with it and a dot.
pub(crate) const OBJECT: &str = "Object";

/// The type of one operation of a JSON patch.
pub(crate) const JSON_PATCH: &str = "JSONPatch";

/// What the names of functions begin with that are there for these types.
pub(crate) const LIBRARY: &str = "jsonpatch.";

/// How deep what is made of a value may be nested. Nothing that is stored may be deeper.
const MAX_DEPTH: usize = 500;

/// Whether a type is one of these.
pub(crate) fn is_message(name: &str) -> bool {
    name == JSON_PATCH
        || name.strip_prefix(OBJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The type of a name.
pub(crate) fn named(name: &str) -> Option<Type> {
    is_message(name).then(|| Type::Opaque(Arc::from(name), Vec::new()))
}

/// The type of a field of one of these types.
pub(crate) fn field_type(of: &str, field: &str) -> Option<Type> {
    match field {
        _ if of != JSON_PATCH => Some(Type::Dyn),
        "op" | "path" | "from" => Some(Type::String),
        "value" => Some(Type::Dyn),
        _ => None,
    }
}

/// A value of one of these types.
#[derive(Debug, Clone)]
pub struct Message<'a> {
    name: Name,
    fields: BTreeMap<Name, Val<'a>>,
}

impl<'a> Message<'a> {
    /// # Errors
    ///
    /// A text of a JSON patch is none.
    pub(crate) fn new(name: &Name, fields: BTreeMap<Name, Val<'a>>) -> Result<Self, EvalError> {
        let no_text = |(field, value): &(&Name, &Val<'_>)| {
            field_type(name, field) == Some(Type::String) && value.as_str().is_none()
        };
        if let Some((field, value)) = fields.iter().find(no_text) {
            let found = value.type_name();
            return Err(EvalError::new(format!("unexpected type {found} for JSONPatchType '{field}' field")));
        }
        Ok(Self { name: Arc::clone(name), fields })
    }

    /// What its type is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value of a field, as expressions read it: only operations of a patch can be read.
    pub(crate) fn field(&self, name: &str) -> Option<Val<'a>> {
        if &*self.name != JSON_PATCH {
            return None;
        }
        let absent = || (name != "value").then_some(Val::String(Text::Borrowed("")));
        self.get(name).cloned().or_else(absent)
    }

    /// The value of a field.
    pub fn get(&self, field: &str) -> Option<&Val<'a>> {
        self.fields.get(field)
    }

    pub(crate) fn equals(&self, other: &Self, work: &mut Work) -> Result<bool, EvalError> {
        if self.name != other.name || !self.fields.keys().eq(other.fields.keys()) {
            return Ok(false);
        }
        for (mine, theirs) in self.fields.values().zip(other.fields.values()) {
            if !equal(mine, theirs, work)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Parts whose types are not named after the fields that lead to them from here, in upstream's words.
    pub fn misplaced(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut left = vec![(self.name.to_string(), Val::Message(Arc::new(self.clone())))];
        while let Some((path, part)) = left.pop() {
            match part {
                Val::Message(message) => {
                    if *message.name != *path {
                        found.push(format!(
                            "unexpected type name {:?}, expected {path:?}, which matches field name path from root \
                             Object type",
                            message.name
                        ));
                    }
                    let fields = message.fields.iter().rev();
                    left.extend(fields.map(|(field, value)| (format!("{path}.{field}"), value.clone())));
                }
                // What comes from an object has no such parts.
                Val::List(List::Json(..)) | Val::Map(MapValue::Json(..) | MapValue::Object(..)) => {}
                Val::List(list) => {
                    left.extend(list.to_vec().into_iter().rev().map(|value| (path.clone(), value)));
                }
                Val::Map(map) => {
                    left.extend(map.entries().into_iter().rev().map(|(_, value)| (path.clone(), value)));
                }
                _ => {}
            }
        }
        found
    }
}

impl Val<'_> {
    /// The value as JSON.
    ///
    /// # Errors
    ///
    /// There is no JSON for it, or it is nested too deep.
    pub fn to_json(&self) -> Result<Value, EvalError> {
        self.json(MAX_DEPTH)
    }

    fn json(&self, depth: usize) -> Result<Value, EvalError> {
        let depth = depth.checked_sub(1).ok_or_else(|| EvalError::new("exceeded max depth"))?;
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::from(*value),
            Self::Uint(value) => Value::from(*value),
            Self::Double(value) => number(*value)?,
            Self::String(text) => Value::String(text.to_string()),
            Self::Timestamp(at) => Value::String(at.to_string()),
            Self::List(list) => {
                let items: Result<Vec<Value>, EvalError> =
                    list.iter().map(|item| item?.json(depth)).collect();
                Value::Array(items?)
            }
            Self::Map(map) => {
                let entry = |(key, value): (Val<'_>, Val<'_>)| match key.as_str() {
                    Some(key) => Ok((key.to_owned(), value.json(depth)?)),
                    None => {
                        Err(EvalError::new(format!("map key is of type {}, not string", key.type_name())))
                    }
                };
                let entries: Result<Map<String, Value>, EvalError> =
                    map.entries().into_iter().map(entry).collect();
                Value::Object(entries?)
            }
            Self::Message(message) => {
                let field = |(name, value): (&Name, &Val<'_>)| Ok((name.to_string(), value.json(depth)?));
                let fields: Result<Map<String, Value>, EvalError> =
                    message.fields.iter().map(field).collect();
                Value::Object(fields?)
            }
            other => {
                return Err(EvalError::new(format!("no JSON for a value of type {}", other.type_name())));
            }
        })
    }
}

/// Doubles that are whole are written without a point, as Go writes them.
fn number(value: f64) -> Result<Value, EvalError> {
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= LARGEST {
        return Ok(Value::from(value as i64));
    }
    Number::from_f64(value).map(Value::Number).ok_or_else(|| EvalError::new("not a finite number"))
}
