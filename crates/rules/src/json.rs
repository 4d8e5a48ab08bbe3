//! A part of an object. The object itself is a map, all parts of it are values.

use concord_structural::Object;
use serde_json::Value;

#[derive(Clone, Copy)]
pub(crate) enum Json<'a> {
    Root(&'a Object),
    Value(&'a Value),
}

impl<'a> Json<'a> {
    pub(crate) fn object(self) -> Option<&'a Object> {
        match self {
            Self::Root(object) => Some(object),
            Self::Value(value) => value.as_object(),
        }
    }

    pub(crate) fn list(self) -> Option<&'a [Value]> {
        match self {
            Self::Root(_) => None,
            Self::Value(value) => value.as_array().map(Vec::as_slice),
        }
    }

    pub(crate) fn is_null(self) -> bool {
        matches!(self, Self::Value(Value::Null))
    }

    pub(crate) fn member(self, name: &str) -> Option<Self> {
        self.object()?.get(name).map(Self::Value)
    }
}
