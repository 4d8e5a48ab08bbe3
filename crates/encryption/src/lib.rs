//! Encryption at rest: kube-apiserver's configuration file and its stored bytes.
//!
//! A [`Configuration`] is read from a file as kube-apiserver reads it, and [`Encryption`] is what follows from it: which
//! [`Providers`] seal and open the values of a resource. What they write a kube-apiserver with the same file can read,
//! and the other way round.
//!
//! The first provider writes, all of them read. A value that was not written by the first key of the first provider is
//! stale: it is right, but somebody who rotates keys wants it written again.
//!
//! Nothing here does I/O, and no key and no plain value is ever part of an error or of debug output.
//!
//! Start with [`Configuration::read`], then [`Providers`].

mod aes;
mod config;
mod error;
mod kms;
mod provider;
mod rules;
mod secretbox;
mod validation;
mod wrapped;

pub use config::{Configuration, Key, Kms, Provider, Rule};
pub use error::{ConfigError, OpenError, SealError};
pub use kms::{Envelope, Seed, key_id_hash};
pub use provider::{Opened, Providers, seal_of};
pub use rules::Encryption;
pub use wrapped::{SourceType, Wrapped, validate_key_id};
