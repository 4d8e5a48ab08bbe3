//! Rules of custom resources (`x-kubernetes-validations`), compiled and evaluated.
//!
//! A [`RuleCompiler`] checks the rules of a definition: their types, what they can cost, and whether the defaults keep
//! them. [`Rules`] are those of one served schema, compiled once: they say which rules an object breaks, with
//! upstream's texts, limits of cost, comparison with the old object, and leniency towards what an update left alone.
//!
//! The crate does no input or output, never panics on a schema, an expression or an object, and takes no more time than
//! the budget of an object allows. Objects and schemas are walked recursively: callers decode them with a limit of
//! depth.
//!
//! Look first at [`Rules`] and [`RuleCompiler`].

mod compile;
mod compiler;
mod correlate;
mod decl;
mod evaluate;
mod field_path;
mod json;
mod place;
mod rules;
mod walk;

use concord_cel::Decl;
use concord_structural::Schema;

pub use compiler::RuleCompiler;
pub use rules::{Findings, Rules};

/// The type of the objects of a schema, as expressions see it; `None` if they cannot.
pub fn declaration(schema: &Schema) -> Option<Decl> {
    decl::of(schema.root(), true)
}
