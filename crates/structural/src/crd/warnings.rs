//! What a definition is accepted with a warning for.

use std::cell::RefCell;

use concord_meta::go;

use super::{Object, Props, part, spec::Spec};
use crate::{formats::Format, schema::Kind};

/// The formats that nothing checks, in the order of the schemas.
fn unrecognized_formats(definition: &Object, minor: u16) -> Vec<String> {
    let empty = Object::new();
    let spec = Spec::of(Props(part(definition, "spec", &empty)));
    let found = RefCell::new(Vec::new());
    spec.any_schema(|schema| {
        let format = schema.text("format");
        let known = Format::parse(Kind::parse(schema.kind()), format);
        if !format.is_empty() && (known == Format::Unknown || known.since() > minor) {
            found.borrow_mut().push(format.to_owned());
        }
        false
    });
    found.into_inner()
}

fn warnings(formats: impl Iterator<Item = String>) -> Vec<String> {
    formats.map(|format| format!("unrecognized format {}", go::quote(&format))).collect()
}

/// The warnings about a new definition, where the oldest server that has to understand it is 1.`minor`.
#[must_use]
pub fn warnings_on_create(definition: &Object, minor: u16) -> Vec<String> {
    warnings(unrecognized_formats(definition, minor).into_iter())
}

/// The warnings about what is new in a definition.
#[must_use]
pub fn warnings_on_update(definition: &Object, old: &Object, minor: u16) -> Vec<String> {
    let known = unrecognized_formats(old, minor);
    warnings(unrecognized_formats(definition, minor).into_iter().filter(|format| !known.contains(format)))
}
