//! The built-in APIs as data: catalog, field schemas, strategies.
//!
//! [`schema`] tells the fields of a kind: their types, how they merge, when they are written. Nothing here
//! acts: the registry reads the data and does what it says. The crate depends on no server, and nothing per
//! kind is written in code that a table can say.

mod schemas;

pub use schemas::{schema, schemas};
