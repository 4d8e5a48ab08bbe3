//! Everything about CustomResourceDefinitions that is a pure function.
//!
//! [`crd`] says what is wrong with a definition. A [`Schema`] is the schema of one version, compiled once and shared
//! by all that happens to a custom object: unknown fields are pruned, defaults are set, embedded metadata is coerced,
//! values are validated, with upstream's texts, and server-side apply asks its list and map types. Rules are not
//! evaluated here: a [`Node`] says which rules sit where and what the types around them are, and [`crd::CelCompiler`]
//! is how a definition's rules are checked by who can.
//!
//! The crate never does I/O, never panics on a schema or an object, and never takes longer than in proportion to
//! the object. Objects and schemas are walked recursively: callers decode them with a limit of depth.
//!
//! Start with [`Schema`], [`Node`] and [`crd::validate_create`].

mod coerce;
mod correlate;
pub mod crd;
mod default;
mod formats;
mod go;
mod jsonpath;
mod lists;
mod merge;
mod objectmeta;
mod props;
mod prune;
mod resource;
mod rules;
mod schema;
mod validate;

pub use coerce::{Malformed, Misshapen};
pub use correlate::{Correlation, KeyedItems};
pub use jsonpath::{JsonPath, JsonPathError, print as print_json_path_value};
pub use merge::MergeType;
pub use objectmeta::object_meta;
pub use prune::MAX_UNKNOWN_FIELDS;
pub use resource::{Scale, unchecked_rules, validate_type};
pub use rules::{Rule, Ruled, Step};
pub use schema::{Additional, CompileError, Kind, ListType, Node, Schema};
pub use validate::MAX_ERRORS;

/// A JSON object.
pub type Object = serde_json::Map<String, serde_json::Value>;
