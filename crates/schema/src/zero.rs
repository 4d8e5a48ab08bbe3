//! What Go writes for a value that was never set.

use serde_json::{Map, Value};

use crate::types::{Field, Presence, Scalar, Shape, TypeId, Types};

/// The zero value of a type. Only structs hold structs that are always written, and Go's cannot hold
/// themselves, so the recursion ends.
pub(crate) fn zero(types: &Types, id: TypeId) -> Value {
    match &types.node(id).shape {
        Shape::Struct { fields, .. } => Value::Object(zero_fields(types, fields)),
        Shape::Map { .. } | Shape::List { .. } | Shape::Either { .. } => Value::Null,
        Shape::Scalar(scalar) => zero_scalar(*scalar),
    }
}

fn zero_fields(types: &Types, fields: &[Field]) -> Map<String, Value> {
    fields.iter().filter_map(|field| Some((field.name.to_string(), zero_field(types, field)?))).collect()
}

/// What stands for a field that was not given, if anything does.
pub(crate) fn zero_field(types: &Types, field: &Field) -> Option<Value> {
    match field.presence {
        Presence::Given | Presence::NonZero => None,
        Presence::Always => Some(zero(types, field.ty)),
        Presence::Nullable => Some(Value::Null),
    }
}

fn zero_scalar(scalar: Scalar) -> Value {
    match scalar {
        Scalar::String => "".into(),
        Scalar::Bool => false.into(),
        Scalar::Int32 | Scalar::Int64 | Scalar::Float64 | Scalar::IntOrString => 0.into(),
        Scalar::Quantity => "0".into(),
        Scalar::Bytes
        | Scalar::Time
        | Scalar::MicroTime
        | Scalar::Raw
        | Scalar::FreeForm
        | Scalar::FieldsV1 => Value::Null,
    }
}
