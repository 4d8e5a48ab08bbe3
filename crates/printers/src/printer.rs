//! What prints the objects of one kind.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::fields::Fields;
use crate::{Column, Row};

/// The columns of a kind and how its objects fill them.
pub trait Printer: Send + Sync {
    /// The columns, in their order.
    fn columns(&self) -> &[Column];

    /// The row of an object in its served version. Ages are counted up to `now`.
    ///
    /// It has a cell for each column; for an IPAddress one more, as upstream's has.
    fn row(&self, object: &Map<String, Value>, now: Timestamp) -> Row;

    /// Where the object stands among others: by number, then by name. Nearly all kinds keep the order of
    /// the list, so nearly none has places.
    fn place(&self, object: &Map<String, Value>) -> Option<(i64, String)> {
        let _ = object;
        None
    }

    /// Whether the rows of an empty list are null instead of empty, as they are where upstream has no
    /// printer for the kind.
    fn null_when_empty(&self) -> bool {
        false
    }
}

/// A printer of a built-in kind, which is data but for one function.
pub(crate) struct BuiltIn {
    pub(crate) columns: &'static [Column],
    pub(crate) print: fn(Fields<'_>, Timestamp) -> Row,
}

impl Printer for BuiltIn {
    fn columns(&self) -> &[Column] {
        self.columns
    }

    fn row(&self, object: &Map<String, Value>, now: Timestamp) -> Row {
        (self.print)(Fields::new(object), now)
    }
}
