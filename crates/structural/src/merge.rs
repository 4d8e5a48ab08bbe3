//! What server-side apply knows of a custom object.

use std::{fmt, sync::Arc};

use concord_merge::typed::{Kinds, ListKind, MapKind, Scalar, Type};
use concord_schema::Place;
use serde_json::Value;

use crate::{
    objectmeta::{object_meta, string_place},
    schema::{Additional, Kind, ListType, Node, NodeId, Schema},
};

/// A place of a custom object, as server-side apply sees it. Cheap to clone.
#[derive(Clone)]
pub struct MergeType(Inner);

#[derive(Clone)]
enum Inner {
    /// A node of the schema; `is_resource` if it has a type and metadata whatever the schema says.
    Node { schema: Arc<Schema>, id: NodeId, is_resource: bool },
    /// Metadata, and the texts that say what an object is.
    Place(Place),
    /// Any value; each field of an object has an owner of its own.
    Deduced,
    /// Any value, with one owner.
    Untyped,
}

impl MergeType {
    /// The type of the objects of a version.
    #[must_use]
    pub fn new(schema: Arc<Schema>) -> Self {
        let id = schema.root().id();
        Self(Inner::Node { schema, id, is_resource: true })
    }

    fn child(schema: &Arc<Schema>, node: Node<'_>) -> Self {
        let is_resource = node.is_embedded_resource();
        Self(Inner::Node { schema: schema.clone(), id: node.id(), is_resource })
    }
}

/// The type of the members that are not declared. `None` forbids them.
fn values(schema: &Arc<Schema>, node: Node<'_>) -> Option<MergeType> {
    match node.additional() {
        Additional::Schema(values) => Some(MergeType::child(schema, values)),
        Additional::Bool(true) => Some(MergeType(Inner::Deduced)),
        Additional::Bool(false) => None,
        // Upstream adds the properties of every resource before it looks whether there are any.
        Additional::Unset => {
            let is_empty = node.properties().len() == 0 && !(node.is_root() || node.is_embedded_resource());
            (node.is_preserved() || is_empty).then_some(MergeType(Inner::Deduced))
        }
    }
}

impl Type for MergeType {
    fn kinds(&self) -> Kinds<'_> {
        let any = |map| Kinds { scalar: Some(Scalar::Untyped), list: Some(ListKind::Atomic), map: Some(map) };
        match &self.0 {
            Inner::Place(place) => place.kinds(),
            Inner::Deduced => any(MapKind::Granular),
            Inner::Untyped => any(MapKind::Atomic),
            Inner::Node { schema, id, .. } => node_kinds(schema.at(*id)),
        }
    }

    fn field(&self, name: &str) -> Option<Self> {
        match &self.0 {
            Inner::Place(place) => Type::field(place, name).map(Inner::Place).map(Self),
            Inner::Deduced | Inner::Untyped => None,
            Inner::Node { schema, id, is_resource } => match name {
                "metadata" if *is_resource => Some(Self(Inner::Place(object_meta().place().clone()))),
                "apiVersion" | "kind" if *is_resource => Some(Self(Inner::Place(string_place()))),
                name => schema.at(*id).property(name).map(|node| Self::child(schema, node)),
            },
        }
    }

    fn values(&self) -> Option<Self> {
        match &self.0 {
            Inner::Place(place) => place.values().map(Inner::Place).map(Self),
            Inner::Deduced => Some(Self(Inner::Deduced)),
            Inner::Untyped => Some(Self(Inner::Untyped)),
            Inner::Node { schema, id, .. } => values(schema, schema.at(*id)),
        }
    }

    fn items(&self) -> Option<Self> {
        match &self.0 {
            Inner::Place(place) => Type::items(place).map(Inner::Place).map(Self),
            Inner::Deduced | Inner::Untyped => Some(Self(Inner::Untyped)),
            Inner::Node { schema, id, .. } => {
                let items = schema.at(*id).items().map(|node| Self::child(schema, node));
                Some(items.unwrap_or(Self(Inner::Untyped)))
            }
        }
    }

    fn default_of(&self, field: &str) -> Option<Value> {
        match &self.0 {
            Inner::Place(place) => place.default_of(field),
            Inner::Deduced | Inner::Untyped => None,
            Inner::Node { schema, id, .. } => schema.at(*id).property(field)?.default_value().cloned(),
        }
    }

    fn is_free_form(&self) -> bool {
        match &self.0 {
            Inner::Place(place) => place.is_free_form(),
            Inner::Deduced => true,
            Inner::Untyped => false,
            Inner::Node { schema, id, is_resource } => {
                let node = schema.at(*id);
                let is_map = matches!(node.kind(), Kind::Object | Kind::Any) && !node.is_atomic_map();
                let is_bare = node.properties().len() == 0 && !is_resource;
                is_map && is_bare && matches!(node.additional(), Additional::Unset | Additional::Bool(true))
            }
        }
    }
}

fn node_kinds(node: Node<'_>) -> Kinds<'_> {
    let map = Some(if node.is_atomic_map() { MapKind::Atomic } else { MapKind::Granular });
    let list = Some(match node.list_type() {
        ListType::Unset | ListType::Atomic => ListKind::Atomic,
        ListType::Set => ListKind::Set,
        ListType::Map => ListKind::Map(node.map_keys()),
    });
    let scalar = |scalar| Kinds { scalar: Some(scalar), ..Kinds::default() };
    match node.kind() {
        Kind::Any => Kinds { scalar: Some(Scalar::Untyped), list, map },
        Kind::Object => Kinds { map, ..Kinds::default() },
        Kind::Array => Kinds { list, ..Kinds::default() },
        Kind::Boolean => scalar(Scalar::Boolean),
        Kind::Integer | Kind::Number => scalar(Scalar::Numeric),
        Kind::String if matches!(node.format(), "" | "byte") => scalar(Scalar::String),
        Kind::String => scalar(Scalar::Untyped),
    }
}

impl fmt::Debug for MergeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Node { schema, id, .. } => write!(f, "MergeType({:?})", schema.at(*id)),
            Inner::Place(place) => write!(f, "MergeType({place:?})"),
            Inner::Deduced => f.write_str("MergeType(deduced)"),
            Inner::Untyped => f.write_str("MergeType(untyped)"),
        }
    }
}
