//! The OpenAPI documents of what is served.
//!
//! [`OpenApi`] answers requests below `/openapi`: an index of documents of version 3, the documents, one for each group and
//! version, and one document of version 2 about everything. They are made from the resources of an
//! [`ApiSet`](concord_endpoints::ApiSet) and the schemas of their kinds when somebody asks for them, made again only if what
//! they are about changed, and kept compressed. Clients learn from them which fields a kind has, how patches merge, and
//! which parameters a request can have.
//!
//! This crate knows no concrete resource: what it says it has from the set, from the [`Contents`] it is given, and from
//! `meta.json` for the types that all APIs share. It never says anything about a request; what is served is decided
//! elsewhere.
//!
//! Start with [`OpenApi`], then `paths.rs` for the operations, `components.rs` for the types, `custom.rs` for those of custom
//! resources, `swagger.rs` and
//! `everything.rs` for version 2, and [`ExtensionDocument`] for what other servers say.

mod annotations;
mod archive;
mod components;
mod custom;
mod deflated;
mod document;
mod everything;
mod extensions;
mod leaf;
mod legacy;
mod member;
mod mend;
mod merge;
mod names;
mod negotiate;
mod operation;
mod packed;
mod parameters;
mod paths;
mod protobuf;
mod publication;
mod run;
mod sendable;
mod serve;
mod swagger;

pub use archive::DocumentArchive;
pub use components::Definitions;
pub use document::{OPENID, Service};
pub use extensions::{
    ExtensionDocument, ExtensionDocumentSource, ExtensionDocuments, InvalidDocument, SwaggerPart,
};
pub use serve::{Contents, OpenApi};
