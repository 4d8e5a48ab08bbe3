//! What the fields of a kind are: one compiled form for strict decoding, patches and server-side apply.
//!
//! All types of a set of kinds stand in one table, [`Types`]. A [`Place`] is a cheap handle to one of them
//! and is what the other crates ask: [`concord_codec::Fields`] for unknown and duplicate fields,
//! [`concord_merge::typed::Type`] for server-side apply, [`concord_merge::strategic::PatchSchema`] for
//! strategic merge patches. A [`Schema`] is the place of a whole kind; it gives an object the shape that it
//! would have after kube-apiserver had read it into its Go type and written it again.
//!
//! The crate knows no kind, built in or not, and no validation beyond types: who has kinds describes them
//! with a [`Builder`]. It never does I/O. Walks recurse, never deeper than [`MAX_DEPTH`] levels.
//!
//! Start with [`Builder`], [`Schema`] and [`Place`].

mod base64;
mod builder;
mod mismatch;
mod normalize;
mod place;
mod schema;
mod time;
mod types;
mod zero;

pub use base64::{decode as decode_base64, encode as encode_base64};
pub use builder::{Builder, Finished, StructBuilder};
pub use mismatch::Mismatch;
pub use normalize::MAX_DEPTH;
pub use place::Place;
pub use schema::Schema;
pub use time::{TimeError, format_time, parse_time};
pub use types::{Field, ListType, Name, Presence, Scalar, Shape, TypeId, Types};
