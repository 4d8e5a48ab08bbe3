//! The built-in APIs as data: catalog, field schemas, strategies.
//!
//! [`Catalog`] tells which resources a release serves, what discovery says of them, where they are stored and
//! how they behave when they are written. [`schema`] tells the fields of a kind: their types, how they merge,
//! when they are written. [`annotations`] has what is only said about them. Nothing here acts: the registry reads the data and does what it says. The crate
//! depends on no server, and nothing per kind is written in code that a table in `facts/` can say.
//!
//! Start with [`Catalog::of`], [`ResourceFacts`] and [`schema`]. [`FeatureGates`] are which features a server has.

mod annotations;
mod catalog;
mod features;
mod protobuf;
mod schemas;

pub use annotations::annotations;
pub use catalog::{
    Catalog, Deprecation, GroupFacts, InvalidRelease, NameRule, Priority, Propagation, Release,
    ResourceFacts, SelectableField, StatusOnCreate, StorageFacts, StrategyFacts, SubresourceFacts,
    VersionFacts, storage_version_hash,
};
pub use features::{FeatureGateError, FeatureGates};
pub use protobuf::{protobuf, read_protobuf};
pub use schemas::{schema, schema_in, schemas};
