//! The table of types.

use std::{fmt, sync::Arc};

use concord_merge::strategic::PatchStrategy;
use serde_json::Value;

/// A text that many fields share.
pub type Name = Arc<str>;

/// A type in a [`Types`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub(crate) u32);

/// The types of a set of kinds.
pub struct Types {
    pub(crate) nodes: Box<[Node]>,
}

/// A type and what Go calls it in error texts: `v1.PodSpec`, `[]v1.Container`, `int32`, `v1.PullPolicy`.
pub(crate) struct Node {
    pub(crate) go: Name,
    /// The name of its OpenAPI definition, if it has one of its own.
    pub(crate) definition: Option<Name>,
    pub(crate) shape: Shape,
}

/// What a type is made of.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Named fields, sorted by name.
    Struct {
        /// The fields.
        fields: Box<[Field]>,
        /// Whether the struct has one owner in server-side apply.
        atomic: bool,
    },
    /// Keys of the client's choice.
    Map {
        /// The type of the values.
        values: TypeId,
        /// Whether the map has one owner in server-side apply.
        atomic: bool,
    },
    /// A list.
    List {
        /// The type of the items.
        items: TypeId,
        /// What identifies the items.
        list_type: ListType,
    },
    /// An object of one type, or something simple in its place. A type that Go reads by hand, so that
    /// unknown fields inside are dropped without a word.
    Either {
        /// The type of an object.
        object: TypeId,
        /// The type of a list, where one may stand here.
        list: Option<TypeId>,
        /// Whether a boolean may stand here.
        boolean: bool,
    },
    /// Anything else.
    Scalar(Scalar),
}

/// A type without fields of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// A string.
    String,
    /// A boolean.
    Bool,
    /// An integer of 32 bits.
    Int32,
    /// An integer of 64 bits.
    Int64,
    /// A number.
    Float64,
    /// Bytes, written in base64.
    Bytes,
    /// A moment, written to the second.
    Time,
    /// A moment, written to the microsecond.
    MicroTime,
    /// An amount, such as `500m`.
    Quantity,
    /// A 32-bit integer or a string.
    IntOrString,
    /// Any JSON, with one owner: upstream's `RawExtension`.
    Raw,
    /// Any JSON, whose objects have an owner per field.
    FreeForm,
    /// The object that managedFields keep. The rest is as for [`Scalar::FreeForm`].
    FieldsV1,
}

/// What identifies the items of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// Nothing: the list has one owner.
    Atomic,
    /// Their value.
    Set,
    /// These fields of theirs.
    Map(Box<[String]>),
}

/// A field of a struct.
#[derive(Clone)]
pub struct Field {
    pub(crate) name: Name,
    pub(crate) ty: TypeId,
    pub(crate) presence: Presence,
    pub(crate) strategy: PatchStrategy,
    pub(crate) required: bool,
    pub(crate) retains_keys: bool,
    /// What few fields have.
    pub(crate) rare: Option<Box<Rare>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Rare {
    pub(crate) merge_key: Option<Name>,
    pub(crate) default: Option<Value>,
    /// The embedded Go structs the field comes from, such as `VolumeSource`. They show in error texts.
    pub(crate) embedded: Option<Name>,
    /// The features it belongs to, joined by `+`.
    pub(crate) feature: Option<Name>,
}

/// When Go writes a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// When it was given, even as zero: an optional pointer.
    Given,
    /// When it is neither zero nor empty: `omitempty` on a value. A list or map is always of this kind or
    /// [`Presence::Always`].
    NonZero,
    /// Always; what was not given is written as the zero of its type. A struct is of this kind even with
    /// `omitempty`, for Go knows no empty struct.
    Always,
    /// Always; what was not given is written as null: a pointer without `omitempty`.
    Nullable,
}

impl Types {
    pub(crate) fn node(&self, id: TypeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// The number of types.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the table has no types.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

impl fmt::Debug for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Types({})", self.len())
    }
}

impl Node {
    /// The name without its package, as Go's error texts call the struct a field is in.
    pub(crate) fn short_name(&self) -> &str {
        self.go.rsplit('.').next().unwrap_or(&self.go)
    }
}

impl Field {
    /// A field without patch strategy.
    pub fn new(name: Name, ty: TypeId, presence: Presence) -> Self {
        let strategy = PatchStrategy::Default;
        Self { name, ty, presence, strategy, required: false, retains_keys: false, rare: None }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its type: see [`Place::at`](crate::Place::at).
    pub fn ty(&self) -> TypeId {
        self.ty
    }

    /// Whether its OpenAPI definition says that it must be given.
    pub fn is_required(&self) -> bool {
        self.required
    }

    /// How a strategic merge patch merges it.
    pub fn strategy(&self) -> PatchStrategy {
        self.strategy
    }

    /// The key by which a strategic merge patch merges it.
    pub fn merge_key(&self) -> Option<&str> {
        self.rare.as_ref()?.merge_key.as_deref()
    }

    /// Whether clients put the keys that shall stay into a strategic merge patch of it.
    pub fn retains_keys(&self) -> bool {
        self.retains_keys
    }

    /// The features that it belongs to: a server without one of them drops it.
    pub fn features(&self) -> impl Iterator<Item = &str> {
        let names = self.rare.as_ref().and_then(|rare| rare.feature.as_deref());
        names.into_iter().flat_map(|names| names.split('+'))
    }

    /// Sets the features that the field belongs to, joined by `+`.
    #[must_use]
    pub fn of_feature(mut self, features: Name) -> Self {
        self.rare().feature = Some(features);
        self
    }

    /// Says that clients put the keys that shall stay into a strategic merge patch of the field.
    #[must_use]
    pub fn retaining_keys(mut self) -> Self {
        self.retains_keys = true;
        self
    }

    /// Says that the field must be given. That is told to those who read OpenAPI definitions; nothing checks it.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Sets how a strategic merge patch merges the field, and by which key.
    #[must_use]
    pub fn patch(mut self, strategy: PatchStrategy, merge_key: Option<Name>) -> Self {
        self.strategy = strategy;
        if merge_key.is_some() {
            self.rare().merge_key = merge_key;
        }
        self
    }

    /// Sets the value that a list item without this field is taken to have, where the field is one of the
    /// keys of the list.
    #[must_use]
    pub fn default_value(mut self, default: Value) -> Self {
        self.rare().default = Some(default);
        self
    }

    /// Sets the embedded Go structs that the field comes from, outermost first, joined by dots.
    #[must_use]
    pub fn embedded(mut self, embedded: Name) -> Self {
        self.rare().embedded = Some(embedded);
        self
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?} {:?}", self.name, self.ty, self.presence)
    }
}

/// Finds a field by binary search.
pub(crate) fn find<'a>(fields: &'a [Field], name: &str) -> Option<&'a Field> {
    fields.binary_search_by(|field| (*field.name).cmp(name)).ok().map(|at| &fields[at])
}
