//! The compiled form of a version's schema.
//!
//! All nodes stand in one table and refer to each other by number. A property is a name and a node; the names are
//! parts of one text, each kept once. What few nodes have stands in tables of its own, where nodes that have the same
//! share it. For `{type: object, properties: {a: {type: string}, b: {type: string, maxLength: 5}}}` the tables are
//!
//! ```text
//! nodes    0: object, members 0..2   1: string   2: string, extra 0
//! members  0: "a" -> 1               1: "b" -> 2
//! names    "ab"
//! extras   0: limits 0
//! limits   0: max_length 5
//! ```

mod compile;
mod node;
mod pattern;

use std::fmt;

use serde_json::Value;

pub use compile::CompileError;
pub use node::{Additional, Node};
pub(crate) use pattern::Pattern;

use crate::{formats::Format, props::Props, rules::Rule};

/// The type a schema declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No type: int-or-string, a node that preserves unknown fields, or one inside of a junctor.
    Any,
    /// `string`.
    String,
    /// `number`.
    Number,
    /// `integer`.
    Integer,
    /// `boolean`.
    Boolean,
    /// `array`.
    Array,
    /// `object`.
    Object,
}

impl Kind {
    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "string" => Self::String,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "boolean" => Self::Boolean,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => Self::Any,
        }
    }

    /// What the schema calls it; empty for [`Kind::Any`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// Not given, which means atomic.
    Unset,
    /// `atomic`.
    Atomic,
    /// `set`.
    Set,
    /// `map`.
    Map,
}

/// The schema of one version, compiled: what pruning, defaulting, validation and server-side apply share.
///
/// It knows nothing of descriptions and other texts; those are published from the definition itself.
pub struct Schema {
    nodes: Box<[Data]>,
    members: Box<[Member]>,
    extras: Box<[Extra]>,
    limits: Box<[Limits]>,
    names: Box<str>,
    formats: Box<[NamedFormat]>,
    patterns: Box<[Pattern]>,
    /// Whether nothing is pruned, as definitions that were first written as v1beta1 may demand.
    pub(crate) preserves_all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(u32);

const ROOT: NodeId = NodeId(0);
/// No node.
const NONE: NodeId = NodeId(u32::MAX);
/// `additionalProperties: true` and `false`, in the place of a node.
const ALLOWED: NodeId = NodeId(u32::MAX - 1);
const FORBIDDEN: NodeId = NodeId(u32::MAX - 2);

/// A part of [`Schema::names`].
#[derive(Clone, Copy, PartialEq, Eq)]
struct Name {
    start: u32,
    end: u32,
}

struct Member {
    name: Name,
    node: NodeId,
}

struct NamedFormat {
    name: Name,
    format: Format,
}

const NO_FORMAT: u16 = u16::MAX;
const NO_EXTRA: u32 = u32::MAX;

struct Data {
    kind: Kind,
    list_type: ListType,
    flags: u16,
    format: u16,
    members: (u32, u32),
    items: NodeId,
    additional: NodeId,
    /// Its number, or [`NO_EXTRA`].
    extra: u32,
}

mod flag {
    pub(super) const NULLABLE: u16 = 1;
    pub(super) const PRESERVE: u16 = 1 << 1;
    pub(super) const EMBEDDED: u16 = 1 << 2;
    pub(super) const INT_OR_STRING: u16 = 1 << 3;
    pub(super) const EXCLUSIVE_MINIMUM: u16 = 1 << 4;
    pub(super) const EXCLUSIVE_MAXIMUM: u16 = 1 << 5;
    pub(super) const UNIQUE: u16 = 1 << 6;
    pub(super) const ATOMIC_MAP: u16 = 1 << 7;
    /// An ancestor preserves unknown fields.
    pub(super) const INSIDE_PRESERVED: u16 = 1 << 8;
    /// Whether something below (or the node itself) has a default, is an embedded resource, has a list type to
    /// check or rules: walks skip the rest.
    pub(super) const DEFAULTS_BELOW: u16 = 1 << 9;
    pub(super) const EMBEDDED_BELOW: u16 = 1 << 10;
    pub(super) const LISTS_BELOW: u16 = 1 << 11;
    pub(super) const RULES_BELOW: u16 = 1 << 12;
}

/// What few nodes have.
#[derive(Default, PartialEq)]
struct Extra {
    default: Option<Box<Value>>,
    limits: Option<u32>,
    junctors: Option<Box<Junctors>>,
    enumeration: Box<[Value]>,
    required: Box<[Name]>,
    map_keys: Box<[String]>,
    rules: Box<[Rule]>,
    pattern: Option<u32>,
}

/// The bounds of a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    pub(crate) maximum: Option<f64>,
    pub(crate) minimum: Option<f64>,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) max_items: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) max_properties: Option<i64>,
    pub(crate) min_properties: Option<i64>,
}

#[derive(Default, PartialEq, Eq)]
struct Junctors {
    all_of: Box<[NodeId]>,
    any_of: Box<[NodeId]>,
    one_of: Box<[NodeId]>,
    not: Option<NodeId>,
}

impl Schema {
    /// Compiles an `openAPIV3Schema`. What it should be and is not, [`crate::crd`] says; here only what cannot be
    /// compiled is refused.
    ///
    /// # Errors
    ///
    /// When the schema uses something that no structural schema can have.
    pub fn compile(schema: &Value) -> Result<Self, CompileError> {
        let empty = serde_json::Map::new();
        compile::compile(Props(schema.as_object().unwrap_or(&empty)))
    }

    /// The same for objects whose unknown fields all stay, which is what `spec.preserveUnknownFields` asks for.
    #[must_use]
    pub fn preserving_unknown_fields(self) -> Self {
        Self { preserves_all: true, ..self }
    }

    /// The same for a server that must get along with this minor version of Kubernetes: formats that came later demand
    /// nothing.
    #[must_use]
    pub fn compatible_with(mut self, minor: u16) -> Self {
        let later = self.formats.iter_mut().filter(|named| named.format.since() > minor);
        later.for_each(|named| named.format = Format::Unknown);
        self
    }

    pub(crate) fn of(props: Props<'_>) -> Result<Self, CompileError> {
        compile::compile(props)
    }

    /// The schema of the whole object.
    #[must_use]
    pub fn root(&self) -> Node<'_> {
        self.at(ROOT)
    }

    pub(crate) fn at(&self, id: NodeId) -> Node<'_> {
        Node { schema: self, id }
    }

    /// Whether any node has rules.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        self.root().has_rules_below()
    }

    /// The bytes the compiled form takes, apart from patterns that were used already.
    #[must_use]
    pub fn footprint(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.nodes)
            + size_of_val(&*self.members)
            + self.names.len()
            + size_of_val(&*self.formats)
            + self.patterns.iter().map(Pattern::footprint).sum::<usize>()
            + self.extras.iter().map(Extra::footprint).sum::<usize>()
            + size_of_val(&*self.limits)
    }

    fn data(&self, id: NodeId) -> &Data {
        &self.nodes[id.0 as usize]
    }

    fn text(&self, name: Name) -> &str {
        &self.names[name.start as usize..name.end as usize]
    }
}

impl Extra {
    fn footprint(&self) -> usize {
        size_of::<Self>()
            + self.default.as_deref().map_or(0, value_footprint)
            + self.junctors.as_deref().map_or(0, Junctors::footprint)
            + self.enumeration.iter().map(value_footprint).sum::<usize>()
            + size_of_val(&*self.required)
            + self.map_keys.iter().map(|key| size_of::<String>() + key.len()).sum::<usize>()
            + self.rules.iter().map(Rule::footprint).sum::<usize>()
    }
}

impl Junctors {
    fn footprint(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.all_of)
            + size_of_val(&*self.any_of)
            + size_of_val(&*self.one_of)
    }
}

fn value_footprint(value: &Value) -> usize {
    let inner = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_footprint).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| size_of::<String>() + name.len() + value_footprint(value))
            .sum(),
        _ => 0,
    };
    size_of::<Value>() + inner
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({} nodes)", self.nodes.len())
    }
}
