//! The etcd engine: the log of [`concord_store`] on an etcd v3 cluster (3.4, 3.5, 3.6).
//!
//! A thin client over generated code: it fails over between endpoints, follows the whole keyspace in
//! one watch and turns everything etcd or the network may say into [`concord_store::Error`].
//!
//! It must never send a write twice, never call a write failed that may have happened, and never pass
//! on a log with a gap. It does not rely on etcd's progress notifications, which old versions get wrong:
//! the watch shows every revision, so the last one seen is how current a follower is.
//!
//! Start with [`Config`] and [`EtcdStore`]; `status.rs` holds the meaning of every failure.

mod call;
mod commits;
mod compactor;
mod config;
mod convert;
mod follow;
mod group;
mod lease;
mod member;
mod pb;
mod scan;
mod status;
mod store;
mod txn;
mod watch;

pub use config::{ClientCertificate, Config, TlsConfig};
pub use store::EtcdStore;
