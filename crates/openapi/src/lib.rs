//! The OpenAPI documents of what is served.
//!
//! [`OpenApi`] answers requests below `/openapi/v3`: an index of documents and the documents, one for each group
//! and version. They are made from the resources of an [`ApiSet`](concord_endpoints::ApiSet) and the schemas of
//! their kinds when somebody asks for them, and made again only for groups that changed. Clients learn from them
//! which fields a kind has, how patches merge, and which parameters a request can have.
//!
//! This crate knows no concrete resource: what it says it has from the set, and from `meta.json` for the types that
//! all APIs share. It never says anything about a request; what is served is decided elsewhere.
//!
//! Start with [`OpenApi`], then `paths.rs` for the operations and `components.rs` for the types.

mod components;
mod document;
mod names;
mod operation;
mod parameters;
mod paths;
mod publication;
mod serve;

pub use serve::OpenApi;
