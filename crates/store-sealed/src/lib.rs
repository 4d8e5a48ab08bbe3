//! A store whose values are encrypted at rest.
//!
//! [`SealedStore`] stands before another store: it seals what is written and opens what is read, so that everything above
//! works on plain values. A [`Keyring`] says how, for the resource that a key belongs to, and can be replaced at any time.
//!
//! What cannot be opened is shown as [`concord_store::unreadable`], and read again when the keyring changes. No value and
//! no key is ever part of a log or an error.
//!
//! Start with [`SealedStore`], then [`Keyring`].

mod keyring;
mod kms;
mod places;
mod store;

pub use keyring::{Inspected, Keyring};
pub use kms::Rhythm;
pub use places::Places;
pub use store::SealedStore;
