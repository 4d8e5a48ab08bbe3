//! Errors about fields of an object, and the paths that name those fields.

mod error;
mod path;

pub use error::{BadValue, Error, ErrorType, aggregate};
pub use path::Path;
