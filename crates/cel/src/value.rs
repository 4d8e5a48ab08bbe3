//! Values: what expressions read and make. Objects of the caller are borrowed, never copied.

mod json;
mod list;
mod map;
mod relate;
mod timestamp;

use std::fmt;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use crate::authorizer::AuthorizerValue;
use crate::library::{Cidr, Format, Quantity, Semver, Url};
use crate::message::Message;
use crate::types::Type;

pub(crate) use json::from_json;
pub use list::List;
pub use map::{Key, LazyMap, MapValue};
pub(crate) use relate::{compare, contains, equal, same_keys};
pub(crate) use timestamp::Civil;
pub use timestamp::Timestamp;

/// A value of the language.
#[derive(Debug, Clone)]
pub enum Val<'a> {
    /// `null`
    Null,
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating point number.
    Double(f64),
    /// Text.
    String(Text<'a>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A point in time.
    Timestamp(Timestamp),
    /// A span of time in nanoseconds.
    Duration(i64),
    /// A list.
    List(List<'a>),
    /// A map or an object.
    Map(MapValue<'a>),
    /// A type as a value.
    Type(Type),
    /// An optional value.
    Optional(Option<Arc<Val<'a>>>),
    /// `kubernetes.Quantity`
    Quantity(Arc<Quantity>),
    /// `kubernetes.URL`
    Url(Arc<Url>),
    /// `net.IP`
    Ip(IpAddr),
    /// `net.CIDR`
    Cidr(Cidr),
    /// `kubernetes.NamedFormat`
    Format(&'static Format),
    /// `kubernetes.Semver`
    Semver(Arc<Semver>),
    /// The authorizer, or a check being built with it.
    Authorizer(AuthorizerValue),
    /// What a mutation is made of.
    Message(Arc<Message<'a>>),
}

/// Text, borrowed from the object or made by the expression.
#[derive(Debug, Clone)]
pub enum Text<'a> {
    /// Part of an object.
    Borrowed(&'a str),
    /// Made by an expression.
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self::Shared(Arc::from(text))
    }
}

impl<'a> Val<'a> {
    /// Text made by an expression.
    pub(crate) fn text(text: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Shared(text.into()))
    }

    pub(crate) fn list(values: Vec<Val<'a>>) -> Self {
        Self::List(List::owned(values))
    }

    pub(crate) fn some(value: Val<'a>) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    pub(crate) const NONE: Self = Self::Optional(None);

    /// The text, if the value is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The truth value, if the value is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// What `size()` says, for values that have a size.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Self::String(text) => Some(text.chars().count() as u64),
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::List(list) => Some(list.len() as u64),
            Self::Map(map) => Some(map.len() as u64),
            _ => None,
        }
    }

    /// The size that costs are computed from: one for values without a size.
    pub(crate) fn cost_size(&self) -> u64 {
        match self {
            Self::Optional(Some(value)) => value.cost_size(),
            Self::Ip(IpAddr::V4(_)) => 4,
            Self::Ip(IpAddr::V6(_)) => 16,
            Self::Cidr(cidr) => cidr.prefix_bytes(),
            _ => self.size().unwrap_or(1),
        }
    }

    /// The name of its type, as error messages show it.
    pub fn type_name(&self) -> String {
        match self {
            Self::List(_) => "list".to_owned(),
            Self::Map(_) => "map".to_owned(),
            Self::Null => "null_type".to_owned(),
            Self::Timestamp(_) => "google.protobuf.Timestamp".to_owned(),
            Self::Duration(_) => "google.protobuf.Duration".to_owned(),
            Self::Optional(_) => "optional_type".to_owned(),
            Self::Type(_) => "type".to_owned(),
            _ => self.type_of().to_string(),
        }
    }

    /// The type of the value; what is inside of lists and maps is not looked at.
    pub(crate) fn type_of(&self) -> Type {
        let opaque = |name: &str| Type::Opaque(Arc::from(name), Vec::new());
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Duration(_) => Type::Duration,
            Self::List(_) => Type::list(Type::Dyn),
            Self::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Self::Type(_) => Type::Type(None),
            Self::Optional(_) => Type::optional(Type::Dyn),
            Self::Quantity(_) => opaque("kubernetes.Quantity"),
            Self::Url(_) => opaque("kubernetes.URL"),
            Self::Ip(_) => opaque("net.IP"),
            Self::Cidr(_) => opaque("net.CIDR"),
            Self::Format(_) => opaque("kubernetes.NamedFormat"),
            Self::Semver(_) => opaque("kubernetes.Semver"),
            Self::Authorizer(value) => opaque(value.type_name()),
            Self::Message(message) => opaque(message.name()),
        }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}
