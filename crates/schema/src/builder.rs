//! Describing types.

use std::{collections::HashSet, sync::Arc};

use concord_merge::strategic::PatchStrategy;
use serde_json::Value;

use crate::{
    place::Place,
    types::{Field, ListType, Name, Node, Presence, Scalar, Shape, TypeId, Types},
};

/// The types that every table has: any JSON, in its two kinds.
pub(crate) const RAW: TypeId = TypeId(0);
pub(crate) const FREE_FORM: TypeId = TypeId(1);

/// Makes a [`Types`] table.
///
/// ```
/// use concord_schema::{Builder, Presence, Scalar};
/// let mut types = Builder::new();
/// let string = types.scalar("string", Scalar::String);
/// let labels = types.map("map[string]string", string);
/// let pod = types.structure("v1.Pod").field("labels", labels, Presence::NonZero).add();
/// let place = types.finish().place(pod);
/// ```
#[derive(Default)]
pub struct Builder {
    nodes: Vec<Node>,
    names: HashSet<Name>,
}

/// The table, before it is shared.
#[derive(Clone, Debug)]
pub struct Finished(Arc<Types>);

impl Finished {
    /// The handle of a type.
    pub fn place(&self, id: TypeId) -> Place {
        Place::new(self.0.clone(), id)
    }
}

impl Builder {
    /// An empty table.
    pub fn new() -> Self {
        let mut builder = Self::default();
        builder.scalar("runtime.RawExtension", Scalar::Raw);
        builder.scalar("interface {}", Scalar::FreeForm);
        builder
    }

    /// A text, kept once.
    pub fn name(&mut self, text: &str) -> Name {
        if let Some(name) = self.names.get(text) {
            return name.clone();
        }
        let name = Name::from(text);
        self.names.insert(name.clone());
        name
    }

    /// Adds a type. `go` is what Go's error texts call it.
    pub fn add(&mut self, go: &str, shape: Shape) -> TypeId {
        let id = TypeId(u32::try_from(self.nodes.len()).expect("fewer types than fill the memory"));
        let go = self.name(go);
        self.nodes.push(Node { go, definition: None, shape: sorted(shape) });
        id
    }

    /// Says what the OpenAPI definition of a type is called.
    pub fn set_definition(&mut self, id: TypeId, name: &str) {
        let name = self.name(name);
        self.nodes[id.0 as usize].definition = Some(name);
    }

    /// Adds a type that is [`define`](Self::define)d later: types may contain themselves.
    pub fn declare(&mut self, go: &str) -> TypeId {
        self.add(go, Shape::Scalar(Scalar::Raw))
    }

    /// Says what a declared type is.
    pub fn define(&mut self, id: TypeId, shape: Shape) {
        self.nodes[id.0 as usize].shape = sorted(shape);
    }

    /// Adds a type without fields.
    pub fn scalar(&mut self, go: &str, scalar: Scalar) -> TypeId {
        self.add(go, Shape::Scalar(scalar))
    }

    /// Adds a map whose keys have owners of their own.
    pub fn map(&mut self, go: &str, values: TypeId) -> TypeId {
        self.add(go, Shape::Map { values, atomic: false })
    }

    /// Adds a list.
    pub fn list(&mut self, go: &str, items: TypeId, list_type: ListType) -> TypeId {
        self.add(go, Shape::List { items, list_type })
    }

    /// Begins a struct.
    pub fn structure(&mut self, go: &str) -> StructBuilder<'_> {
        let go = go.to_owned();
        StructBuilder { builder: self, go, fields: Vec::new(), atomic: false }
    }

    /// The table.
    ///
    /// # Panics
    ///
    /// When a type refers to one of another table, which is a mistake of the caller.
    pub fn finish(self) -> Finished {
        let len = self.nodes.len();
        let known = |id: &TypeId| (id.0 as usize) < len;
        for node in &self.nodes {
            assert!(children(&node.shape).iter().all(known), "{} refers to a foreign type", node.go);
        }
        Finished(Arc::new(Types { nodes: self.nodes.into() }))
    }
}

fn sorted(mut shape: Shape) -> Shape {
    if let Shape::Struct { fields, .. } = &mut shape {
        fields.sort_by(|one, other| one.name.cmp(&other.name));
    }
    shape
}

fn children(shape: &Shape) -> Vec<TypeId> {
    match shape {
        Shape::Struct { fields, .. } => fields.iter().map(|field| field.ty).collect(),
        Shape::Map { values, .. } => vec![*values],
        Shape::List { items, .. } => vec![*items],
        Shape::Either { object, list, .. } => list.iter().copied().chain([*object]).collect(),
        Shape::Scalar(_) => Vec::new(),
    }
}

/// A struct that is being described.
pub struct StructBuilder<'a> {
    builder: &'a mut Builder,
    go: String,
    fields: Vec<Field>,
    atomic: bool,
}

impl StructBuilder<'_> {
    /// Adds a field.
    #[must_use]
    pub fn field(mut self, name: &str, ty: TypeId, presence: Presence) -> Self {
        let name = self.builder.name(name);
        self.fields.push(Field::new(name, ty, presence));
        self
    }

    /// Sets how the field that was added last merges in a strategic merge patch.
    #[must_use]
    pub fn patch(self, strategy: PatchStrategy, merge_key: Option<&str>) -> Self {
        let merge_key = merge_key.map(|key| self.builder.name(key));
        self.change_last(|field| field.patch(strategy, merge_key))
    }

    /// Sets the default of the field that was added last: see [`Field::default_value`].
    #[must_use]
    pub fn default_value(self, default: Value) -> Self {
        self.change_last(|field| field.default_value(default))
    }

    /// Sets where the field that was added last is embedded from: see [`Field::embedded`].
    #[must_use]
    pub fn embedded(self, embedded: &str) -> Self {
        let embedded = self.builder.name(embedded);
        self.change_last(|field| field.embedded(embedded))
    }

    /// The struct has one owner in server-side apply.
    #[must_use]
    pub fn atomic(mut self) -> Self {
        self.atomic = true;
        self
    }

    /// Adds the struct to the table.
    pub fn add(self) -> TypeId {
        self.builder.add(&self.go, Shape::Struct { fields: self.fields.into(), atomic: self.atomic })
    }

    fn change_last(mut self, change: impl FnOnce(Field) -> Field) -> Self {
        if let Some(field) = self.fields.pop() {
            self.fields.push(change(field));
        }
        self
    }
}
