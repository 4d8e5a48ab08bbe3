//! A schema as it stands in a definition: JSONSchemaProps, read in place.

use serde_json::{Map, Value};

/// One JSONSchemaProps. What has a wrong type is taken for absent: types are checked when the definition is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Props<'a>(pub(crate) &'a Map<String, Value>);

/// `items`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Items<'a> {
    /// One schema for all items.
    One(Props<'a>),
    /// A schema for each item, which is never allowed.
    Many(&'a [Value]),
}

/// `additionalProperties` or `additionalItems`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OrBool<'a> {
    /// Whether there may be more.
    Bool(bool),
    /// What they are.
    Schema(Props<'a>),
}

impl<'a> OrBool<'a> {
    pub(crate) fn schema(self) -> Option<Props<'a>> {
        match self {
            Self::Schema(props) => Some(props),
            Self::Bool(_) => None,
        }
    }
}

impl<'a> Props<'a> {
    pub(crate) fn of(value: &'a Value) -> Option<Self> {
        value.as_object().map(Self)
    }

    pub(crate) fn text(self, name: &str) -> &'a str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A text that differs from an empty one when it is absent.
    pub(crate) fn optional_text(self, name: &str) -> Option<&'a str> {
        self.0.get(name).and_then(Value::as_str)
    }

    pub(crate) fn flag(self, name: &str) -> bool {
        self.optional_flag(name) == Some(true)
    }

    pub(crate) fn optional_flag(self, name: &str) -> Option<bool> {
        self.0.get(name).and_then(Value::as_bool)
    }

    pub(crate) fn integer(self, name: &str) -> Option<i64> {
        self.0.get(name).and_then(Value::as_i64)
    }

    pub(crate) fn list(self, name: &str) -> &'a [Value] {
        self.0.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn texts(self, name: &str) -> impl Iterator<Item = &'a str> {
        self.list(name).iter().filter_map(Value::as_str)
    }

    /// A value that is there and not null.
    pub(crate) fn value(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn schema(self, name: &str) -> Option<Self> {
        self.0.get(name).and_then(Self::of)
    }

    pub(crate) fn schemas(self, name: &str) -> impl Iterator<Item = Self> {
        self.list(name).iter().filter_map(Self::of)
    }

    /// Named schemas, by name.
    pub(crate) fn named(self, name: &str) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let members = self.0.get(name).and_then(Value::as_object);
        let members = members.into_iter().flatten();
        members.filter_map(|(name, value)| Some((name.as_str(), Self::of(value)?)))
    }

    pub(crate) fn property(self, name: &str) -> Option<Self> {
        self.schema("properties").and_then(|properties| properties.schema(name))
    }

    /// Whether a map, a list or a text is there and not empty.
    pub(crate) fn has(self, name: &str) -> bool {
        match self.0.get(name) {
            Some(Value::Object(members)) => !members.is_empty(),
            Some(Value::Array(items)) => !items.is_empty(),
            Some(Value::String(text)) => !text.is_empty(),
            _ => false,
        }
    }

    pub(crate) fn kind(self) -> &'a str {
        self.text("type")
    }

    pub(crate) fn items(self) -> Option<Items<'a>> {
        match self.0.get("items")? {
            Value::Object(members) => Some(Items::One(Self(members))),
            Value::Array(schemas) => Some(Items::Many(schemas)),
            _ => None,
        }
    }

    pub(crate) fn item(self) -> Option<Self> {
        match self.items()? {
            Items::One(props) => Some(props),
            Items::Many(_) => None,
        }
    }

    pub(crate) fn or_bool(self, name: &str) -> Option<OrBool<'a>> {
        match self.0.get(name)? {
            Value::Object(members) => Some(OrBool::Schema(Self(members))),
            Value::Bool(allows) => Some(OrBool::Bool(*allows)),
            _ => None,
        }
    }

    pub(crate) fn additional(self) -> Option<OrBool<'a>> {
        self.or_bool("additionalProperties")
    }

    /// Whether `holds` is true of this schema or of any inside it.
    pub(crate) fn any(self, holds: &dyn Fn(Self) -> bool) -> bool {
        holds(self) || self.inner().into_iter().any(|inner| inner.any(holds))
    }

    /// Every schema directly inside this one.
    fn inner(self) -> Vec<Self> {
        let mut inner: Vec<Self> = Vec::new();
        match self.items() {
            Some(Items::One(props)) => inner.push(props),
            Some(Items::Many(schemas)) => inner.extend(schemas.iter().filter_map(Self::of)),
            None => {}
        }
        for junctor in ["allOf", "anyOf", "oneOf"] {
            inner.extend(self.schemas(junctor));
        }
        inner.extend(self.schema("not"));
        for name in ["additionalProperties", "additionalItems"] {
            inner.extend(self.or_bool(name).and_then(OrBool::schema));
        }
        for name in ["properties", "patternProperties", "definitions", "dependencies"] {
            inner.extend(self.named(name).map(|(_, props)| props));
        }
        inner
    }
}
