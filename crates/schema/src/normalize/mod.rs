//! Reading an object into its type and writing it again, in place.
//!
//! Go keeps the first value of a wrong kind in mind and reads on; a type that it reads by hand, such as a
//! time, ends the reading at once when it is bad. So a bad time wins over a wrong kind before it.
//!
//! What a strategic merge patch or an apply has put together, upstream does not read as JSON but converts from
//! generic maps: with words of its own, more lenient with numbers, and ending at the first bad value.

mod scalar;
mod unstructured;

use concord_codec::Violation;
use serde_json::{Map, Value};

use self::scalar::found;
use crate::{
    mismatch::Mismatch,
    place::Place,
    types::{Field, Presence, Scalar, Shape, TypeId, Types, find},
    zero::{zero, zero_field},
};

/// How deep objects are looked into: as deep as a decoded body can be, so that only objects that a patch has
/// put together can be too deep.
pub const MAX_DEPTH: usize = 500;

type Result<T = ()> = std::result::Result<T, Mismatch>;

/// How upstream gets the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// It reads JSON.
    Json,
    /// It converts generic maps.
    Unstructured,
}

pub(crate) fn normalize(
    place: &Place,
    source: Source,
    keeps_empty_lists: bool,
    object: &mut Map<String, Value>,
    unknown: Option<&mut Vec<Violation>>,
) -> Result {
    let mut walk = Walk {
        types: place.types(),
        source,
        keeps_empty_lists,
        stack: Vec::new(),
        structure: "",
        depth: 0,
        saved: None,
        unknown: unknown.map(|violations| Unknown { violations, path: String::new() }),
    };
    let mut value = Value::Object(std::mem::take(object));
    let result = walk.value(place.id(), &mut value);
    if let Value::Object(normal) = value {
        *object = normal;
    }
    result?;
    walk.saved.map_or(Ok(()), Err)
}

struct Walk<'a> {
    types: &'a Types,
    source: Source,
    keeps_empty_lists: bool,
    /// The names of the fields that lead here, as Go's error texts give them.
    stack: Vec<&'a str>,
    /// The struct that the last of them is in.
    structure: &'a str,
    depth: usize,
    saved: Option<Mismatch>,
    unknown: Option<Unknown<'a>>,
}

/// The unknown fields, where somebody asks for them.
struct Unknown<'a> {
    violations: &'a mut Vec<Violation>,
    path: String,
}

impl<'a> Walk<'a> {
    fn value(&mut self, id: TypeId, value: &mut Value) -> Result {
        if self.depth >= MAX_DEPTH && (value.is_object() || value.is_array()) {
            return Err(Mismatch::TooDeep);
        }
        self.depth += 1;
        let result = self.non_null(id, value);
        self.depth -= 1;
        result
    }

    fn non_null(&mut self, id: TypeId, value: &mut Value) -> Result {
        let types = self.types;
        let node = types.node(id);
        match (&node.shape, &mut *value) {
            // Stores that know no nil have empty bytes in its place.
            (Shape::Scalar(Scalar::Bytes), Value::Null) if !self.keeps_empty_lists => *value = "".into(),
            (_, Value::Null) => *value = zero(types, id),
            (Shape::Struct { fields, .. }, Value::Object(object)) => {
                return self.structure(node.short_name(), fields, object);
            }
            (Shape::Map { values, .. }, Value::Object(object)) => {
                for (key, value) in object {
                    self.inside(|path| push_name(path, key), |walk| walk.value(*values, value))?;
                }
            }
            (Shape::List { items, .. }, Value::Array(list)) => {
                for (index, item) in list.iter_mut().enumerate() {
                    self.inside(
                        |path| path.push_str(&format!("[{index}]")),
                        |walk| walk.value(*items, item),
                    )?;
                }
            }
            (Shape::Either { object, list, boolean }, _) => {
                return self.either(*object, *list, *boolean, value);
            }
            (Shape::Scalar(scalar), _) => {
                return match self.source {
                    Source::Json => self.scalar(*scalar, &node.go, value),
                    Source::Unstructured => unstructured::scalar(*scalar, &node.go, value),
                };
            }
            _ if self.source == Source::Unstructured => {
                return Err(unstructured::cannot_restore(&node.shape, value));
            }
            _ => self.refuse(found(value), &node.go),
        }
        Ok(())
    }

    fn structure(&mut self, name: &'a str, fields: &'a [Field], object: &mut Map<String, Value>) -> Result {
        let outer = std::mem::replace(&mut self.structure, name);
        let mut failed = Ok(());
        object.retain(|name, value| {
            let Some(field) = find(fields, name) else {
                self.report(name);
                return false;
            };
            if failed.is_ok() {
                failed = self.field(field, value);
            }
            self.is_written(field, value)
        });
        for field in fields {
            if let Some(zero) = zero_field(self.types, field)
                && !object.contains_key(&*field.name)
            {
                object.insert(field.name.to_string(), zero);
            }
        }
        self.structure = outer;
        failed
    }

    fn field(&mut self, field: &'a Field, value: &mut Value) -> Result {
        if value.is_null() {
            *value = zero_field(self.types, field).unwrap_or_default();
            return Ok(());
        }
        let len = self.stack.len();
        let embedded = field.rare.as_ref().and_then(|rare| rare.embedded.as_deref());
        self.stack.extend(embedded);
        self.stack.push(&field.name);
        let result = self.inside(|path| push_name(path, &field.name), |walk| walk.value(field.ty, value));
        self.stack.truncate(len);
        result
    }

    /// Whether Go writes the field. An empty list in a field that it always writes becomes null, if need be.
    fn is_written(&self, field: &Field, value: &mut Value) -> bool {
        match field.presence {
            Presence::Given => !value.is_null(),
            Presence::NonZero => !is_zero(value),
            Presence::Nullable => true,
            Presence::Always => {
                let shape = &self.types.node(field.ty).shape;
                let is_list = matches!(shape, Shape::List { .. } | Shape::Map { .. });
                if is_list && !self.keeps_empty_lists && is_zero(value) {
                    *value = Value::Null;
                }
                true
            }
        }
    }

    /// A type that Go reads by hand, with a reader of its own: it starts a new path, and what is wrong
    /// inside ends the reading.
    fn either(&mut self, object: TypeId, list: Option<TypeId>, boolean: bool, value: &mut Value) -> Result {
        let id = match value {
            Value::Object(_) => object,
            Value::Array(items) if items.is_empty() => {
                *value = Value::Null;
                return Ok(());
            }
            Value::Array(_) if list.is_some() => list.unwrap_or(object),
            Value::Bool(_) if boolean => return Ok(()),
            _ if boolean => return Err(Mismatch::Either("boolean or JSON schema expected")),
            _ => {
                *value = Value::Null;
                return Ok(());
            }
        };
        let mut inner = Walk {
            types: self.types,
            source: Source::Json,
            keeps_empty_lists: self.keeps_empty_lists,
            stack: Vec::new(),
            structure: "",
            depth: self.depth,
            saved: None,
            unknown: None,
        };
        let result = inner.value(id, value);
        let result = result.and_then(|()| inner.saved.map_or(Ok(()), Err));
        result.map_err(|mismatch| match self.source {
            Source::Json => self.in_context(mismatch),
            Source::Unstructured => mismatch,
        })
    }

    /// Keeps a wrong kind of value in mind, if it is the first.
    fn refuse(&mut self, found: String, expected: &str) {
        if self.saved.is_none() {
            let expected = expected.to_owned();
            self.saved = Some(self.in_context(Mismatch::Value { found, expected }));
        }
    }

    /// Go adds the field it is in to what another reader says of a wrong kind.
    fn in_context(&self, mismatch: Mismatch) -> Mismatch {
        let (found, inner, expected) = match mismatch {
            Mismatch::Value { found, expected } => (found, None, expected),
            Mismatch::Field { found, path, expected, .. } => (found, Some(path), expected),
            other => return other,
        };
        if self.stack.is_empty() {
            return Mismatch::Value { found, expected };
        }
        let path = self.stack.iter().copied().chain(inner.as_deref()).collect::<Vec<_>>().join(".");
        Mismatch::Field { found, structure: self.structure.to_owned(), path, expected }
    }

    /// Does something one step further down, as unknown fields count steps.
    fn inside(&mut self, step: impl FnOnce(&mut String), then: impl FnOnce(&mut Self) -> Result) -> Result {
        let len = self.unknown.as_mut().map(|unknown| {
            let len = unknown.path.len();
            step(&mut unknown.path);
            len
        });
        let result = then(self);
        if let (Some(unknown), Some(len)) = (&mut self.unknown, len) {
            unknown.path.truncate(len);
        }
        result
    }

    fn report(&mut self, name: &str) {
        if let Some(unknown) = &mut self.unknown {
            let mut path = unknown.path.clone();
            push_name(&mut path, name);
            unknown.violations.push(Violation::Unknown(path));
        }
    }
}

fn push_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

/// What `omitempty` leaves out.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}
