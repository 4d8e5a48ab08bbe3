//! The built-in APIs as data: catalog, field schemas, strategies.
