//! Sets that meet another schema than the one they were made with.

use super::{Kind, ListKind, MapKind, Type};
use crate::fields::{FieldSet, PathElement};

/// A stored set under today's schema: where a place became atomic, whoever owned parts of it owns it whole.
/// The other direction needs nothing.
pub(crate) fn reconcile<T: Type>(set: &FieldSet, ty: &T) -> FieldSet {
    let places = set.first_level().map(|(element, member, below)| match type_below(element, ty) {
        None => (element.clone(), member, below.clone()),
        Some(ty) => {
            let (member, below) = reconcile_place(member, below, &ty);
            (element.clone(), member, below)
        }
    });
    FieldSet::from_first_level(places)
}

fn reconcile_place<T: Type>(member: bool, below: &FieldSet, ty: &T) -> (bool, FieldSet) {
    let kinds = ty.kinds();
    let atomic = match kinds.deduce(None).map(|deduced| deduced.kind) {
        None | Some(Kind::Scalar) => return (member, below.clone()),
        Some(Kind::Map) if ty.is_free_form() => return (member, below.clone()),
        Some(Kind::Map) => kinds.map == Some(MapKind::Atomic),
        Some(Kind::List) => kinds.list == Some(ListKind::Atomic),
    };
    match atomic {
        true if below.is_empty() => (member, FieldSet::new()),
        true => (true, FieldSet::new()),
        false => (member, reconcile(below, ty)),
    }
}

/// The set with the structs on the way to its members, so that they go when all they hold goes.
pub(crate) fn with_named_fields<T: Type>(set: &FieldSet, ty: &T) -> FieldSet {
    FieldSet::from_first_level(set.first_level().map(|(element, member, below)| {
        let named = match element {
            PathElement::Field(name) => !below.is_empty() && ty.field(name).is_some(),
            _ => false,
        };
        let below = type_below(element, ty).map_or_else(|| below.clone(), |ty| with_named_fields(below, &ty));
        (element.clone(), member || named, below)
    }))
}

fn type_below<T: Type>(element: &PathElement, ty: &T) -> Option<T> {
    match element {
        PathElement::Field(name) => super::field_type(ty, name),
        PathElement::Key(_) | PathElement::Value(_) | PathElement::Index(_) => ty.items(),
    }
}
