//! The HTTP face of a registry: verbs, watches, tables, discovery.
//!
//! [`Apis`] answers every request below `/api` and `/apis` for the resources of an [`ApiSet`], which can be
//! replaced while requests are served: definitions of custom resources come and go. What a request asks for comes
//! from the handler chain, what happens to objects is the registry's business; this crate decides which resource
//! and verb is meant, in which form bodies come and go, and writes the answers.
//!
//! Objects pass through as bytes. They are parsed only where the client wants something else than JSON: YAML,
//! tables, metadata alone. Lists are written while they are sent, watches hold no more than one chunk, so that a
//! client that does not read costs next to nothing.
//!
//! This crate knows no concrete resource, keeps no state but the set and the lists that are being sent, and never lets bad input end a request in
//! any other way than with the answer kube-apiserver would give.
//!
//! Start with [`Apis`] and [`ApiSet`], then `route.rs` for which path means what.

mod apis;
mod body;
mod call;
mod discovery;
mod extensions;
mod form;
mod indent;
mod list_body;
mod protobuf;
mod route;
mod set;
mod shared;
mod transform;
mod verbs;
mod watch;

pub use apis::{Apis, Follower, MergedDiscovery, PeerDiscovery, Settings};
pub use extensions::{Extension, ExtensionSource, Extensions, Priority};
pub use set::{ApiGroup, ApiSet, ApiVersion, Columns, Endpoint, Origin};
