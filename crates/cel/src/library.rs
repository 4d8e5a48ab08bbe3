//! The functions, by library.

mod arithmetic;
pub(crate) mod base64;
mod convert;
pub(crate) mod format_string;
mod formats;
mod lists;
mod net;
mod optional;
mod quantity;
mod regexes;
mod semver;
mod sets;
mod strings;
pub(crate) mod time;
mod url;

use crate::authorizer;
use crate::error::EvalError;
use crate::eval::Context;
use crate::value::Val;

pub use formats::Format;
pub use net::Cidr;
pub use quantity::Quantity;
pub use semver::Semver;
pub use url::Url;

/// The implementation of a function for all of its overloads.
pub(crate) type Run = for<'a> fn(&[Val<'a>], &mut Context<'_>) -> Result<Val<'a>, EvalError>;

/// What a function answers when its arguments fit no overload.
pub(crate) fn no_overload() -> EvalError {
    EvalError::new("no such overload")
}

/// The implementation of a function.
pub(crate) fn find(name: &str) -> Option<Run> {
    let libraries = [
        arithmetic::find,
        convert::find,
        time::find,
        strings::find,
        lists::find,
        sets::find,
        regexes::find,
        optional::find,
        url::find,
        quantity::find,
        net::find,
        formats::find,
        semver::find,
        authorizer::find,
    ];
    libraries.iter().find_map(|library| library(name))
}
