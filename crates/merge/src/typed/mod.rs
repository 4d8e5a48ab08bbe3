//! Values seen through a schema: checking, merging, comparing and cutting them.

mod atomics;
mod compare;
mod errors;
mod items;
mod merge;
mod reconcile;
mod remove;
mod set_of;
mod validate;

use serde_json::{Map, Value};

pub use atomics::atomics;
pub use compare::{Comparison, compare};
pub use errors::ValidationErrors;
pub use merge::merge;
pub(crate) use reconcile::{reconcile, with_named_fields};
pub use remove::remove;
pub use set_of::set_of;
pub use validate::{Duplicates, validate};

/// What a schema says about one place: a small handle, cheap to clone.
///
/// A place may allow several kinds of values, as free-form JSON does; the value decides then. The free-form
/// type of upstream allows any scalar, an atomic list, and a granular map of further free-form values.
pub trait Type: Clone {
    /// The kinds of values this place allows.
    fn kinds(&self) -> Kinds<'_>;

    /// The type of a declared field.
    fn field(&self, name: &str) -> Option<Self>;

    /// The type of the values of a map, for keys that are not declared fields. `None` forbids such keys.
    fn values(&self) -> Option<Self>;

    /// The type of the items of a list.
    fn items(&self) -> Option<Self>;

    /// The default of a declared field. Only asked for the key fields of list items.
    fn default_of(&self, field: &str) -> Option<Value>;

    /// Whether this is an object about whose fields nothing is known.
    fn is_free_form(&self) -> bool;
}

/// The kinds of values a place allows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kinds<'a> {
    /// A scalar of this type.
    pub scalar: Option<Scalar>,
    /// A list, and what identifies its items.
    pub list: Option<ListKind<'a>>,
    /// An object, and whether its fields have owners of their own.
    pub map: Option<MapKind>,
}

/// The type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// An integer or a float.
    Numeric,
    /// A string.
    String,
    /// A boolean.
    Boolean,
    /// Any scalar, such as int-or-string.
    Untyped,
}

/// x-kubernetes-list-type and x-kubernetes-list-map-keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind<'a> {
    /// The list has one owner.
    Atomic,
    /// Scalars, each with its own owner.
    Set,
    /// Objects, identified by these fields.
    Map(&'a [String]),
}

/// x-kubernetes-map-type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// Each field has its own owner. The default.
    Granular,
    /// The object has one owner.
    Atomic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Map,
    Scalar,
    List,
}

/// What a place is, given a value: one kind, or still any of several because the value is null or of a kind
/// that is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Deduced {
    kind: Kind,
    certain: bool,
}

impl Kinds<'_> {
    /// `None` if the schema allows nothing here.
    fn deduce(&self, value: Option<&Value>) -> Option<Deduced> {
        let fitting = match value {
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) if self.scalar.is_some() => {
                Some(Kind::Scalar)
            }
            Some(Value::Array(_)) if self.list.is_some() => Some(Kind::List),
            Some(Value::Object(_)) if self.map.is_some() => Some(Kind::Map),
            _ => None,
        };
        let map = self.map.map(|_| Kind::Map);
        let scalar = self.scalar.map(|_| Kind::Scalar);
        let list = self.list.map(|_| Kind::List);
        let kind = fitting.or(map).or(scalar).or(list)?;
        let only = [map, scalar, list].into_iter().flatten().count() == 1;
        Some(Deduced { kind, certain: only || fitting.is_some() })
    }

    fn kind_of(&self, value: &Value) -> Option<Kind> {
        self.deduce(Some(value)).map(|deduced| deduced.kind)
    }
}

fn field_type<T: Type>(ty: &T, name: &str) -> Option<T> {
    ty.field(name).or_else(|| ty.values())
}

fn map_of(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn list_of(value: Option<&Value>) -> Option<&Vec<Value>> {
    value.and_then(Value::as_array)
}
