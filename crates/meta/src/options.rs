//! What the query parameters of a request mean.
//!
//! Parameters come as pairs, decoded. Of several with one name the first counts, unknown ones are
//! ignored, and `0` and `false` (in any case) are the only false booleans: `?watch` is true.

mod continue_token;
mod list;
mod write;

use crate::{GroupKind, Status, field, go};

pub use continue_token::ContinueToken;
pub use list::{ListOptions, ReadAt, ResourceVersionMatch};
pub use write::{
    CreateOptions, DeleteOptions, FieldValidation, PatchOptions, Preconditions, PropagationPolicy,
};

/// The parameters of a request, looked up by name.
#[derive(Debug)]
pub struct Query<'a, S>(pub &'a [(S, S)]);

impl<S> Clone for Query<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Query<'_, S> {}

impl<'a, S: AsRef<str>> Query<'a, S> {
    fn all(self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key.as_ref() == name).map(|(_, value)| value.as_ref())
    }

    fn first(self, name: &str) -> Option<&'a str> {
        self.all(name).next()
    }

    fn text(self, name: &str) -> &'a str {
        self.first(name).unwrap_or_default()
    }

    fn flag(self, name: &str) -> Option<bool> {
        self.first(name).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    fn number(self, name: &str) -> Result<Option<i64>, Status> {
        self.first(name).map(go::parse_int).transpose().map_err(Status::bad_request)
    }
}

/// 422, if there is anything wrong with the options of this kind.
fn refuse(kind: &str, errors: &[field::Error]) -> Result<(), Status> {
    match errors {
        [] => Ok(()),
        errors => Err(Status::invalid(&GroupKind::new("meta.k8s.io", kind), "", errors)),
    }
}
