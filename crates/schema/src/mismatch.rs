use concord_meta::QuantityError;

use crate::time::TimeError;

/// A value that does not fit its type. Texts are Go's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// Another kind of value, or a number out of range, in a field.
    #[error("json: cannot unmarshal {found} into Go struct field {structure}.{path} of type {expected}")]
    Field {
        /// What stands there: `string`, `object`, `number 1.5`.
        found: String,
        /// The struct the field is in.
        structure: String,
        /// The names of the fields that lead to it, without indexes and keys.
        path: String,
        /// Go's name of its type.
        expected: String,
    },
    /// The same for the whole document.
    #[error("json: cannot unmarshal {found} into Go value of type {expected}")]
    Value {
        /// What stands there.
        found: String,
        /// Go's name of the type.
        expected: String,
    },
    /// Not a time.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// Not a quantity.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// Not base64.
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    /// Neither the object nor what may stand in its place.
    #[error("{0}")]
    Either(&'static str),
    /// What a conversion from generic maps says.
    #[error("{0}")]
    Unstructured(String),
    /// Nested more deeply than is looked at. Decoded bodies never are.
    #[error("exceeded max depth")]
    TooDeep,
}
