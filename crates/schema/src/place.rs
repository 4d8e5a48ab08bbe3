//! One type of the table, as the other crates ask for it.

use std::{fmt, sync::Arc};

use concord_codec::{Field as Strict, Fields};
use concord_merge::{
    strategic::{PatchField, PatchSchema},
    typed::{Kinds, ListKind, MapKind, Scalar as MergeScalar, Type},
};
use serde_json::Value;

use crate::{
    builder::{FREE_FORM, RAW},
    types::{Field, ListType, Presence, Scalar, Shape, TypeId, Types, find},
};

/// A handle to a type: what stands at one place of an object. Cheap to clone.
#[derive(Clone)]
pub struct Place {
    types: Arc<Types>,
    id: TypeId,
}

impl Place {
    pub(crate) fn new(types: Arc<Types>, id: TypeId) -> Self {
        Self { types, id }
    }

    /// The table of types it is in.
    pub fn types(&self) -> &Arc<Types> {
        &self.types
    }

    pub(crate) fn id(&self) -> TypeId {
        self.id
    }

    /// Another type of the same table, as the [`Shape`] of this one names it.
    pub fn at(&self, id: TypeId) -> Self {
        Self { types: self.types.clone(), id }
    }

    /// What Go calls the type: `v1.PodSpec`.
    pub fn go_name(&self) -> &str {
        &self.types.node(self.id).go
    }

    /// What OpenAPI calls the type, `io.k8s.api.core.v1.PodSpec`, if it has a definition of its own there.
    pub fn definition(&self) -> Option<&str> {
        self.types.node(self.id).definition.as_deref()
    }

    /// What the type is made of.
    pub fn shape(&self) -> &Shape {
        &self.types.node(self.id).shape
    }

    /// The fields of a struct, by name; of anything else there are none.
    pub fn fields(&self) -> impl Iterator<Item = (&str, Place)> {
        self.declared().iter().map(|field| (&*field.name, self.at(field.ty)))
    }

    /// When Go writes a field of a struct; `None` for a field that there is not.
    pub fn presence(&self, field: &str) -> Option<Presence> {
        self.declared_field(field).map(|field| field.presence)
    }

    fn declared(&self) -> &[Field] {
        match self.shape() {
            Shape::Struct { fields, .. } => fields,
            _ => &[],
        }
    }

    fn declared_field(&self, name: &str) -> Option<&Field> {
        find(self.declared(), name)
    }

    /// What strict decoding looks at: types that Go reads by hand are not looked into.
    fn strict(&self, id: TypeId) -> Strict<'_> {
        match self.types.node(id).shape {
            Shape::Struct { .. } | Shape::Map { .. } | Shape::List { .. } => Strict::Of(self, id.0),
            Shape::Either { .. } | Shape::Scalar(_) => Strict::Opaque,
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({})", self.go_name())
    }
}

impl Fields for Place {
    fn root(&self) -> Strict<'_> {
        self.strict(self.id)
    }

    fn member(&self, place: u32, name: &str) -> Strict<'_> {
        match &self.types.node(TypeId(place)).shape {
            Shape::Struct { fields, .. } => {
                find(fields, name).map_or(Strict::Unknown, |field| self.strict(field.ty))
            }
            Shape::Map { values, .. } => self.strict(*values),
            _ => Strict::Opaque,
        }
    }

    fn items(&self, place: u32) -> Strict<'_> {
        match self.types.node(TypeId(place)).shape {
            Shape::List { items, .. } => self.strict(items),
            _ => Strict::Opaque,
        }
    }
}

impl Type for Place {
    fn kinds(&self) -> Kinds<'_> {
        match self.shape() {
            Shape::Struct { atomic, .. } | Shape::Map { atomic, .. } => {
                Kinds { map: Some(map_kind(*atomic)), ..Kinds::default() }
            }
            Shape::List { list_type, .. } => Kinds { list: Some(list_type.into()), ..Kinds::default() },
            Shape::Either { .. } => any(MapKind::Granular),
            Shape::Scalar(scalar) => scalar_kinds(*scalar),
        }
    }

    fn field(&self, name: &str) -> Option<Self> {
        self.declared_field(name).map(|field| self.at(field.ty))
    }

    fn values(&self) -> Option<Self> {
        match self.shape() {
            Shape::Map { values, .. } => Some(self.at(*values)),
            Shape::Scalar(Scalar::Raw) => Some(self.at(RAW)),
            Shape::Either { .. } | Shape::Scalar(Scalar::FreeForm | Scalar::FieldsV1) => {
                Some(self.at(FREE_FORM))
            }
            _ => None,
        }
    }

    fn items(&self) -> Option<Self> {
        match self.shape() {
            Shape::List { items, .. } => Some(self.at(*items)),
            Shape::Either { .. } | Shape::Scalar(Scalar::Raw | Scalar::FreeForm) => Some(self.at(RAW)),
            _ => None,
        }
    }

    fn default_of(&self, field: &str) -> Option<Value> {
        self.declared_field(field)?.rare.as_ref()?.default.clone()
    }

    fn is_free_form(&self) -> bool {
        matches!(self.shape(), Shape::Either { .. } | Shape::Scalar(Scalar::FreeForm | Scalar::FieldsV1))
    }
}

fn map_kind(atomic: bool) -> MapKind {
    if atomic { MapKind::Atomic } else { MapKind::Granular }
}

fn any(map: MapKind) -> Kinds<'static> {
    Kinds { scalar: Some(MergeScalar::Untyped), list: Some(ListKind::Atomic), map: Some(map) }
}

fn scalar_kinds(scalar: Scalar) -> Kinds<'static> {
    let scalar = match scalar {
        Scalar::String | Scalar::Bytes => MergeScalar::String,
        Scalar::Bool => MergeScalar::Boolean,
        Scalar::Int32 | Scalar::Int64 | Scalar::Float64 => MergeScalar::Numeric,
        // Their OpenAPI formats are none that upstream's apply knows.
        Scalar::Time | Scalar::MicroTime | Scalar::Quantity | Scalar::IntOrString => MergeScalar::Untyped,
        Scalar::Raw => return any(MapKind::Atomic),
        Scalar::FreeForm => return any(MapKind::Granular),
        Scalar::FieldsV1 => return Kinds { map: Some(MapKind::Granular), ..Kinds::default() },
    };
    Kinds { scalar: Some(scalar), ..Kinds::default() }
}

impl<'a> From<&'a ListType> for ListKind<'a> {
    fn from(list_type: &'a ListType) -> Self {
        match list_type {
            ListType::Atomic => Self::Atomic,
            ListType::Set => Self::Set,
            ListType::Map(keys) => Self::Map(keys),
        }
    }
}

impl PatchSchema for Place {
    fn name(&self) -> &str {
        self.types.node(self.id).short_name()
    }

    fn field(&self, name: &str) -> Option<PatchField<Self>> {
        let field = self.declared_field(name)?;
        let value = self.at(field.ty);
        let merge_key = field.rare.as_ref().and_then(|rare| rare.merge_key.as_ref());
        Some(PatchField {
            schema: Type::items(&value).unwrap_or(value),
            strategy: field.strategy,
            merge_key: merge_key.map(|key| key.to_string()),
        })
    }
}
