//! The types of built-in kinds, as expressions see them.
//!
//! They are what upstream makes of its OpenAPI definitions: what has no type there cannot be seen.

use std::sync::Arc;

use concord_cel::{Decl, DeclKind, FieldDecl, ObjectDecl, Type, escape};
use concord_schema::{Place, Scalar, Shape};

/// The type of what stands at a place, if expressions can see it. Its parts are named after it.
pub(super) fn of(place: &Place, name: &str) -> Option<Decl> {
    declare(place, name, &mut Vec::new())
}

/// `above` are the structures that the place is in: one that contains itself is seen once.
fn declare(place: &Place, name: &str, above: &mut Vec<String>) -> Option<Decl> {
    match place.shape() {
        Shape::Struct { .. } => object(place, name, above),
        Shape::Map { values, .. } => {
            Some(Decl::map(declare(&place.at(*values), &format!("{name}.@elem"), above)?))
        }
        Shape::List { items, .. } => {
            Some(Decl::list(declare(&place.at(*items), &format!("{name}.@idx"), above)?))
        }
        Shape::Either { .. } => None,
        Shape::Scalar(scalar) => self::scalar(*scalar, name),
    }
}

fn object(place: &Place, name: &str, above: &mut Vec<String>) -> Option<Decl> {
    let definition = place.definition().unwrap_or_else(|| place.go_name()).to_owned();
    if above.contains(&definition) {
        return None;
    }
    above.push(definition);
    let fields = place.fields().filter_map(|(field, place)| {
        let decl = Arc::new(declare(&place, &format!("{name}.{field}"), above)?);
        Some((escape(field)?, FieldDecl { decl, property: field.to_owned() }))
    });
    let fields = fields.collect();
    above.pop();
    let object = ObjectDecl { name: name.to_owned(), fields };
    Some(Decl { kind: DeclKind::Object(Arc::new(object)), max_elements: 0, min_serialized_size: 2 })
}

fn scalar(scalar: Scalar, name: &str) -> Option<Decl> {
    Some(match scalar {
        Scalar::String | Scalar::Quantity => Decl::simple(Type::String),
        Scalar::Bool => Decl::simple(Type::Bool),
        Scalar::Int32 | Scalar::Int64 => Decl::simple(Type::Int),
        Scalar::Float64 => Decl::simple(Type::Double),
        Scalar::Bytes => Decl::simple(Type::Bytes),
        Scalar::Time | Scalar::MicroTime => Decl::simple(Type::Timestamp),
        Scalar::IntOrString => Decl::dynamic(),
        // Objects of which nothing is known.
        Scalar::Raw | Scalar::FieldsV1 => Decl::object(name, []),
        Scalar::FreeForm => return None,
    })
}
