//! One step of a path to a field, and whole paths.

use std::{
    cmp::Ordering,
    fmt::{self, Display, Formatter},
};

use serde_json::Value;

use crate::{go, values};

/// One step from a value to a part of it.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of a struct or a key of a map: `f:name`.
    Field(String),
    /// The item of a list that has these values in its key fields, sorted by name: `k:{"name":"a"}`.
    Key(Vec<(String, Value)>),
    /// The item of a set that is this value: `v:"a"`.
    Value(Value),
    /// A place in a list: `i:0`. Ours never make one; others may have stored some.
    Index(i64),
}

impl PathElement {
    /// A field by name.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// An item of a list by the values of its key fields.
    pub fn key(mut fields: Vec<(String, Value)>) -> Self {
        fields.sort_by(|left, right| left.0.cmp(&right.0));
        Self::Key(fields)
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

/// Numbers compare by value: a list item with key 1 is the item with key 1.0.
impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => compare_keys(left, right),
            (Self::Value(left), Self::Value(right)) => values::compare(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            (left, right) => left.rank().cmp(&right.rank()),
        }
    }
}

fn compare_keys(left: &[(String, Value)], right: &[(String, Value)]) -> Ordering {
    let pairs = left.iter().zip(right);
    let mut orders =
        pairs.map(|(left, right)| left.0.cmp(&right.0).then_with(|| values::compare(&left.1, &right.1)));
    orders.find(|order| order.is_ne()).unwrap_or_else(|| left.len().cmp(&right.len()))
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

impl Display for PathElement {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(out, ".{name}"),
            Self::Key(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, value)| format!("{name}={}", print(value))).collect();
                write!(out, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(out, "[={}]", print(value)),
            Self::Index(index) => write!(out, "[{index}]"),
        }
    }
}

/// A value inside a printed path.
fn print(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => go::quote(text),
        Value::Array(items) => format!("[{}]", items.iter().map(print).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| format!("{key}={}", print(value))).collect()
        }
        scalar => go::plain(scalar),
    }
}

/// The way from the object to a field. Prints as `.spec.ports[port=80,protocol="TCP"].name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<PathElement>);

impl Path {
    /// A path of field names only.
    pub fn of_fields<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().map(PathElement::field).collect())
    }
}

impl AsRef<[PathElement]> for Path {
    fn as_ref(&self) -> &[PathElement] {
        &self.0
    }
}

impl Display for Path {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| write!(out, "{element}"))
    }
}
