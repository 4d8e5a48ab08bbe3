//! The built-in APIs at work: resources with strategies, made from the catalog.
//!
//! `concord-builtins` says what there is; this crate makes resources of it that a server can serve. [`api_set`] is the
//! whole of it: the groups and versions of a release that [`RuntimeConfig`] turns on, each resource with its schema, its
//! storage and its strategy. What a table cannot say about a kind stands in `kinds/`, one small file each.
//!
//! It never does I/O, and nothing of it is known to the generic server: an extension server makes its resources in the
//! same way.

mod assembly;
mod conversion;
mod gated;
mod generation;
mod kinds;
mod reset;
mod rules;
mod runtime_config;
mod stored;
mod strategy;
mod virtuals;

pub use assembly::{Settings, api_set};
pub use concord_builtins::{FeatureGates, Release};
pub use runtime_config::{RuntimeConfig, RuntimeConfigError};
pub use stored::as_json;
pub use virtuals::Virtuals;
