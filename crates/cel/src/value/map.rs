//! Maps and objects.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::{Text, Val, from_json};
use crate::decl::{Decl, FieldDecl, ObjectDecl};
use crate::error::EvalError;

/// A map or an object.
#[derive(Debug, Clone)]
pub enum MapValue<'a> {
    /// Part of an object: a map from strings, with the declaration of its values.
    Json(&'a serde_json::Map<String, Value>, &'a Decl),
    /// An object with declared fields.
    Object(&'a serde_json::Map<String, Value>, &'a Arc<ObjectDecl>),
    /// Made by an expression.
    Owned(Arc<BTreeMap<Key<'a>, Val<'a>>>),
    /// Variables of the caller that are computed when they are first read.
    Lazy(&'a dyn LazyMap),
}

/// Fields that the caller computes on demand, as `variables` of an admission policy.
pub trait LazyMap: std::fmt::Debug + Sync {
    /// The value of a field, if there is one of this name.
    fn get<'v>(&'v self, field: &str) -> Option<Result<Val<'v>, EvalError>>;
}

/// A key of a map.
#[derive(Debug, Clone)]
pub enum Key<'a> {
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer; equal to the signed one of the same value.
    Uint(u64),
    /// Text.
    String(Text<'a>),
}

impl<'a> Key<'a> {
    /// The key of a value, if it can be one. A double finds the integer that it is equal to.
    pub(crate) fn of(value: &Val<'a>) -> Option<Self> {
        match value {
            Val::Bool(value) => Some(Self::Bool(*value)),
            Val::Int(value) => Some(Self::Int(*value)),
            Val::Uint(value) => Some(Self::Uint(*value)),
            Val::String(value) => Some(Self::String(value.clone())),
            Val::Double(value) if *value >= 0.0 && *value as u64 as f64 == *value => {
                Some(Self::Uint(*value as u64))
            }
            Val::Double(value) if *value as i64 as f64 == *value => Some(Self::Int(*value as i64)),
            _ => None,
        }
    }

    pub(crate) fn value(&self) -> Val<'a> {
        match self {
            Self::Bool(value) => Val::Bool(*value),
            Self::Int(value) => Val::Int(*value),
            Self::Uint(value) => Val::Uint(*value),
            Self::String(value) => Val::String(value.clone()),
        }
    }

    /// Numbers by value, then the other kinds.
    fn rank(&self) -> (u8, i128) {
        match self {
            Self::Bool(value) => (0, i128::from(*value)),
            Self::Int(value) => (1, i128::from(*value)),
            Self::Uint(value) => (1, i128::from(*value)),
            Self::String(_) => (2, 0),
        }
    }
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::String(a), Self::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key<'_> {}

fn is_present(map: &serde_json::Map<String, Value>, field: &FieldDecl) -> bool {
    map.get(&field.property).is_some_and(|value| !value.is_null())
}

impl<'a> MapValue<'a> {
    /// How many entries there are. Of an object upstream counts also those that are not declared.
    pub fn len(&self) -> usize {
        match self {
            Self::Json(map, _) | Self::Object(map, _) => map.len(),
            Self::Owned(map) => map.len(),
            Self::Lazy(_) => 0,
        }
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &Val<'a>) -> Option<Result<Val<'a>, EvalError>> {
        match self {
            Self::Owned(map) => map.get(&Key::of(key)?).cloned().map(Ok),
            _ => self.field(key.as_str()?),
        }
    }

    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<Result<Val<'a>, EvalError>> {
        match self {
            Self::Json(map, decl) => Some(from_json(map.get(name)?, decl)),
            Self::Object(map, object) => {
                let field = object.field(name)?;
                // Upstream takes a null field for an absent one.
                let value = map.get(&field.property).filter(|value| !value.is_null())?;
                Some(from_json(value, &field.decl))
            }
            Self::Owned(map) => map.get(&Key::String(Text::Shared(Arc::from(name)))).cloned().map(Ok),
            Self::Lazy(map) => map.get(name),
        }
    }

    /// All entries in the order of their keys; values that cannot be read are null.
    pub fn entries(&self) -> Vec<(Val<'a>, Val<'a>)> {
        let value = |key: &Val<'a>| self.get(key).and_then(Result::ok).unwrap_or(Val::Null);
        self.keys().into_iter().map(|key| (key.clone(), value(&key))).collect()
    }

    /// The keys in order.
    pub(crate) fn keys(&self) -> Vec<Val<'a>> {
        let text = |key: &'a str| Val::String(Text::Borrowed(key));
        match self {
            Self::Json(map, _) => map.keys().map(|key| text(key)).collect(),
            Self::Object(map, object) => {
                let present = object.fields.iter().filter(|(_, field)| is_present(map, field));
                present.map(|(name, _)| text(name)).collect()
            }
            Self::Owned(map) => map.keys().map(Key::value).collect(),
            Self::Lazy(_) => Vec::new(),
        }
    }
}
