//! Types as the checker sees them.

use std::fmt;
use std::sync::Arc;

use crate::decl::ObjectDecl;

/// The type of an expression.
#[derive(Debug, Clone)]
pub enum Type {
    /// Anything; checked when evaluated.
    Dyn,
    /// What an expression with an error has, so that one error does not cause others.
    Error,
    /// `null`
    Null,
    /// `bool`
    Bool,
    /// `int`, 64 bits.
    Int,
    /// `uint`, 64 bits.
    Uint,
    /// `double`
    Double,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `timestamp`
    Timestamp,
    /// `duration`
    Duration,
    /// `list(...)`
    List(Arc<Type>),
    /// `map(..., ...)`
    Map(Arc<Type>, Arc<Type>),
    /// An object with known fields.
    Object(Arc<ObjectDecl>),
    /// A type of a library, like `kubernetes.Quantity`, or `optional_type(...)`.
    Opaque(Arc<str>, Vec<Type>),
    /// The type of a type.
    Type(Option<Arc<Type>>),
    /// A type that is not known yet.
    Param(Arc<str>),
}

/// The name of optional values.
pub(crate) const OPTIONAL: &str = "optional_type";

impl Type {
    /// A list of this element type.
    pub fn list(element: Type) -> Self {
        Self::List(Arc::new(element))
    }

    /// A map with these types of keys and values.
    pub fn map(key: Type, value: Type) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    /// An optional value of this type.
    pub fn optional(value: Type) -> Self {
        Self::Opaque(Arc::from(OPTIONAL), vec![value])
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn)
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// The type inside, and whether it was optional.
    pub(crate) fn unwrap_optional(&self) -> (&Self, bool) {
        match self {
            Self::Opaque(name, params) if &**name == OPTIONAL => (&params[0], true),
            _ => (self, false),
        }
    }

    /// Whether values of this type all have the same size.
    pub(crate) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool | Self::Double | Self::Duration | Self::Int | Self::Timestamp | Self::Uint => true,
            Self::Opaque(name, params) if &**name == OPTIONAL => params[0].is_scalar(),
            _ => false,
        }
    }
}

impl PartialEq for Type {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Map(a, b), Self::Map(c, d)) => a == c && b == d,
            (Self::Object(a), Self::Object(b)) => a.name == b.name,
            (Self::Opaque(a, p), Self::Opaque(b, q)) => a == b && p == q,
            (Self::Type(a), Self::Type(b)) => a == b,
            (Self::Param(a), Self::Param(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl Eq for Type {}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Dyn => "dyn",
            Self::Error => "!error!",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "timestamp",
            Self::Duration => "duration",
            Self::List(element) => return write!(f, "list({element})"),
            Self::Map(key, value) => return write!(f, "map({key}, {value})"),
            Self::Object(object) => &object.name,
            Self::Opaque(name, params) if params.is_empty() => name,
            Self::Opaque(name, params) => return write!(f, "{name}({})", Signature(params)),
            Self::Type(None) => "type",
            Self::Type(Some(inner)) => return write!(f, "type({inner})"),
            Self::Param(name) => name,
        };
        f.write_str(name)
    }
}

/// Types separated by commas.
pub(crate) struct Signature<'t>(pub(crate) &'t [Type]);

impl fmt::Display for Signature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, param) in self.0.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{param}")?;
        }
        Ok(())
    }
}
