//! Kubernetes objects in protobuf, by tables of field numbers.
//!
//! What a field is comes from its schema, where it stands on the wire from a table of [`Numbers`]; [`Messages`] puts
//! the two together once, and a [`Codec`] reads and writes objects of one kind with them. The bytes are those that
//! kube-apiserver writes: fields in the order of their numbers, values that are not pointers in Go always, maps sorted.
//!
//! The crate knows no kind and does no I/O. It never panics on what it reads, and never goes deeper than objects in
//! JSON may be.
//!
//! Start with [`Codec`], [`Unknown`] and [`Messages`].

mod decode;
mod discovery;
mod encode;
mod error;
mod frame;
mod messages;
mod numbers;
mod read;
mod scalar;
mod unknown;
mod write;

pub use discovery::group_discovery_list;
pub use error::Error;
pub use frame::watch_event;
pub use messages::{Codec, Messages, MessagesBuilder};
pub use numbers::Numbers;
pub use unknown::{ListMeta, Unknown};
